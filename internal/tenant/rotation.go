package tenant

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/accession/accession/internal/custody"
)

// Signing keys rotate while the service runs:
//
//	added → announced: verifies, is published → signing → a newer one signs: verifies → retired: destroyed
//
// Every replica reads them again each reloadEvery, and at once when it meets a signature it does not know, at most each
// reloadPause. So a key is known everywhere before it signs, and dead everywhere reloadEvery after it was retired.
// (Contract decisions, "Authentication per operation".)
const (
	reloadEvery   = 15 * time.Second
	reloadPause   = time.Second
	reloadTimeout = 5 * time.Second
	startTimeout  = 30 * time.Second               // of the first reading, which may have to make a key on a machine that starts much else too
	announce      = custody.SigningKeyAnnouncement // above reloadEvery and the minute for which others may keep the published keys
)

// Keys is where signing keys lie, wrapped.
type Keys interface {
	// SigningSecrets returns the keys of a purpose that still verify, newest first; where there is none, what generate makes
	// becomes the first.
	SigningSecrets(ctx context.Context, purpose string, generate func() ([]byte, error)) ([]custody.SigningKey, error)
	// AddSigningSecret keeps a new key.
	AddSigningSecret(ctx context.Context, purpose, keyID string, secret []byte) error
	// RetireSigningSecret destroys a key; custody.ErrNotFound, or custody.ErrConflict for the newest of its purpose.
	RetireSigningSecret(ctx context.Context, keyID string) error
	// SigningSecretNames lists a purpose's keys, retired ones too, newest first, without secrets.
	SigningSecretNames(ctx context.Context, purpose string) ([]custody.SigningKey, error)
	// Rotate replaces the key-encryption key; repeated after an interruption it finishes.
	Rotate(ctx context.Context) (custody.KeyRotation, error)
}

// ring holds the keys of one purpose as last read.
type ring[K any] struct {
	source   Keys
	purpose  string
	generate func() ([]byte, error)
	parse    func([]byte) (K, error)
	now      func() time.Time

	reading singleflight.Group

	mu        sync.Mutex
	keys      []ringKey[K] // newest first, never empty once read
	readAt    time.Time    // when that was asked for: what changed since then is not among them
	forgotten int          // how often
}

type ringKey[K any] struct {
	id        string
	createdAt time.Time
	key       K
}

// read returns the keys, read again where they are older than age. However many ask, the key store is asked once, and each waits
// for itself alone. A key store that does not answer is no verdict: service_unavailable.
func (r *ring[K]) read(ctx context.Context, age time.Duration) ([]ringKey[K], error) {
	r.mu.Lock()
	old, keys, forgotten, patience := r.now().Sub(r.readAt), r.keys, r.forgotten, reloadTimeout
	if r.readAt.IsZero() {
		patience = startTimeout
	}
	r.mu.Unlock()
	if len(keys) > 0 && old >= 0 && old < age {
		return keys, nil
	}
	outer := context.WithoutCancel(ctx) // one caller that goes away fails no other
	// By the number of times that all was forgotten: a read that began before that is not what is asked for.
	answered := r.reading.DoChan(strconv.Itoa(forgotten), func() (any, error) { return r.reload(outer, patience, forgotten) })
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	select {
	case a := <-answered:
		if a.Err != nil {
			return nil, fmt.Errorf("read signing keys: %w", a.Err)
		}
		return a.Val.([]ringKey[K]), nil
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), context.Canceled) {
			return nil, context.Canceled
		}
		return nil, custody.Unavailable(fmt.Errorf("read signing keys: %w", context.Cause(ctx)))
	}
}

var errSilent = errors.New("the key store does not answer")

// reload asks the key store and keeps what it says, unless that was to be forgotten meanwhile.
func (r *ring[K]) reload(ctx context.Context, patience time.Duration, forgotten int) ([]ringKey[K], error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := r.now()
	secrets, err := r.source.SigningSecrets(ctx, r.purpose, r.generate)
	if errors.Is(err, context.DeadlineExceeded) {
		err = custody.Unavailable(err)
	}
	if err != nil {
		return nil, err
	}
	if len(secrets) == 0 {
		return nil, errors.New("there is none")
	}
	keys := make([]ringKey[K], len(secrets))
	for i, s := range secrets {
		key, err := r.parse(s.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.ID, err)
		}
		keys[i] = ringKey[K]{s.ID, s.CreatedAt, key}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forgotten == forgotten {
		r.keys, r.readAt = keys, asked
	}
	return keys, nil
}

// find returns the first key that fits, reading the keys again where none does; and once more, because the answer that it waits for
// may be to a question that another caller asked long before.
func (r *ring[K]) find(ctx context.Context, fits func(ringKey[K]) bool) (key K, found bool, err error) {
	for _, age := range []time.Duration{reloadEvery, reloadPause, reloadPause} {
		keys, err := r.read(ctx, age)
		if err != nil {
			return key, false, err
		}
		for _, k := range keys {
			if fits(k) {
				return k.key, true, nil
			}
		}
	}
	return key, false, nil
}

// byID returns the key of that name.
func (r *ring[K]) byID(ctx context.Context, id string) (key K, found bool, err error) {
	return r.find(ctx, func(k ringKey[K]) bool { return k.id == id })
}

// signer returns the key that signs now: the newest that everybody has had the time to learn of.
func (r *ring[K]) signer(ctx context.Context, age time.Duration) (ringKey[K], error) {
	keys, err := r.read(ctx, age)
	if err != nil {
		return ringKey[K]{}, err
	}
	now := r.now()
	for _, k := range keys {
		if now.Sub(k.createdAt) >= announce {
			return k, nil
		}
	}
	return keys[len(keys)-1], nil
}

// forget makes the next read a fresh one.
func (r *ring[K]) forget() {
	r.mu.Lock()
	r.keys = nil
	r.forgotten++
	r.mu.Unlock()
}

// states shows keys of one purpose, newest first, as they stand at now.
func states(keys []custody.SigningKey, now time.Time) []custody.KeyState {
	out := make([]custody.KeyState, len(keys))
	signing, oldest := -1, -1
	for i, k := range keys {
		out[i] = custody.KeyState{SigningKey: k, State: custody.KeyRetired}
		if k.RetiredAt.IsZero() {
			out[i].State, out[i].SignsFrom = custody.KeyVerifying, k.CreatedAt.Add(announce)
			if oldest = i; signing < 0 && !now.Before(out[i].SignsFrom) {
				signing = i
			}
		}
	}
	if signing < 0 && oldest >= 0 { // there is no other: it need not be announced
		signing, out[oldest].SignsFrom = oldest, keys[oldest].CreatedAt
	}
	for i := range signing {
		if out[i].State == custody.KeyVerifying {
			out[i].State = custody.KeyAnnounced
		}
	}
	if signing >= 0 {
		out[signing].State = custody.KeySigning
	}
	return out
}
