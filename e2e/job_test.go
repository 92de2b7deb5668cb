package e2e

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver named "sqlite"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/custody"
)

var gateNames = []string{"integrity", "quarantine", "malware_scan", "extraction", "controlled_summary", "ai_context"}

// servedContext is what the tests read of an AI context.
type servedContext struct {
	RecordID string `json:"record_id"`
	Context  struct {
		client.Context
		Signals []map[string]any `json:"signals"`
	} `json:"context"`
}

// text is everything the context tells of the document.
func (c servedContext) text() string {
	text := c.Context.Summary
	for _, e := range c.Context.Excerpts {
		text += "\n" + e.Text
	}
	return text
}

// managedClamd lets a service run a clamd of its own, on the test signatures.
func managedClamd() []string {
	return []string{"ACCESSION_CLAMD_ADDRESS=", "ACCESSION_CLAMAV_DATABASE=" + signatures()}
}

func (s *service) quota(org, token string) client.Quota {
	s.t.Helper()
	return decode[client.Quota](s.t, s.do(call{method: "GET", path: "/api/v1/organizations/" + org + "/quota", token: token}).want(s.t, 200, ""))
}

func (s *service) records(org, token, query string) []custody.Record {
	s.t.Helper()
	r := s.do(call{method: "GET", path: "/api/v1/organizations/" + org + "/request-records" + query, token: token}).want(s.t, 200, "")
	return decode[struct{ Records []custody.Record }](s.t, r).Records
}

// wantReady follows an upload through its six gates.
func (p partner) wantReady(uploadID string) status {
	p.t.Helper()
	st := p.follow(uploadID)
	var names []string
	for _, g := range st.Gates {
		names = append(names, g.Name)
		if g.State != "passed" {
			p.t.Errorf("gate %s is %s", g.Name, g.State)
		}
	}
	if st.Status != "READY" || !slices.Equal(names, gateNames) || st.Failure != nil {
		p.t.Fatalf("upload is not READY after six gates: %+v", st)
	}
	return st
}

// wantWithdrawn withdraws an upload and returns the id of its receipt.
func (p partner) wantWithdrawn(uploadID string, freed int) string {
	p.t.Helper()
	r := p.withdraw(uploadID).want(p.t, 200, "")
	receipt := r.field(p.t, "withdrawal_receipt_id")
	if r.field(p.t, "upload_id") != uploadID || r.field(p.t, "status") != "WITHDRAWN" || r.field(p.t, "deleted") != "true" ||
		r.field(p.t, "quota_bytes") != strconv.Itoa(freed) || receipt == "" {
		p.t.Fatalf("withdrawal of %d bytes: %s", freed, r.Raw)
	}
	if st := p.status(uploadID); st.Status != "WITHDRAWN" {
		p.t.Fatalf("after withdrawal: %+v", st)
	}
	return receipt
}

func TestScannedDocumentIsReadServedAndWithdrawnWithoutATrace(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: managedClamd(), flags: []string{"--part-size-bytes", "262144"}})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	pdf := scannedPDF(t)
	parts := cut(pdf, 262144)
	who := []string{"consenting.person@example.com", "person-5f1c77a0"}
	agreed := consent()
	agreed["consenting_user_id"] = who[1]

	initiated := s.do(call{method: "POST", path: p.path("/partner-uploads/initiate"), token: p.token, key: client.NewIdempotencyKey(),
		json: map[string]any{"filename": "pump-station-record.pdf", "content_type": "application/pdf", "size_bytes": len(pdf), "consent": agreed}}).want(t, 200, "")
	id := initiated.field(t, "upload_id")
	if initiated.field(t, "part_size_bytes") != "262144" || initiated.field(t, "status") != "INITIATED" || initiated.field(t, "expires_at") == "" {
		t.Fatalf("initiate: %s", initiated.Raw)
	}
	for i, part := range parts {
		r := p.part(id, i+1, part).want(t, 200, "")
		if r.field(t, "upload_id") != id || r.field(t, "part_number") != strconv.Itoa(i+1) || r.field(t, "status") != "RECEIVING" || r.field(t, "sequence") == "" {
			t.Fatalf("part %d: %s", i+1, r.Raw)
		}
	}
	completed := p.complete(id, parts).want(t, 202, "")
	wantJob(t, s, p, id, completed, hexSum(pdf))

	st := p.wantReady(id)
	if scan := st.Gates[2].Detail; scan["engine"] != "ClamAV" || scan["test_signatures_only"] != true || scan["scanned_bytes"] != float64(len(pdf)) {
		t.Errorf("malware_scan: %v", scan)
	}
	if read := st.Gates[3].Detail; read["ocr_pages"] != float64(4) || read["pages"] != float64(4) {
		t.Errorf("extraction: %v", read)
	}
	if u := s.quota("harbour", p.token); u.UsedBytes != int64(len(pdf)) || u.ReservedBytes != 0 || u.UploadCount != 1 {
		t.Errorf("quota while READY: %+v", u)
	}

	answer := s.context("harbour", reader, id).want(t, 200, "")
	served := decode[servedContext](t, answer)
	c := served.Context
	for _, word := range []string{"pump", "generator", "inlet screen", "station"} {
		if !strings.Contains(strings.ToLower(served.text()), word) {
			t.Errorf("OCR found no %q: %s", word, served.text())
		}
	}
	if c.BoundaryLabel != "customer-submitted, unverified" || c.EvaluationStatus != "not_evaluated" || c.ContentTrust != "untrusted" {
		t.Errorf("boundary: %+v", c)
	}
	if c.TokenLimit != 4096 || c.TokenCount < 50 || c.TokenCount > 4096 || len(c.Excerpts) == 0 || c.Language != "en" || c.MediaType != "application/pdf" {
		t.Errorf("context: %+v", c)
	}
	if c.Source.SHA256 != hexSum(pdf) || c.Source.SizeBytes != int64(len(pdf)) || c.Source.Filename != "pump-station-record.pdf" ||
		c.Source.UploaderOrganizationType != "solution_company" || c.Source.Visibility != "ai_readable_controlled" {
		t.Errorf("source: %+v", c.Source)
	}
	if !strings.Contains(string(c.ConsentCapture), `"status":"captured"`) || !strings.Contains(c.Canary, served.RecordID) || c.GeneratedAt.IsZero() {
		t.Errorf("context: %+v", c)
	}
	records := s.records("harbour", reader, "?upload_id="+id)
	if len(records) != 1 || records[0].RequestID != answer.RequestID || records[0].ContextSHA256 != c.ContextSHA256 ||
		records[0].Surface != "rest" || records[0].Outcome != "served" || records[0].ID != served.RecordID {
		t.Fatalf("records: %+v", records)
	}

	// Sealed from the first byte: neither the file nor its text is anywhere in clear, before withdrawal and after.
	content := append(fragments(pdf), sentences(served)...)
	s.wantUnseen(content...)
	if receipt := p.wantWithdrawn(id, len(pdf)); receipt == "" {
		t.Error("no receipt")
	}
	s.context("harbour", reader, id).want(t, 404, "context_not_ready")
	if u := s.quota("harbour", p.token); u.UsedBytes != 0 || u.ReservedBytes != 0 || u.AvailableBytes != u.AllowanceBytes || u.UploadCount != 0 {
		t.Errorf("quota after withdrawal: %+v", u)
	}
	if st := p.status(id); st.Failure != nil || strings.Contains(s.said.String(), who[0]) || strings.Contains(s.said.String(), who[1]) {
		t.Error("an answer tells who consented")
	}
	s.wantNoObjects()
	s.wantUnseen(content...)
	if exit := s.stop(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	if left := files(t, filepath.Join(s.data, "clamd")); len(left) > 0 {
		t.Errorf("clamd left %v", left)
	}
	s.wantUnseen(content...)
	s.wantUnseen(who...)
}

// sentences of a context that are long enough to be nobody else's.
func sentences(c servedContext) (long []string) {
	for line := range strings.SplitSeq(strings.ReplaceAll(c.text(), ". ", ".\n"), "\n") {
		if len(line) > 40 {
			long = append(long, line)
		}
	}
	return long
}

// wantJob checks the answer of an accepted completion (section 2.6).
func wantJob(t *testing.T, s *service, p partner, id string, r reply, sum string) {
	t.Helper()
	statusURL := s.url + p.path("/partner-uploads/"+id)
	var done struct {
		UploadID   string `json:"upload_id"`
		PipelineID string `json:"pipeline_id"`
		Status     string `json:"status"`
		SHA256     string `json:"sha256"`
		Job        map[string]json.RawMessage
	}
	if err := json.Unmarshal(r.Data, &done); err != nil {
		t.Fatal(err)
	}
	if done.UploadID != id || done.PipelineID == "" || done.Status != "PROCESSING" || done.SHA256 != sum {
		t.Errorf("complete: %s", r.Raw)
	}
	if r.Header.Get("Location") != statusURL {
		t.Errorf("Location %q, want %q", r.Header.Get("Location"), statusURL)
	}
	if n, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || n < 1 {
		t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
	}
	want := map[string]string{
		"job_id": strconv.Quote(done.PipelineID), "status_url": strconv.Quote(statusURL), "poll_after_seconds": r.Header.Get("Retry-After"),
		"polling": `{"method":"GET","url":` + strconv.Quote(statusURL) + `,"terminal_statuses":["READY","REJECTED","FAILED","EXPIRED","WITHDRAWN"]}`,
	}
	if len(done.Job) != len(want) {
		t.Errorf("job has other fields: %s", r.Raw)
	}
	for name, value := range want {
		if string(done.Job[name]) != value {
			t.Errorf("job.%s is %s, want %s", name, done.Job[name], value)
		}
	}
}

func TestTextIsServedAndLeavesNoTrace(t *testing.T) {
	t.Parallel()
	for _, document := range []struct {
		name, mediaType, mark string
		make                  func(mark string) []byte
	}{
		{"plain text", "text/plain", "quiet-kestrel-91", note},
		{"text PDF", "application/pdf", "amber-lighthouse-44", func(mark string) []byte {
			return textPDF("The harbour office keeps this note.", "Its mark is "+mark+".", "Nobody needs to act on it before spring.")
		}},
	} {
		t.Run(document.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{})
			p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
			content := document.make(document.mark)
			id := p.send("note", document.mediaType, content)
			st := p.wantReady(id)
			if st.Gates[3].Detail["ocr_pages"] != float64(0) || st.Gates[3].Detail["media_type"] != document.mediaType {
				t.Errorf("extraction: %v", st.Gates[3].Detail)
			}
			served := decode[servedContext](t, s.context("harbour", reader, id).want(t, 200, ""))
			if !strings.Contains(served.text(), document.mark) {
				t.Fatalf("the mark is not in the context: %s", served.text())
			}
			s.wantUnseen(document.mark)
			p.wantWithdrawn(id, len(content))
			s.wantNoObjects()
			s.wantUnseen(document.mark)
			if strings.Count(s.said.String(), document.mark) != strings.Count(served.text()+served.Context.Text, document.mark) {
				t.Error("an answer other than the context holds the mark")
			}
		})
	}
}

func TestRequestRecordsAreChainedAndPaged(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.send("note.txt", "text/plain", note("grey-heron-17"))
	p.wantReady(id)
	var asked []string
	for range 5 {
		asked = append([]string{s.context("harbour", reader, id).want(t, 200, "").RequestID}, asked...)
	}
	path, cursor := "/api/v1/organizations/harbour/request-records?limit=2", ""
	var records []custody.Record
	for page := range 3 {
		r := s.do(call{method: "GET", path: path + cursor, token: reader}).want(t, 200, "")
		if r.field(t, "schema_disclaimer") == "" {
			t.Error("no schema_disclaimer")
		}
		records = append(records, decode[struct{ Records []custody.Record }](t, r).Records...)
		next := r.field(t, "next_cursor")
		if (next == "") != (page == 2) {
			t.Fatalf("page %d: next_cursor %q", page, next)
		}
		cursor = "&cursor=" + next
	}
	if len(records) != len(asked) {
		t.Fatalf("%d records of %d servings", len(records), len(asked))
	}
	for i, record := range records {
		before := custody.FirstHash
		if i+1 < len(records) {
			before = records[i+1].Hash
		}
		linked := record
		linked.Link(before)
		if record.RequestID != asked[i] || record != linked {
			t.Errorf("record %d is not of this serving or not linked: %+v", i, record)
		}
	}
	if one := s.records("harbour", reader, "?request_id="+asked[3]); len(one) != 1 || one[0] != records[3] {
		t.Errorf("by request_id: %+v", one)
	}
}

// A context that leaves no evidence must not leave at all.
func TestContextIsServedOnlyOnceItsRecordIsDurable(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.send("note.txt", "text/plain", note("small-plover-23"))
	p.wantReady(id)
	db := s.database(t, "metadata.db")
	mustExec(t, db, `CREATE TRIGGER refuse BEFORE INSERT ON request_records BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
	refused := s.context("harbour", reader, id).want(t, 503, "service_unavailable")
	if strings.Contains(string(refused.Raw), "plover") || refused.Header.Get("Retry-After") == "" {
		t.Errorf("refusal: %s", refused.Raw)
	}
	mustExec(t, db, `DROP TRIGGER refuse`)
	s.context("harbour", reader, id).want(t, 200, "")
	if records := s.records("harbour", reader, ""); len(records) != 1 {
		t.Errorf("records: %+v", records)
	}
}

// database opens a database of the running service, to see or to break what no client can.
func (s *service) database(t testing.TB, name string) *sql.DB {
	t.Helper()
	if url, ok := databases.Load(s.data); ok {
		return postgres(t, url.(string), name)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.data, name)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func TestUnchangedStatusIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.initiate("note.txt", "text/plain", 100)
	path := p.path("/partner-uploads/" + id)
	first := s.do(call{method: "GET", path: path, token: p.token}).want(t, 200, "")
	again := s.do(call{method: "GET", path: path, token: p.token, header: map[string]string{"If-None-Match": first.Header.Get("ETag")}})
	if again.Status != http.StatusNotModified || len(again.Raw) != 0 {
		t.Errorf("unchanged: %d %s", again.Status, again.Raw)
	}
	slim := s.do(call{method: "GET", path: path + "?include_gates=false", token: p.token}).want(t, 200, "")
	if strings.Contains(string(slim.Data), "gates") || !strings.Contains(string(first.Data), "gates") {
		t.Errorf("include_gates=false: %s", slim.Raw)
	}
	s.do(call{method: "GET", path: p.path("/partner-uploads/upl_00000000000000000000000000"), token: p.token}).want(t, 404, "upload_not_found")
}
