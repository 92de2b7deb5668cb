package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// provenance is everything that is kept of an upload: its row, its events and gates, its objects byte for byte.
func (s *service) provenance(uploadID string) string {
	s.t.Helper()
	var found strings.Builder
	db := s.database(s.t, "metadata.db")
	for _, table := range []string{"uploads", "status_events", "gates", "parts", "artifacts"} {
		rows, err := db.Query(`SELECT * FROM `+table+` WHERE upload_id = ? ORDER BY 1, 2, 3`, uploadID)
		if err != nil {
			s.t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			s.t.Fatal(err)
		}
		for rows.Next() {
			values, at := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				at[i] = &values[i]
			}
			if err := rows.Scan(at...); err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintln(&found, table, values)
		}
		if err := rows.Err(); err != nil {
			s.t.Fatal(err)
		}
		rows.Close()
	}
	for _, path := range s.objects() {
		if strings.Contains(path, uploadID) {
			fmt.Fprintln(&found, path, hexSum(readFile(s.t, path)))
		}
	}
	return found.String()
}

// wantContext reads a context and checks what it says of corrections.
func (s *service) wantContext(org, reader, uploadID string, corrections ...string) servedContext {
	s.t.Helper()
	r := s.context(org, reader, uploadID).want(s.t, 200, "")
	c := decode[servedContext](s.t, r)
	if !slices.Equal(c.Context.Corrections, corrections) || c.Context.Corrections == nil {
		s.t.Errorf("corrections of %s: %q, want %q", uploadID, c.Context.Corrections, corrections)
	}
	return c
}

func TestCorrectionLeavesItsOriginalUntouched(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	original := p.submit(text(string(note("first-word")), nil))
	other := p.submit(text(string(note("other-word")), nil))
	before, first := s.provenance(original), s.wantContext("harbour", reader, original)
	if strings.Count(before, "\n") != 1+9+6+1+3+5 { // row, events, gates, part, derived, objects
		t.Fatalf("provenance:\n%s", before)
	}

	r := s.do(p.correcting(original, "key-of-the-correction", text(string(note("second-word")), nil))).want(t, 201, "")
	second := r.field(t, "upload_id")
	if r.field(t, "original_upload_id") != original || second == original || r.field(t, "status") != "READY" || r.field(t, "evaluation_status") != "not_evaluated" {
		t.Errorf("answer: %s", r.Raw)
	}
	wantReplay(t, r, s.do(p.correcting(original, "key-of-the-correction", text(string(note("second-word")), nil))))
	s.do(p.correcting(other, "key-of-the-correction", text(string(note("second-word")), nil))).want(t, 409, "idempotency_conflict")
	third := p.correct(original, string(note("third-word")))
	ofSecond := p.correct(second, string(note("fourth-word"))) // a correction can be corrected

	c := s.wantContext("harbour", reader, original, second, third, ofSecond)
	if c.text() != first.text() || c.Context.ContextSHA256 != first.Context.ContextSHA256 || !c.Context.GeneratedAt.Equal(first.Context.GeneratedAt) || c.Context.Source != first.Context.Source {
		t.Errorf("the original's context changed: %+v, was %+v", c, first)
	}
	if after := s.provenance(original); after != before {
		t.Errorf("the original changed:\n%s\nwas\n%s", after, before)
	}
	if c := s.wantContext("harbour", reader, second, ofSecond); !strings.Contains(c.text(), "second-word") {
		t.Errorf("context of the correction: %s", c.text())
	}
	s.wantContext("harbour", reader, other)

	// A withdrawn correction is not named; what corrects it still is.
	p.wantWithdrawn(third, len(note("third-word")))
	s.wantContext("harbour", reader, original, second, ofSecond)
	p.wantWithdrawn(second, len(note("second-word")))
	s.wantContext("harbour", reader, original, ofSecond)
	s.do(p.correcting(second, client.NewIdempotencyKey(), text("too late", nil))).want(t, 404, "upload_not_found")
	p.wantWithdrawn(ofSecond, len(note("fourth-word")))
	s.wantContext("harbour", reader, original)

	// The original goes; its corrections stay uploads of their own, and the answers stay answers.
	last := p.correct(original, string(note("last-word")))
	p.wantWithdrawn(original, len(note("first-word")))
	s.wantContext("harbour", reader, last)
	s.do(p.correcting(original, client.NewIdempotencyKey(), text("too late", nil))).want(t, 404, "upload_not_found")
	replayed := s.do(p.correcting(original, "key-of-the-correction", text(string(note("second-word")), nil))).want(t, 201, "")
	if replayed.Header.Get("Idempotent-Replayed") != "true" || replayed.field(t, "upload_id") != second || replayed.field(t, "filename") != "" {
		t.Errorf("the answer of a withdrawn correction: %s", replayed.Raw)
	}
}

func TestReviewReferencesChangeNothingOfTheProvenance(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.submit(text(string(note("reviewed-hull")), nil))
	path := p.path("/partner-uploads/" + id)
	etag := s.do(call{method: "GET", path: path, token: p.token}).want(t, 200, "").Header.Get("ETag")
	before, first := s.provenance(id), s.wantContext("harbour", reader, id)

	body := map[string]any{"review_id": "rev-1", "source_url": "https://reviews.example/1?a=b", "reviewer": "Lloyd\u200b's & Söhne", "notes": "for-the-file-only"}
	r := s.do(p.reviewing(id, "key-of-the-review", body)).want(t, 200, "")
	if r.field(t, "upload_id") != id || r.field(t, "review_id") != "rev-1" || r.field(t, "evaluation_status") != "not_evaluated" {
		t.Errorf("answer: %s", r.Raw)
	}
	wantReplay(t, r, s.do(p.reviewing(id, "key-of-the-review", body)))
	s.do(p.reviewing(id, "key-of-the-review", map[string]any{"review_id": "rev-2"})).want(t, 409, "idempotency_conflict")
	s.do(p.reviewing(id, client.NewIdempotencyKey(), map[string]any{"review_id": "rev-2"})).want(t, 200, "")

	served := s.context("harbour", reader, id).want(t, 200, "")
	references := decode[struct {
		Context struct {
			References []map[string]any `json:"external_references"`
		}
	}](t, served).Context.References
	if len(references) != 2 || references[0]["review_id"] != "rev-1" || references[0]["source_url"] != "https://reviews.example/1?a=b" ||
		references[0]["reviewer"] != "Lloyd's & Söhne" || references[1]["review_id"] != "rev-2" || strings.Contains(string(served.Raw), "for-the-file-only") {
		t.Errorf("references: %s", served.Raw)
	}
	c := decode[servedContext](t, served)
	if c.Context.ContextSHA256 != first.Context.ContextSHA256 || c.text() != first.text() || c.Context.EvaluationStatus != "not_evaluated" {
		t.Errorf("the context changed: %+v, was %+v", c, first)
	}
	if after := s.provenance(id); after != before {
		t.Errorf("the provenance changed:\n%s\nwas\n%s", after, before)
	}
	s.do(call{method: "GET", path: path, token: p.token, header: map[string]string{"If-None-Match": etag}}).want(t, 304, "")

	for name, refused := range map[string]struct {
		body map[string]any
		code string
	}{
		"claim as a property": {map[string]any{"review_id": "r", "verified": true}, "verification_claim_forbidden"},
		"claim in depth":      {map[string]any{"review_id": "r", "detail": []any{map[string]any{"ranking": 1}}}, "verification_claim_forbidden"},
		"claim in notes":      {map[string]any{"review_id": "r", "notes": "This upload has been certified by this service."}, "verification_claim_forbidden"},
		"another property":    {map[string]any{"review_id": "r", "score": 5}, "invalid_request"},
		"no http":             {map[string]any{"review_id": "r", "source_url": "ftp://reviews.example/1"}, "invalid_request"},
		"no review":           {map[string]any{"reviewer": "R"}, "invalid_request"},
	} {
		if r := s.do(p.reviewing(id, client.NewIdempotencyKey(), refused.body)); r.Status != 400 || r.Code != refused.code {
			t.Errorf("%s: %d %s", name, r.Status, r.Raw)
		}
	}

	p.wantWithdrawn(id, len(note("reviewed-hull")))
	s.context("harbour", reader, id).want(t, 404, "context_not_ready")
	s.do(p.reviewing(id, client.NewIdempotencyKey(), body)).want(t, 404, "upload_not_found")
	wantReplay(t, r, s.do(p.reviewing(id, "key-of-the-review", body)))
	var left int
	if err := s.database(t, "metadata.db").QueryRow(`SELECT count(*) FROM external_references`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d references stay, %v", left, err)
	}
}
