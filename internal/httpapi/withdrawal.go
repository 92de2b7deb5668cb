package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/accession/accession/internal/custody"
)

// withdrawals is permanent deletion. (Section 4.6, withdraw.)
type withdrawals struct{ room Withdrawal }

type withdrawInput struct {
	OrgID    orgID          `path:"org_id"`
	UploadID uploadID       `path:"upload_id"`
	Key      idempotencyKey `header:"Idempotency-Key" required:"true"`
	Body     *withdrawalRequest
}

type withdrawalRequest struct {
	Reason reason   `json:"reason,omitempty"`
	_      struct{} `additionalProperties:"false"`
}

type withdrawn struct {
	UploadID            string `json:"upload_id"`
	Status              string `json:"status" enum:"WITHDRAWN"`
	Deleted             bool   `json:"deleted"`
	WithdrawalReceiptID string `json:"withdrawal_receipt_id"`
	QuotaBytes          int64  `json:"quota_bytes" minimum:"0" doc:"Bytes of quota set free."`
}

func (s withdrawals) mount(d *door) {
	mount(d, operation{
		id: custody.OpWithdrawUpload, method: http.MethodPost, path: uploadsPath + "/{upload_id}/withdraw", tag: "partner uploads", body: bodyJSON,
		summary:  "Withdraw an upload for good",
		doc:      "Deletes payload, copies and derived context in every storage backend; a receipt and minimal audit metadata remain. 502 while a backend has not confirmed: the content is unreadable already, and the same request may be repeated.",
		failures: []int{403, 404, 409, 502}, answers: map[int]reflect.Type{200: says[withdrawn]()},
	}, s.withdraw)
	mount(d, operation{
		id: custody.OpReceipt, method: http.MethodGet, path: "/api/v1/organizations/{org_id}/withdrawals/{withdrawal_receipt_id}", tag: "partner uploads",
		summary:  "Read a withdrawal receipt",
		doc:      "What was deleted, where, how that was confirmed, what remains by design, and who had been served the context. signed_receipt is the same as a compact JWS (RFC 7515: EdDSA, typ accession-receipt+json), to be verified with the key set of /oauth/jwks.",
		failures: []int{403, 404}, answers: map[int]reflect.Type{200: says[receipt]()},
	}, s.receipt)
}

func (s withdrawals) withdraw(ctx context.Context, x *exchange, in *withdrawInput) (answer, error) {
	w := custody.Withdrawal{OrgID: string(in.OrgID), UploadID: string(in.UploadID)}
	if in.Body != nil {
		w.Reason = string(in.Body.Reason)
	}
	a, err := s.room.Withdraw(ctx, x.caller, w, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpWithdrawUpload, Key: string(in.Key),
		RequestHash: requestHash(custody.OpWithdrawUpload, in.OrgID, in.UploadID, w.Reason),
		Render: render(func(r custody.Receipt) (int, any) {
			return http.StatusOK, withdrawn{r.UploadID, string(custody.StatusWithdrawn), true, r.ID, r.QuotaBytes}
		}),
	})
	return answer{Answer: a}, err
}
