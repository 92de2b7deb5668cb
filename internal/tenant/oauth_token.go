package tenant

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/accession/accession/internal/custody"
)

// tokenType in the header keeps access tokens apart from every other JWT. (RFC 9068, section 2.1.)
const tokenType = "at+jwt"

// maxClockSkew between replicas, for iat alone: an end is an end.
const maxClockSkew = 60 * time.Second

// accessClaims is what an access token says. (RFC 9068, section 2.2.)
type accessClaims struct {
	jwt.Claims
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
	OrgID    string `json:"org_id"`
}

// scopes of the token that its credential still holds.
func (a accessClaims) scopes(c custody.Credential) []custody.Scope {
	said := strings.Fields(a.Scope)
	return slices.DeleteFunc(slices.Clone(c.Scopes), func(s custody.Scope) bool { return !slices.Contains(said, string(s)) })
}

// readAccessToken takes an access token that is good now, and the credential it was made from. Error: credential_invalid.
func (s *Service) readAccessToken(ctx context.Context, token string) (a accessClaims, c custody.Credential, err error) {
	if a, err = s.signedClaims(ctx, token); err != nil {
		return accessClaims{}, c, err
	}
	if !s.current(a) {
		return accessClaims{}, c, invalid()
	}
	ctx = custody.InOrganization(ctx, a.OrgID) // its signature is ours
	c, _, err = s.active(ctx, a.OrgID, a.ClientID)
	if err != nil {
		return accessClaims{}, c, err
	}
	if c.OrgID != a.OrgID {
		return accessClaims{}, custody.Credential{}, invalid()
	}
	revoked, err := s.store.TokenRevoked(ctx, a.ID)
	if err == nil && revoked {
		err = invalid()
	}
	if err != nil {
		return accessClaims{}, custody.Credential{}, err
	}
	return a, c, nil
}

// signedClaims is what an access token says under a signature of a key that is ours now; whether that still counts is another
// question. The algorithm is pinned and the key is ours by its id: nothing in the token chooses how it is verified. Error:
// credential_invalid. (RFC 8725, 9068.)
func (s *Service) signedClaims(ctx context.Context, token string) (a accessClaims, err error) {
	digest := sha256.Sum256([]byte(token))
	if known, ok := s.verified.get(digest); ok {
		key, ok, err := s.tokenKeys.byID(ctx, known.keyID)
		if err != nil {
			return a, err
		}
		if ok && modulusOf(key) == known.key {
			return known.said, nil
		}
	}
	signed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil || !spelledOnce(token) || len(signed.Headers) != 1 || !isAccessToken(signed.Headers[0]) {
		return a, invalid()
	}
	keyID := signed.Headers[0].KeyID
	key, ok, err := s.tokenKeys.byID(ctx, keyID)
	if err != nil {
		return a, err
	}
	if !ok || signed.Claims(&key.PublicKey, &a) != nil {
		return accessClaims{}, invalid()
	}
	if len(token) <= longestVerified {
		s.verified.put(digest, verifiedToken{keyID, modulusOf(key), a})
	}
	return a, nil
}

// spelledOnce tells whether token is the one spelling of what it says: base64 has others, with line feeds in it or with bits to
// spare at an end.
func spelledOnce(token string) bool {
	for part := range strings.SplitSeq(token, ".") {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || base64.RawURLEncoding.EncodeToString(raw) != part {
			return false
		}
	}
	return true
}

func isAccessToken(h jose.Header) bool {
	t, _ := h.ExtraHeaders[jose.HeaderType].(string)
	return strings.EqualFold(strings.TrimPrefix(strings.ToLower(t), "application/"), tokenType)
}

// current tells whether the claims of a verified token are ours and of now.
func (s *Service) current(a accessClaims) bool {
	now := s.now()
	return a.Issuer == s.cfg.Issuer &&
		slices.ContainsFunc(a.Audience, func(aud string) bool { return slices.Contains(s.cfg.Resources, aud) }) &&
		a.Expiry != nil && now.Before(a.Expiry.Time()) &&
		a.IssuedAt != nil && !a.IssuedAt.Time().After(now.Add(maxClockSkew)) &&
		(a.NotBefore == nil || !a.NotBefore.Time().After(now.Add(maxClockSkew))) &&
		a.ID != "" && a.ClientID != "" && a.Subject == a.ClientID
}

func joined(scopes []custody.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}

// What can be wrong with a request to an OAuth endpoint. (RFC 6749, section 5.2; RFC 8707, section 2.)
const (
	InvalidRequest          = "invalid_request"
	InvalidClient           = "invalid_client"
	InvalidScope            = "invalid_scope"
	InvalidTarget           = "invalid_target"
	UnsupportedGrantType    = "unsupported_grant_type"
	UnsupportedResponseType = "unsupported_response_type"
)

// OAuthError is what an OAuth client may see of a failure. Description is plain ASCII and quotes nothing that was sent.
type OAuthError struct {
	Code        string
	Description string
}

func (e *OAuthError) Error() string { return e.Code + ": " + e.Description }
