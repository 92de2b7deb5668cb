package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// Tables 2.1 to 2.5: the envelope, the error object, consent, and what a customer sends and gets.

// successes are answers of all kinds of operations.
func (w witness) successes() []reply {
	all := append([]reply{w.initiated, w.completed, w.ready, w.submitted, w.corrected}, w.parts...)
	return append(all, w.get("/api/v1/ai/capabilities", ""), w.get("/api/v1/sandbox", ""), w.context("harbour", w.reader, w.textID),
		w.get(w.p.path("/request-records"), w.reader), w.get(w.p.path("/quota"), w.reader))
}

var envelopeProofs = proofs{
	"2.1 request_id": envelopeProof("request_id", func(r reply) bool { return r.RequestID == r.Header.Get("X-Request-Id") }),
	"2.1 trace_id":   envelopeProof("trace_id", func(r reply) bool { return strings.Contains(r.Header.Get("Traceparent"), r.TraceID) }),
	"2.1 data":       envelopeProof("data", func(r reply) bool { return len(r.Data) > 2 }),
}

func envelopeProof(name string, holds func(reply) bool) proof {
	return func(t *testing.T, w witness) {
		seen := map[string]bool{}
		for _, r := range w.successes() {
			wantOnly(t, object(t, string(r.Raw)), shape{"request_id": aString, "trace_id": aString, "data": anObject})
			value := string(r.Data)
			if name != "data" {
				value = object(t, string(r.Raw))[name].(string)
			}
			if !holds(r) || seen[value] {
				t.Errorf("%s: %v %s", name, r.Header, r.Raw)
			}
			seen[value] = true
		}
	}
}

// refusals are errors of all kinds, by status.
func (w witness) refusals() []reply {
	key := client.NewIdempotencyKey
	notJSON := w.p.submitting(key(), nil)
	notJSON.body, notJSON.json = []byte("{"), nil
	return []reply{
		w.do(w.p.submitting(key(), map[string]any{})).want(w.t, 400, "consent_invalid"),
		w.do(w.p.reserving("short", 1)).want(w.t, 400, "idempotency_key_invalid"),
		w.get(w.p.path("/quota"), "").want(w.t, 401, "authentication_required"),
		w.post("/api/v1/sandbox/echo", map[string]any{"input": "x"}).want(w.t, 401, "authentication_required"),
		w.get(w.p.path("/quota"), w.issue("island", "ai_reader")).want(w.t, 403, "access_denied"),
		w.get(w.p.path("/partner-uploads/"+missing), w.p.token).want(w.t, 404, "upload_not_found"),
		w.get("/nowhere", "").want(w.t, 404, "route_not_found"),
		w.post("/api/v1/ai/capabilities", map[string]any{}).want(w.t, 405, "method_not_allowed"),
		w.p.part(w.partnerID, 3, []byte("x")).want(w.t, 409, "upload_not_receiving"),
		w.do(w.p.submitting(key(), text("x", map[string]any{"more": strings.Repeat("x", 2<<20)}))).want(w.t, 413, "body_too_large"),
		w.do(notJSON).want(w.t, 415, "media_type_unsupported"),
	}
}

var errorProofs = proofs{
	"2.2 code":       errorProof("code", aString, true),
	"2.2 message":    errorProof("message", aString, true),
	"2.2 request_id": errorProof("request_id", aString, true),
	"2.2 trace_id":   errorProof("trace_id", aString, true),
	"2.2 details":    errorProof("details", anObject, false),
}

// errorProof wants the field in every error; one that is not in all, in some.
func errorProof(name string, k kind, all bool) proof {
	return func(t *testing.T, w witness) {
		had := 0
		for _, r := range w.refusals() {
			o := object(t, string(r.Raw))
			_, there := o[name]
			if there || all {
				wantShape(t, o, shape{name: k})
				had++
			}
			if o["data"] != nil || name == "code" && !slices.Contains(w.codes(t), any(r.Code)) {
				t.Errorf("an envelope, or no code of the catalogue: %s", r.Raw)
			}
		}
		if had == 0 {
			t.Errorf("no error has %s", name)
		}
		problem := w.doc.at(t, "paths", orgPath+"/quota", "get", "responses", "401", "content", "application/json", "schema")
		typ := "string"
		if name == "details" {
			typ = "object"
		}
		must := slices.Contains([]string{"code", "message", "request_id"}, name)
		if listed := slices.Contains(problem["required"].([]any), any(name)); must && !listed || w.doc.from(t, problem, "properties", name)["type"] != typ {
			t.Errorf("the document says of %s: required %v, %v", name, listed, problem)
		}
	}
}

// codes are the published ones.
func (w witness) codes(t *testing.T) []any {
	t.Helper()
	return w.doc.at(t, "components", "schemas", "Problem", "properties", "code")["enum"].([]any)
}

// consenting is every operation that takes a consent, with this one.
func (w witness) consenting(agreed any) []call {
	body := altered(text("The pump runs.", nil), "consent", agreed)
	reservation := w.p.reserving(client.NewIdempotencyKey(), 10)
	reservation.json = altered(reservation.json.(map[string]any), "consent", agreed)
	return []call{w.p.submitting(client.NewIdempotencyKey(), body), w.p.correcting(w.textID, client.NewIdempotencyKey(), body), reservation}
}

var consentProofs = proofs{
	"2.3 accepted":                        consentProof("accepted", "boolean", "", false, "true", 1, nil),
	"2.3 beta_agreement_version":          consentProof("beta_agreement_version", "string", "", 1, "", nil),
	"2.3 ai_readable_use_consent_version": consentProof("ai_readable_use_consent_version", "string", "", 1, "", nil),
	"2.3 text_hash_sha256": consentProof("text_hash_sha256", "string", "", strings.ToUpper(hexSum(nil)), hexSum(nil)[1:], hexSum(nil)+"0",
		strings.Repeat("g", 64), 1, nil),
	"2.3 consenting_user_id":    consentProof("consenting_user_id", "string", "", 7, "", nil),
	"2.3 consenting_user_email": consentProof("consenting_user_email", "string", "email", "nobody", "a@b@c", "Ann <ann@example.com>", 7, "", nil),
	"2.3 accepted_at":           consentProof("accepted_at", "string", "date-time", "yesterday", "2026-11-01", "2026-02-30T10:00:00Z", "2026-11-01 10:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-00:01", 1793527200, nil),
	"2.3 consent_capture":       consentIsRedacted,
}

// consentProof has all three operations refuse a consent whose field is missing or wrong; the right one the witness has used.
func consentProof(name, typ, format string, wrong ...any) proof {
	return func(t *testing.T, w witness) {
		for _, value := range append(wrong, absent{}) {
			for _, c := range w.consenting(altered(consent(), name, value)) {
				w.do(c).wantWrong(t, "consent_invalid", "/consent/"+name)
			}
		}
		for _, path := range []string{"/partner-uploads/initiate", "/customer-uploads", "/customer-uploads/{upload_id}/corrections"} {
			schema := w.doc.from(t, w.doc.takes(t, "post", orgPath+path), "properties", "consent")
			if p := w.doc.wantProperty(t, schema, name, true, typ); format != "" && p["format"] != format {
				t.Errorf("format of %s: %v", name, p)
			}
		}
	}
}

func consentIsRedacted(t *testing.T, w witness) {
	body := text("The pump runs.", nil)
	who := whoConsents(body)
	r := w.do(w.p.submitting(client.NewIdempotencyKey(), body)).want(t, 201, "")
	id := r.field(t, "upload_id")
	for _, r := range []reply{r, w.do(w.p.correcting(id, client.NewIdempotencyKey(), body)).want(t, 201, "")} {
		capture, _ := r.data(t)["consent_capture"].(map[string]any)
		wantShape(t, capture, shape{"status": aString})
	}
	c := w.context("harbour", w.reader, id).want(t, 200, "").data(t)["context"].(map[string]any)
	wantShape(t, c["consent_capture"].(map[string]any), shape{"status": aString})
	w.wantUntold(who...)
	w.wantUntold("consenting.person@example.com", "user-7") // of all the uploads before
}

// writing is both operations that take table 2.4.
func (w witness) writing(body map[string]any) []call {
	return []call{w.p.submitting(client.NewIdempotencyKey(), body), w.p.correcting(w.textID, client.NewIdempotencyKey(), body)}
}

type fields = map[string]any

// publishedValues are the enums of table 2.4.
var publishedValues = map[string][]any{
	"visibility":                 {"ai_readable_controlled", "private_summary_public", "internal_only", "public_profile"},
	"uploader_organization_type": {"customer", "solution_company", "third_party"},
	"customer_workspace_access":  {"granted", "not_granted"},
}

var submissionProofs = proofs{
	"2.4 filename":   submissionProof("filename", "string", []any{absent{}, nil, 7, "", "a/b", `a\b`, "a\x00b", strings.Repeat("f", 256)}, fields{"filename": "Prüfung.txt"}),
	"2.4 payload":    submissionProof("payload", "string", []any{absent{}, nil, 7, "", strings.Repeat("p", 1<<20+1)}, fields{"payload": "ö"}),
	"2.4 visibility": visibilities,
	"2.4 consent":    submissionProof("consent", "object", []any{absent{}, nil, true, "yes", []any{}, fields{}}, fields{"consent": consent()}),
	"2.4 content_type": submissionProof("content_type", "string", []any{7, "", "text", "application/pdf"}, fields{}, fields{"content_type": "text/plain"},
		fields{"content_type": "text/markdown; charset=utf-8"}),
	"2.4 uploader_organization_type": submissionProof("uploader_organization_type", "string", []any{7, "", "partner"}, fields{"uploader_organization_type": "customer"},
		fields{"uploader_organization_type": "solution_company", "customer_workspace_access": "granted"},
		fields{"uploader_organization_type": "third_party", "customer_workspace_access": "granted"}),
	"2.4 uploader_organization_id": submissionProof("uploader_organization_id", "string", []any{7, ""}, fields{"uploader_organization_id": "harbour"},
		fields{"uploader_organization_id": "island", "uploader_organization_type": "third_party", "customer_workspace_access": "granted"}),
	"2.4 asserted_subject_org_id": submissionProof("asserted_subject_org_id", "string", []any{7, ""}, fields{"asserted_subject_org_id": "harbour"}),
	"2.4 customer_workspace_access": func(t *testing.T, w witness) {
		submissionProof("customer_workspace_access", "string", []any{7, "", "maybe", true}, fields{"customer_workspace_access": "granted"})(t, w)
		for _, c := range w.writing(text("The pump runs.", fields{"customer_workspace_access": "not_granted"})) {
			w.do(c).want(t, 403, "workspace_access_required")
		}
	},
}

// submissionProof has upload and correction refuse wrong values of a field and take right ones.
func submissionProof(name, typ string, wrong []any, right ...fields) proof {
	return func(t *testing.T, w witness) {
		code := "invalid_request"
		if name == "consent" {
			code = "consent_invalid"
		}
		for _, value := range wrong {
			for _, c := range w.writing(altered(text("The pump runs.", nil), name, value)) {
				w.do(c).wantWrong(t, code, "/"+name)
			}
		}
		for _, change := range right {
			for _, c := range w.writing(text("The pump runs.", change)) {
				w.do(c).want(t, 201, "")
			}
		}
		for _, path := range []string{"", "/{upload_id}/corrections"} {
			required := slices.Contains(wrong, any(absent{}))
			p := w.doc.wantProperty(t, w.doc.takes(t, "post", orgPath+"/customer-uploads"+path), name, required, typ)
			if values, _ := p["enum"].([]any); !slices.Equal(values, publishedValues[name]) {
				t.Errorf("published values of %s: %v", name, values)
			}
		}
	}
}

func visibilities(t *testing.T, w witness) {
	right := []fields{}
	for _, v := range publishedValues["visibility"] {
		right = append(right, fields{"visibility": v})
	}
	submissionProof("visibility", "string", []any{absent{}, nil, 7, "", "public", "INTERNAL_ONLY"}, right...)(t, w)
}

var uploadRecordProofs = proofs{
	"2.5 upload_id": recordProof("upload_id", aString, true),
	"2.5 org_id":    recordProof("org_id", only("harbour"), true),
	"2.5 status":    recordProof("status", only("READY"), true),
	"2.5 filename":  recordProof("filename", only("note.txt"), true),
	"2.5 consent_capture": func(t *testing.T, w witness) {
		recordProof("consent_capture", anObject, true)(t, w)
		consentIsRedacted(t, w)
	},
	"2.5 original_upload_id": func(t *testing.T, w witness) {
		recordProof("original_upload_id", only(w.textID), false)(t, w)
	},
}

// recordProof wants the field in the record of a correction, and of an upload or not there.
func recordProof(name string, k kind, both bool) proof {
	return func(t *testing.T, w witness) {
		wantShape(t, w.corrected.data(t), shape{name: k})
		if both {
			wantShape(t, w.submitted.data(t), shape{name: k})
		} else if _, there := w.submitted.data(t)[name]; there {
			t.Errorf("an upload has %s: %s", name, w.submitted.Raw)
		}
		for _, path := range []string{"", "/{upload_id}/corrections"} {
			schema := w.doc.gives(t, "post", orgPath+"/customer-uploads"+path, "201")
			if !slices.Contains(slices.Collect(maps.Keys(w.doc.from(t, schema, "properties"))), name) {
				t.Errorf("the document does not give %s", name)
			}
		}
	}
}
