package httpapi

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// What strict JSON takes, everybody else reads as the same; what it refuses, it refuses without a word of it.
func FuzzStrictJSON(f *testing.F) {
	for _, text := range []string{`{"a":1,"b":[true,null,"x"]}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `"\ud800"`, "\"\xff\"", `1 2`, `{"a":1}}`, "null", "", "01", "1.0e5", `{"é":1,"e\u0301":2}`, `{"zqzqzq":zqzqzq}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var strict, lenient any
		err := strictJSON.Unmarshal(text, &strict)
		if err != nil {
			if strings.Contains(err.Error(), "zqzqzq") || len(err.Error()) > 120 {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if !jsontext.Value(text).IsValid() {
			t.Errorf("%q is taken, with a name twice or other text than UTF-8", text)
		}
		if err := json.Unmarshal(text, &lenient); err != nil || !reflect.DeepEqual(strict, lenient) {
			t.Errorf("%q is %#v, and for others %#v, %v", text, strict, lenient, err)
		}
		if n := countValues(text); n < 1 || n > len(text) {
			t.Errorf("%q: %d values", text, n)
		}
	})
}

// A digest that is taken is 32 bytes, and spelled again it is taken as the same.
func FuzzContentDigest(f *testing.F) {
	const good = "sha-256=:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=:"
	for _, sent := range []string{good, "sha-512=:AA==:", good + ", " + good, "md5=:x:," + good, "sha-256=::", "sha-256=n4bQ", "sha-256", "", " " + good + " ", "SHA-256=:AA==:", good + "\n",
		"sha-256=:0000000000000000000000000000000000000000001=:"} { // the last as RFC 8941, section 4.2.7, has it: bits to spare are no error
		f.Add(sent)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		digest, err := contentDigest([]string{sent})
		if err != nil || digest == "" {
			if digest != "" || err == nil && strings.HasPrefix(sent, "sha-256=") {
				t.Errorf("%q: %q, %v", sent, digest, err)
			}
			return
		}
		sum, err := hex.DecodeString(digest)
		if err != nil || len(sum) != 32 {
			t.Fatalf("%q: %q", sent, digest)
		}
		spelled := "sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":"
		if again, err := contentDigest([]string{spelled}); err != nil || again != digest {
			t.Errorf("%q is taken as %q, and %q as %q, %v", sent, digest, spelled, again, err)
		}
	})
}

// The headers that are only wishes or names: what comes of them is in its bounds, and well-formed whatever was sent.
func FuzzHeaders(f *testing.F) {
	for _, sent := range []string{
		"wait=10", "wait=-1", `wait="7"; x, respond-async`, "WAIT = 99999999999", `W/"3.2.1"`, "*", `"a,b"`, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-more",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "Bearer acc_x", "bearer  acc_x ", "Basic YTpi", "acc_x", "10.0.0.1, 192.0.2.7, [::1]:80", "fe80::1%eth0", "https://custody.example:443", "null",
	} {
		f.Add(sent)
	}
	d := &door{cfg: Config{BaseURL: "https://custody.example", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	f.Fuzz(func(t *testing.T, sent string) {
		if wait := waitOf(sent); wait < 0 || wait > maxWait || wait%time.Second != 0 {
			t.Errorf("%q waits %s", sent, wait)
		}
		if matches(sent, `W/"3.2.1"`) && !strings.Contains(sent, `"3.2.1"`) && !strings.Contains(sent, "*") {
			t.Errorf("%q matches", sent)
		}
		id, parent := trace(sentTrace([]string{sent}))
		if sentTrace([]string{parent}) == "" || !strings.Contains(parent, id) || sentTrace([]string{sent}) != "" && sent[3:35] != id {
			t.Errorf("%q makes %q, %q", sent, id, parent)
		}
		for _, name := range []string{"Authorization", "X-Api-Key"} {
			token, key, err := credentialOf(http.Header{name: {sent}})
			if err != nil && (token != "" || strings.Contains(err.Error(), sent) && len(sent) > 8) {
				t.Errorf("%q is refused: %q, %v", sent, token, err)
			}
			if err == nil && (token == "" || len(token) > maxTokenBytes || strings.ContainsAny(token, " \r\n\x00") || !strings.HasSuffix(strings.TrimRight(sent, " \t\r\n\v\f\u0085\u00a0"), token) || key != (name == "X-Api-Key")) {
				t.Errorf("%q is taken as %q", sent, token)
			}
		}
		at := d.addressOf(&http.Request{RemoteAddr: "10.0.0.2:80", Header: http.Header{"X-Forwarded-For": {sent}}})
		if !at.IsValid() {
			t.Errorf("%q comes from nowhere", sent)
		}
		if at := d.addressOf(&http.Request{RemoteAddr: "192.0.2.9:80", Header: http.Header{"X-Forwarded-For": {sent}}}); at.String() != "192.0.2.9" {
			t.Errorf("%q moves a stranger to %s", sent, at)
		}
		if d.isOwnOrigin(sent, "") && !strings.EqualFold(strings.TrimSuffix(sent, ":443"), "https://custody.example") {
			t.Errorf("origin %q is ours", sent)
		}
	})
}

// A cursor that is taken is the one that a page has given.
func FuzzAuditCursor(f *testing.F) {
	for _, text := range []string{"1763629800000 aud_1", "0 a", "-1 a", "1 ", " a", "99999999999999999999 a", "1 a b", "+1 a", "01 a", "-62135596800000 a"} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	f.Add("MTc2MzYyOTgwMDAwMCBhdWRfMR")
	f.Add("MTc2MzYyOTgwMDAwMCBhdWRfMQ\n")
	f.Fuzz(func(t *testing.T, cursor string) {
		at, ok := readCursor(cursor)
		if !ok {
			return
		}
		if again := base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(at.At.UnixMilli(), 10) + " " + at.ID)); again != cursor || at.At.IsZero() || at.ID == "" {
			t.Errorf("%q is taken for %+v, whose cursor is %q", cursor, at, again)
		}
	})
}
