package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// Tables 4.5 and 4.6: customer uploads and partner uploads.

const ownClaim = "This submission has been verified by this service."

var customerProofs = proofs{
	"4.5 customer upload": func(t *testing.T, w witness) {
		r := w.do(w.p.submitting(client.NewIdempotencyKey(), text("Our plant is ISO 9001 certified.", nil))).want(t, 201, "")
		wantShape(t, r.data(t), shape{"upload_id": aString, "evaluation_status": only("not_evaluated"), "consent_capture": anObject})
		w.context("harbour", w.reader, r.field(t, "upload_id")).want(t, 200, "") // readable at once
		w.textRefusals(t, func(body fields) call { return w.p.submitting(client.NewIdempotencyKey(), body) })
		keyless := w.p.submitting("", text("x", nil))
		w.do(keyless).want(t, 400, "idempotency_key_invalid")
		keyless.key, keyless.token = client.NewIdempotencyKey(), w.issue("island", "solution_company_upload")
		w.do(keyless).want(t, 403, "access_denied")
	},
	"4.5 correction": func(t *testing.T, w witness) {
		before := w.provenance(w.textID)
		sent := w.p.correcting(w.textID, client.NewIdempotencyKey(), text("The pump leaks.", nil))
		r := w.do(sent).want(t, 201, "")
		wantShape(t, r.data(t), shape{"upload_id": aString, "original_upload_id": only(w.textID)})
		id := r.field(t, "upload_id")
		if id == w.textID || w.provenance(w.textID) != before {
			t.Error("the original changed")
		}
		if c := decode[servedContext](t, w.context("harbour", w.reader, w.textID)); !slices.Contains(c.Context.Corrections, id) || !strings.Contains(c.text(), "contract-elm") {
			t.Errorf("context of the original: %+v", c)
		}
		wantReplay(t, r, w.do(sent))
		w.textRefusals(t, func(body fields) call { return w.p.correcting(w.textID, client.NewIdempotencyKey(), body) })
		w.do(w.p.correcting(missing, client.NewIdempotencyKey(), text("x", nil))).want(t, 404, "upload_not_found")
		island := w.partner("island")
		w.do(island.correcting(w.textID, client.NewIdempotencyKey(), text("x", nil))).want(t, 404, "upload_not_found")
	},
	"4.5 external review": func(t *testing.T, w witness) {
		before := w.provenance(w.textID)
		for _, body := range []fields{
			{"review_id": "r"}, {"review_id": "r", "source_url": "https://reviews.example/1", "reviewer": "Lloyd's", "notes": "The reviewer verified the torque."},
		} {
			r := w.do(w.p.reviewing(w.textID, client.NewIdempotencyKey(), body)).want(t, 200, "")
			wantShape(t, r.data(t), shape{"evaluation_status": only("not_evaluated")})
		}
		if w.provenance(w.textID) != before {
			t.Error("the provenance changed")
		}
		for _, c := range []struct {
			name  string
			value any
		}{{"review_id", absent{}}, {"review_id", ""}, {"review_id", 7}, {"source_url", "reviews"}, {"source_url", ""}, {"reviewer", ""}, {"notes", 7}} {
			w.do(w.p.reviewing(w.textID, client.NewIdempotencyKey(), altered(fields{"review_id": "r"}, c.name, c.value))).wantWrong(t, "invalid_request", "/"+c.name)
		}
		w.do(w.p.reviewing(w.textID, client.NewIdempotencyKey(), fields{"review_id": "r", "score": 5})).want(t, 400, "invalid_request")
		for _, body := range []fields{{"review_id": "r", "verified": true}, {"review_id": "r", "notes": ownClaim}, {"review_id": "r", "reviewer": ownClaim}} {
			w.do(w.p.reviewing(w.textID, client.NewIdempotencyKey(), body)).want(t, 400, "verification_claim_forbidden")
		}
		w.do(w.p.reviewing(missing, client.NewIdempotencyKey(), fields{"review_id": "r"})).want(t, 404, "upload_not_found")
	},
}

// textRefusals are those of a customer upload and of a correction.
func (w witness) textRefusals(t *testing.T, send func(fields) call) {
	t.Helper()
	for _, c := range []struct {
		change fields
		status int
		code   string
	}{
		{fields{"filename": ""}, 400, "invalid_request"},
		{fields{"payload": eicar()}, 400, "content_refused"},
		{fields{"consent": nil}, 400, "consent_invalid"},
		{fields{"consent": altered(consent(), "accepted", false)}, 400, "consent_invalid"},
		{fields{"payload": ownClaim}, 400, "verification_claim_forbidden"},
		{fields{"filename": ownClaim}, 400, "verification_claim_forbidden"},
		{fields{"certified": true}, 400, "verification_claim_forbidden"},
		{fields{"meta": []any{fields{"ranking": 1}}}, 400, "verification_claim_forbidden"},
		{fields{"customer_workspace_access": "not_granted"}, 403, "workspace_access_required"},
		{fields{"uploader_organization_type": "solution_company"}, 403, "workspace_access_required"},
		{fields{"uploader_organization_type": "third_party"}, 403, "workspace_access_required"},
		{fields{"asserted_subject_org_id": "island"}, 403, "workspace_access_required"},
		{fields{"uploader_organization_id": "island"}, 403, "workspace_access_required"},
	} {
		w.do(send(text("The pump runs.", c.change))).want(t, c.status, c.code)
	}
}

var partnerProofs = proofs{
	"4.6 initiate": func(t *testing.T, w witness) {
		key := client.NewIdempotencyKey()
		first := w.do(w.p.reserving(key, 10)).want(t, 200, "")
		wantReplay(t, first, w.do(w.p.reserving(key, 10)))
		w.do(w.p.reserving(key, 11)).want(t, 409, "idempotency_conflict")
		sent := w.p.reserving(client.NewIdempotencyKey(), 10)
		body := sent.json.(fields)
		for _, name := range []string{"filename", "content_type", "size_bytes"} {
			for _, value := range []any{absent{}, nil, true, ""} {
				sent.json = altered(body, name, value)
				w.do(sent).wantWrong(t, "invalid_request", "/"+name)
			}
		}
		for name, value := range map[string]any{"notes": 7, "material_type": 7, "importance": "urgent"} {
			sent.json = altered(body, name, value)
			w.do(sent).wantWrong(t, "invalid_request", "/"+name)
		}
		for _, importance := range []string{"normal", "important"} {
			sent.json, sent.key = altered(altered(altered(body, "notes", "n"), "material_type", "m"), "importance", importance), client.NewIdempotencyKey()
			w.do(sent).want(t, 200, "")
		}
		for name, value := range map[string]any{"filename": ownClaim, "notes": ownClaim, "material_type": ownClaim, "verified": true, "meta": fields{"ranking": 1}, "evaluation_status": "evaluated"} {
			sent.json, sent.key = altered(body, name, value), client.NewIdempotencyKey()
			w.do(sent).want(t, 400, "verification_claim_forbidden")
		}
		for _, token := range []string{w.reader, w.issue("island", "solution_company_upload")} {
			sent.json, sent.token = body, token
			w.do(sent).want(t, 401, "credential_not_bound")
		}
		w.p.wantWithdrawn(first.field(t, "upload_id"), 10)
	},
	"4.6 part":         partProof(byQuery),
	"4.6 part by path": partProof(byPath),
	"4.6 complete": func(t *testing.T, w witness) {
		completeProof(byQuery)(t, w)
		body := w.p.closing(byQuery, w.partnerID, "", cut(w.content, partSize)).json.(fields)
		for _, name := range []string{"upload_id", "parts", "client_file_sha256"} {
			c := call{method: "POST", path: w.p.path("/partner-uploads/complete"), token: w.p.token, key: client.NewIdempotencyKey(), json: altered(body, name, absent{})}
			w.do(c).wantWrong(t, "invalid_request", "/"+name)
		}
	},
	"4.6 complete by path": completeProof(byPath),
	"4.6 status": func(t *testing.T, w witness) {
		at := w.p.path("/partner-uploads/" + w.partnerID)
		w.wantSwitch(t, call{method: "GET", path: at, token: w.p.token}, "include_gates", "gates")
		w.get(at, w.reader).want(t, 200, "") // metadata_read is enough
		w.get(w.p.path("/partner-uploads/"+w.textID), w.reader).want(t, 200, "")
		w.get(at, "").want(t, 401, "authentication_required")
		w.get(w.p.path("/partner-uploads/"+missing), w.p.token).want(t, 404, "upload_not_found")
		for _, org := range []string{"harbour", "island"} {
			w.get("/api/v1/organizations/"+org+"/partner-uploads/"+w.partnerID, w.issue("island", "ai_reader")).want(t, 404, "upload_not_found")
		}
		wantShape(t, w.ready.data(t), shape{"filename": aString, "size_bytes": only(float64(len(w.content))), "received_bytes": only(float64(len(w.content))),
			"next_part_number": atLeast(1), "created_at": aTime, "updated_at": aTime})
	},
	"4.6 withdraw": func(t *testing.T, w witness) {
		id := w.p.initiate("note.txt", "text/plain", 100)
		sent := w.p.withdrawing(id, client.NewIdempotencyKey(), "moved out")
		other := sent
		for _, token := range []string{w.reader, w.issue("island", "solution_company_upload")} {
			other.token = token
			w.do(other).want(t, 403, "access_denied")
		}
		w.do(w.p.withdrawing(missing, client.NewIdempotencyKey(), "")).want(t, 404, "upload_not_found")
		w.unconfirmed(t)
		first := w.do(sent).want(t, 200, "")
		wantReplay(t, first, w.do(sent))
		bare := w.p.withdrawing(w.p.initiate("note.txt", "text/plain", 100), client.NewIdempotencyKey(), "")
		bare.json, bare.token, bare.bearer = nil, "", adminToken
		w.do(bare).want(t, 200, "")
	},
	"4.6 quota": func(t *testing.T, w witness) {
		for _, token := range []string{w.p.token, w.reader} {
			w.get(w.p.path("/quota"), token).want(t, 200, "")
		}
		w.get(w.p.path("/quota"), "").want(t, 401, "authentication_required")
		w.get(w.p.path("/quota"), w.issue("island", "ai_reader")).want(t, 403, "access_denied")
	},
	"4.6 rule 1": func(t *testing.T, w witness) {
		pieces := cut(noise(2*partSize+10, 5), partSize)
		id := w.p.initiate("a.bin", "application/octet-stream", 2*partSize+10)
		if r := w.p.part(id, 2, pieces[1]).want(t, 409, "part_out_of_order"); r.Details["next_part_number"] != 1.0 {
			t.Errorf("details %v", r.Details)
		}
		for _, length := range []int{partSize - 1, partSize + 1, 1} {
			w.p.part(id, 1, noise(length, 6)).want(t, 400, "part_length_invalid")
		}
		for i, piece := range pieces {
			w.p.part(id, i+1, piece).want(t, 200, "")
		}
		w.p.wantWithdrawn(id, 2*partSize+10)
	},
	"4.6 rule 2": func(t *testing.T, w witness) {
		id := w.p.initiate("a.bin", "application/octet-stream", 5)
		w.p.part(id, 1, []byte("right")).want(t, 200, "")
		c := w.p.closing(byQuery, id, client.NewIdempotencyKey(), [][]byte{[]byte("right")})
		c.json = altered(c.json.(fields), "client_file_sha256", hexSum([]byte("wrong")))
		w.do(c).want(t, 409, "digest_mismatch")
		if st := w.p.status(id); st.Status != "RECEIVING" || st.Gates[0].State != "pending" {
			t.Errorf("processing began: %+v", st)
		}
		w.p.wantWithdrawn(id, 5)
		gates := decode[status](t, w.ready).Gates // quarantine, malware scan and reading, in this order, on the declared bytes
		if gates[0].Detail["sha256"] != hexSum(w.content) || gates[2].Detail["engine"] != "ClamAV" || gates[2].Detail["scanned_bytes"] != float64(len(w.content)) || gates[3].Detail["pages"] == nil {
			t.Errorf("gates %+v", gates)
		}
		if len(files(t, filepath.Join(w.data, "quarantine", "uploads", w.partnerID))) == 0 {
			t.Error("no copy in quarantine")
		}
	},
	"4.6 rule 3": func(t *testing.T, w witness) {
		for path, method := range map[string]string{"/part": "put", "/{upload_id}/parts/{part_number}": "put", "/complete": "post", "/{upload_id}/complete": "post"} {
			w.doc.at(t, "paths", orgPath+"/partner-uploads"+path, method, "responses", "200")
		}
	},
}

// partProof: taken once, the same again, and nothing that conflicts.
func partProof(f form) proof {
	return func(t *testing.T, w witness) {
		pieces := cut(noise(partSize+10, 7), partSize)
		id, key := w.p.initiate("a.bin", "application/octet-stream", partSize+10), client.NewIdempotencyKey()
		first := w.do(w.p.put(f, id, 1, key, pieces[0])).want(t, 200, "")
		wantReplay(t, first, w.do(w.p.put(f, id, 1, key, pieces[0])))
		w.do(w.p.put(f, id, 1, client.NewIdempotencyKey(), pieces[0])).want(t, 200, "")
		w.do(w.p.put(f, id, 1, client.NewIdempotencyKey(), noise(partSize, 8))).want(t, 409, "part_conflict")
		w.do(w.p.put(f, id, 3, client.NewIdempotencyKey(), pieces[1])).want(t, 409, "part_out_of_order")
		w.do(w.p.put(f, id, 2, key, pieces[1])).want(t, 409, "idempotency_conflict")
		both := w.p.put(f, id, 2, client.NewIdempotencyKey(), pieces[1])
		if f == byPath {
			both.path += "?upload_id=" + w.partnerID
			w.do(both).want(t, 409, "upload_identity_conflict")
		}
		bare := w.p.put(f, id, 2, client.NewIdempotencyKey(), pieces[1])
		bare.header = map[string]string{"Content-Type": "text/plain"}
		w.do(bare).want(t, 415, "media_type_unsupported")
		bare = w.p.put(f, id, 2, client.NewIdempotencyKey(), pieces[1])
		bare.token = w.reader
		w.do(bare).want(t, 401, "credential_not_bound")
		w.do(w.p.put(f, id, 2, client.NewIdempotencyKey(), pieces[1])).want(t, 200, "")
		w.p.wantWithdrawn(id, partSize+10)
	}
}

// completeProof: 202 with its headers, 200 after it, 409 for what does not match.
func completeProof(f form) proof {
	return func(t *testing.T, w witness) {
		content := [][]byte{note("contract-bay")}
		id := w.p.initiate("note.txt", "text/plain", len(content[0]))
		w.do(w.p.closing(f, id, client.NewIdempotencyKey(), content)).want(t, 409, "part_ledger_mismatch")
		w.p.part(id, 1, content[0]).want(t, 200, "")
		w.do(w.p.closing(f, id, client.NewIdempotencyKey(), [][]byte{[]byte("other")})).want(t, 409, "part_ledger_mismatch")
		c := w.p.closing(f, id, client.NewIdempotencyKey(), content)
		right := c.json.(fields)
		c.json = altered(right, "client_file_sha256", hexSum(nil))
		w.do(c).want(t, 409, "digest_mismatch")
		c.json = altered(right, "force", true)
		w.do(c).want(t, 400, "invalid_request")
		if f == byPath {
			c.json = altered(right, "upload_id", w.partnerID)
			w.do(c).want(t, 409, "upload_identity_conflict")
		}
		c.json = right
		r := w.do(c).want(t, 202, "") // none of the refusals burned the key
		wantJob(t, w.service, w.p, id, r, hexSum(content[0]))
		w.do(w.p.closing(f, id, client.NewIdempotencyKey(), content)).want(t, 200, "")
		w.p.wantReady(id)
	}
}

// unconfirmed withdraws an upload of which one storage backend keeps something.
func (w witness) unconfirmed(t *testing.T) {
	t.Helper()
	id := w.p.send("note.txt", "text/plain", note("contract-may"))
	w.p.wantReady(id)
	stray := filepath.Join(w.data, "quarantine", "uploads", id, "NOT OURS") // no object has such a name
	if err := os.WriteFile(stray, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	sent := w.p.withdrawing(id, client.NewIdempotencyKey(), "")
	w.do(sent).want(t, 502, "deletion_not_confirmed")
	w.context("harbour", w.reader, id).want(t, 404, "context_not_ready")
	if err := os.Remove(stray); err != nil {
		t.Fatal(err)
	}
	if st := w.p.follow(id); st.Status != "WITHDRAWN" {
		t.Fatalf("status %s", st.Status)
	}
	w.do(sent).want(t, 200, "")
}
