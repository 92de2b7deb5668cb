package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const keyFile = "key-encryption.key"

// placed puts one file of a data folder into another, as an operator does with the key file.
func placed(t testing.TB, from, to, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(to, name), readFile(t, filepath.Join(from, name)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// served is what an upload's context tells of it, without what differs with each serving.
func (s *service) served(org, reader, uploadID string) string {
	s.t.Helper()
	c := decode[servedContext](s.t, s.context(org, reader, uploadID).want(s.t, 200, ""))
	return fmt.Sprintf("%s %s %s", c.Context.Source.SHA256, c.Context.ContextSHA256, c.text())
}

// A backup that is taken while uploads come in and go is a whole moment: what it says is READY is there, byte by byte, and what was
// under way goes on.
func TestBackupUnderLoadRestoresAWholeMoment(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--part-size-bytes", "4096", "--rate-limits", "off"}})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	first := p.send("note.txt", "text/plain", note("first-in"))
	p.wantReady(first)

	var (
		uploaders sync.WaitGroup
		mu        sync.Mutex
		sent      [3]int // by uploader
		arrived   = make(chan struct{}, 1)
		stop      = make(chan struct{})
	)
	for n := range sent {
		tell := func() {
			select {
			case arrived <- struct{}{}:
			default: // that something has is known
			}
		}
		uploaders.Go(func() {
			defer tell()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := p.send("note.txt", "text/plain", note(fmt.Sprintf("uploader-%d-%d", n, i)))
				if i%4 == 3 { // and some go again
					p.withdraw(id).want(t, 200, "")
				}
				mu.Lock()
				sent[n]++
				mu.Unlock()
				tell()
			}
		})
	}
	now := func() [3]int {
		mu.Lock()
		defer mu.Unlock()
		return sent
	}
	// Each uploader ends that many more: so they run before and after whatever lies between two calls, and what one of them began
	// before a call it has ended after it.
	more := func(n int) {
		for before := now(); !t.Failed(); <-arrived {
			after := now()
			if !slices.ContainsFunc([]int{0, 1, 2}, func(u int) bool { return after[u] < before[u]+n }) {
				return
			}
		}
	}
	more(7)
	work := t.TempDir()
	out, keys, restored := filepath.Join(work, "backup"), filepath.Join(work, "keys.backup"), filepath.Join(work, "restored")
	s.wantCLI(0, "", "backup", "--data", s.data, "--out", out)
	more(7)
	s.wantCLI(0, "", "backup", "keys", "--data", s.data, "--out", keys)
	close(stop)
	uploaders.Wait()
	if found := showing(t, out, "first-in", "uploader-0-0", keyLines(t, s.data)[0]); len(found) > 0 {
		t.Errorf("content in the backup: %v", found)
	}
	s.wantCLI(0, "", "restore", "--from", out, "--data", restored)
	s.wantCLI(0, "", "restore", "keys", "--from", keys, "--data", restored)
	placed(t, s.data, restored, keyFile)

	ready := map[string]string{} // as the running service serves them
	again := start(t, options{data: restored, flags: []string{"--part-size-bytes", "4096", "--rate-limits", "off"}})
	q := partner{again, "harbour", p.token}
	db := again.database(t, "metadata.db")
	rows, err := db.Query(`SELECT upload_id FROM uploads WHERE status IN ('PROCESSING', 'READY')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ready[id] = ""
	}
	if err := rows.Err(); err != nil || len(ready) < 10 || !contains(ready, first) {
		t.Fatalf("%d uploads in the restored metadata, %v", len(ready), err)
	}
	checked := 0
	for id := range ready {
		if st := p.status(id); st.Status == "WITHDRAWN" { // after the backup of the metadata; its key is gone from the later backup of the keys
			again.context("harbour", reader, id).wantNot(t, 200)
			q.withdraw(id).want(t, 200, "")
			continue
		}
		if st := q.follow(id); st.Status != "READY" {
			t.Errorf("restored upload %s is %s", id, st.Status)
			continue
		}
		p.follow(id)
		if then, now := s.served("harbour", reader, id), again.served("harbour", reader, id); then != now {
			t.Errorf("%s: the restored context is %q, was %q", id, now, then)
		}
		if len(files(t, filepath.Join(restored, "quarantine", "uploads", id))) == 0 {
			t.Errorf("%s is not in quarantine storage", id)
		}
		checked++
	}
	if checked < 10 {
		t.Errorf("%d contexts compared", checked)
	}
	// Every sealed byte is read and authenticated once more, and compared with the digests of the ledger.
	stdout, _ := again.wantCLI(0, "", "rescan", "--wait", "--json")
	if o := object(t, stdout); o["clean"] != float64(checked) {
		t.Errorf("re-scan of %d restored uploads: %s", checked, stdout)
	}
	for _, path := range files(t, filepath.Join(restored, "quarantine")) {
		name, err := filepath.Rel(filepath.Join(restored, "quarantine"), path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(readFile(t, path), readFile(t, filepath.Join(restored, "blobs", name))) {
			t.Errorf("%s differs in quarantine", name)
		}
	}
}

func contains(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

func (r reply) wantNot(t testing.TB, status int) {
	t.Helper()
	if r.Status == status {
		t.Fatalf("got %d: %s", status, r.Raw)
	}
}

// showing lists the files below root that hold one of the texts.
func showing(t testing.TB, root string, texts ...string) (found []string) {
	t.Helper()
	for _, path := range files(t, root) {
		for _, text := range texts {
			if bytes.Contains(readFile(t, path), []byte(text)) {
				found = append(found, path+": "+text)
			}
		}
	}
	return found
}

// The point of keys of their own: an old copy of everything else does not bring back what was withdrawn.
func TestRestoredBackupDoesNotBringWithdrawnContentBack(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader, revoked := s.partner("harbour"), s.issue("harbour", "ai_reader"), s.oauthClient("harbour", "ai_reader")
	secret := note("ice-harbour")
	gone, stays := p.send("note.txt", "text/plain", secret), p.send("note.txt", "text/plain", note("dry-dock"))
	p.wantReady(gone)
	p.wantReady(stays)
	was := s.served("harbour", reader, gone)
	work := t.TempDir()
	out, oldKeys, nowKeys := filepath.Join(work, "backup"), filepath.Join(work, "old-keys"), filepath.Join(work, "now-keys")
	s.wantCLI(0, "", "backup", "--data", s.data, "--out", out)
	s.wantCLI(0, "", "backup", "keys", "--data", s.data, "--out", oldKeys)
	p.wantWithdrawn(gone, len(secret))
	s.revokeCredential(revoked.id)
	s.context("harbour", revoked.secret, stays).want(t, 401, "credential_invalid")
	if s.stop() != 0 {
		t.Fatal("the service did not stop")
	}
	s.wantCLI(0, "", "backup", "keys", "--data", s.data, "--out", nowKeys)

	t.Run("with the key store of now", func(t *testing.T) {
		data := filepath.Join(t.TempDir(), "restored")
		if said, _ := s.in(t).wantCLI(0, "", "restore", "--from", out, "--data", data); !strings.Contains(said, "revoke again what was revoked") {
			t.Errorf("restore does not say what it brings back: %s", said)
		}
		if len(files(t, filepath.Join(data, "blobs", "uploads", gone))) == 0 {
			t.Fatal("the backup does not hold the withdrawn upload's objects: this proves nothing")
		}
		s.in(t).wantCLI(0, "", "restore", "keys", "--from", nowKeys, "--data", data)
		placed(t, s.data, data, keyFile)
		again := start(t, options{data: data})
		q := partner{again, "harbour", p.token}
		if st := q.status(gone); st.Status != "READY" {
			t.Fatalf("the old metadata says %s", st.Status)
		}
		if r := again.context("harbour", reader, gone).want(t, 503, "service_unavailable"); bytes.Contains(r.Raw, []byte("ice-harbour")) {
			t.Error("content in the refusal")
		}
		again.context("harbour", reader, stays).want(t, 200, "")
		again.awaitLog("UPLOADS WITHOUT A DATA KEY")
		if line := again.log.lines("UPLOADS WITHOUT A DATA KEY")[0]; !strings.Contains(line, `"uploads":1`) || !strings.Contains(line, gone) || strings.Contains(line, stays) {
			t.Errorf("log: %s", line)
		}
		again.wantUnseen("ice-harbour")
		q.wantWithdrawn(gone, len(secret)) // and the metadata can be told
		if left := files(t, filepath.Join(data, "blobs", "uploads", gone)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		again.context("harbour", reader, stays).want(t, 200, "")

		again.context("harbour", revoked.secret, stays).want(t, 200, "") // credentials lie in the metadata
		again.revokeCredential(revoked.id)
		again.context("harbour", revoked.secret, stays).want(t, 401, "credential_invalid")
	})

	t.Run("with an old copy of the key store", func(t *testing.T) { // what the horizon is about
		data := filepath.Join(t.TempDir(), "restored")
		s.in(t).wantCLI(0, "", "restore", "--from", out, "--data", data)
		s.in(t).wantCLI(0, "", "restore", "keys", "--from", oldKeys, "--data", data)
		placed(t, s.data, data, keyFile)
		if now := start(t, options{data: data}).served("harbour", reader, gone); now != was {
			t.Errorf("restored: %q, was %q", now, was)
		}
	})
}

func TestRestoreRefusesWhatIsNotWhole(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("keel-block"))
	p.wantReady(id)
	work := t.TempDir()
	out := filepath.Join(work, "backup")
	s.wantCLI(0, "", "backup", "--data", s.data, "--out", out)
	objects := files(t, filepath.Join(out, "objects"))
	if len(objects) < 4 {
		t.Fatalf("objects: %v", objects)
	}
	for what, harm := range map[string]struct {
		do   func(dir string) error
		says string
	}{
		"an altered object": {func(dir string) error { return flip(files(t, filepath.Join(dir, "objects"))[2]) }, "objects/uploads"},
		"a lost object":     {func(dir string) error { return os.Remove(files(t, filepath.Join(dir, "objects"))[1]) }, "objects/uploads"},
		"altered metadata":  {func(dir string) error { return flip(filepath.Join(dir, "metadata.db")) }, "metadata.db"},
		"a shorter list":    {func(dir string) error { return os.Truncate(filepath.Join(dir, "SHA256SUMS"), 100) }, "SHA256SUMS"},
		"no summary":        {func(dir string) error { return os.Remove(filepath.Join(dir, "backup.json")) }, "backup.json"},
	} {
		dir, data := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
		if err := os.CopyFS(dir, os.DirFS(out)); err != nil {
			t.Fatal(err)
		}
		if err := harm.do(dir); err != nil {
			t.Fatal(err)
		}
		if _, stderr := s.wantCLI(1, "", "restore", "--from", dir, "--data", data); !strings.Contains(stderr, "broken") || !strings.Contains(stderr, harm.says) {
			t.Errorf("%s: %s", what, stderr)
		}
		if left, err := os.ReadDir(filepath.Dir(data)); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind %v, %v", what, left, err)
		}
	}

	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr := s.wantCLI(1, "", "restore", "--from", out, "--data", full); !strings.Contains(stderr, "not empty") {
		t.Error(stderr)
	}
	if _, stderr := s.wantCLI(1, "", "backup", "--data", s.data, "--out", out); !strings.Contains(stderr, "already") {
		t.Error(stderr)
	}

	data := filepath.Join(t.TempDir(), "restored") // metadata alone: a new key store would hide that the old one is missing
	s.wantCLI(0, "", "restore", "--from", out, "--data", data)
	for range 2 {
		dead := launch(t, options{data: data})
		if dead.log.await(t.Context(), dead.done, "accession is ready at") {
			t.Fatal("it started with a key store of its own making")
		}
		<-dead.done
		if dead.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(dead.log.String(), "restore keys") {
			t.Errorf("serve without keys: %v\n%s", dead.err, dead.log)
		}
	}
	keys := filepath.Join(work, "keys")
	s.wantCLI(0, "", "backup", "keys", "--data", s.data, "--out", keys, "--key-backup-horizon", "1ms")
	if _, stderr := s.wantCLI(1, "", "restore", "keys", "--from", keys, "--data", data); !strings.Contains(stderr, "horizon") {
		t.Error(stderr)
	}
	if _, stderr := s.wantCLI(1, "", "restore", "keys", "--from", filepath.Join(out, "metadata.db"), "--data", data); !strings.Contains(stderr, "no copy of a key store") {
		t.Error(stderr)
	}
	if _, err := os.Stat(filepath.Join(data, "keys.db")); !os.IsNotExist(err) {
		t.Errorf("a refused key store is there: %v", err)
	}
	s.wantCLI(0, "", "restore", "keys", "--from", keys, "--data", data, "--past-horizon")
	if _, stderr := s.wantCLI(1, "", "restore", "keys", "--from", keys, "--data", data, "--past-horizon"); !strings.Contains(stderr, "not replaced") {
		t.Error(stderr)
	}
	placed(t, s.data, data, keyFile)
	if st := (partner{start(t, options{data: data}), "harbour", p.token}).status(id); st.Status != "READY" {
		t.Errorf("restored: %+v", st)
	}
}

// An object that the storage lost is told from one that was deleted.
func TestBackupTellsOfLostObjects(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("lost-anchor"))
	p.wantReady(id)
	lost := files(t, filepath.Join(s.data, "blobs", "uploads", id, "parts"))
	cut := files(t, filepath.Join(s.data, "blobs", "uploads", id, "derived"))
	if err := os.Remove(lost[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(cut[0], 10); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "backup")
	if _, stderr := s.wantCLI(1, "", "backup", "--data", s.data, "--out", out); !strings.Contains(stderr, "2 objects") {
		t.Error(stderr)
	}
	var said struct {
		LeftOut []string `json:"left_out"`
		Missing []string
		Objects int
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(out, "backup.json")), &said); err != nil || len(said.LeftOut) != 0 || len(said.Missing) != 2 || said.Objects != len(cut)-1 {
		t.Errorf("%+v, %v", said, err)
	}
}

func flip(path string) error {
	b, err := os.ReadFile(path)
	if err == nil {
		b[len(b)/2] ^= 1
		err = os.WriteFile(path, b, 0o600)
	}
	return err
}
