package e2e

import (
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// A new receipt key is published before it signs, and what the old ones signed stays verifiable.
func TestReceiptKeysRotate(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	signed := func() string {
		t.Helper()
		id := p.withdraw(p.initiate("note.txt", "text/plain", 100)).want(t, 200, "").field(t, "withdrawal_receipt_id")
		return s.receipt("harbour", p.token, id).want(t, 200, "").field(t, "signed_receipt")
	}
	verify := func(receipt string, keys []byte) error {
		_, err := client.VerifyReceipt(receipt, keys)
		return err
	}
	header := func(receipt string) string { return strings.SplitN(receipt, ".", 2)[0] } // names the key
	first, before := signed(), s.keySet()
	if out, _ := s.wantCLI(0, "", "credentials", "signing-keys", "rotate", "receipt"); !strings.Contains(out, "announced") {
		t.Error(out)
	}
	announced, now := signed(), s.keySet()
	if header(announced) != header(first) || strings.Count(string(now), "EdDSA") != 2 {
		t.Errorf("a key that nobody knows signed, or is not published: %s", now)
	}
	mustExec(t, s.database(t, "keys.db"), `UPDATE signing_keys SET created_at = created_at - 121000 WHERE purpose = 'receipt'`)
	second := signed()
	if header(second) == header(first) {
		t.Fatal("the announced key does not sign")
	}
	for _, receipt := range []string{first, announced, second} {
		if err := verify(receipt, now); err != nil {
			t.Error(err)
		}
	}
	if verify(first, before) != nil || verify(second, before) == nil {
		t.Error("keys from before the rotation verify what they signed, and no more")
	}
	out, _ := s.wantCLI(0, "", "credentials", "signing-keys", "list")
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); fields[1] == "receipt" {
			s.do(call{method: "POST", path: "/admin/tenant-keys/signing-keys/" + fields[0] + "/retire", bearer: adminToken, json: map[string]any{"force": true}}).want(t, 409, "signing_key_in_use")
		}
	}
	if strings.Count(out, "receipt") != 2 || strings.Count(out, "retired") != 0 {
		t.Error(out)
	}
}
