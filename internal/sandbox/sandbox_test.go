package sandbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sandbox"
)

var (
	key  = bytes.Repeat([]byte{7}, sandbox.KeyBytes)
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// at makes a service whose clock stands still.
func at(t testing.TB, now time.Time, key []byte) *sandbox.Service {
	t.Helper()
	s, err := sandbox.New(sandbox.Config{Key: key, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refused checks that err is one a client may see, with this code, and that it repeats nothing of what was sent.
func refused(t testing.TB, err error, want custody.Code, sent ...string) *custody.Error {
	t.Helper()
	var e *custody.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want a *custody.Error with code %s", err, want)
	}
	if e.Code != want {
		t.Fatalf("code is %s, want %s", e.Code, want)
	}
	details, jsonErr := json.Marshal(e.Details)
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	for _, text := range sent {
		// Nothing shorter than this is a giveaway: a single letter stands in any message.
		if len(text) > 8 && strings.Contains(e.Error()+string(details), text) {
			t.Errorf("the error repeats what was sent: %v %s", e, details)
		}
	}
	return e
}

func TestNewRefusesKeysAndLifetimesOutsideTheirLimits(t *testing.T) {
	cases := []struct {
		name     string
		keyBytes int
		lifetime time.Duration
		ok       bool
	}{
		{"no key", 0, 0, false},
		{"a key one byte short", 31, 0, false},
		{"a key one byte long", 33, 0, false},
		{"the default lifetime", 32, 0, true},
		{"a negative lifetime", 32, -time.Second, false},
		{"under the least lifetime", 32, sandbox.MinLifetime - 1, false},
		{"the least lifetime", 32, sandbox.MinLifetime, true},
		{"the longest lifetime", 32, sandbox.MaxLifetime, true},
		{"over the longest lifetime", 32, sandbox.MaxLifetime + 1, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			key := bytes.Repeat([]byte("k"), c.keyBytes)
			s, err := sandbox.New(sandbox.Config{Key: key, Lifetime: c.lifetime})
			if (err == nil) != c.ok || (s != nil) != c.ok {
				t.Fatalf("New = %v, %v; want ok = %v", s, err, c.ok)
			}
			if err != nil && c.keyBytes > 0 && strings.Contains(err.Error(), string(key)) {
				t.Error("the error holds the key")
			}
		})
	}
}

// Without a clock of its own the service uses the real one.
func TestTheDefaultClock(t *testing.T) {
	s, err := sandbox.New(sandbox.Config{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	before := custody.Now()
	c := s.Issue("")
	after := custody.Now()
	if c.ExpiresAt.Before(before.Add(sandbox.DefaultLifetime)) || c.ExpiresAt.After(after.Add(sandbox.DefaultLifetime)) {
		t.Errorf("expires at %s; issued between %s and %s", c.ExpiresAt, before, after)
	}
	if id, err := s.Authenticate(c.Token); err != nil || id != c.CredentialID {
		t.Errorf("Authenticate = %q, %v; want %q", id, err, c.CredentialID)
	}
}

// What the caller does to its key afterwards does not reach the service.
func TestTheKeyIsCopied(t *testing.T) {
	own := bytes.Clone(key)
	s := at(t, noon, own)
	token := s.Issue("").Token
	clear(own)
	if _, err := s.Authenticate(token); err != nil {
		t.Errorf("the token died with the caller's copy of the key: %v", err)
	}
	if _, err := at(t, noon, own).Authenticate(token); err == nil {
		t.Error("a key of zeros accepts it too")
	}
}
