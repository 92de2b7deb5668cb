package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// echo answers one request with data, and keeps what was asked.
type echo struct {
	data   string
	target string
	key    string
	body   map[string]any
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.target, e.key, e.body = r.Method+" "+r.RequestURI, r.Header.Get("Idempotency-Key"), nil
	if raw, err := io.ReadAll(r.Body); err == nil && len(raw) > 0 {
		_ = json.Unmarshal(raw, &e.body) // the test looks at what came of it
	}
	fmt.Fprintf(w, `{"request_id":"req-1","trace_id":"trace-1","data":%s}`, e.data)
}

func newEcho(t *testing.T, data string) (*echo, *client.Client) {
	t.Helper()
	e := &echo{data: data}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return e, newClient(t, server.URL, client.WithToken("acc_x"))
}

func TestSubmitTextAndCorrect(t *testing.T) {
	e, c := newEcho(t, `{"upload_id":"upl_2","org_id":"harbour","original_upload_id":"upl_1","status":"READY","evaluation_status":"not_evaluated",
		"filename":"note.txt","consent_capture":{"status":"captured"},"sequence":9,"pipeline_id":"pip_2","more":1}`)
	agreed := consent()
	agreed.AcceptedAt = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	text := client.TextSubmission{Filename: "note.txt", Payload: "a < b", Visibility: client.VisibilityPrivateSummary, Consent: agreed, IdempotencyKey: "key-12345"}
	submission, err := c.Correct(t.Context(), "har bour", "upl/1", text)
	if err != nil {
		t.Fatal(err)
	}
	want := client.Submission{UploadID: "upl_2", OrgID: "harbour", OriginalUploadID: "upl_1", Status: client.StatusReady, EvaluationStatus: "not_evaluated",
		Filename: "note.txt", ConsentCapture: json.RawMessage(`{"status":"captured"}`), Sequence: 9, PipelineID: "pip_2", Response: submission.Response}
	if !reflect.DeepEqual(*submission, want) || submission.Response.RequestID != "req-1" {
		t.Errorf("got %+v", submission)
	}
	if e.target != "POST /api/v1/organizations/har%20bour/customer-uploads/upl%2F1/corrections" || e.key != "key-12345" {
		t.Errorf("asked %s with %s", e.target, e.key)
	}
	if want := (map[string]any{"filename": "note.txt", "payload": "a < b", "visibility": "private_summary_public", "consent": map[string]any{
		"accepted": true, "beta_agreement_version": client.AgreementVersion, "ai_readable_use_consent_version": client.ConsentVersion,
		"text_hash_sha256": agreed.TextSHA256, "consenting_user_id": "user-7", "consenting_user_email": "ada@harbour.example", "accepted_at": "2026-11-20T09:00:00Z",
	}}); !reflect.DeepEqual(e.body, want) {
		t.Errorf("sent %v, want %v", e.body, want)
	}
	text.IdempotencyKey, text.ContentType, text.UploaderOrganizationType, text.UploaderOrganizationID = "", "text/csv", "third_party", "island"
	text.AssertedSubjectOrgID, text.CustomerWorkspaceAccess = "harbour", "granted"
	if _, err := c.SubmitText(t.Context(), "harbour", text); err != nil {
		t.Fatal(err)
	}
	if e.target != "POST /api/v1/organizations/harbour/customer-uploads" || len(e.key) < 8 || e.body["content_type"] != "text/csv" || e.body["uploader_organization_type"] != "third_party" ||
		e.body["uploader_organization_id"] != "island" || e.body["asserted_subject_org_id"] != "harbour" || e.body["customer_workspace_access"] != "granted" {
		t.Errorf("asked %s with %q and %v", e.target, e.key, e.body)
	}
	e.target = ""
	if _, err := c.Correct(t.Context(), "harbour", "", text); err == nil || e.target != "" {
		t.Errorf("a correction of nothing: %v, asked %s", err, e.target)
	}
}

func TestAttachReview(t *testing.T) {
	e, c := newEcho(t, `{"upload_id":"upl_1","review_id":"rev-7","evaluation_status":"not_evaluated"}`)
	attached, err := c.AttachReview(t.Context(), "harbour", "upl_1", client.ReviewReference{ReviewID: "rev-7", SourceURL: "https://a.example/7", Reviewer: "R", Notes: "n"})
	if err != nil || attached.UploadID != "upl_1" || attached.ReviewID != "rev-7" || attached.EvaluationStatus != "not_evaluated" {
		t.Errorf("got %+v, %v", attached, err)
	}
	if want := (map[string]any{"review_id": "rev-7", "source_url": "https://a.example/7", "reviewer": "R", "notes": "n"}); !reflect.DeepEqual(e.body, want) ||
		e.target != "POST /api/v1/organizations/harbour/customer-uploads/upl_1/external-review" || len(e.key) < 8 {
		t.Errorf("asked %s with %q and %v", e.target, e.key, e.body)
	}
	if _, err := c.AttachReview(t.Context(), "harbour", "upl_1", client.ReviewReference{ReviewID: "rev-7"}); err != nil || len(e.body) != 1 {
		t.Errorf("sent %v, %v", e.body, err)
	}
}

func TestRequestRecords(t *testing.T) {
	e, c := newEcho(t, `{"records":[{"record_id":"rec_1","request_id":"req_1","trace_id":"t","org_id":"harbour","upload_id":"upl_1","credential_id":"cred_1","surface":"rest",
		"outcome":"served","context_sha256":"cd","bytes":99,"served_at":"2026-11-20T09:00:00.005Z","previous_hash":"00","record_hash":"ab"}],"next_cursor":"next","schema_disclaimer":"d"}`)
	page, err := c.RequestRecords(t.Context(), "harbour", client.RecordFilter{RequestID: "req_1", UploadID: "upl 1", Limit: 1, Cursor: "c"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (client.RequestRecord{RecordID: "rec_1", RequestID: "req_1", TraceID: "t", OrgID: "harbour", UploadID: "upl_1", CredentialID: "cred_1", Surface: "rest", Outcome: "served",
		ContextSHA256: "cd", Bytes: 99, ServedAt: time.Date(2026, 11, 20, 9, 0, 0, 5e6, time.UTC), PreviousHash: "00", RecordHash: "ab"}); len(page.Records) != 1 || page.Records[0] != want ||
		page.NextCursor != "next" || page.SchemaDisclaimer != "d" || page.Response.RequestID != "req-1" {
		t.Errorf("got %+v", page)
	}
	if e.target != "GET /api/v1/organizations/harbour/request-records?cursor=c&limit=1&request_id=req_1&upload_id=upl+1" || e.key != "" {
		t.Errorf("asked %s with %q", e.target, e.key)
	}
	if _, err := c.RequestRecords(t.Context(), "harbour", client.RecordFilter{}); err != nil || e.target != "GET /api/v1/organizations/harbour/request-records" {
		t.Errorf("asked %s, %v", e.target, err)
	}
}
