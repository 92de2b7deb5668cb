package httpapi

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

type receiptID string

func (receiptID) Schema(huma.Registry) *huma.Schema {
	return text(1, 128, `^[!-~]+$`, "The withdrawal_receipt_id of a withdrawal's answer.")
}

type receiptInput struct {
	OrgID     orgID     `path:"org_id"`
	ReceiptID receiptID `path:"withdrawal_receipt_id"`
}

// receipt is a withdrawal's receipt as it was signed, and its signed form.
type receipt struct {
	ID               string            `json:"withdrawal_receipt_id"`
	Issuer           string            `json:"issuer" format:"uri"`
	UploadID         string            `json:"upload_id"`
	OrgID            string            `json:"org_id"`
	SHA256           string            `json:"sha256,omitempty" pattern:"^[a-f0-9]{64}$" doc:"Of the file; left out where the upload was never whole."`
	SizeBytes        int64             `json:"size_bytes,omitempty" minimum:"1" doc:"Of the file; left out where the upload was never whole."`
	RequestedBy      string            `json:"requested_by" doc:"A credential_id, admin, or retention."`
	Reason           string            `json:"reason" doc:"As given; may be empty."`
	RequestedAt      timestamp         `json:"requested_at" doc:"The content is unreadable from then on."`
	RetainedUntil    *timestamp        `json:"retained_until,omitempty" doc:"The end of the retention that asked for it."`
	WithdrawnAt      timestamp         `json:"withdrawn_at"`
	QuotaBytes       int64             `json:"quota_bytes" minimum:"0" doc:"Bytes of quota set free."`
	Deletions        []receiptDeletion `json:"deletions" nullable:"false" doc:"By backend; each confirmed."`
	KeyDestroyedAt   timestamp         `json:"key_destroyed_at" doc:"When that was confirmed."`
	KeyBackupHorizon string            `json:"key_backup_horizon" doc:"How long the operator keeps backups of the key store, as an ISO 8601 duration."`
	Recalled         []receiptRecall   `json:"recalled" nullable:"false" doc:"The credentials that were served the context before; drop what was read with them."`
	Remains          []receiptRemnant  `json:"remains" nullable:"false" doc:"What is kept by design."`
	SignedReceipt    string            `json:"signed_receipt" doc:"All of the above as a compact JWS."`
}

type receiptDeletion struct {
	Backend      string    `json:"backend" doc:"staging, quarantine, a mirror (mirror-1, …) or key_store."`
	Objects      int       `json:"objects" minimum:"0" doc:"Deleted in this withdrawal."`
	Bytes        int64     `json:"bytes" minimum:"0" doc:"Of their ciphertext; 0 for keys."`
	Confirmation string    `json:"confirmation"`
	ConfirmedAt  timestamp `json:"confirmed_at"`
}

type receiptRecall struct {
	CredentialID string    `json:"credential_id"`
	Servings     int64     `json:"servings" minimum:"1"`
	LastServedAt timestamp `json:"last_served_at"`
}

type receiptRemnant struct {
	What  string     `json:"what"`
	Until *timestamp `json:"until,omitempty" doc:"Left out for what is kept without end."`
}

func (s withdrawals) receipt(ctx context.Context, x *exchange, in *receiptInput) (answer, error) {
	r, err := s.room.Receipt(ctx, x.caller, string(in.OrgID), string(in.ReceiptID))
	if err != nil {
		return answer{}, err
	}
	return respond(receiptView(r))
}

func receiptView(r custody.Receipt) receipt {
	v := receipt{
		ID: r.ID, Issuer: r.Issuer, UploadID: r.UploadID, OrgID: r.OrgID, SHA256: r.SHA256, SizeBytes: r.SizeBytes, RequestedBy: r.CredentialID, Reason: r.Reason,
		RequestedAt: timestamp{r.RequestedAt}, RetainedUntil: instant(r.RetainedUntil), WithdrawnAt: timestamp{r.WithdrawnAt}, QuotaBytes: r.QuotaBytes, Deletions: []receiptDeletion{},
		KeyDestroyedAt: timestamp{r.KeyDestroyedAt}, KeyBackupHorizon: r.KeyBackupHorizon, Recalled: []receiptRecall{}, Remains: []receiptRemnant{},
		SignedReceipt: r.Signed,
	}
	for _, d := range r.Deletions {
		v.Deletions = append(v.Deletions, receiptDeletion{d.Backend, d.Objects, d.Bytes, d.Confirmation, timestamp{d.ConfirmedAt}})
	}
	for _, c := range r.Recalled {
		v.Recalled = append(v.Recalled, receiptRecall{c.CredentialID, c.Servings, timestamp{c.LastServedAt}})
	}
	for _, k := range r.Remains {
		v.Remains = append(v.Remains, receiptRemnant{k.What, instant(k.Until)})
	}
	return v
}
