package client

import (
	"context"
	"net/http"
)

// KeyRotation answers RotateKeys.
type KeyRotation struct {
	Rewrapped int      `json:"rewrapped_keys"` // data keys and signing secrets that are wrapped anew
	Retired   int      `json:"retired_keys"`   // old key-encryption keys that are no more; 0 with a key service
	Response  Response `json:"-"`
}

// RotateKeys replaces the key-encryption key of the installation; documents are not touched, and the service goes on. It needs the
// admin token. Interrupted, everything can still be read; repeat it to finish.
func (c *Client) RotateKeys(ctx context.Context, idempotencyKey string) (*KeyRotation, error) {
	var r KeyRotation
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: "/admin/keys/rotate", admin: true, idempotencyKey: keyOr(idempotencyKey), into: &r, response: &r.Response,
	})
	if err != nil {
		return nil, err
	}
	return &r, nil
}
