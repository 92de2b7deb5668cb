// Package tenant knows organizations and their credentials: it issues them and says who presents one.
package tenant

import (
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/planted"
)

// credentialLifetime of a credential whose request names no end. (Contract decisions.)
const credentialLifetime = 180 * 24 * time.Hour

// MinAdminToken is the least length of the admin token in characters. (Contract decisions, "Starting it".)
const MinAdminToken = 32

// Store is the metadata that tenant reads and, in transactions, changes.
type Store interface {
	Credential(ctx context.Context, credentialID string) (custody.Credential, error)
	Credentials(ctx context.Context, q custody.CredentialQuery) (page []custody.Credential, more bool, err error)
	CountSigned(ctx context.Context, keyID string, at time.Time) (int, error)
	Organizations(ctx context.Context, q custody.OrganizationQuery) (page []custody.OrganizationState, more bool, err error)
	Quota(ctx context.Context, orgID string) (custody.Quota, error) // custody.ErrNotFound
	TokenRevoked(ctx context.Context, tokenID string) (bool, error)
	Seats(ctx context.Context, sessionHash string, at time.Time) ([]custody.Seat, error)
	Answered(ctx context.Context, i custody.Idempotency) (requestHash string, a custody.Answer, err error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction of Store.
type Tx interface {
	Credential(ctx context.Context, credentialID string) (custody.Credential, error)
	EnsureOrganization(ctx context.Context, orgID string, allowance int64) error
	SetAllowance(ctx context.Context, orgID string, allowance int64) (custody.Quota, error) // custody.ErrConflict where it is unknown
	InsertCredential(ctx context.Context, c custody.Credential) error
	RevokeCredential(ctx context.Context, credentialID string, at time.Time) error
	EndCredential(ctx context.Context, credentialID string, end, at time.Time) error
	RevokeToken(ctx context.Context, tokenID, credentialID string, expires, at time.Time) (fresh bool, err error)
	TakeSeats(ctx context.Context, sessionHash string, at time.Time) ([]custody.Seat, error)
	InsertSeat(ctx context.Context, sessionHash string, seat custody.Seat) error
	AppendAudit(ctx context.Context, l custody.AuditLine) error
	KeepAnswer(ctx context.Context, i custody.Idempotency, a custody.Answer) error
}

// Config of the service.
type Config struct {
	AdminToken     string           // MinAdminToken characters or more
	AllowanceBytes int64            // quota of a new organization
	Keys           Keys             // where signing keys lie
	Issuer         string           // of access tokens: the service's base URL
	Resources      []string         // URLs that access tokens are good for; the first is the default. Default: Issuer
	Now            func() time.Time // default: time.Now
}

// Service issues credentials and access tokens, and recognises them.
type Service struct {
	store          Store
	cfg            Config
	admin          [sha256.Size]byte
	credentialKeys *ring[[]byte]
	tokenKeys      *ring[*rsa.PrivateKey]
	receiptKeys    *ring[ed25519.PublicKey]
	verified       verifiedTokens
}

// New makes the service and reads its signing keys; where there is none yet it makes one.
func New(ctx context.Context, store Store, cfg Config) (*Service, error) {
	if len(cfg.AdminToken) < MinAdminToken {
		return nil, fmt.Errorf("the admin token must have %d characters or more", MinAdminToken)
	}
	if cfg.Keys == nil || cfg.Issuer == "" {
		return nil, errors.New("no key store or no issuer")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if len(cfg.Resources) == 0 {
		cfg.Resources = []string{cfg.Issuer}
	}
	s := &Service{
		store: store, cfg: cfg, admin: sha256.Sum256([]byte(cfg.AdminToken)),
		credentialKeys: &ring[[]byte]{source: cfg.Keys, purpose: custody.PurposeCredential, generate: newHMACKey, parse: parseHMACKey, now: cfg.Now},
		tokenKeys:      &ring[*rsa.PrivateKey]{source: cfg.Keys, purpose: custody.PurposeOAuth, generate: newRSAKey, parse: parseRSAKey, now: cfg.Now},
		receiptKeys:    &ring[ed25519.PublicKey]{source: cfg.Keys, purpose: custody.PurposeReceipt, generate: newHMACKey, parse: parseReceiptKey, now: cfg.Now},
	}
	if _, err := s.credentialKeys.read(ctx, reloadEvery); err != nil {
		return nil, err
	}
	_, err := s.tokenKeys.read(ctx, reloadEvery)
	return s, err
}

// now in the precision that custody keeps.
func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Millisecond) }

// Authenticate says who presents token: the admin token, a credential, or an access token made from one. Error:
// credential_invalid, the same for a token that is unknown, malformed, forged, expired or revoked. (Section 5.)
func (s *Service) Authenticate(ctx context.Context, token string) (custody.Caller, error) {
	if s.isAdmin(token) {
		return custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true}, nil
	}
	if !strings.HasPrefix(token, tokenPrefix) {
		said, c, err := s.readAccessToken(ctx, token)
		if err != nil {
			return custody.Caller{}, err
		}
		return custody.Caller{
			CredentialID: c.ID, OrgID: c.OrgID, Role: c.Role, Scopes: said.scopes(c), TokenID: said.ID, TokenExpiresAt: said.Expiry.Time().UTC(),
			Audience: said.Audience,
		}, nil
	}
	c, err := s.credential(ctx, token)
	if err != nil {
		return custody.Caller{}, err
	}
	return custody.Caller{CredentialID: c.ID, OrgID: c.OrgID, Role: c.Role, Scopes: c.Scopes}, nil
}

func (s *Service) isAdmin(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], s.admin[:]) == 1
}

// credential is the active one that token belongs to. A forged token is refused before the store is asked.
func (s *Service) credential(ctx context.Context, token string) (custody.Credential, error) {
	said, ok := parse(token)
	if !ok {
		return custody.Credential{}, invalid()
	}
	if _, ok, err := s.credentialKeys.find(ctx, func(k ringKey[[]byte]) bool { return said.verify(k.key) }); err != nil {
		return custody.Credential{}, err
	} else if !ok {
		return custody.Credential{}, invalid()
	}
	c, key, err := s.active(ctx, said.orgID, said.credentialID)
	if err != nil {
		return custody.Credential{}, err
	}
	if c.OrgID != said.orgID || !said.verify(key) {
		return custody.Credential{}, invalid()
	}
	return c, nil
}

// active is a credential of that organization that is accepted now, with the key it was issued under.
func (s *Service) active(ctx context.Context, orgID, credentialID string) (custody.Credential, []byte, error) {
	c, err := s.store.Credential(custody.InOrganization(ctx, orgID), credentialID)
	if errors.Is(err, custody.ErrNotFound) {
		return custody.Credential{}, nil, invalid()
	}
	if err != nil {
		return custody.Credential{}, nil, err
	}
	if state := c.State(s.now()); state != custody.CredentialActive && !(state == custody.CredentialRevoked && planted.Bug("revoked-accepted")) {
		return custody.Credential{}, nil, invalid()
	}
	key, ok, err := s.credentialKeys.byID(ctx, c.KeyID)
	if err != nil {
		return custody.Credential{}, nil, err
	}
	if !ok {
		return custody.Credential{}, nil, invalid()
	}
	return c, key, nil
}

func invalid() error {
	return custody.Errorf(custody.CodeCredentialInvalid, "the credential is not valid; ask the administrator for a new one")
}

// Issue makes a credential for one organization and one role. Render gets the custody.Credential; the token is returned
// beside the answer and stored nowhere: a replay derives it again. Errors: invalid_request with details.fields. (Section 4.4.)
func (s *Service) Issue(ctx context.Context, c custody.Caller, r custody.CredentialRequest, i custody.Idempotency) (custody.Answer, string, error) {
	if err := custody.Authorize(custody.OpIssueCredential, c, ""); err != nil {
		return custody.Answer{}, "", err
	}
	if at := "/" + r.OrgID + "/quota"; path.Clean(at) != at { // no path would lead to it
		return custody.Answer{}, "", field("/org_id", "must not be . or .., nor hold them between slashes, nor begin or end with a slash, nor hold two in a row")
	}
	signer, err := s.credentialKeys.signer(ctx, 0)
	if err != nil {
		return custody.Answer{}, "", err
	}
	a, err := s.once(ctx, i, func(tx Tx) (any, error) {
		cred := custody.Credential{
			ID: custody.NewID("cred"), OrgID: r.OrgID, Role: r.Role, Scopes: r.Scopes, KeyID: signer.id, CreatedAt: s.now(), ExpiresAt: r.ExpiresAt,
		}
		if err := complete(&cred); err != nil {
			return nil, err
		}
		if err := tx.EnsureOrganization(ctx, cred.OrgID, s.cfg.AllowanceBytes); err != nil {
			return nil, err
		}
		if err := tx.InsertCredential(ctx, cred); err != nil {
			return nil, err
		}
		return cred, tx.AppendAudit(ctx, s.auditLine(c, cred.OrgID, "credential_issued", cred.ID))
	})
	if err != nil {
		return custody.Answer{}, "", err
	}
	return s.withToken(ctx, a)
}

// withToken adds to the answer of an issue or a rotation the token that follows from it.
func (s *Service) withToken(ctx context.Context, a custody.Answer) (custody.Answer, string, error) {
	var issued struct {
		CredentialID string `json:"credential_id"`
	}
	if err := json.Unmarshal(a.Data, &issued); err != nil {
		return custody.Answer{}, "", err
	}
	cred, err := s.store.Credential(ctx, issued.CredentialID)
	if err != nil {
		return custody.Answer{}, "", err
	}
	key, ok, err := s.credentialKeys.byID(ctx, cred.KeyID)
	if err != nil {
		return custody.Answer{}, "", err
	}
	if !ok {
		return custody.Answer{}, "", custody.Errorf(custody.CodeCredentialInvalid, "the key this credential was signed with is retired; issue a new credential")
	}
	return a, mint(cred, key), nil
}

// once carries out a change and keeps its answer with it, or repeats the answer given before.
func (s *Service) once(ctx context.Context, i custody.Idempotency, change func(Tx) (result any, err error)) (custody.Answer, error) {
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	return custody.Once(ctx, s.store, i, change)
}

// auditLine says that c did action now.
func (s *Service) auditLine(c custody.Caller, orgID, action, detail string) custody.AuditLine {
	return custody.AuditLine{
		OrgID: orgID, At: s.now(), Action: action, CredentialID: c.CredentialID, Detail: detail, RequestID: c.RequestID, TraceID: c.TraceID,
	}
}

// complete fills in the role's scopes and the default lifetime, and refuses what the role does not hold.
func complete(c *custody.Credential) error {
	granted, ok := custody.RoleScopes[c.Role]
	if !ok {
		return field("/role", "must be solution_company_upload or ai_reader")
	}
	for _, s := range c.Scopes {
		if !slices.Contains(granted, s) {
			return field("/scope", "must be scopes of the role "+string(c.Role)+", separated by spaces")
		}
	}
	asked := c.Scopes
	c.Scopes = slices.DeleteFunc(slices.Clone(granted), func(s custody.Scope) bool { // each once, in the role's order
		return len(asked) > 0 && !slices.Contains(asked, s)
	})
	if c.ExpiresAt.IsZero() {
		c.ExpiresAt = c.CreatedAt.Add(credentialLifetime)
	}
	if !c.ExpiresAt.After(c.CreatedAt) {
		return field("/expires_at", "must be in the future")
	}
	c.ExpiresAt = c.ExpiresAt.UTC().Truncate(time.Millisecond)
	return nil
}

func field(path, reason string) error {
	return custody.Errorf(custody.CodeInvalidRequest, "the request is not valid; see details.fields").
		With("fields", []map[string]string{{"path": path, "reason": reason}})
}
