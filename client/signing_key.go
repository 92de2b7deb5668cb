package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// What signing keys are for.
const (
	PurposeCredential = "credential" // of credentials' tokens
	PurposeOAuth      = "oauth"      // of access tokens
	PurposeReceipt    = "receipt"    // of withdrawal receipts; never retired
)

// SigningKey is a key that the service signs with, as an administrator sees it: never the key itself.
type SigningKey struct {
	KeyID     string    `json:"key_id"`
	Purpose   string    `json:"purpose"`
	State     string    `json:"state"` // announced, signing, verifying, retired
	CreatedAt time.Time `json:"created_at"`
	SignsFrom time.Time `json:"signs_from"`
	RetiredAt time.Time `json:"retired_at"` // zero unless retired
	Response  Response  `json:"-"`
}

const signingKeysPath = "/admin/tenant-keys/signing-keys"

// SigningKeyList is every signing key, retired ones too.
type SigningKeyList struct {
	SigningKeys []SigningKey `json:"signing_keys"`
	Response    Response     `json:"-"`
}

// ListSigningKeys lists signing keys by purpose, newest first. It needs the admin token.
func (c *Client) ListSigningKeys(ctx context.Context) (*SigningKeyList, error) {
	var list SigningKeyList
	_, err := c.do(ctx, call{method: http.MethodGet, path: signingKeysPath, admin: true, into: &list, response: &list.Response})
	if err != nil {
		return nil, err
	}
	return &list, nil
}

// RotateSigningKey adds a key of a purpose; it signs once every replica knows it, and the one before it verifies until it is
// retired. It needs the admin token.
func (c *Client) RotateSigningKey(ctx context.Context, purpose, idempotencyKey string) (*SigningKey, error) {
	return c.changeSigningKey(ctx, signingKeysPath+"/rotate", map[string]string{"purpose": purpose}, idempotencyKey)
}

// RetireSigningKey destroys a key: what it signed is refused. It needs the admin token. 404: no such key, or retired already;
// 409: the newest of its purpose, or, without force, one that credentials or access tokens still depend on.
func (c *Client) RetireSigningKey(ctx context.Context, keyID string, force bool, idempotencyKey string) (*SigningKey, error) {
	if keyID == "" || keyID == "." || keyID == ".." {
		return nil, errors.New("no key id: give the one that ListSigningKeys shows")
	}
	return c.changeSigningKey(ctx, signingKeysPath+"/"+url.PathEscape(keyID)+"/retire", map[string]bool{"force": force}, idempotencyKey)
}

func (c *Client) changeSigningKey(ctx context.Context, path string, body any, idempotencyKey string) (*SigningKey, error) {
	var key SigningKey
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: path, admin: true, body: body, idempotencyKey: keyOr(idempotencyKey), into: &key, response: &key.Response,
	})
	if err != nil {
		return nil, err
	}
	return &key, nil
}
