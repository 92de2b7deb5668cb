package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/accession/accession/internal/storetest/cluster"
)

// A move and its end that are killed at any point are done by another run, and at no point are there two installations that can
// be served.
func TestKilledMovesGoOn(t *testing.T) {
	t.Parallel()
	armed := armedBinary(t)
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.send("note.txt", "text/plain", note("quay"))
	p.wantReady(id)
	was := s.served("harbour", reader, id)
	if s.stop() != 0 {
		t.Fatal("the service did not stop")
	}
	saved := filepath.Join(t.TempDir(), "saved")
	copied := func(from, to string) {
		t.Helper()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	copied(s.data, saved)
	objects := digests(t, filepath.Join(saved, "blobs"))

	last := newMoving(t, s)
	moves := func(n int) (points int) {
		copied(saved, s.data)
		m := moving{s, inS3{last.s3.Server, []string{last.s3.Bucket(t, minio.MakeBucketOptions{}), last.s3.Bucket(t, minio.MakeBucketOptions{})}}, cluster.Database(t)}
		last = m
		said, exit := m.migrate(armed, append(m.target(), fmt.Sprintf("ACCESSION_CRASH_AT=%d", n)))
		if n == 0 {
			return strings.Count(said, "crashpoint ")
		}
		if exit != -1 {
			t.Fatalf("it outlived point %d: exit %d: %s", n, exit, said)
		}
		db := postgres(t, m.url, "metadata.db")
		defer db.Close() // dozens of them would take up the connections that all tests share
		rows := count(t, db, `SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'accession' AND tablename = 'uploads'`)
		if rows == 1 {
			rows = count(t, db, `SELECT COUNT(*) FROM uploads`)
		}
		if rows != 0 && !there(t, filepath.Join(s.data, "moved.json")) {
			t.Errorf("after %s both places can be served", said)
		}
		m.wantMigrated()
		got := map[string]string{}
		for path, b := range m.s3.objects(t) {
			if _, name, ok := strings.Cut(path, "/staging/"); ok {
				got[name] = hexSum(b)
			}
		}
		if len(got) != len(objects) {
			t.Errorf("after %s: %d objects, want %d", said, len(got), len(objects))
		}
		for name, sum := range objects {
			if got[name] != sum {
				t.Errorf("after %s: object %s is not whole", said, name)
			}
		}
		if n := count(t, db, `SELECT COUNT(*) FROM uploads WHERE status = 'READY'`); n != 1 {
			t.Errorf("after %s: %d uploads", said, n)
		}
		return 0
	}
	points := moves(0)
	if points < 20 {
		t.Fatalf("%d crash points", points)
	}
	for n := 1; n <= points; n++ {
		moves(n)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	copied(s.data, moved)
	said, exit := last.migrate(armed, append(last.target(), "ACCESSION_CRASH_AT=0"), "--finish")
	ends := strings.Count(said, "crashpoint ")
	if exit != 0 || ends < 10 {
		t.Fatalf("exit %d, %d crash points: %s", exit, ends, said)
	}
	for n := 1; n <= ends; n++ {
		copied(moved, s.data)
		if said, exit := last.migrate(armed, append(last.target(), fmt.Sprintf("ACCESSION_CRASH_AT=%d", n)), "--finish"); exit != -1 {
			t.Fatalf("it outlived point %d: exit %d: %s", n, exit, said)
		}
		last.wantMigrated("--finish")
		if there(t, filepath.Join(s.data, "keys.db")) || there(t, filepath.Join(s.data, "metadata.db")) {
			t.Errorf("killed at %d: the old place has rows", n)
		}
		s.wantNoObjects()
	}
	t.Logf("%d points of a move, %d of its end", points, ends)
	if got := last.started().served("harbour", reader, id); got != was {
		t.Errorf("served %q, was %q", got, was)
	}
}
