package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// Tables 2.6 and 2.7, and section 3: what partner uploads and the other resources answer, and the states.

const orgPath = "/api/v1/organizations/{org_id}"

var terminalStatuses = []any{"READY", "REJECTED", "FAILED", "EXPIRED", "WITHDRAWN"}

var partnerAnswerProofs = proofs{
	"2.6 initiate": func(t *testing.T, w witness) {
		wantShape(t, w.initiated.data(t), shape{"upload_id": aString, "part_size_bytes": only(float64(partSize)), "status": only("INITIATED"), "expires_at": aTime})
		schema := w.doc.gives(t, "post", orgPath+"/partner-uploads/initiate", "200")
		w.doc.wantProperty(t, schema, "upload_id", true, "string")
		if p := w.doc.wantProperty(t, schema, "part_size_bytes", true, "integer"); p["minimum"] != 1.0 {
			t.Errorf("part_size_bytes: %v", p)
		}
	},
	"2.6 part": func(t *testing.T, w witness) {
		for i, r := range w.parts {
			wantShape(t, r.data(t), shape{"upload_id": only(w.partnerID), "part_number": only(float64(i + 1)), "sequence": atLeast(1), "status": only("RECEIVING")})
		}
	},
	"2.6 complete": func(t *testing.T, w witness) {
		wantShape(t, w.completed.data(t), shape{"upload_id": only(w.partnerID), "pipeline_id": aString, "status": only("PROCESSING"), "sequence": atLeast(2), "sha256": only(hexSum(w.content))})
	},
	"2.6 status": func(t *testing.T, w witness) {
		data := w.ready.data(t)
		wantShape(t, data, shape{"upload_id": only(w.partnerID), "pipeline_id": only(w.completed.field(t, "pipeline_id")), "status": only("READY"), "sequence": atLeast(1), "gates": aList})
		var names []string
		for _, g := range data["gates"].([]any) {
			wantShape(t, g.(map[string]any), shape{"name": aString, "state": only("passed"), "started_at": aTime, "finished_at": aTime, "detail": anObject})
			names = append(names, g.(map[string]any)["name"].(string))
		}
		if !slices.Equal(names, gateNames) || strings.Contains(string(w.ready.Raw), "contract-oak") {
			t.Errorf("gates %v, or content: %s", names, w.ready.Raw)
		}
	},
	"2.6 withdraw": func(t *testing.T, w witness) {
		id := w.p.initiate("note.txt", "text/plain", 100)
		wantShape(t, w.p.withdraw(id).want(t, 200, "").data(t), shape{"upload_id": only(id), "status": only("WITHDRAWN"), "deleted": only(true),
			"withdrawal_receipt_id": aString, "quota_bytes": only(100.0)})
	},
	"2.6 job": func(t *testing.T, w witness) {
		job, _ := w.completed.data(t)["job"].(map[string]any)
		at := w.url + w.p.path("/partner-uploads/"+w.partnerID)
		wantOnly(t, job, shape{"job_id": only(w.completed.field(t, "pipeline_id")), "status_url": only(w.completed.Header.Get("Location")), "poll_after_seconds": atLeast(1), "polling": anObject})
		wantOnly(t, job["polling"].(map[string]any), shape{"method": only("GET"), "url": only(at), "terminal_statuses": aList})
		if got := job["polling"].(map[string]any)["terminal_statuses"].([]any); !slices.Equal(got, terminalStatuses) {
			t.Errorf("terminal statuses: %v", got)
		}
		wantJob(t, w.service, w.p, w.partnerID, w.completed, hexSum(w.content))
	},
}

var resourceProofs = proofs{
	"2.7 AI context": func(t *testing.T, w witness) {
		data := w.context("harbour", w.reader, w.textID).want(t, 200, "").data(t)
		wantShape(t, data, shape{"upload_id": only(w.textID), "org_id": only("harbour"), "visibility": only("ai_readable_controlled"), "context": anObject})
		wantShape(t, data["context"].(map[string]any), shape{ // as the decisions have it
			"boundary_label": only("customer-submitted, unverified"), "evaluation_status": only("not_evaluated"), "content_trust": only("untrusted"),
			"summary": aString, "excerpts": aList, "truncated": aBoolean, "token_count": atLeast(1), "token_limit": only(4096.0), "language": aText,
			"media_type": only("text/plain"), "source": anObject, "consent_capture": anObject, "corrections": aList, "external_references": aList,
			"signals": {"there", func(v any) bool { return v != nil }}, "canary": aString, "text": aString, "boundary": anObject, "generated_at": aTime, "context_sha256": aDigest,
		})
		w.doc.wantProperty(t, w.doc.gives(t, "get", orgPath+"/ai-context/{upload_id}", "200"), "upload_id", true, "string")
	},
	"2.7 request records": func(t *testing.T, w witness) {
		served := w.context("harbour", w.reader, w.partnerID).want(t, 200, "")
		data := w.get(w.p.path("/request-records?upload_id="+w.partnerID), w.reader).want(t, 200, "").data(t)
		wantShape(t, data, shape{"records": aList, "next_cursor": aText, "schema_disclaimer": aString})
		newest := data["records"].([]any)[0].(map[string]any)
		wantShape(t, newest, shape{"record_id": aString, "request_id": only(served.RequestID), "trace_id": only(served.TraceID), "org_id": only("harbour"), "upload_id": only(w.partnerID),
			"credential_id": aString, "surface": only("rest"), "outcome": only("served"), "context_sha256": aDigest, "bytes": atLeast(1), "served_at": aTime,
			"previous_hash": aDigest, "record_hash": aDigest})
	},
	"2.7 external review reference": func(t *testing.T, w witness) {
		r := w.do(w.p.reviewing(w.textID, client.NewIdempotencyKey(), fields{"review_id": "rev-of-2.7"})).want(t, 200, "")
		wantShape(t, r.data(t), shape{"upload_id": only(w.textID), "review_id": only("rev-of-2.7"), "evaluation_status": only("not_evaluated")})
	},
	"2.7 quota": func(t *testing.T, w witness) {
		data := w.get(w.p.path("/quota"), w.p.token).want(t, 200, "").data(t)
		wantShape(t, data, shape{"org_id": only("harbour"), "allowance_bytes": only(float64(100 << 30)), "used_bytes": atLeast(float64(len(w.content))), "reserved_bytes": atLeast(0),
			"available_bytes": atLeast(1), "upload_count": atLeast(3)})
		if data["allowance_bytes"] != data["used_bytes"].(float64)+data["reserved_bytes"].(float64)+data["available_bytes"].(float64) {
			t.Errorf("the figures do not add up: %v", data)
		}
	},
	"2.7 capabilities": func(t *testing.T, w witness) {
		data := w.get("/api/v1/ai/capabilities", "").want(t, 200, "").data(t)
		wantShape(t, data, shape{"status": aString, "api_contract": only("v1-phase28"), "endpoints": kindOf("strings", stringsOnly), "data_boundary": kindOf("booleans and strings", func(o map[string]any) bool {
			for _, v := range o {
				if !aBoolean.fits(v) && !aString.fits(v) {
					return false
				}
			}
			return len(o) > 0
		})})
		for name, typ := range map[string]string{"status": "string", "api_contract": "string", "endpoints": "object", "data_boundary": "object"} {
			w.doc.wantProperty(t, w.doc.gives(t, "get", "/api/v1/ai/capabilities", "200"), name, true, typ)
		}
	},
	"2.7 portal config": func(t *testing.T, w witness) {
		wantShape(t, w.get("/portal/config", "").want(t, 200, "").data(t), shape{"entry": anURI, "account_required": aBoolean, "email_verification_required": aBoolean,
			"customer_authorized_uploaders_only": aBoolean})
	},
	"2.7 tenant key policy": func(t *testing.T, w witness) {
		wantShape(t, w.get("/admin/tenant-keys/policy", "").want(t, 200, "").data(t), shape{"role": aString, "org_id": aString, "scope": aString, "metadata_read": aBoolean, "ai_readiness": aBoolean})
	},
	"2.7 tenant key issue": func(t *testing.T, w witness) {
		r := w.issued(fields{"org_id": "harbour", "role": "ai_reader"}).want(t, 201, "")
		wantShape(t, r.data(t), shape{"credential_id": aString, "org_id": only("harbour"), "role": only("ai_reader"), "scope": aString, "expires_at": aTime, "token": aString})
		token := r.field(t, "token")
		list := w.do(call{method: "GET", path: "/admin/tenant-keys/credentials?org_id=harbour", bearer: adminToken}).want(t, 200, "")
		if !strings.Contains(string(list.Raw), r.field(t, "credential_id")) || strings.Contains(string(list.Raw), token) || strings.Contains(w.log.String(), token) {
			t.Errorf("the token is told again, or the credential is unknown: %s", list.Raw)
		}
	},
	"2.7 AI access policy": func(t *testing.T, w witness) {
		wantShape(t, w.get("/api/v1/ai/access-policy", "").want(t, 200, "").data(t), shape{"access_mode": aString, "public_discovery": aBoolean,
			"raw_payload_download": only(false), "bulk_export": only(false)})
	},
	"2.7 sandbox info": func(t *testing.T, w witness) {
		wantShape(t, w.get("/api/v1/sandbox", "").want(t, 200, "").data(t), sandboxInfoShape)
	},
	"2.7 sandbox key info": func(t *testing.T, w witness) {
		wantShape(t, w.get("/api/v1/sandbox/keys", "").want(t, 200, "").data(t), sandboxKeysShape)
	},
	"2.7 sandbox credential": func(t *testing.T, w witness) {
		r := w.do(call{method: "POST", path: "/api/v1/sandbox/keys"}).want(t, 201, "")
		wantShape(t, r.data(t), sandboxCredentialShape)
		if strings.Contains(w.log.String(), r.field(t, "token")) {
			t.Error("the log tells the token")
		}
	},
	"2.7 sandbox echo": func(t *testing.T, w witness) {
		key := w.sandboxKey()
		r := w.do(call{method: "POST", path: "/api/v1/sandbox/echo", token: key, json: fields{"input": "holla"}}).want(t, 200, "")
		wantShape(t, r.data(t), sandboxEchoShape)
		wantShape(t, r.data(t), shape{"echo": only("holla")})
	},
}

var (
	sandboxInfoShape = shape{"environment": only("sandbox"), "production_data_access": only(false), "status": aString, "credential_endpoint": anURI,
		"echo_endpoint": anURI, "customer_uploads": only(false), "ai_context": only(false)}
	sandboxKeysShape = shape{"method": only("POST"), "endpoint": anURI, "free": only(true), "production_data_access": only(false), "status": aString,
		"account_required": only(false), "credential_scope": only("sandbox:echo")}
	sandboxCredentialShape = shape{"token": aString, "scope": only("sandbox:echo"), "production_data_access": only(false), "status": aString,
		"credential_id": aString, "expires_at": aTime}
	sandboxEchoShape = shape{"status": only("sandbox_ok"), "production_data_access": only(false), "persisted": only(false), "echo": aText, "credential_id": aString}
)

func (s *service) sandboxKey() string {
	s.t.Helper()
	return s.do(call{method: "POST", path: "/api/v1/sandbox/keys"}).want(s.t, 201, "").field(s.t, "token")
}

var stateProofs = proofs{
	"3 withdraw": func(t *testing.T, w witness) {
		before := w.quota("harbour", w.p.token).UsedBytes
		id := w.p.send("note.txt", "text/plain", note("contract-fir"))
		w.p.wantReady(id)
		w.context("harbour", w.reader, id).want(t, 200, "")
		kept := func() (n int) {
			for _, name := range w.objects() {
				if strings.Contains(name, id) {
					n++
				}
			}
			return n
		}
		if kept() == 0 {
			t.Fatal("a READY upload has no objects")
		}
		w.p.wantWithdrawn(id, len(note("contract-fir")))
		w.context("harbour", w.reader, id).want(t, 404, "context_not_ready")
		if kept() != 0 || w.quota("harbour", w.p.token).UsedBytes != before {
			t.Errorf("%d objects stay, or quota", kept())
		}
		var receipts, lines int
		if err := w.database(t, "metadata.db").QueryRow(`SELECT (SELECT count(*) FROM receipts WHERE upload_id = $1), (SELECT count(*) FROM audit_lines WHERE upload_id = $1)`, id).Scan(&receipts, &lines); err != nil || receipts != 1 || lines == 0 {
			t.Errorf("%d receipts, %d audit lines, %v", receipts, lines, err)
		}
	},
	"3 terminal": func(t *testing.T, w witness) {
		key := client.NewIdempotencyKey()
		id := w.do(w.p.reserving(key, 10)).want(t, 200, "").field(t, "upload_id")
		w.p.wantWithdrawn(id, 10)
		sequence := w.p.status(id).Sequence
		if again := w.do(w.p.reserving(key, 10)).want(t, 200, ""); again.field(t, "upload_id") != id { // no new upload
			t.Errorf("initiate again: %s", again.Raw)
		}
		w.p.part(id, 1, []byte("0123456789")).want(t, 409, "upload_not_receiving")
		w.p.complete(id, [][]byte{[]byte("0123456789")}).want(t, 409, "upload_not_receiving")
		w.p.withdraw(id).want(t, 200, "")
		if st := w.p.status(id); st.Status != "WITHDRAWN" || st.Sequence != sequence {
			t.Errorf("it moved: %+v", st)
		}
	},
	"3 evaluation_status": func(t *testing.T, w witness) {
		for _, r := range []reply{w.submitted, w.corrected, w.ready} {
			wantShape(t, r.data(t), shape{"evaluation_status": only("not_evaluated")})
		}
		for _, c := range w.writing(text("The pump runs.", fields{"evaluation_status": "evaluated"})) {
			w.do(c).want(t, 400, "verification_claim_forbidden")
		}
	},
	"3 sandbox echo status": func(t *testing.T, w witness) {
		r := w.do(call{method: "POST", path: "/api/v1/sandbox/echo", token: w.sandboxKey(), json: fields{"input": ""}}).want(t, 200, "")
		wantShape(t, r.data(t), shape{"status": only("sandbox_ok")})
	},
	"3 rule 1": completions,
	"3 rule 2": func(t *testing.T, w witness) {
		at, _ := strings.CutPrefix(w.completed.Header.Get("Location"), w.url)
		r := w.get(at, w.p.token).want(t, 200, "")
		if !slices.Contains(terminalStatuses, any(r.field(t, "status"))) || r.field(t, "sequence") != w.ready.field(t, "sequence") {
			t.Errorf("status moved on: %s", r.Raw)
		}
		var events, newest int
		db := w.database(t, "metadata.db")
		if err := db.QueryRow(`SELECT count(*), MAX(sequence) FROM status_events WHERE upload_id = $1`, w.partnerID).Scan(&events, &newest); err != nil || events != newest || events < 9 {
			t.Errorf("%d events up to %d, %v", events, newest, err)
		}
		for _, change := range []string{`UPDATE status_events SET sequence = sequence + 100 WHERE upload_id = $1`, `DELETE FROM status_events WHERE upload_id = $1`} {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(change, w.partnerID); err == nil {
				t.Errorf("%s was let through", change)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	},
	"3 rule 3": func(t *testing.T, w witness) {
		schema := w.doc.gives(t, "get", orgPath+"/partner-uploads/{upload_id}", "200")
		want := []any{"INITIATED", "RECEIVING", "PROCESSING", "READY", "REJECTED", "FAILED", "EXPIRED", "WITHDRAWING", "WITHDRAWN"}
		if got := w.doc.from(t, schema, "properties", "status")["enum"].([]any); !slices.Equal(got, want) {
			t.Errorf("statuses %v", got)
		}
		gate := w.doc.from(t, schema, "properties", "gates", "items", "properties")
		var names []string
		for _, name := range w.doc.from(t, gate, "name")["enum"].([]any) {
			names = append(names, name.(string))
		}
		if !slices.Equal(names, gateNames) {
			t.Errorf("gates %v", names)
		}
		if got := w.doc.from(t, gate, "state")["enum"].([]any); !slices.Equal(got, []any{"pending", "running", "passed", "rejected", "failed"}) {
			t.Errorf("states %v", got)
		}
	},
}

// completions: 202 once, itself again as a replay, 200 under another key; and READY only at the status URL.
func completions(t *testing.T, w witness) {
	content := [][]byte{note("contract-yew")}
	for _, f := range []form{byQuery, byPath} {
		id, key := w.p.initiate("note.txt", "text/plain", len(content[0])), client.NewIdempotencyKey()
		w.p.part(id, 1, content[0]).want(t, 200, "")
		first := w.do(w.p.closing(f, id, key, content)).want(t, 202, "")
		wantShape(t, first.data(t), shape{"status": only("PROCESSING")})
		wantReplay(t, first, w.do(w.p.closing(f, id, key, content)))
		w.do(w.p.closing(f, id, client.NewIdempotencyKey(), content)).want(t, 200, "")
		w.p.wantReady(id)
		w.p.wantWithdrawn(id, len(content[0]))
	}
}
