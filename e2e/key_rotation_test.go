package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/accession/accession/client"
)

func rotation(key string) call {
	return call{method: "POST", path: "/admin/keys/rotate", bearer: adminToken, key: key}
}

// keyLines are the keys in a data folder's key file.
func keyLines(t testing.TB, data string) []string {
	t.Helper()
	return strings.Fields(string(readFile(t, filepath.Join(data, keyFile))))
}

func TestKeysRotateWhileDocumentsComeAndAreRead(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--rate-limits", "off"}})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	ids := []string{p.send("note.txt", "text/plain", note("first-in")), p.send("note.txt", "text/plain", note("gone-soon"))}
	p.wantReady(ids[0])
	p.wantReady(ids[1])
	was := s.served("harbour", reader, ids[0])
	objects := map[string]string{}
	for _, path := range s.objects() {
		objects[path] = hexSum(readFile(t, path))
	}
	old := keyLines(t, s.data)
	oldKeys, out := filepath.Join(t.TempDir(), "old-keys"), filepath.Join(t.TempDir(), "backup")
	s.wantCLI(0, "", "backup", "keys", "--data", s.data, "--out", oldKeys)
	s.wantCLI(0, "", "backup", "--data", s.data, "--out", out)
	p.withdraw(ids[1]).want(t, 200, "")

	var (
		loading sync.WaitGroup
		mu      sync.Mutex
		sent    []string
	)
	stop, begun := make(chan struct{}), make(chan struct{}, 1)
	for n := range 2 {
		loading.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := p.send("note.txt", "text/plain", note(fmt.Sprintf("beside-%d-%d", n, i)))
				mu.Lock()
				sent = append(sent, id)
				mu.Unlock()
				select {
				case begun <- struct{}{}:
				default:
				}
				s.context("harbour", reader, ids[0]).want(t, 200, "")
			}
		})
	}
	<-begun
	stdout, _ := s.wantCLI(0, "", "keys", "rotate", "--json")
	if o := object(t, stdout); o["retired_keys"] != float64(1) || o["rewrapped_keys"].(float64) < 2 {
		t.Errorf("rotation: %s", stdout)
	}
	key := client.NewIdempotencyKey()
	first := s.do(rotation(key)).want(t, 200, "")
	again := s.do(rotation(key)).want(t, 200, "")
	if again.Header.Get("Idempotent-Replayed") != "true" || string(again.Data) != string(first.Data) {
		t.Errorf("repeated: %s, was %s", again.Raw, first.Raw)
	}
	close(stop)
	loading.Wait()
	now := keyLines(t, s.data)
	if len(now) != 1 || now[0] == old[0] {
		t.Fatalf("%d keys in the file, the old one among them: %v", len(now), slices.Contains(now, old[0]))
	}
	for path, sum := range objects {
		if strings.Contains(path, ids[0]) && hexSum(readFile(t, path)) != sum {
			t.Errorf("the rotation touched %s", path)
		}
	}
	s.kill()
	s = start(t, options{data: s.data, flags: []string{"--rate-limits", "off"}})
	if got := s.served("harbour", reader, ids[0]); got != was {
		t.Errorf("after the rotation: %q, was %q", got, was)
	}
	for _, id := range sent {
		partner{s, "harbour", p.token}.wantReady(id)
	}
	s.kill()

	// What the old key wrapped is opened by no copy of the new file, so a rotation also ends the horizon of older copies of the key store;
	// with the old line put back below the new one they open.
	data := filepath.Join(t.TempDir(), "restored")
	s.wantCLI(0, "", "restore", "--from", out, "--data", data)
	s.wantCLI(0, "", "restore", "keys", "--from", oldKeys, "--data", data)
	placed(t, s.data, data, keyFile)
	dead := launch(t, options{data: data})
	<-dead.done
	if code := dead.cmd.ProcessState.ExitCode(); code != 1 && code != 7 || !strings.Contains(dead.log.String(), "unwrap key") {
		t.Errorf("an older key store under the new key: %v\n%s", dead.err, dead.log)
	}
	if err := os.WriteFile(filepath.Join(data, keyFile), []byte(now[0]+"\n"+old[0]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	both := start(t, options{data: data})
	if got := both.served("harbour", reader, ids[0]); got != was {
		t.Errorf("with both keys: %q, was %q", got, was)
	}
	both.do(rotation(client.NewIdempotencyKey())).want(t, 200, "")
	if lines := keyLines(t, data); len(lines) != 1 || lines[0] != now[0] {
		t.Errorf("%d keys in the file", len(lines))
	}
}

// kill -9 at every place between two durable writes of a rotation: everything can be read, and the next rotation finishes.
func TestKeyRotationSurvivesItsDeath(t *testing.T) {
	t.Parallel()
	armed := armedBinary(t)
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.send("note.txt", "text/plain", note("mid-rotation"))
	p.wantReady(id)
	was := s.served("harbour", reader, id)
	if s.stop() != 0 {
		t.Fatal("the service did not stop")
	}
	attempt := func(t *testing.T, at string) (points []string, data string, dead bool) {
		data = filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(data, os.DirFS(s.data)); err != nil {
			t.Fatal(err)
		}
		dying := start(t, options{data: data, binary: armed, env: []string{"ACCESSION_CRASH_AT=" + at}})
		r, err := dying.try(rotation(client.NewIdempotencyKey()))
		if dead = err != nil; dead {
			<-dying.done
		} else {
			r.want(t, 200, "")
			dying.kill()
		}
		return hits(dying), data, dead
	}
	points, _, _ := attempt(t, "0")
	first := slices.Index(points, "keyfile: before create") // what a start commits before is not always as much
	if first < 0 || slices.Index(points, "keystore: before retire") < first || strings.Count(strings.Join(points, ";"), "keyfile: after folder sync") != 2 {
		t.Fatalf("crash points of a rotation: %q", points)
	}
	// What the service does beside it passes points, too, more of them in one rotation than in another: the last places may be none.
	var mu sync.Mutex
	died := map[string]bool{}
	t.Cleanup(func() { // after all of them
		for _, name := range points[first:] {
			if !died[name] && !t.Failed() {
				t.Errorf("no rotation died at %q", name)
			}
		}
	})
	for at := range len(points) - first {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			hit, data, dead := attempt(t, fmt.Sprintf("keyfile: before create+%d", at))
			if !dead {
				t.Logf("it lived, with all its %d points behind it", at)
				return
			}
			mu.Lock()
			died[hit[len(hit)-1]] = true
			mu.Unlock()
			t.Log(hit[len(hit)-1])
			after := start(t, options{data: data})
			if got := after.served("harbour", reader, id); got != was {
				t.Errorf("%q, was %q", got, was)
			}
			after.do(rotation(client.NewIdempotencyKey())).want(t, 200, "")
			if lines := keyLines(t, data); len(lines) != 1 {
				t.Errorf("%d keys in the file", len(lines))
			}
			if left, err := filepath.Glob(filepath.Join(data, keyFile+"*")); err != nil || len(left) != 1 {
				t.Errorf("%v, %v", left, err)
			}
			if got := after.served("harbour", reader, id); got != was {
				t.Errorf("%q, was %q", got, was)
			}
		})
	}
}
