package tenant

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/accession/accession/internal/custody"
)

// A credential's token is "acc_", the base64url of "credential_id NUL org_id", and 43 characters of base64url HMAC-SHA256
// over both: all of [A-Za-z0-9_-]. Garbage is refused before the store is asked; the token itself is never kept, it can be
// derived again from the credential and the signing key. (Contract decisions, "Authentication per operation".)
const (
	tokenPrefix = "acc_"
	macLength   = 43
	maxToken    = 2048 // characters
)

func mint(c custody.Credential, key []byte) string {
	payload := base64.RawURLEncoding.EncodeToString([]byte(c.ID + "\x00" + c.OrgID))
	return tokenPrefix + payload + base64.RawURLEncoding.EncodeToString(mac(key, payload))
}

func mac(key []byte, payload string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("accession credential 1\x00" + payload))
	return h.Sum(nil)
}

// claims is what a token says; nothing of it counts before verify.
type claims struct {
	credentialID, orgID string
	payload             string
	mac                 []byte
}

func parse(token string) (c claims, ok bool) {
	body, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok || len(token) > maxToken || len(body) <= macLength {
		return c, false
	}
	c.payload = body[:len(body)-macLength]
	var err error
	if c.mac, err = base64.RawURLEncoding.Strict().DecodeString(body[len(body)-macLength:]); err != nil {
		return c, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(c.payload)
	if err != nil {
		return c, false
	}
	c.credentialID, c.orgID, ok = strings.Cut(string(raw), "\x00")
	return c, ok
}

func (c claims) verify(key []byte) bool { return hmac.Equal(c.mac, mac(key, c.payload)) }
