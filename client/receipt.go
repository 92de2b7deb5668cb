package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Receipt is what a withdrawal leaves: what was deleted, how that was confirmed, and what remains by design.
type Receipt struct {
	WithdrawalReceiptID string            `json:"withdrawal_receipt_id"`
	Issuer              string            `json:"issuer"` // base URL of the service, as its operator set it
	UploadID            string            `json:"upload_id"`
	OrgID               string            `json:"org_id"`
	SHA256              string            `json:"sha256"`       // of the file; empty where the upload was never whole
	SizeBytes           int64             `json:"size_bytes"`   // of the file; 0 where the upload was never whole
	RequestedBy         string            `json:"requested_by"` // a credential_id, "admin" or "retention"
	Reason              string            `json:"reason"`
	RequestedAt         time.Time         `json:"requested_at"`            // unreadable from then on
	RetainedUntil       time.Time         `json:"retained_until,omitzero"` // the end of the retention that asked for it
	WithdrawnAt         time.Time         `json:"withdrawn_at"`
	QuotaBytes          int64             `json:"quota_bytes"`
	Deletions           []ReceiptDeletion `json:"deletions"`
	KeyDestroyedAt      time.Time         `json:"key_destroyed_at"`
	KeyBackupHorizon    string            `json:"key_backup_horizon"` // ISO 8601 duration, such as PT720H
	Recalled            []ReceiptRecall   `json:"recalled"`
	Remains             []ReceiptRemnant  `json:"remains"`
}

// ReceiptDeletion is what one backend confirmed: "staging", "quarantine", a mirror ("mirror-1", …) or "key_store".
type ReceiptDeletion struct {
	Backend      string    `json:"backend"`
	Objects      int       `json:"objects"`
	Bytes        int64     `json:"bytes"` // of ciphertext; 0 for keys
	Confirmation string    `json:"confirmation"`
	ConfirmedAt  time.Time `json:"confirmed_at"`
}

// ReceiptRecall names a credential that was served the context before the withdrawal.
type ReceiptRecall struct {
	CredentialID string    `json:"credential_id"`
	Servings     int64     `json:"servings"`
	LastServedAt time.Time `json:"last_served_at"`
}

// ReceiptRemnant is something that stays by design; Until is zero for what is kept.
type ReceiptRemnant struct {
	What  string    `json:"what"`
	Until time.Time `json:"until"`
}

// WithdrawalReceipt is a receipt as the service answers it. Keep SignedReceipt: VerifyReceipt checks it without the service.
type WithdrawalReceipt struct {
	Receipt
	SignedReceipt string   `json:"signed_receipt"` // compact JWS
	Response      Response `json:"-"`
}

// WithdrawalReceipt reads the receipt of a withdrawal. It uses the organization's credential, which needs the metadata_read
// scope, or the admin token where there is none. 404: no such receipt of the organization.
func (c *Client) WithdrawalReceipt(ctx context.Context, org, receiptID string) (*WithdrawalReceipt, error) {
	path, err := organizationPath(org, "withdrawals", receiptID)
	if err != nil {
		return nil, err
	}
	var receipt WithdrawalReceipt
	_, err = c.do(ctx, call{method: http.MethodGet, path: path, admin: !c.forOrganization(), into: &receipt, response: &receipt.Response})
	if err != nil {
		return nil, err
	}
	return &receipt, nil
}

const (
	receiptType      = "accession-receipt+json"
	receiptAlgorithm = "EdDSA"

	// MaxReceiptBytes bounds a signed receipt.
	MaxReceiptBytes = 4 << 20
	// MaxKeySetBytes bounds a key set.
	MaxKeySetBytes = 1 << 20
)

// ErrReceiptInvalid is in every error of VerifyReceipt: nothing of such a receipt can be relied on.
var ErrReceiptInvalid = errors.New("the receipt does not verify")

// VerifyReceipt checks a signed receipt against a key set (RFC 7517) that the caller trusts, kept from the service's
// /oauth/jwks, and returns what it certifies. It asks nobody. White space around the receipt is no part of it. The signature
// has to be Ed25519 by a key of the set, the header exactly {alg, kid, typ} of a receipt. Errors: ErrReceiptInvalid.
func VerifyReceipt(signed string, keySet []byte) (*Receipt, error) {
	r, err := verifyReceipt(strings.TrimSpace(signed), keySet)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReceiptInvalid, err)
	}
	return r, nil
}

func verifyReceipt(signed string, keySet []byte) (*Receipt, error) {
	if len(signed) > MaxReceiptBytes || len(keySet) > MaxKeySetBytes {
		return nil, errors.New("the receipt or the key set is too large to be one")
	}
	parts := strings.Split(signed, ".")
	if len(parts) != 3 {
		return nil, errors.New("it is no compact JWS of three parts")
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64URL(part); err != nil {
			return nil, errors.New("a part of it is not base64url")
		}
	}
	header, err := members(decoded[0])
	if err != nil {
		return nil, fmt.Errorf("its header: %w", err)
	}
	algorithm, typ, keyID := text(header["alg"]), text(header["typ"]), text(header["kid"])
	switch {
	case len(header) != 3 || keyID == "":
		return nil, errors.New("its header is not exactly alg, kid and typ")
	case algorithm != receiptAlgorithm:
		return nil, errors.New("its alg is not " + receiptAlgorithm)
	case typ != receiptType:
		return nil, errors.New("its typ is not " + receiptType)
	}
	key, err := receiptKey(keySet, keyID)
	if err != nil {
		return nil, err
	}
	if !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), decoded[2]) {
		return nil, errors.New("the signature is not of this text by the key it names")
	}
	if _, err := members(decoded[1]); err != nil {
		return nil, fmt.Errorf("what is signed: %w", err)
	}
	var r Receipt
	if err := json.Unmarshal(decoded[1], &r); err != nil {
		return nil, errors.New("what is signed is no receipt")
	}
	if r.WithdrawalReceiptID == "" || r.UploadID == "" || r.OrgID == "" || r.WithdrawnAt.IsZero() || r.KeyDestroyedAt.IsZero() || len(r.Deletions) == 0 {
		return nil, errors.New("what is signed is no whole receipt")
	}
	return &r, nil
}

// receiptKey finds the one Ed25519 key of that id. (RFC 8037, section 2.)
func receiptKey(keySet []byte, keyID string) (ed25519.PublicKey, error) {
	set, err := members(keySet)
	if err != nil {
		return nil, fmt.Errorf("the key set: %w", err)
	}
	var keys []json.RawMessage
	if json.Unmarshal(set["keys"], &keys) != nil || keys == nil {
		return nil, errors.New("the key set has no keys")
	}
	var found ed25519.PublicKey
	for _, raw := range keys {
		key, err := members(raw)
		if err != nil {
			return nil, fmt.Errorf("the key set: %w", err)
		}
		if text(key["kid"]) != keyID {
			continue
		}
		if found != nil {
			return nil, errors.New("the key set has two keys of that kid")
		}
		x, err := base64URL(text(key["x"]))
		if text(key["kty"]) != "OKP" || text(key["crv"]) != "Ed25519" || err != nil || len(x) != ed25519.PublicKeySize ||
			key["use"] != nil && text(key["use"]) != "sig" || key["alg"] != nil && text(key["alg"]) != receiptAlgorithm {
			return nil, errors.New("the key it names is no Ed25519 key for signatures")
		}
		found = x
	}
	if found == nil {
		return nil, errors.New("the key it names is not in the key set")
	}
	return found, nil
}

// base64URL decodes the one spelling of some bytes: no padding, no line ends, no stray bits.
func base64URL(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") { // the decoder would skip them
		return nil, errors.New("line end")
	}
	return base64.RawURLEncoding.Strict().DecodeString(s)
}

// text is a JSON string, empty for anything else.
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// members are the members of one JSON object, by their exact names. An error where it is anything else, goes on, or where any
// object in it has two members of one name: two readers could take it for different things.
func members(document []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(document) {
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(document))
	if err := walk(d, 0); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it goes on after its end")
	}
	var found map[string]json.RawMessage
	if json.Unmarshal(document, &found) != nil || found == nil {
		return nil, errors.New("it is no JSON object")
	}
	return found, nil
}

// maxDepth of nested JSON; a receipt has 3.
const maxDepth = 16

// walk reads one value and looks for members of the same name.
func walk(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil || depth > maxDepth {
		return errors.New("it is no JSON, or nested too deep")
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			token, err := d.Token()
			if err != nil {
				return errors.New("it is no JSON")
			}
			name, _ := token.(string)
			if name = strings.ToLower(name); seen[name] { // readers that ignore the case are common, encoding/json is one
				return errors.New("it has two members of one name")
			}
			seen[name] = true
		}
		if err := walk(d, depth+1); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("it is no JSON")
	}
	return nil
}
