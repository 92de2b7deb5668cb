package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/storetest/cluster"
)

// replicas starts services that share a database, storage and keys, as several machines would.
func replicas(t *testing.T, n int, o options) []*service {
	t.Helper()
	shared, url := t.TempDir(), cluster.Database(t)
	var all []*service
	for i := range n {
		o := o
		o.data = filepath.Join(shared, fmt.Sprint("replica-", i))
		o.flags = append([]string{"--blobs", filepath.Join(shared, "blobs"), "--quarantine", filepath.Join(shared, "quarantine"),
			"--keys", filepath.Join(shared, "key-encryption.key"), "--base-url", "http://custody.example"}, o.flags...)
		databases.Store(o.data, url)
		all = append(all, start(t, o))
	}
	return all
}

// Every request of an upload goes to another replica than the one before.
func TestReplicasServeOneUploadTogether(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{flags: []string{"--part-size-bytes", "4096"}})
	p := r[0].partner("harbour")
	reader := r[1].issue("harbour", "ai_reader")
	next := 0
	on := func() partner {
		next++
		return partner{r[next%2], p.org, p.token}
	}
	content := []byte(strings.Repeat("The pump station stands at the harbour. ", 400))
	parts := cut(content, 4096)
	key := client.NewIdempotencyKey()
	initiate := func(p partner) reply { return p.do(p.reserving(key, len(content))).want(t, 200, "") }
	id := initiate(on()).field(t, "upload_id")
	if again := initiate(on()).field(t, "upload_id"); again != id {
		t.Errorf("the other replica answered the same key with %s, want %s", again, id)
	}
	for i, part := range parts {
		on().part(id, i+1, part).want(t, 200, "")
		on().part(id, i+1, part).want(t, 200, "")
		if i+2 < len(parts) {
			on().part(id, i+3, parts[i+2]).want(t, 409, "part_out_of_order")
		}
	}
	on().complete(id, parts).want(t, 202, "")
	on().wantReady(id)
	if served := r[0].served("harbour", reader, id); !strings.Contains(served, "pump station") {
		t.Errorf("served %q", served)
	}
	on().wantWithdrawn(id, len(content))
	for _, s := range r {
		if st := (partner{s, p.org, p.token}).status(id); st.Status != "WITHDRAWN" {
			t.Errorf("a replica says %s", st.Status)
		}
	}
}

// What is revoked at one replica is dead at the other with the next request.
func TestRevocationHoldsAtEveryReplica(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{})
	issued := r[0].do(issuing(client.NewIdempotencyKey(), "harbour", "solution_company_upload")).want(t, 201, "")
	p := partner{r[0], "harbour", issued.field(t, "token")}
	quota := call{method: "GET", path: p.path("/quota"), token: p.token}
	for _, s := range r {
		s.do(quota).want(t, 200, "")
	}
	r[0].do(call{method: "POST", path: "/admin/tenant-keys/credentials/" + issued.field(t, "credential_id") + "/revoke", bearer: adminToken,
		key: client.NewIdempotencyKey()}).want(t, 200, "")
	for _, s := range r {
		s.do(quota).want(t, 401, "credential_invalid")
	}
}

// A killed replica's gates are taken over once its lease has run out; nothing that was acknowledged is lost.
func TestKilledReplicaIsTakenOver(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{})
	p := r[0].partner("harbour")
	const uploads = 8
	var ids sync.Map
	var group sync.WaitGroup
	for i := range uploads {
		group.Go(func() {
			id := partner{r[i%2], p.org, p.token}.send("note.txt", "text/plain", note("pump"))
			ids.Store(id, true)
		})
	}
	group.Wait()
	r[0].kill()
	began, left := time.Now(), partner{r[1], p.org, p.token}
	ids.Range(func(id, _ any) bool {
		left.wantReady(id.(string))
		return true
	})
	t.Logf("%d uploads READY %s after the kill", uploads, time.Since(began).Round(time.Millisecond))
}

func TestReplicaWithOtherSecretsDoesNotStart(t *testing.T) {
	t.Parallel()
	r := replicas(t, 1, options{})
	url, _ := databases.Load(r[0].data)
	dir, shared := t.TempDir(), filepath.Join(filepath.Dir(r[0].data), "key-encryption.key")
	own := filepath.Join(dir, "own.key")
	if err := os.WriteFile(own, []byte("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		flags, env []string
		says       string
	}{
		"its own key file":   {flags: []string{"--keys", own}, says: "key file that belongs to it"},
		"no key file":        {says: "key file that belongs to it"},
		"its own token":      {env: []string{"ACCESSION_ADMIN_TOKEN="}, says: "ACCESSION_ADMIN_TOKEN"},
		"a superuser's role": {flags: []string{"--keys", shared}, env: []string{"ACCESSION_DATABASE=" + cluster.Superuser(url.(string))}, says: "BYPASSRLS"},
	} {
		data := filepath.Join(dir, strings.ReplaceAll(what, " ", "-"))
		if c.env == nil || !strings.Contains(c.env[0], "DATABASE") {
			databases.Store(data, url)
		}
		s := launch(t, options{data: data, flags: c.flags, env: c.env})
		<-s.done
		if code := s.cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(s.log.String(), c.says) {
			t.Errorf("%s: exit %d: %s", what, code, s.log)
		}
		if _, err := os.Stat(filepath.Join(data, "key-encryption.key")); err == nil {
			t.Errorf("%s: a key file was made", what)
		}
	}
}

// Nothing of a document is in the database, and no key is in a dump of the metadata.
func TestDumpOfTheDatabaseHoldsNoContent(t *testing.T) {
	t.Parallel()
	r := replicas(t, 1, options{})
	p := r[0].partner("harbour")
	const secret = "Zwergkaninchenzuchtverein"
	id := p.send("note.txt", "text/plain", []byte("The pump station is run by the "+secret+". It stands at the harbour."))
	p.follow(id)
	url, _ := databases.Load(r[0].data)
	dump := func(args ...string) []byte {
		cmd, err := cluster.Command(context.Background(), cluster.Superuser(url.(string)), "pg_dump", args...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	all, metadata := dump(), dump("-n", "accession")
	if !bytes.Contains(all, []byte(id)) || !bytes.Contains(all, []byte("data_keys")) {
		t.Fatal("the dump is not of this installation")
	}
	if bytes.Contains(all, []byte(secret)) || bytes.Contains(all, []byte(fmt.Sprintf("%x", secret))) {
		t.Error("the database holds content")
	}
	if bytes.Contains(metadata, []byte("data_keys")) || bytes.Contains(metadata, []byte("wrapped")) {
		t.Error("a dump of the metadata holds keys")
	}
	if bytes.Contains(all, []byte(p.token)) || bytes.Contains(all, []byte(adminToken)) {
		t.Error("the database holds a token")
	}
}
