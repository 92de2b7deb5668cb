package sandbox_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sandbox"
)

const (
	macLength = 43 // of base64url HMAC-SHA256
	email     = "ada.lovelace@example.org"

	// Made outside this code from the description of a token, with the key of these tests; good until noon and an hour.
	goldenID    = "sandbox_0123456789abcdefghjkmnpqrs"
	goldenToken = "sbx_c2FuZGJveF8wMTIzNDU2Nzg5YWJjZGVmZ2hqa21ucHFycwAAAaH5CtiAmWtSeWKo13Z1DQtqPOBu0T9KnjFypq50XtnzB6wu_8s"
)

func TestIssueThenAuthenticate(t *testing.T) {
	s := at(t, noon, key)
	c := s.Issue("")
	want := sandbox.Credential{
		Token: c.Token, CredentialID: c.CredentialID, Status: "issued", Scope: "sandbox:echo",
		ProductionDataAccess: false, ExpiresAt: noon.Add(time.Hour),
	}
	if c != want {
		t.Errorf("issued %+v, want %+v", c, want)
	}
	if !regexp.MustCompile(`^sbx_[A-Za-z0-9_-]{99}$`).MatchString(c.Token) {
		t.Error("the token is not sbx_ and 99 characters of [A-Za-z0-9_-]")
	}
	if !regexp.MustCompile(`^sandbox_[0-9a-z]{26}$`).MatchString(c.CredentialID) {
		t.Errorf("the credential id is %q", c.CredentialID)
	}
	if strings.Contains(c.Token, c.CredentialID) || strings.Contains(c.CredentialID, c.Token) {
		t.Error("the credential id gives the token away")
	}
	if id, err := s.Authenticate(c.Token); err != nil || id != c.CredentialID {
		t.Errorf("Authenticate = %q, %v; want %q", id, err, c.CredentialID)
	}
	// There is no store: whoever has the key knows the token, a second replica and the next process alike.
	if id, err := at(t, noon, key).Authenticate(c.Token); err != nil || id != c.CredentialID {
		t.Errorf("another replica: %q, %v; want %q", id, err, c.CredentialID)
	}
	if again := s.Issue(""); again.Token == c.Token || again.CredentialID == c.CredentialID {
		t.Error("two credentials are the same")
	}
}

// Replicas of two versions run side by side: a token of one is good at the other.
func TestTheFormOfATokenStays(t *testing.T) {
	if id, err := at(t, noon.Add(time.Hour-1), key).Authenticate(goldenToken); err != nil || id != goldenID {
		t.Errorf("Authenticate = %q, %v; want %q", id, err, goldenID)
	}
	_, err := at(t, noon.Add(time.Hour), key).Authenticate(goldenToken)
	refused(t, err, custody.CodeCredentialInvalid, goldenToken)
}

func TestTheEmailGoesNowhere(t *testing.T) {
	s := at(t, noon, key)
	without, with := s.Issue(""), s.Issue(email)
	if len(with.Token) != len(without.Token) {
		t.Errorf("with an e-mail the token has %d characters, without %d", len(with.Token), len(without.Token))
	}
	said, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(with.Token[:len(with.Token)-macLength], "sbx_"))
	if err != nil {
		t.Fatal(err)
	}
	// All that a token says: its id, and when it ends.
	if want := binary.BigEndian.AppendUint64([]byte(with.CredentialID), uint64(noon.Add(time.Hour).UnixMilli())); !bytes.Equal(said, want) {
		t.Errorf("the token says %q, want %q", said, want)
	}
	if strings.Contains(with.CredentialID, "ada") || strings.Contains(with.CredentialID, "example") {
		t.Errorf("the credential id %q holds the e-mail", with.CredentialID)
	}
}

func TestACredentialEndsByItself(t *testing.T) {
	// A clock of another zone, between two milliseconds: custody keeps UTC, and the fraction is dropped, not gained.
	issued := noon.Add(999 * time.Microsecond).In(time.FixedZone("east", 5*3600))
	c := at(t, issued, key).Issue("")
	if want := noon.Add(time.Hour); !c.ExpiresAt.Equal(want) || c.ExpiresAt.Location() != time.UTC {
		t.Fatalf("expires at %s, want %s", c.ExpiresAt, want)
	}
	for _, moment := range []struct {
		name string
		now  time.Time
		good bool
	}{
		{"when it is issued", issued, true},
		{"a nanosecond before its end", c.ExpiresAt.Add(-1), true},
		{"at its end", c.ExpiresAt, false},
		{"a nanosecond after", c.ExpiresAt.Add(1), false},
		{"a year after", c.ExpiresAt.AddDate(1, 0, 0), false},
		{"at its end, told in another zone", c.ExpiresAt.In(time.FixedZone("east", 5*3600)), false},
	} {
		t.Run(moment.name, func(t *testing.T) {
			id, err := at(t, moment.now, key).Authenticate(c.Token)
			if moment.good {
				if err != nil || id != c.CredentialID {
					t.Errorf("Authenticate = %q, %v; want %q", id, err, c.CredentialID)
				}
				return
			}
			if refused(t, err, custody.CodeCredentialInvalid, c.Token); id != "" {
				t.Errorf("a refused token is still named %q", id)
			}
		})
	}
}

func TestTheLifetimeIsTheConfigured(t *testing.T) {
	for _, lifetime := range []time.Duration{sandbox.MinLifetime, 10 * time.Minute, sandbox.MaxLifetime} {
		s, err := sandbox.New(sandbox.Config{Key: key, Lifetime: lifetime, Now: func() time.Time { return noon }})
		if err != nil {
			t.Fatal(err)
		}
		if c := s.Issue(""); !c.ExpiresAt.Equal(noon.Add(lifetime)) {
			t.Errorf("with %s it ends at %s", lifetime, c.ExpiresAt)
		}
	}
}

// Every other spelling of a good token is refused: each place changed to each letter of the alphabet and beyond, the last
// letter of a base64 text included, some of whose bits carry nothing.
func TestNoCharacterOfATokenCanChange(t *testing.T) {
	s := at(t, noon, key)
	token := s.Issue("").Token
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/\n\r\x00 "
	for i := range token {
		for _, letter := range []byte(letters) {
			changed := []byte(token)
			if changed[i] == letter {
				continue
			}
			changed[i] = letter
			if id, err := s.Authenticate(string(changed)); err == nil {
				t.Fatalf("place %d changed to %q: accepted as %q", i, letter, id)
			}
		}
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	s := at(t, noon, key)
	good := s.Issue("")
	payload := strings.TrimPrefix(good.Token[:len(good.Token)-macLength], "sbx_")
	mac := good.Token[len(good.Token)-macLength:]
	later := base64.RawURLEncoding.EncodeToString(
		binary.BigEndian.AppendUint64([]byte(good.CredentialID), uint64(noon.AddDate(10, 0, 0).UnixMilli())))
	other := s.Issue("").Token
	cases := map[string]string{
		"the prefix alone":             "sbx_",
		"no signature":                 "sbx_" + payload,
		"a cut end":                    good.Token[:len(good.Token)-1],
		"one character more":           good.Token + "A",
		"padding":                      good.Token + "=",
		"a line end":                   good.Token + "\n",
		"a space before":               " " + good.Token,
		"another case of prefix":       "SBX_" + payload + mac,
		"no prefix":                    payload + mac,
		"two tokens":                   good.Token + good.Token,
		"a signature of zeros":         "sbx_" + payload + strings.Repeat("A", macLength),
		"another token's signature":    "sbx_" + payload + other[len(other)-macLength:],
		"a later end, signature kept":  "sbx_" + later + mac,
		"an absurd length":             "sbx_" + strings.Repeat("A", 1<<20),
		"the credential id":            good.CredentialID,
		"signed by another key":        at(t, noon, bytes.Repeat([]byte{8}, sandbox.KeyBytes)).Issue("").Token,
		"characters beyond ASCII":      "sbx_" + strings.Repeat("é", len(good.Token)/2),
		"bytes that are no characters": strings.Repeat("\xff", len(good.Token)),
	}
	for name, token := range cases {
		t.Run(name, func(t *testing.T) {
			id, err := s.Authenticate(token)
			if id != "" {
				t.Errorf("named %q", id)
			}
			refused(t, err, custody.CodeCredentialInvalid, token, good.Token)
		})
	}
	t.Run("no token", func(t *testing.T) {
		_, err := s.Authenticate("")
		if e := refused(t, err, custody.CodeAuthenticationRequired); e.Code.HTTPStatus() != 401 {
			t.Errorf("status is %d, want 401", e.Code.HTTPStatus())
		}
	})
	if _, err := s.Authenticate(good.Token); err != nil {
		t.Fatalf("the good token, of which these were made, is refused too: %v", err)
	}
}

// One answer for all: from it nobody learns how near a guess came, or that a token was good once.
func TestEveryRefusalIsTheSame(t *testing.T) {
	token := at(t, noon, key).Issue("").Token
	s := at(t, noon.AddDate(0, 0, 1), key)
	_, garbage := s.Authenticate("garbage")
	_, forged := s.Authenticate(token[:len(token)-macLength] + strings.Repeat("A", macLength))
	_, expired := s.Authenticate(token)
	if garbage == nil || garbage.Error() != forged.Error() || garbage.Error() != expired.Error() {
		t.Errorf("refusals differ: %v; %v; %v", garbage, forged, expired)
	}
}

// The same key by mistake in two rooms: what one signs must mean nothing to the other. A tenant credential is "acc_", the
// base64url of "credential_id NUL org_id" and a signature over its own domain and both. (Contract decisions,
// "Authentication per operation".)
func TestNoTokenIsTakenForAnother(t *testing.T) {
	s := at(t, noon, key)
	sign := func(text string) string {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	}
	const tenantDomain = "accession credential 1\x00"
	good := s.Issue("")
	payload := strings.TrimPrefix(good.Token[:len(good.Token)-macLength], "sbx_")
	mac := good.Token[len(good.Token)-macLength:]

	// 31 + 1 + 10 bytes: as long as what a sandbox token says, so that only the signature can tell.
	tenantPayload := base64.RawURLEncoding.EncodeToString([]byte(custody.NewID("cred") + "\x00" + "acme-works"))
	if len(tenantPayload) != len(payload) {
		t.Fatalf("the tenant payload has %d characters, the sandbox's %d: this test would prove less", len(tenantPayload), len(payload))
	}
	for name, token := range map[string]string{
		"a tenant credential":                          "acc_" + tenantPayload + sign(tenantDomain+tenantPayload),
		"a tenant credential under our prefix":         "sbx_" + tenantPayload + sign(tenantDomain+tenantPayload),
		"our payload signed as a tenant's":             "sbx_" + payload + sign(tenantDomain+payload),
		"our payload signed with no domain":            "sbx_" + payload + sign(payload),
		"our payload signed with its prefix":           "sbx_" + payload + sign("sbx_"+payload),
		"a sandbox credential under the tenant prefix": "acc_" + payload + mac,
		"an admin token":                               strings.Repeat("a", len(good.Token)),
		"an admin token with our prefix":               "sbx_" + strings.Repeat("a", len(good.Token)-4),
		"an OAuth access token":                        "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCJ9." + payload + "." + sign(payload),
		"an unsigned JWT that asks for our scope":      "eyJhbGciOiJub25lIn0.eyJzY29wZSI6InNhbmRib3g6ZWNobyJ9.",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Authenticate(token)
			refused(t, err, custody.CodeCredentialInvalid, token)
		})
	}

	if mac == sign(tenantDomain+payload) {
		t.Error("a sandbox signature is good for a tenant credential")
	}
	for role, scopes := range custody.RoleScopes {
		if slices.Contains(scopes, custody.Scope(sandbox.Scope)) {
			t.Errorf("the tenant role %s holds the sandbox's scope", role)
		}
	}
}

// Whatever comes in, the one good token that is known is the only one taken.
func FuzzAuthenticate(f *testing.F) {
	s := at(f, noon, key)
	// Issued by another process now and then: fuzzing spreads over several, which share the key but no token.
	expired := at(f, noon.AddDate(0, 0, -1), key).Issue("").Token
	for _, seed := range []string{
		"", "sbx_", "acc_", goldenToken, expired, goldenID, goldenToken[:50], goldenToken + "\n",
		"sbx_" + strings.Repeat("A", len(goldenToken)-4), "\x00\xff", strings.Repeat("sbx_", 1000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		id, err := s.Authenticate(token)
		switch token {
		case goldenToken:
			if err != nil || id != goldenID {
				t.Fatalf("the good token: %q, %v", id, err)
			}
		case "":
			refused(t, err, custody.CodeAuthenticationRequired)
		default:
			if refused(t, err, custody.CodeCredentialInvalid); id != "" {
				t.Fatalf("a refused token is named %q", id)
			}
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	s := at(b, noon, key)
	token := s.Issue("").Token
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Authenticate(token); err != nil {
			b.Fatal(err)
		}
	}
}
