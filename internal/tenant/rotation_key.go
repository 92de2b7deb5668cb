package tenant

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/accession/accession/internal/custody"
)

// house is the organization whose audit chain holds what concerns the whole installation. No tenant can have this id: an
// org_id has at least one character. (Section 4.4.)
const house = ""

const rsaBits = 2048

func newHMACKey() ([]byte, error) {
	key := make([]byte, 32)
	rand.Read(key)
	return key, nil
}

func newRSAKey() ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKCS8PrivateKey(key)
}

func parseHMACKey(secret []byte) ([]byte, error) {
	if len(secret) != 32 {
		return nil, errors.New("it has not 32 bytes")
	}
	return secret, nil
}

// parseReceiptKey is the public half alone: receipts are signed elsewhere.
func parseReceiptKey(secret []byte) (ed25519.PublicKey, error) {
	if len(secret) != ed25519.SeedSize {
		return nil, errors.New("it is no Ed25519 seed")
	}
	return ed25519.NewKeyFromSeed(secret).Public().(ed25519.PublicKey), nil
}

func parseRSAKey(secret []byte) (*rsa.PrivateKey, error) {
	key, err := x509.ParsePKCS8PrivateKey(secret)
	if err != nil {
		return nil, errors.New("it is no PKCS#8 key") // the cause could quote it
	}
	private, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("it is no RSA key")
	}
	return private, nil
}

// purposes are what keys sign, in the order in which they are listed.
var purposes = []string{custody.PurposeCredential, custody.PurposeOAuth, custody.PurposeReceipt}

// SigningKeys lists the keys of every purpose, newest first, without secrets. Errors: 401 for all but the administrator.
func (s *Service) SigningKeys(ctx context.Context, c custody.Caller) ([]custody.KeyState, error) {
	if err := custody.Authorize(custody.OpListSigningKeys, c, ""); err != nil {
		return nil, err
	}
	var all []custody.KeyState
	for _, purpose := range purposes {
		keys, err := s.keyStates(ctx, purpose)
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
	}
	return all, nil
}

func (s *Service) keyStates(ctx context.Context, purpose string) ([]custody.KeyState, error) {
	keys, err := s.cfg.Keys.SigningSecretNames(ctx, purpose)
	return states(keys, s.now()), err
}

// RotateSigningKey adds a key of a purpose; it signs once it was announced for two minutes, and the one before it verifies
// until it is retired. Render gets the custody.KeyState. Errors: invalid_request with details.fields.
func (s *Service) RotateSigningKey(ctx context.Context, c custody.Caller, purpose string, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpRotateSigningKey, c, ""); err != nil {
		return custody.Answer{}, err
	}
	generate := map[string]func() ([]byte, error){custody.PurposeCredential: newHMACKey, custody.PurposeOAuth: newRSAKey, custody.PurposeReceipt: newHMACKey}[purpose]
	if generate == nil {
		return custody.Answer{}, field("/purpose", "must be credential, oauth or receipt")
	}
	id := custody.NewID("key")
	return s.onceInHouse(ctx, c, i, "signing_key_added", purpose+" "+id, func() (any, error) {
		secret, err := generate()
		if err == nil {
			err = s.cfg.Keys.AddSigningSecret(ctx, purpose, id, secret)
		}
		if err != nil {
			return nil, fmt.Errorf("add signing key: %w", err)
		}
		return s.keyState(ctx, purpose, id)
	})
}

// RetireSigningKey destroys a key: what it signed is dead, within 15 seconds on every replica. Render gets the
// custody.KeyState. Errors: signing_key_not_found; signing_key_in_use for the newest key of its purpose, for any
// that signs receipts, and, without force, for one that credentials or access tokens still depend on.
func (s *Service) RetireSigningKey(ctx context.Context, c custody.Caller, keyID string, force bool, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpRetireSigningKey, c, ""); err != nil {
		return custody.Answer{}, err
	}
	key, newer, err := s.findKey(ctx, keyID)
	if err != nil {
		return custody.Answer{}, err
	}
	check := func() error {
		switch {
		case key.ID == "" || key.State == custody.KeyRetired:
			return custody.Errorf(custody.CodeSigningKeyNotFound, "there is no such signing key, or it is retired already")
		case key.Purpose == custody.PurposeReceipt:
			return inUse("this key signed withdrawal receipts, which nobody could verify without it; such a key is never retired")
		case force:
			return nil
		case key.Purpose == custody.PurposeOAuth:
			if alive := newer.SignsFrom.Add(accessTokenLifetime); s.now().Before(alive) {
				return inUse("access tokens signed with this key may be alive until %s; wait, or retire it with force", alive.Format(time.RFC3339))
			}
			return nil
		}
		n, err := s.store.CountSigned(ctx, keyID, s.now())
		if err == nil && n > 0 {
			err = inUse("active credentials are signed with this key and would die; rotate them first, or retire it with force").With("active_credentials", n)
		}
		return err
	}
	return s.onceInHouse(ctx, c, i, "signing_key_retired", key.Purpose+" "+keyID, func() (any, error) {
		switch err := s.cfg.Keys.RetireSigningSecret(ctx, keyID); {
		case errors.Is(err, custody.ErrNotFound):
			return nil, custody.Errorf(custody.CodeSigningKeyNotFound, "there is no such signing key, or it is retired already")
		case errors.Is(err, custody.ErrConflict):
			return nil, inUse("this is the newest key of its purpose; rotate first")
		case err != nil:
			return nil, fmt.Errorf("retire signing key: %w", err)
		}
		return s.keyState(ctx, key.Purpose, keyID)
	}, check)
}

// findKey finds a key by name, and the next newer one of its purpose that is not retired. Both are empty where there is none.
func (s *Service) findKey(ctx context.Context, keyID string) (key, newer custody.KeyState, err error) {
	for _, purpose := range purposes {
		keys, err := s.keyStates(ctx, purpose)
		if err != nil {
			return key, newer, err
		}
		newer = custody.KeyState{}
		for _, k := range keys {
			if k.ID == keyID {
				return k, newer, nil
			}
			if k.State != custody.KeyRetired {
				newer = k
			}
		}
	}
	return custody.KeyState{}, custody.KeyState{}, nil
}

func inUse(format string, args ...any) *custody.Error {
	return custody.Errorf(custody.CodeSigningKeyInUse, format, args...)
}

func (s *Service) keyState(ctx context.Context, purpose, id string) (custody.KeyState, error) {
	s.credentialKeys.forget()
	s.tokenKeys.forget()
	s.receiptKeys.forget()
	keys, err := s.keyStates(ctx, purpose)
	for _, k := range keys {
		if k.ID == id {
			return k, nil
		}
	}
	return custody.KeyState{}, errors.Join(errors.New("the signing key is not there"), err)
}

// RotateKeys replaces the key-encryption key of the installation and wraps every data key and signing secret anew; what they
// seal stays. Render gets the custody.KeyRotation. Errors: service_unavailable; repeated, it finishes.
func (s *Service) RotateKeys(ctx context.Context, c custody.Caller, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpRotateKeys, c, ""); err != nil {
		return custody.Answer{}, err
	}
	return s.onceInHouse(ctx, c, i, "key_encryption_key_rotated", "", func() (any, error) {
		r, err := s.cfg.Keys.Rotate(ctx)
		if err != nil && ctx.Err() == nil {
			err = custody.Unavailable(err)
		}
		return r, err
	})
}

// onceInHouse records a change of the installation, carries it out and keeps its answer, or repeats the answer given before.
// The key store is no part of the transaction, so the record of the intent comes first: no change is without its line.
func (s *Service) onceInHouse(ctx context.Context, c custody.Caller, i custody.Idempotency, action, detail string, change func() (any, error), checks ...func() error) (custody.Answer, error) {
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return custody.Answer{}, err
		}
	}
	line := func(tx Tx, action string) error {
		if err := tx.EnsureOrganization(ctx, house, 0); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, s.auditLine(c, house, action, detail))
	}
	if err := s.store.InTx(ctx, func(tx Tx) error { return line(tx, action+"_begun") }); err != nil {
		return custody.Answer{}, err
	}
	result, err := change()
	if err != nil {
		return custody.Answer{}, err
	}
	return s.once(ctx, i, func(tx Tx) (any, error) { return result, line(tx, action) })
}
