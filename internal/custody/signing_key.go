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
