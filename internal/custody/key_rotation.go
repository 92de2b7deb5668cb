package custody

// KeyRotation is what a rotation of the key-encryption key did, in keys.
type KeyRotation struct {
	Rewrapped int // data keys and signing secrets that are wrapped anew
	Retired   int // old key-encryption keys that are no more; 0 with a key service, which keeps its own versions
}
