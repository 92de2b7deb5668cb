package custody

import "time"

// What signing keys are for.
const (
	PurposeCredential = "credential" // HMAC keys of tenant credentials
	PurposeOAuth      = "oauth"      // RSA keys of access tokens
	PurposeReceipt    = "receipt"    // seeds of Ed25519 keys of withdrawal receipts; never retired: old receipts stay checkable
)

// SigningKey signs, and verifies until it is retired. Key is a secret: it is never logged, answered or kept unwrapped.
type SigningKey struct {
	ID        string
	Purpose   string
	Key       []byte // 32 bytes, an Ed25519 seed, or an RSA key as PKCS#8; empty in lists and once retired
	CreatedAt time.Time
	RetiredAt time.Time // zero while it verifies
}

// States of a signing key, in the order it passes through them.
const (
	KeyAnnounced = "announced" // verifies and is published, so that everybody knows it before it signs
	KeySigning   = "signing"
	KeyVerifying = "verifying" // a newer one signs
	KeyRetired   = "retired"   // destroyed; what it signed is dead
)

// KeyState is a signing key as the administrator sees it: Key is empty.
type KeyState struct {
	SigningKey
	State     string
	SignsFrom time.Time // zero for a retired key
}

// SigningKeyAnnouncement is how long a new key is published before it signs: longer than anybody keeps the published keys.
const SigningKeyAnnouncement = 2 * time.Minute

// SignsAt is the key of one purpose, of those newest first, that signs at now: the newest that everybody has had the time to
// learn of. ok is false where there is none.
func SignsAt(keys []SigningKey, now time.Time) (key SigningKey, ok bool) {
	for _, k := range keys {
		if !k.RetiredAt.IsZero() {
			continue
		}
		if key, ok = k, true; now.Sub(k.CreatedAt) >= SigningKeyAnnouncement {
			break
		}
	}
	return key, ok
}
