package httpapi

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func TestWithdrawalReceipt(t *testing.T) {
	const at = "/api/v1/organizations/org_1/withdrawals/rct_1"
	b := newBench(t)
	when := time.Date(2026, 11, 20, 9, 0, 0, 5e6, time.UTC)
	b.receipt = custody.Receipt{
		ID: "rct_1", Issuer: "https://custody.example", UploadID: "up_1", OrgID: "org_1", SHA256: strings.Repeat("ab", 32), SizeBytes: 9, CredentialID: "cred_1",
		Reason: "moved", RequestedAt: when, WithdrawnAt: when, QuotaBytes: 7, KeyDestroyedAt: when, KeyBackupHorizon: "PT720H", Signed: "a.b.c",
		Deletions: []custody.Deletion{{Backend: "staging", Objects: 2, Bytes: 40, Confirmation: "read back", ConfirmedAt: when}},
		Recalled:  []custody.Recall{{CredentialID: "cred_2", Servings: 3, LastServedAt: when}},
		Remains:   []custody.Remnant{{What: "this"}, {What: "that", Until: when}},
	}
	const said = "2026-11-20T09:00:00.005Z"
	want := map[string]any{
		"withdrawal_receipt_id": "rct_1", "issuer": "https://custody.example", "upload_id": "up_1", "org_id": "org_1", "sha256": strings.Repeat("ab", 32), "size_bytes": 9.0,
		"requested_by": "cred_1", "reason": "moved", "requested_at": said, "withdrawn_at": said, "quota_bytes": 7.0, "key_destroyed_at": said, "key_backup_horizon": "PT720H",
		"signed_receipt": "a.b.c",
		"deletions":      []any{map[string]any{"backend": "staging", "objects": 2.0, "bytes": 40.0, "confirmation": "read back", "confirmed_at": said}},
		"recalled":       []any{map[string]any{"credential_id": "cred_2", "servings": 3.0, "last_served_at": said}},
		"remains":        []any{map[string]any{"what": "this"}, map[string]any{"what": "that", "until": said}},
	}
	for _, as := range []string{asUp, asAI, admin} {
		if data := b.call("GET", at, nil, as).succeeds(t, 200); !reflect.DeepEqual(data, want) {
			t.Errorf("data %v", data)
		}
		if b.got != any([2]string{"org_1", "rct_1"}) {
			t.Errorf("the room got %v", b.got)
		}
	}
	b.receipt = custody.Receipt{ID: "rct_1"}
	for _, list := range []string{"deletions", "recalled", "remains"} {
		if got, ok := b.call("GET", at, nil, asUp).succeeds(t, 200)[list].([]any); !ok || len(got) != 0 {
			t.Errorf("%s of an empty receipt: %v", list, got)
		}
	}
	b.err = custody.ReceiptNotFound()
	b.call("GET", at, nil, asUp).wants(t, 404, custody.CodeReceiptNotFound, "")
	b.call("GET", at+strings.Repeat("x", 129), nil, asUp).wants(t, 400, custody.CodeInvalidRequest, "/path/withdrawal_receipt_id")
	b.call("GET", at, nil).wants(t, 401, custody.CodeAuthenticationRequired, "")
}
