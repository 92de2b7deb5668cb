package tenant

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/accession/accession/internal/custody"
)

// The token endpoint, for machines only:
//
//	client_id, client_secret (a credential) → access token (RFC 9068, RS256, 10 minutes) → Bearer at every operation
//
// An access token is never more than its credential: both are looked at with every request. (Sections 4.3 and 5.)

// accessTokenLifetime is the longest life of an access token. (Contract decisions.)
const accessTokenLifetime = 10 * time.Minute

// TokenRequest asks for an access token. (RFC 6749, section 4.4.2; RFC 8707.)
type TokenRequest struct {
	GrantType string
	Scope     string   // separated by spaces; empty: all of the credential
	Resources []string // empty: the default
}

// AccessToken answers a TokenRequest. Token is a secret.
type AccessToken struct {
	Token     string
	Lifetime  time.Duration // whole seconds
	Scopes    []custody.Scope
	ExpiresAt time.Time
}

// AuthenticateClient says which credential a client is: client_id names it, client_secret is its token. Error: OAuthError
// invalid_client, the same for whatever is wrong. (RFC 6749, section 2.3.1.)
func (s *Service) AuthenticateClient(ctx context.Context, clientID, secret string) (custody.Credential, error) {
	c, err := s.credential(ctx, secret) // no admin token and no access token is a client's secret
	var refused *custody.Error
	if errors.As(err, &refused) || err == nil && subtle.ConstantTimeCompare([]byte(c.ID), []byte(clientID)) != 1 {
		return custody.Credential{}, &OAuthError{InvalidClient, "client authentication failed"}
	}
	return c, err
}

// GrantToken makes an access token for an authenticated client. Errors: OAuthError invalid_request, unsupported_grant_type,
// invalid_scope, invalid_target. (RFC 6749, section 5.2; RFC 8707, section 2.)
func (s *Service) GrantToken(ctx context.Context, client custody.Credential, r TokenRequest) (AccessToken, error) {
	switch r.GrantType {
	case "":
		return AccessToken{}, &OAuthError{InvalidRequest, "grant_type is missing"}
	case "client_credentials":
	default:
		return AccessToken{}, &OAuthError{UnsupportedGrantType, "grant_type must be client_credentials"}
	}
	asked := strings.Fields(r.Scope)
	for _, scope := range asked {
		if !slices.Contains(client.Scopes, custody.Scope(scope)) {
			return AccessToken{}, &OAuthError{InvalidScope, "scope must be scopes of the credential, separated by spaces"}
		}
	}
	for _, resource := range r.Resources {
		if !slices.Contains(s.cfg.Resources, resource) {
			return AccessToken{}, &OAuthError{InvalidTarget, "resource must be one that the protected resource metadata names"}
		}
	}
	scopes := slices.DeleteFunc(slices.Clone(client.Scopes), func(scope custody.Scope) bool {
		return len(asked) > 0 && !slices.Contains(asked, string(scope))
	})
	audience := r.Resources
	if len(audience) == 0 {
		audience = s.cfg.Resources[:1]
	}
	now := s.now().Truncate(time.Second)
	expires := now.Add(accessTokenLifetime)
	if end := client.ExpiresAt.Truncate(time.Second); end.Before(expires) {
		expires = end
	}
	if !expires.After(now) {
		return AccessToken{}, &OAuthError{InvalidClient, "client authentication failed"}
	}
	token, err := s.sign(ctx, accessClaims{
		Claims: jwt.Claims{
			Issuer: s.cfg.Issuer, Audience: audience, Subject: client.ID, ID: rand.Text(),
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires),
		},
		ClientID: client.ID, OrgID: client.OrgID, Scope: joined(scopes),
	})
	return AccessToken{Token: token, Lifetime: expires.Sub(now), Scopes: scopes, ExpiresAt: expires}, err
}

func (s *Service) sign(ctx context.Context, c accessClaims) (string, error) {
	key, err := s.tokenKeys.signer(ctx, reloadEvery)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key.key, KeyID: key.id}},
		(&jose.SignerOptions{}).WithType(tokenType))
	if err != nil {
		return "", fmt.Errorf("sign access token: %w", err)
	}
	token, err := jwt.Signed(signer).Claims(c).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign access token: %w", err)
	}
	return token, nil
}

// KeySet is the JSON Web Key Set that access tokens and withdrawal receipts can be verified with: public halves alone. The
// keys of receipts stay in it for ever. (RFC 7517, 8037.)
func (s *Service) KeySet(ctx context.Context) (json.RawMessage, error) {
	keys, err := s.tokenKeys.read(ctx, reloadEvery)
	if err != nil {
		return nil, err
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.key.Public(), KeyID: k.id, Algorithm: string(jose.RS256), Use: "sig"})
	}
	receiptKeys, err := s.receiptKeys.read(ctx, reloadEvery)
	if err != nil {
		return nil, err
	}
	for _, k := range receiptKeys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.key, KeyID: k.id, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	return json.Marshal(set)
}

// RevokeToken ends an access token that was made for this client; it is dead at the next request. Anything else, another
// client's token too, is no error and changes nothing: the answer tells nothing about what exists. (RFC 7009.)
func (s *Service) RevokeToken(ctx context.Context, c custody.Caller, token string) error {
	said, cred, err := s.readAccessToken(ctx, token)
	var refused *custody.Error
	if errors.As(err, &refused) || err == nil && cred.ID != c.CredentialID {
		return nil
	}
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(tx Tx) error {
		fresh, err := tx.RevokeToken(ctx, said.ID, cred.ID, said.Expiry.Time(), s.now())
		if err != nil || !fresh {
			return err
		}
		return tx.AppendAudit(ctx, s.auditLine(c, cred.OrgID, "access_token_revoked", said.ID))
	})
}

// Introspection is what a client of the token's organization may know of it; the zero value says that it is not active.
// (RFC 7662, section 2.2.)
type Introspection struct {
	Active    bool
	TokenID   string
	ClientID  string // also the subject
	OrgID     string
	Role      custody.Role
	Scopes    []custody.Scope
	Issuer    string
	Audience  []string
	IssuedAt  time.Time
	ExpiresAt time.Time
}

// Introspect tells about an access token of the client's own organization; any other token is not active.
func (s *Service) Introspect(ctx context.Context, client custody.Credential, token string) (Introspection, error) {
	said, cred, err := s.readAccessToken(ctx, token)
	var refused *custody.Error
	if errors.As(err, &refused) || err == nil && cred.OrgID != client.OrgID {
		return Introspection{}, nil
	}
	if err != nil {
		return Introspection{}, err
	}
	return Introspection{
		Active: true, TokenID: said.ID, ClientID: cred.ID, OrgID: cred.OrgID, Role: cred.Role, Scopes: said.scopes(cred),
		Issuer: said.Issuer, Audience: said.Audience, IssuedAt: said.IssuedAt.Time().UTC(), ExpiresAt: said.Expiry.Time().UTC(),
	}, nil
}
