package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/accession/accession/client"
)

// transit stands in for HashiCorp Vault's transit engine, as far as wrapping goes: it keeps what it was given under versions that it
// counts up, and answers errors when told so.
type transit struct {
	*httptest.Server
	mu      sync.Mutex
	kept    map[string]string
	version int
	fails   bool
}

func newTransit(t *testing.T) *transit {
	v := &transit{kept: map[string]string{}, version: 1}
	v.Server = httptest.NewServer(http.HandlerFunc(v.answer))
	t.Cleanup(v.Close)
	return v
}

func (v *transit) answer(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var asked struct{ Plaintext, Ciphertext string }
	err := json.NewDecoder(r.Body).Decode(&asked)
	said := map[string]string{}
	switch {
	case r.Header.Get("X-Vault-Token") != "vault-token":
		w.WriteHeader(http.StatusForbidden)
	case v.fails || err != nil:
		w.WriteHeader(http.StatusBadRequest) // not 5xx, which its client repeats for seconds
	case r.URL.Path == "/v1/transit/encrypt/accession":
		name := fmt.Sprintf("vault:v%d:%d", v.version, len(v.kept))
		v.kept[name], said["ciphertext"] = asked.Plaintext, name
	case r.URL.Path == "/v1/transit/decrypt/accession" && v.kept[asked.Ciphertext] != "":
		said["plaintext"] = v.kept[asked.Ciphertext]
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": said}) // nobody left to tell
}

func (v *transit) set(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change()
}

func (v *transit) options(data string) options {
	return options{data: data, env: []string{"ACCESSION_KEYS=hashivault://accession", "VAULT_SERVER_URL=" + v.URL, "VAULT_SERVER_TOKEN=vault-token"}}
}

func TestKeyServiceWrapsEveryKey(t *testing.T) {
	t.Parallel()
	v := newTransit(t)
	s := start(t, v.options(""))
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.send("note.txt", "text/plain", note("far-safe"))
	p.wantReady(id)
	was := s.served("harbour", reader, id)
	if left := files(t, s.data); strings.Contains(strings.Join(left, "\n"), keyFile) {
		t.Error("a key file was made beside the key service")
	}

	v.set(func() { v.version = 2 })
	stdout, _ := s.wantCLI(0, "", "keys", "rotate", "--json")
	if o := object(t, stdout); o["retired_keys"] != float64(0) || o["rewrapped_keys"].(float64) < 2 {
		t.Errorf("rotation: %s", stdout)
	}
	db := s.database(t, "keys.db")
	if n := count(t, db, `SELECT COUNT(*) FROM (SELECT wrapped FROM data_keys UNION ALL SELECT wrapped FROM signing_keys) WHERE CAST(wrapped AS TEXT) NOT LIKE 'vault:v2:%'`); n != 0 {
		t.Errorf("%d keys are not wrapped under the current version", n)
	}

	v.set(func() { v.fails = true })
	s.do(call{method: "GET", path: "/readyz"}).want(t, 503, "service_unavailable")
	objects, rows := len(s.objects()), count(t, s.database(t, "metadata.db"), `SELECT COUNT(*) FROM uploads`)
	s.do(p.reserving(client.NewIdempotencyKey(), 100)).want(t, 503, "service_unavailable")
	s.context("harbour", reader, id).want(t, 503, "service_unavailable")
	s.do(rotation(client.NewIdempotencyKey())).want(t, 503, "service_unavailable")
	if n := count(t, s.database(t, "metadata.db"), `SELECT COUNT(*) FROM uploads`); n != rows || len(s.objects()) != objects {
		t.Errorf("%d uploads and %d objects, were %d and %d", n, len(s.objects()), rows, objects)
	}
	if n := count(t, db, `SELECT COUNT(*) FROM data_keys`); n != 1 {
		t.Errorf("%d data keys", n)
	}
	v.set(func() { v.fails = false })
	if got := s.served("harbour", reader, id); got != was {
		t.Errorf("%q, was %q", got, was)
	}

	// A part whose key cannot be unwrapped is refused whole, and goes in later.
	open := p.initiate("note.txt", "text/plain", len(note("far-part")))
	v.set(func() { v.fails = true })
	p.part(open, 1, note("far-part")).want(t, 503, "service_unavailable")
	if len(s.objects()) != objects {
		t.Errorf("%d objects, were %d", len(s.objects()), objects)
	}
	s.kill()
	dead := launch(t, v.options(s.data)) // and without its key service a service does not start
	<-dead.done
	if !strings.Contains(dead.log.String(), "key service") || dead.cmd.ProcessState.ExitCode() == 0 {
		t.Errorf("start: %v\n%s", dead.err, dead.log)
	}
	v.set(func() { v.fails = false })
	again := start(t, v.options(s.data))
	q := partner{again, "harbour", p.token}
	q.part(open, 1, note("far-part")).want(t, 200, "")
	q.complete(open, [][]byte{note("far-part")}).want(t, 202, "")
	q.wantReady(open)
	q.wantWithdrawn(id, len(note("far-safe")))
}

func TestKeysSettingSaysWhatItTakes(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"base64key://c2VjcmV0", "vault://accession", "awskms://"} {
		s := launch(t, options{flags: []string{"--keys", place}})
		<-s.done
		if s.cmd.ProcessState.ExitCode() != 2 || !strings.Contains(s.log.String(), "--keys cannot be used: must be a file, or a URL of awskms") || strings.Contains(s.log.String(), "c2VjcmV0") {
			t.Errorf("%s: %v\n%s", place, s.err, s.log)
		}
	}
}
