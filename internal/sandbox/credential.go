package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Scope is all that a sandbox credential is good for. No tenant credential holds it. (Section 4.2.)
const Scope = "sandbox:echo"

// A token is "sbx_", the base64url of what it says, and the base64url of HMAC-SHA256 over that: all of [A-Za-z0-9_-], and
// always tokenLength characters. It says a credential id and, as 8 bytes, the millisecond it ends; 42 bytes, so that
// base64 has no bits to spare and there is one spelling of a token only.
const (
	tokenPrefix      = "sbx_"
	credentialPrefix = "sandbox"
	idLength         = len(credentialPrefix) + 1 + 26 // custody.NewID
	expiryLength     = 8
	payloadLength    = (idLength + expiryLength) / 3 * 4
	macLength        = 43
	tokenLength      = len(tokenPrefix) + payloadLength + macLength
)

// domain keeps a signature made here from meaning anything elsewhere, and the other way round, should two keys ever be one.
const domain = "accession sandbox credential 1\x00"

// Credential is a sandbox credential as it is issued, once: nothing of it is kept. (Section 2.7.)
type Credential struct {
	Token                string // the secret, 103 characters of [A-Za-z0-9_-]
	CredentialID         string // names it in answers; no secret
	Status               string // StatusIssued
	Scope                string // Scope
	ProductionDataAccess bool   // always false
	ExpiresAt            time.Time
}

// StatusIssued is the status of a credential that was just made.
const StatusIssued = "issued"

// Issue makes a sandbox credential for whoever asks. The e-mail address may be empty; the caller has checked its form, and
// here it goes nowhere: it is neither kept nor in the token. (Section 4.2.)
func (s *Service) Issue(email string) Credential {
	id, ends := custody.NewID(credentialPrefix), s.now().Add(s.lifetime).UTC().Truncate(time.Millisecond)
	said := binary.BigEndian.AppendUint64([]byte(id), uint64(ends.UnixMilli()))
	payload := base64.RawURLEncoding.EncodeToString(said)
	return Credential{
		Token: tokenPrefix + payload + s.mac(payload), CredentialID: id, Status: StatusIssued, Scope: Scope, ExpiresAt: ends,
	}
}

// Authenticate names the credential that token is. Errors: authentication_required when there is none; credential_invalid,
// the same for a token that is forged, malformed, expired, or no sandbox credential at all. (Sections 4.2 and 5.)
func (s *Service) Authenticate(token string) (credentialID string, err error) {
	if token == "" {
		return "", required()
	}
	body, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok || len(token) != tokenLength {
		return "", invalid()
	}
	payload, mac := body[:payloadLength], body[payloadLength:]
	// The text is compared, not what it decodes to: base64 reads some texts as the same bytes.
	if !hmac.Equal([]byte(mac), []byte(s.mac(payload))) {
		return "", invalid()
	}
	said, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil || len(said) != idLength+expiryLength { // never: it is signed
		return "", invalid()
	}
	ends := time.UnixMilli(int64(binary.BigEndian.Uint64(said[idLength:])))
	if !s.now().Before(ends) {
		return "", invalid()
	}
	return string(said[:idLength]), nil
}

func (s *Service) mac(payload string) string {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(domain + payload))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func required() error {
	return custody.Errorf(custody.CodeAuthenticationRequired, "the sandbox needs a sandbox credential; POST /api/v1/sandbox/keys issues one, free and without an account")
}

func invalid() error {
	return custody.Errorf(custody.CodeCredentialInvalid, "this is no valid sandbox credential; POST /api/v1/sandbox/keys issues a new one")
}
