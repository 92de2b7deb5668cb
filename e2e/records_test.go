package e2e

import (
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/custody"
)

// as is the Go client of token's owner.
func (s *service) as(token string) *client.Client {
	s.t.Helper()
	c, err := client.New(s.url, client.WithToken(token))
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func agreed() client.Consent {
	return client.Consent{Accepted: true, AgreementVersion: client.AgreementVersion, ConsentVersion: client.ConsentVersion, TextSHA256: client.TextSHA256([]byte(client.AgreementText)),
		ConsentingUserID: "user-7", ConsentingUserEmail: "consenting.person@example.com", AcceptedAt: time.Now()}
}

// The Go client through the whole of it: text, correction, review, context, records.
func TestTextThroughTheGoClient(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	writer, reader := s.as(s.issue("harbour", "solution_company_upload")), s.as(s.issue("harbour", "ai_reader"))
	text := client.TextSubmission{Filename: "note.txt", Payload: string(note("go-client")), Visibility: client.VisibilityPublicProfile, Consent: agreed(), IdempotencyKey: "key-of-the-text"}
	first, err := writer.SubmitText(t.Context(), "harbour", text)
	if err != nil || first.Status != client.StatusReady || first.Sequence != 9 || first.Response.Replayed {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := writer.SubmitText(t.Context(), "harbour", text); err != nil || again.UploadID != first.UploadID || !again.Response.Replayed {
		t.Errorf("%+v, %v", again, err)
	}
	second, err := writer.Correct(t.Context(), "harbour", first.UploadID, client.TextSubmission{Filename: "note.txt", Payload: "Better so.", Visibility: client.VisibilityInternal, Consent: agreed()})
	if err != nil || second.OriginalUploadID != first.UploadID {
		t.Fatalf("%+v, %v", second, err)
	}
	if attached, err := writer.AttachReview(t.Context(), "harbour", first.UploadID, client.ReviewReference{ReviewID: "rev-1", SourceURL: "https://reviews.example/1"}); err != nil || attached.EvaluationStatus != "not_evaluated" {
		t.Errorf("%+v, %v", attached, err)
	}
	served, err := reader.AIContext(t.Context(), "harbour", first.UploadID)
	if err != nil || !slices.Equal(served.Context.Corrections, []string{second.UploadID}) {
		t.Fatalf("%+v, %v", served, err)
	}
	var refusal *client.Error
	if _, err := reader.AIContext(t.Context(), "harbour", second.UploadID); !errors.As(err, &refusal) || refusal.Code != "visibility_denied" {
		t.Errorf("internal_only: %v", err)
	}
	page, err := reader.RequestRecords(t.Context(), "harbour", client.RecordFilter{})
	if err != nil || len(page.Records) != 2 || page.NextCursor != "" || page.SchemaDisclaimer == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	if r := page.Records[1]; r.RequestID != served.Response.RequestID || r.TraceID != served.Response.TraceID || r.ContextSHA256 != served.Context.ContextSHA256 ||
		r.UploadID != first.UploadID || r.OrgID != "harbour" || r.Surface != "rest" || r.Outcome != "served" || r.Bytes < 500 || r.ServedAt.IsZero() || "accession-canary-"+r.RecordID != served.Context.Canary {
		t.Errorf("record: %+v", r)
	}
	if r := page.Records[0]; r.RequestID != refusal.RequestID || r.UploadID != second.UploadID || r.Outcome != "refused_visibility" || r.Bytes != 0 || r.ContextSHA256 != "" {
		t.Errorf("record: %+v", r)
	}
	if _, err := writer.RequestRecords(t.Context(), "harbour", client.RecordFilter{}); !errors.As(err, &refusal) || refusal.Status != 403 {
		t.Errorf("records for a writer: %v", err)
	}
}

func TestRequestRecordsByFilterAndPage(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	one, two := p.submit(text("The pump runs.", nil)), p.submit(text("The pump stands.", nil))
	inner := p.submit(text("The pump leaks.", map[string]any{"visibility": "internal_only"}))
	var asked []string // request ids, oldest first
	for n := range 25 {
		switch n % 3 {
		case 0:
			asked = append(asked, s.context("harbour", reader, one).want(t, 200, "").RequestID)
		case 1:
			asked = append(asked, s.context("harbour", reader, two).want(t, 200, "").RequestID)
		case 2:
			asked = append(asked, s.context("harbour", reader, inner).want(t, 403, "visibility_denied").RequestID)
		}
	}
	s.context("harbour", reader, missing).want(t, 404, "upload_not_found") // leaves no record
	island := s.partner("island")
	far := island.submit(text("Far away.", nil))
	farReader := s.issue("island", "ai_reader")
	s.context("island", farReader, far).want(t, 200, "")

	c := s.as(reader)
	walk := func(f client.RecordFilter) (ids []string, all []client.RequestRecord) {
		t.Helper()
		for pages := 0; ; pages++ {
			page, err := c.RequestRecords(t.Context(), "harbour", f)
			if err != nil {
				t.Fatal(err)
			}
			if f.Limit > 0 && (len(page.Records) > f.Limit || page.NextCursor != "" && len(page.Records) != f.Limit) || pages > 30 {
				t.Fatalf("a page of %d has %d records", f.Limit, len(page.Records))
			}
			for _, r := range page.Records {
				ids, all = append(ids, r.RequestID), append(all, r)
			}
			if f.Cursor = page.NextCursor; f.Cursor == "" {
				slices.Reverse(ids)
				return ids, all
			}
		}
	}
	for _, limit := range []int{1, 7, 24, 25, 26, 100, 0} {
		if got, _ := walk(client.RecordFilter{Limit: limit}); !slices.Equal(got, asked) {
			t.Errorf("limit %d: %v, want %v", limit, got, asked)
		}
	}
	if page, err := c.RequestRecords(t.Context(), "harbour", client.RecordFilter{}); err != nil || len(page.Records) != 20 || page.NextCursor == "" {
		t.Errorf("the default page: %+v, %v", page, err)
	}
	var ofTwo []string
	for n, id := range asked {
		if n%3 == 1 {
			ofTwo = append(ofTwo, id)
		}
	}
	if got, _ := walk(client.RecordFilter{UploadID: two, Limit: 3}); !slices.Equal(got, ofTwo) {
		t.Errorf("of one upload: %v, want %v", got, ofTwo)
	}
	if got, all := walk(client.RecordFilter{RequestID: asked[2]}); !slices.Equal(got, asked[2:3]) || all[0].Outcome != "refused_visibility" {
		t.Errorf("of one request: %+v", all)
	}
	for _, f := range []client.RecordFilter{{RequestID: asked[2], UploadID: one}, {UploadID: missing}, {UploadID: far}} {
		if got, _ := walk(f); len(got) != 0 {
			t.Errorf("%+v: %v", f, got)
		}
	}
	page, err := c.RequestRecords(t.Context(), "harbour", client.RecordFilter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"limit=0", "limit=101", "limit=-1", "limit=ten", "cursor=nonsense", "upload_id=" + one + "&cursor=" + url.QueryEscape(page.NextCursor)} {
		s.do(call{method: "GET", path: p.path("/request-records?" + query), token: reader}).want(t, 400, "invalid_request")
	}
	s.do(call{method: "GET", path: island.path("/request-records?cursor=" + url.QueryEscape(page.NextCursor)), token: farReader}).want(t, 400, "invalid_request")
	s.do(call{method: "GET", path: p.path("/request-records")}).want(t, 401, "authentication_required")
	s.do(call{method: "GET", path: p.path("/request-records"), token: farReader}).want(t, 403, "access_denied")
	s.do(call{method: "GET", path: p.path("/request-records"), token: p.token}).want(t, 403, "access_denied")

	// The evidence outlives the upload, and the chain holds from the first record to the newest.
	p.wantWithdrawn(two, len("The pump stands."))
	if got, _ := walk(client.RecordFilter{UploadID: two}); !slices.Equal(got, ofTwo) {
		t.Errorf("after withdrawal: %v, want %v", got, ofTwo)
	}
	chain := s.records("harbour", reader, "?limit=100")
	slices.Reverse(chain)
	previous := custody.FirstHash
	for n, r := range chain {
		kept := r.Hash
		if r.Link(previous); r.Hash != kept || len(kept) != 64 {
			t.Fatalf("record %d does not follow: %+v", n, r)
		}
		previous = kept
	}
}

// Who did what to a text stands in the audit log, in order, each line chained to the one before.
func TestTextsAreAudited(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.submit(text("The pump runs.", nil))
	s.do(p.reviewing(id, client.NewIdempotencyKey(), map[string]any{"review_id": "rev-1"})).want(t, 200, "")
	s.do(p.submitting(client.NewIdempotencyKey(), text(eicar(), nil))).want(t, 400, "content_refused")
	p.wantWithdrawn(id, len("The pump runs."))
	rows, err := s.database(t, "metadata.db").Query(`SELECT audit_id, org_id, at, action, credential_id, upload_id, status, detail, request_id, trace_id, previous_hash, line_hash
		FROM audit_lines WHERE org_id = 'harbour' ORDER BY position`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var actions []string
	previous := custody.FirstHash
	for rows.Next() {
		var l custody.AuditLine
		var at int64
		if err := rows.Scan(&l.ID, &l.OrgID, &at, &l.Action, &l.CredentialID, &l.UploadID, &l.Status, &l.Detail, &l.RequestID, &l.TraceID, &l.PreviousHash, &l.Hash); err != nil {
			t.Fatal(err)
		}
		l.At = time.UnixMilli(at).UTC()
		kept := l.Hash
		if l.Link(previous); l.Hash != kept {
			t.Errorf("%s does not follow the line before", l.Action)
		}
		if l.UploadID != "" && (l.CredentialID == "" || l.RequestID == "" || l.TraceID == "") {
			t.Errorf("nobody did %+v", l)
		}
		previous = kept
		actions = append(actions, l.Action)
	}
	if want := []string{"credential_issued", "reserved", "part_accepted", "completed", "gates_passed", "external_review_attached", "reserved", "reservation_lapsed",
		"withdrawal_accepted", "deletion_confirmed"}; rows.Err() != nil || !slices.Equal(actions, want) {
		t.Errorf("audit: %q, want %q", actions, want)
	}
}
