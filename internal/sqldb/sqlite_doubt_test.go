package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	process "os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

// unsyncable is the environment variable that turns this test binary into a process that cannot sync; it names a database.
const unsyncable = "ACCESSION_TEST_UNSYNCABLE"

// A commit whose sync failed lies in the write-ahead log, whole: after a restart the row is there. Whoever undid what it relies
// on, because the commit "failed", would have destroyed the data key of an upload that exists.
func TestSQLiteSaysWhenACommitIsInDoubt(t *testing.T) {
	if path := os.Getenv(unsyncable); path != "" {
		commitWithoutSync(path)
	}
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, `CREATE TABLE t (id TEXT PRIMARY KEY)`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	child := process.Command(os.Args[0], "-test.run", "^TestSQLiteSaysWhenACommitIsInDoubt$")
	child.Env = append(os.Environ(), unsyncable+"="+path)
	if said, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	if db, err = sqldb.OpenSQLite(path, sqldb.SQLiteOptions{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if n := count(t, db); n != 2 {
		t.Errorf("%d rows after the restart, want 2: this test no longer makes a commit that happened and failed", n)
	}
}

// commitWithoutSync ends the process: with 0 where the commit said that it is in doubt.
func commitWithoutSync(path string) {
	ctx := context.Background()
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{})
	insert := func(id string) error {
		return db.InTx(ctx, func(q sqldb.Querier) error {
			_, err := q.Exec(ctx, `INSERT INTO t VALUES ($1)`, id)
			return err
		})
	}
	if err == nil {
		err = insert("kept") // so that there is a write-ahead log, with its header
	}
	if err == nil {
		err = refuseSyncs()
	}
	if err == nil {
		got := insert("in doubt")
		if !errors.Is(got, custody.ErrInDoubt) || !unavailable(got) {
			err = fmt.Errorf("got %v, want in doubt and service_unavailable", got)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0) // without closing anything, as in a crash
}

// refuseSyncs has the kernel answer every sync of this process with an I/O error, from now on.
func refuseSyncs() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	refused := uint32(unix.SECCOMP_RET_ERRNO | unix.EIO)
	load := unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS} // the number of the system call
	is := func(call uint32, yes uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, K: call}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{load, is(unix.SYS_FSYNC, 2), is(unix.SYS_FDATASYNC, 1), answer(unix.SECCOMP_RET_ALLOW), answer(refused)}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); e != 0 {
		return e
	}
	return nil
}

// locked is a database that another process holds, and what lets go of it.
func locked(t *testing.T) (*sqldb.SQLite, func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	exec(t, db, `CREATE TABLE t (id TEXT PRIMARY KEY)`)
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	other.SetMaxOpenConns(1)
	if _, err := other.Exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	return db, func() {
		if _, err := other.Exec(`ROLLBACK`); err != nil {
			t.Error(err)
		}
	}
}

// Who waits for a database that another process holds hears that it is unavailable, also where earlier waiters are in the way, and
// nothing of theirs is in doubt; when the other lets go the database works.
func TestSQLiteHeldByAnotherProcess(t *testing.T) {
	db, letGo := locked(t)
	answers := make(chan error)
	ask := func(ctx context.Context) {
		answers <- db.InTx(ctx, func(q sqldb.Querier) error {
			_, err := q.Exec(ctx, `INSERT INTO t VALUES ('a')`)
			return err
		})
	}
	const many = 200 // more than a batch takes
	for range many {
		go ask(t.Context())
	}
	left, leave := context.WithCancel(t.Context())
	for range many {
		go ask(left)
	}
	leave()
	gone := 0
	for range 2 * many {
		switch err := <-answers; {
		case errors.Is(err, context.Canceled):
			gone++
		case !unavailable(err) || errors.Is(err, custody.ErrInDoubt):
			t.Fatalf("got %v, want unavailable and not in doubt", err)
		}
	}
	if gone == 0 {
		t.Error("nobody could leave")
	}
	letGo()
	exec(t, db, `INSERT INTO t VALUES ('b')`)
	if n := count(t, db); n != 1 {
		t.Errorf("%d rows, want 1: who was refused is not there", n)
	}
}
