package e2e

import (
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/accession/accession/client"
)

// receipt reads a withdrawal's receipt.
func (s *service) receipt(org, token, id string) reply {
	s.t.Helper()
	return s.do(call{method: "GET", path: "/api/v1/organizations/" + org + "/withdrawals/" + id, token: token})
}

// keySet is what the service publishes.
func (s *service) keySet() []byte {
	s.t.Helper()
	answer, err := http.Get(s.url + "/oauth/jwks")
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 {
		s.t.Fatalf("%s: %v: %s", answer.Status, err, b)
	}
	return b
}

// deletedBy is how many objects each backend deleted.
func deletedBy(r *client.Receipt) map[string]int {
	objects := map[string]int{}
	for _, d := range r.Deletions {
		objects[d.Backend] = d.Objects
	}
	return objects
}

func TestReceiptIsVerifiedWithoutTheService(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--key-backup-horizon", "48h"}})
	p, reader := s.partner("harbour"), s.oauthClient("harbour", "ai_reader")
	keys := s.keySet() // before the first receipt
	id := p.send("note.txt", "text/plain", note("lantern"))
	p.wantReady(id)
	for range 2 {
		s.context("harbour", reader.secret, id).want(t, 200, "")
	}
	s.context("harbour", s.issue("harbour", "ai_reader"), id).want(t, 200, "")
	receiptID := p.wantWithdrawn(id, len(note("lantern")))
	answered := s.receipt("harbour", p.token, receiptID).want(t, 200, "")
	again := p.withdraw(id).want(t, 200, "").field(t, "withdrawal_receipt_id")
	if repeated := s.receipt("harbour", reader.secret, again).want(t, 200, ""); string(repeated.Data) != string(answered.Data) {
		t.Errorf("a second withdrawal has another receipt: %s\n%s", answered.Data, repeated.Data)
	}

	kept, keyFile := filepath.Join(t.TempDir(), "receipt.jws"), written(t, "keys.json", keys)
	shown, _ := s.wantCLI(0, p.token, "receipt", "show", "harbour", receiptID, "-o", kept)
	s.wantCLI(0, "", "receipt", "show", "--org", "harbour", receiptID, "--json") // the admin token
	s.wantCLI(0, "", "receipt", "verify", kept)                                  // keys from the service
	s.wantCLI(0, "", "receipt", "verify", kept, "--keys", s.url+"/oauth/jwks")
	s.wantCLI(1, "", "receipt", "verify", kept, "--keys", s.url+"/oauth/none")
	stranger := start(t, options{})
	s.wantCLI(1, "", "receipt", "verify", kept, "--keys", stranger.url+"/oauth/jwks") // the keys of another installation
	stranger.kill()
	if code := s.stop(); code != 0 {
		t.Fatalf("exit %d", code)
	}

	verified, _ := s.wantCLI(0, "", "receipt", "verify", kept, "--keys", keyFile)
	for _, said := range []string{"verified", receiptID, id, "harbour", hexSum(note("lantern")), "staging: 4 objects", "quarantine: 1 objects", "key_store: 1 objects", reader.id, "2 times", "PT48H", "e2e"} {
		if !strings.Contains(verified, said) || said != "verified" && !strings.Contains(shown, said) {
			t.Errorf("no %q in\n%s\n%s", said, verified, shown)
		}
	}
	signed, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.VerifyReceipt(string(signed), keys)
	if err != nil {
		t.Fatal(err)
	}
	if r.WithdrawalReceiptID != receiptID || r.RequestedBy == "" || r.SizeBytes != int64(len(note("lantern"))) || r.QuotaBytes != r.SizeBytes || len(r.Recalled) != 2 ||
		r.RequestedAt.After(r.KeyDestroyedAt) || r.KeyDestroyedAt.After(r.WithdrawnAt) || len(r.Remains) < 5 || !r.Remains[len(r.Remains)-1].Until.Equal(r.WithdrawnAt.Add(48*time.Hour)) {
		t.Errorf("certified: %+v", r)
	}
	var told client.Receipt // the answer says what is signed, and nothing else
	if err := json.Unmarshal(answered.Data, &told); err != nil {
		t.Fatal(err)
	}
	if a, b := object(t, marshalled(t, told)), object(t, marshalled(t, *r)); marshalled(t, a) != marshalled(t, b) {
		t.Errorf("answered %v\nsigned %v", a, b)
	}
	thirdParty(t, strings.TrimSpace(string(signed)), keys)

	flipped := []byte(strings.TrimSpace(string(signed)))
	for i := 0; i < len(flipped); i += 7 {
		flipped[i] ^= 1
		if _, err := client.VerifyReceipt(string(flipped), keys); err == nil {
			t.Errorf("verifies with byte %d flipped", i)
		}
		flipped[i] ^= 1
	}
	flipped[len(flipped)/2] ^= 1
	if out, errs := s.wantCLI(1, "", "receipt", "verify", written(t, "flipped.jws", flipped), "--keys", keyFile); out != "" || !strings.Contains(errs, "does not verify") {
		t.Errorf("%s%s", out, errs)
	}
	s.wantCLI(2, "", "receipt", "verify", filepath.Join(t.TempDir(), "none"), "--keys", keyFile)

	next := start(t, options{data: s.data}) // the key is the same after a restart
	if string(next.keySet()) != string(keys) {
		t.Error("the key set changed with a restart")
	}
}

// thirdParty verifies with a library that knows nothing of receipts.
func thirdParty(t *testing.T, signed string, keys []byte) {
	t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(keys, &set); err != nil {
		t.Fatal(err)
	}
	parsed, err := jose.ParseSignedCompact(signed, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	found := set.Key(parsed.Signatures[0].Header.KeyID)
	if len(found) != 1 {
		t.Fatalf("%d keys of %q", len(found), parsed.Signatures[0].Header.KeyID)
	}
	if _, err := parsed.Verify(found[0]); err != nil {
		t.Error(err)
	}
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWhoMayReadAReceipt(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.wantWithdrawn(p.initiate("note.txt", "text/plain", 100), 100)
	for _, token := range []string{p.token, s.issue("harbour", "ai_reader")} {
		s.receipt("harbour", token, id).want(t, 200, "")
	}
	s.do(call{method: "GET", path: p.path("/withdrawals/" + id), bearer: adminToken}).want(t, 200, "")
	other := s.issue("island", "solution_company_upload")
	for _, org := range []string{"harbour", "island"} {
		s.receipt(org, other, id).want(t, 404, "receipt_not_found")
	}
	s.receipt("harbour", p.token, "rct_"+missing[4:]).want(t, 404, "receipt_not_found")
	s.receipt("harbour", "", id).want(t, 401, "authentication_required")
	narrow := s.do(call{method: "POST", path: "/admin/tenant-keys/issue", bearer: adminToken, key: client.NewIdempotencyKey(),
		json: map[string]any{"org_id": "harbour", "role": "ai_reader", "scope": "ai_context"}}).want(t, 201, "").field(t, "token")
	s.receipt("harbour", narrow, id).want(t, 403, "insufficient_scope")

	// What was never whole has no digest, and nothing to delete but its key.
	data := object(t, string(s.receipt("harbour", p.token, id).Data))
	if _, said := data["sha256"]; said {
		t.Errorf("a digest of what never came: %v", data)
	}
	r := decode[client.Receipt](t, s.receipt("harbour", p.token, id))
	if got := deletedBy(&r); len(got) != 3 || got["staging"] != 0 || got["quarantine"] != 0 || got["key_store"] != 1 || len(r.Recalled) != 0 {
		t.Errorf("receipt %+v", r)
	}
}

// What an attempt deleted before the service died is in the receipt of the attempt that was confirmed.
func TestReceiptCountsEveryAttempt(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--part-size-bytes", "64"}})
	p := s.partner("harbour")
	parts := cut(note("ember"), 64)
	id := p.initiate("note.txt", "text/plain", len(note("ember")))
	for i, part := range parts {
		p.part(id, i+1, part).want(t, 200, "")
	}
	p.complete(id, parts).want(t, 202, "")
	p.wantReady(id)
	db := s.database(t, "keys.db")
	mustExec(t, db, `CREATE TRIGGER refuse BEFORE DELETE ON data_keys BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
	p.withdraw(id).want(t, 502, "deletion_not_confirmed")
	s.wantNoObjects() // the first attempt deleted them all
	s.kill()
	mustExec(t, db, `DROP TRIGGER refuse`)
	again := partner{start(t, options{data: s.data}), "harbour", p.token}
	if st := again.follow(id); st.Status != "WITHDRAWN" {
		t.Fatalf("status %s", st.Status)
	}
	r := decode[client.Receipt](t, again.receipt("harbour", p.token, again.withdraw(id).field(t, "withdrawal_receipt_id")).want(t, 200, ""))
	if got := deletedBy(&r); got["staging"] != len(parts)+3 || got["quarantine"] != len(parts) || got["key_store"] != 1 {
		t.Errorf("deleted %v", got)
	}
	for _, d := range r.Deletions[:2] {
		if d.Bytes <= int64(len(note("ember"))) {
			t.Errorf("%d bytes of ciphertext in %s", d.Bytes, d.Backend)
		}
	}
}

// The records of a withdrawn upload say that it was recalled, and verify as before.
func TestRecordsSayWhatWasRecalled(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	gone, stays := p.submit(text("The pump runs.", nil)), p.submit(text("The pump stands.", nil))
	for _, id := range []string{gone, stays} {
		s.context("harbour", reader, id).want(t, 200, "")
	}
	before := s.records("harbour", reader, "")
	page := func(query string) []client.RequestRecord {
		return decode[client.RecordPage](t, s.do(call{method: "GET", path: p.path("/request-records" + query), token: reader}).want(t, 200, "")).Records
	}
	if all := page(""); len(all) != 2 || !all[0].RecalledAt.IsZero() || !all[1].RecalledAt.IsZero() {
		t.Errorf("recalled before any withdrawal: %+v", all)
	}
	receipt := decode[client.Receipt](t, s.receipt("harbour", p.token, p.wantWithdrawn(gone, len("The pump runs."))))
	if all := page(""); len(all) != 2 || !all[0].RecalledAt.IsZero() || !all[1].RecalledAt.Equal(receipt.RequestedAt) {
		t.Errorf("%+v, want one recalled at %s", all, receipt.RequestedAt)
	}
	if one := page("?upload_id=" + gone); len(one) != 1 || !one[0].RecalledAt.Equal(receipt.RequestedAt) || one[0].CredentialID != receipt.Recalled[0].CredentialID || one[0].RecordHash != before[1].Hash {
		t.Errorf("%+v, receipt %+v", one, receipt.Recalled)
	}
	for i, r := range s.records("harbour", reader, "") {
		if r.Link(before[i].PreviousHash); r.Hash != before[i].Hash {
			t.Errorf("record %s does not verify any more", r.ID)
		}
	}
}

// auditReceipt: however often the service died, the receipt is signed and counts everything that was ever stored and kept.
func (d *deposit) auditReceipt(db *sql.DB) {
	d.t.Helper()
	var signed string
	if err := db.QueryRow(`SELECT signed FROM receipts WHERE upload_id = $1`, d.uploadID).Scan(&signed); err != nil {
		d.t.Fatal(err)
	}
	parts := strings.Split(signed, ".")
	if len(parts) != 3 {
		d.t.Fatalf("signed receipt: %q", signed)
	}
	var r client.Receipt
	document, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		d.t.Fatal(err)
	}
	if err := json.Unmarshal(document, &r); err != nil {
		d.t.Fatal(err)
	}
	got := deletedBy(&r)
	if got["staging"] < d.acceptedParts+3 || got["quarantine"] != d.acceptedParts || got["key_store"] != 1 || len(r.Recalled) != 1 {
		d.t.Errorf("of %d parts and 3 derived objects the receipt counts %v, recalled %v", d.acceptedParts, got, r.Recalled)
	}
	if n := count(d.t, db, `SELECT COUNT(*) FROM withdrawal_objects`); n != 0 {
		d.t.Errorf("%d notes of a withdrawal outlived its receipt", n)
	}
}
