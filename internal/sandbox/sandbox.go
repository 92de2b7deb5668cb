package sandbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Limits of the sandbox. (Section 8.)
const (
	MaxInputCharacters = 1000 // Unicode code points of one input, in an echo and in each operation of a batch
	MinOperations      = 1    // operations of a batch
	MaxOperations      = 8    // operations of a batch
)

// KeyBytes is the length of the signing key.
const KeyBytes = 32

// Lifetimes of a sandbox credential. It cannot be revoked, so it may not live long.
const (
	DefaultLifetime = time.Hour
	MinLifetime     = time.Second
	MaxLifetime     = 24 * time.Hour
)

// Config of the service.
type Config struct {
	Key      []byte           // KeyBytes; signs sandbox credentials and nothing else. Replicas share it
	Lifetime time.Duration    // of a credential, MinLifetime to MaxLifetime; zero: DefaultLifetime
	Now      func() time.Time // nil: custody.Now
}

// Service issues sandbox credentials, recognises them, and echoes. It never changes; any number of goroutines may use it.
type Service struct {
	key      []byte
	lifetime time.Duration
	now      func() time.Time
}

// New makes the service. Error: a key or lifetime outside its limits.
func New(cfg Config) (*Service, error) {
	if len(cfg.Key) != KeyBytes {
		return nil, fmt.Errorf("the sandbox signing key must have %d bytes", KeyBytes)
	}
	if cfg.Lifetime == 0 {
		cfg.Lifetime = DefaultLifetime
	}
	if cfg.Lifetime < MinLifetime || cfg.Lifetime > MaxLifetime {
		return nil, fmt.Errorf("the lifetime of sandbox credentials must be %s to %s", MinLifetime, MaxLifetime)
	}
	if cfg.Now == nil {
		cfg.Now = custody.Now
	}
	return &Service{slices.Clone(cfg.Key), cfg.Lifetime, cfg.Now}, nil
}
