package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// credentialAdmin is what the administrator does with issued credentials and with signing keys; an addition to section 4.4.
type credentialAdmin struct{ room CredentialAdmin }

// CredentialAdmin lists, revokes and rotates. (Section 5, rule 7.)
type CredentialAdmin interface {
	// Credentials returns the id to continue before; empty when there are no more.
	Credentials(context.Context, custody.Caller, custody.CredentialQuery) (page []custody.Credential, next string, err error)
	// RevokeCredential renders a custody.Credential.
	RevokeCredential(ctx context.Context, c custody.Caller, credentialID string, i custody.Idempotency) (custody.Answer, error)
	// RotateCredential renders a custody.RotatedCredential and returns the successor's token beside the answer, on a replay too.
	RotateCredential(context.Context, custody.Caller, custody.CredentialRotation, custody.Idempotency) (custody.Answer, string, error)
	SigningKeys(context.Context, custody.Caller) ([]custody.KeyState, error)
	// RotateSigningKey and RetireSigningKey render a custody.KeyState.
	RotateSigningKey(ctx context.Context, c custody.Caller, purpose string, i custody.Idempotency) (custody.Answer, error)
	RetireSigningKey(ctx context.Context, c custody.Caller, keyID string, force bool, i custody.Idempotency) (custody.Answer, error)
	// RotateKeys renders a custody.KeyRotation.
	RotateKeys(ctx context.Context, c custody.Caller, i custody.Idempotency) (custody.Answer, error)
}

const (
	credentialsPath = "/admin/tenant-keys/credentials"
	signingKeysPath = "/admin/tenant-keys/signing-keys"
)

type credentialID string

func (credentialID) Schema(huma.Registry) *huma.Schema {
	return text(1, 128, `^[!-~]+$`, "The credential.")
}

type keyID string

func (keyID) Schema(huma.Registry) *huma.Schema {
	return text(1, 128, `^[!-~]+$`, "The signing key.")
}

type listCredentialsInput struct {
	OrgID  orgID        `query:"org_id"`
	Ended  bool         `query:"include_ended" doc:"Revoked and expired ones too."`
	Limit  int          `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor credentialID `query:"cursor" doc:"next_cursor of the page before, with the same filters."`
}

type credentialState struct {
	CredentialID string     `json:"credential_id" doc:"Also the OAuth client_id."`
	OrgID        string     `json:"org_id"`
	Role         string     `json:"role"`
	Scope        string     `json:"scope" doc:"Separated by spaces."`
	State        string     `json:"state" enum:"active,expired,revoked"`
	KeyID        string     `json:"key_id" doc:"The signing key of its token."`
	CreatedAt    timestamp  `json:"created_at"`
	ExpiresAt    timestamp  `json:"expires_at"`
	RevokedAt    *timestamp `json:"revoked_at,omitempty"`
}

type credentialPage struct {
	Credentials []credentialState `json:"credentials" nullable:"false" doc:"Newest first; never a secret."`
	NextCursor  string            `json:"next_cursor" doc:"Empty on the last page."`
}

type revokeInput struct {
	CredentialID credentialID   `path:"credential_id"`
	Key          idempotencyKey `header:"Idempotency-Key"`
	Body         *nothing
}

// nothing is an object without properties.
type nothing struct{}

func (nothing) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false}
}

type rotateInput struct {
	CredentialID credentialID   `path:"credential_id"`
	Key          idempotencyKey `header:"Idempotency-Key"`
	Body         *rotationRequest
}

type rotationRequest struct {
	Overlap   *int64    `json:"overlap_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"For how long the old credential goes on being accepted; default: a day. 0 ends it at once."`
	ExpiresAt givenTime `json:"expires_at,omitzero" doc:"Of the successor. Default: 180 days from now."`
	_         struct{}  `additionalProperties:"false"`
}

type credentialRotated struct {
	credentialIssued
	Replaces replacedCredential `json:"replaces"`
}

type replacedCredential struct {
	CredentialID string    `json:"credential_id"`
	ExpiresAt    timestamp `json:"expires_at" doc:"It is accepted until then."`
}

type signingKey struct {
	KeyID     string     `json:"key_id"`
	Purpose   string     `json:"purpose" enum:"credential,oauth,receipt"`
	State     string     `json:"state" enum:"announced,signing,verifying,retired"`
	CreatedAt timestamp  `json:"created_at"`
	SignsFrom *timestamp `json:"signs_from,omitempty" doc:"A new key is known everywhere before it signs."`
	RetiredAt *timestamp `json:"retired_at,omitempty"`
}

type signingKeyList struct {
	SigningKeys []signingKey `json:"signing_keys" nullable:"false" doc:"By purpose, newest first; never a secret."`
}

type rotateKeysInput struct {
	Key  idempotencyKey `header:"Idempotency-Key"`
	Body *nothing
}

type keysRotated struct {
	Rewrapped int `json:"rewrapped_keys" minimum:"0" doc:"Data keys and signing secrets that are wrapped anew."`
	Retired   int `json:"retired_keys" minimum:"0" doc:"Old key-encryption keys that are no more. 0 with a key service, which keeps its own versions."`
}

type rotateKeyInput struct {
	Key  idempotencyKey `header:"Idempotency-Key"`
	Body struct {
		Purpose string   `json:"purpose" enum:"credential,oauth,receipt" doc:"credential: of tenant credentials; oauth: of access tokens; receipt: of withdrawal receipts."`
		_       struct{} `additionalProperties:"false"`
	}
}

type retireKeyInput struct {
	KeyID keyID          `path:"key_id"`
	Key   idempotencyKey `header:"Idempotency-Key"`
	Body  *keyRetirement
}

type keyRetirement struct {
	Force bool     `json:"force,omitempty" doc:"Even though credentials or access tokens signed with it die."`
	_     struct{} `additionalProperties:"false"`
}

func (s credentialAdmin) mount(d *door) {
	const tag = "tenant credentials"
	mount(d, operation{
		id: custody.OpListCredentials, method: http.MethodGet, path: credentialsPath, tag: tag,
		summary: "List credentials", doc: "A page with a next_cursor is not the whole.",
		answers: map[int]reflect.Type{200: says[credentialPage]()},
	}, s.list)
	mount(d, operation{
		id: custody.OpRevokeCredential, method: http.MethodPost, path: credentialsPath + "/{credential_id}/revoke", tag: tag, body: bodyJSON,
		summary: "Revoke a credential for good", doc: "It, and every access token made from it, is refused at the next request. Revoking it again changes nothing.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{200: says[credentialState]()},
	}, s.revoke)
	mount(d, operation{
		id: custody.OpRotateCredential, method: http.MethodPost, path: credentialsPath + "/{credential_id}/rotate", tag: tag, body: bodyJSON,
		summary: "Replace a credential, with overlap", doc: "Issues a successor with the same organization, role and scopes; the old credential is accepted until the overlap ends or it is revoked.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{201: says[credentialRotated]()},
	}, s.rotate)
	mount(d, operation{
		id: custody.OpListSigningKeys, method: http.MethodGet, path: signingKeysPath, tag: tag,
		summary: "List signing keys", answers: map[int]reflect.Type{200: says[signingKeyList]()},
	}, s.signingKeys)
	mount(d, operation{
		id: custody.OpRotateSigningKey, method: http.MethodPost, path: signingKeysPath + "/rotate", tag: tag, body: bodyJSON,
		summary: "Add a signing key", doc: "No restart: every replica learns of it, then it signs. The key before it verifies until it is retired.",
		failures: []int{409}, answers: map[int]reflect.Type{201: says[signingKey]()},
	}, s.rotateKey)
	mount(d, operation{
		id: custody.OpRetireSigningKey, method: http.MethodPost, path: signingKeysPath + "/{key_id}/retire", tag: tag, body: bodyJSON,
		summary: "Retire a signing key for good", doc: "The key is destroyed. What it signed is refused, within 15 seconds on every replica. A key of receipts is never retired: they stay verifiable.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{200: says[signingKey]()},
	}, s.retireKey)
	mount(d, operation{
		id: custody.OpRotateKeys, method: http.MethodPost, path: "/admin/keys/rotate", tag: tag, body: bodyJSON,
		summary: "Replace the key-encryption key", doc: "Every data key and signing secret is wrapped anew; documents are not touched, and the service goes on. Interrupted, everything can still be read, and the next rotation finishes.",
		failures: []int{409}, answers: map[int]reflect.Type{200: says[keysRotated]()},
	}, s.rotateKeys)
}

func (s credentialAdmin) list(ctx context.Context, x *exchange, in *listCredentialsInput) (answer, error) {
	found, next, err := s.room.Credentials(ctx, x.caller, custody.CredentialQuery{
		OrgID: string(in.OrgID), Ended: in.Ended, Before: string(in.Cursor), Limit: in.Limit,
	})
	if err != nil {
		return answer{}, err
	}
	page := credentialPage{Credentials: []credentialState{}, NextCursor: next}
	for _, c := range found {
		page.Credentials = append(page.Credentials, viewCredential(c))
	}
	return respond(page)
}

func (s credentialAdmin) revoke(ctx context.Context, x *exchange, in *revokeInput) (answer, error) {
	a, err := s.room.RevokeCredential(ctx, x.caller, string(in.CredentialID), custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpRevokeCredential, Key: string(in.Key),
		RequestHash: requestHash(custody.OpRevokeCredential, in.CredentialID),
		Render:      render(func(c custody.Credential) (int, any) { return http.StatusOK, viewCredential(c) }),
	})
	return answer{Answer: a}, err
}

func (s credentialAdmin) rotate(ctx context.Context, x *exchange, in *rotateInput) (answer, error) {
	r := custody.CredentialRotation{CredentialID: string(in.CredentialID), Overlap: custody.DefaultOverlap}
	if in.Body != nil {
		r.ExpiresAt = in.Body.ExpiresAt.kept()
		if in.Body.Overlap != nil {
			r.Overlap = time.Duration(*in.Body.Overlap) * time.Second
		}
	}
	a, token, err := s.room.RotateCredential(ctx, x.caller, r, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpRotateCredential, Key: string(in.Key),
		RequestHash: requestHash(custody.OpRotateCredential, r),
		Render: render(func(r custody.RotatedCredential) (int, any) {
			return http.StatusCreated, credentialRotated{viewIssued(r.Credential), replacedCredential{r.Replaces.ID, timestamp{r.Replaces.ExpiresAt}}}
		}),
	})
	if err != nil {
		return answer{}, err
	}
	// The stored answer has no token; it joins here, first time and replay alike.
	var rotated credentialRotated
	if err := json.Unmarshal(a.Data, &rotated); err != nil {
		return answer{}, fmt.Errorf("reading the stored answer of a rotation: %w", err)
	}
	rotated.Token = token
	a.Data, err = marshal(rotated)
	return answer{Answer: a}, err
}

func (s credentialAdmin) signingKeys(ctx context.Context, x *exchange, _ *struct{}) (answer, error) {
	keys, err := s.room.SigningKeys(ctx, x.caller)
	if err != nil {
		return answer{}, err
	}
	list := signingKeyList{SigningKeys: []signingKey{}}
	for _, k := range keys {
		list.SigningKeys = append(list.SigningKeys, viewSigningKey(k))
	}
	return respond(list)
}

func (s credentialAdmin) rotateKey(ctx context.Context, x *exchange, in *rotateKeyInput) (answer, error) {
	a, err := s.room.RotateSigningKey(ctx, x.caller, in.Body.Purpose, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpRotateSigningKey, Key: string(in.Key),
		RequestHash: requestHash(custody.OpRotateSigningKey, in.Body.Purpose),
		Render:      render(func(k custody.KeyState) (int, any) { return http.StatusCreated, viewSigningKey(k) }),
	})
	return answer{Answer: a}, err
}

func (s credentialAdmin) retireKey(ctx context.Context, x *exchange, in *retireKeyInput) (answer, error) {
	force := in.Body != nil && in.Body.Force
	a, err := s.room.RetireSigningKey(ctx, x.caller, string(in.KeyID), force, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpRetireSigningKey, Key: string(in.Key),
		RequestHash: requestHash(custody.OpRetireSigningKey, in.KeyID, force),
		Render:      render(func(k custody.KeyState) (int, any) { return http.StatusOK, viewSigningKey(k) }),
	})
	return answer{Answer: a}, err
}

func (s credentialAdmin) rotateKeys(ctx context.Context, x *exchange, in *rotateKeysInput) (answer, error) {
	a, err := s.room.RotateKeys(ctx, x.caller, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpRotateKeys, Key: string(in.Key),
		RequestHash: requestHash(custody.OpRotateKeys),
		Render:      render(func(r custody.KeyRotation) (int, any) { return http.StatusOK, keysRotated(r) }),
	})
	return answer{Answer: a}, err
}

func viewCredential(c custody.Credential) credentialState {
	return credentialState{
		CredentialID: c.ID, OrgID: c.OrgID, Role: string(c.Role), Scope: scopeText(c.Scopes), State: c.State(custody.Now()), KeyID: c.KeyID,
		CreatedAt: timestamp{c.CreatedAt}, ExpiresAt: timestamp{c.ExpiresAt}, RevokedAt: instant(c.RevokedAt),
	}
}

func viewIssued(c custody.Credential) credentialIssued {
	return credentialIssued{CredentialID: c.ID, OrgID: c.OrgID, Role: string(c.Role), Scope: scopeText(c.Scopes), ExpiresAt: timestamp{c.ExpiresAt}}
}

func viewSigningKey(k custody.KeyState) signingKey {
	return signingKey{
		KeyID: k.ID, Purpose: k.Purpose, State: k.State, CreatedAt: timestamp{k.CreatedAt}, SignsFrom: instant(k.SignsFrom), RetiredAt: instant(k.RetiredAt),
	}
}
