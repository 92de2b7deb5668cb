package keystore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/keystore"
	"github.com/accession/accession/internal/sqldb"
)

// safe is a key store in files of its own.
type safe struct {
	*keystore.Store
	db      *sqldb.SQLite
	keyFile string
	dbFile  string
}

func open(t *testing.T) *safe {
	t.Helper()
	dir := t.TempDir()
	return openAt(t, filepath.Join(dir, "kek"), filepath.Join(dir, "keys.db"))
}

func openAt(t *testing.T, keyFile, dbFile string) *safe {
	t.Helper()
	keeper, err := keystore.OpenKeyFile(keyFile, false)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.OpenSQLite(dbFile, sqldb.SQLiteOptions{SecureDelete: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), keeper.Close()); err != nil {
			t.Error(err)
		}
	})
	store, err := keystore.Open(t.Context(), db, keeper)
	if err != nil {
		t.Fatal(err)
	}
	return &safe{store, db, keyFile, dbFile}
}

func (s *safe) create(t *testing.T, uploadID string) []byte {
	t.Helper()
	key, err := s.CreateDataKey(t.Context(), uploadID)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (s *safe) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if err := s.db.InTx(t.Context(), func(q sqldb.Querier) error {
		_, err := q.Exec(t.Context(), statement, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func (s *safe) wrapped(t *testing.T, uploadID string) (wrapped []byte) {
	t.Helper()
	if err := s.db.Row(t.Context(), `SELECT wrapped FROM data_keys WHERE upload_id = $1`, []any{uploadID}, &wrapped); err != nil {
		t.Fatal(err)
	}
	return wrapped
}

// files are the database and its write-ahead log, byte by byte.
func (s *safe) files(t *testing.T) []byte {
	t.Helper()
	paths, err := filepath.Glob(s.dbFile + "*")
	if err != nil || len(paths) < 2 {
		t.Fatalf("%v, %v: want keys.db and keys.db-wal", paths, err)
	}
	var all []byte
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

func TestKeysComeBackAndAreNotKeptInClear(t *testing.T) {
	s := open(t)
	a, b := s.create(t, "upl_a"), s.create(t, "upl_b")
	if len(a) != keystore.KeySize || bytes.Equal(a, b) {
		t.Fatalf("keys of %d bytes, equal: %v", len(a), bytes.Equal(a, b))
	}
	again := openAt(t, s.keyFile, s.dbFile) // another process
	for id, want := range map[string][]byte{"upl_a": a, "upl_b": b} {
		if got, err := again.DataKey(t.Context(), id); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, equal: %v", id, err, bytes.Equal(got, want))
		}
		if bytes.Contains(s.files(t), want) {
			t.Errorf("the key of %s lies in the file as it is", id)
		}
		if !bytes.Contains(s.files(t), s.wrapped(t, id)) {
			t.Errorf("the wrapped key of %s is not in the file", id)
		}
	}
	if _, err := s.CreateDataKey(t.Context(), "upl_a"); err == nil {
		t.Error("an upload got a second key")
	}
	if got, err := s.DataKey(t.Context(), "upl_a"); err != nil || !bytes.Equal(got, a) {
		t.Errorf("a refused second key changed the first: %v", err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDestroyedKeyIsGoneFromFileAndLog(t *testing.T) {
	s := open(t)
	gone, stays := []string{}, s.create(t, "upl_stays")
	var secrets [][]byte
	for _, id := range []string{"upl_1", "upl_2", "upl_3"} {
		s.create(t, id)
		gone, secrets = append(gone, id), append(secrets, s.wrapped(t, id))
	}
	if err := s.db.Scrub(t.Context()); err != nil { // one more lies in the file itself, the next in the log alone
		t.Fatal(err)
	}
	s.create(t, "upl_4")
	gone, secrets = append(gone, "upl_4"), append(secrets, s.wrapped(t, "upl_4"))
	for i, id := range gone {
		if !bytes.Contains(s.files(t), secrets[i]) {
			t.Fatalf("the wrapped key of %s cannot be found while it is there: the search proves nothing", id)
		}
		for range 2 { // an absent key counts as destroyed
			if err := s.DestroyDataKey(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if bytes.Contains(s.files(t), secrets[i]) {
			t.Errorf("the wrapped key of %s is still in the files", id)
		}
		// Half a key would do for an attack.
		if half := secrets[i][len(secrets[i])/2:]; bytes.Contains(s.files(t), half) {
			t.Errorf("half of the wrapped key of %s is still in the files", id)
		}
		if _, err := s.DataKey(t.Context(), id); !errors.Is(err, custody.ErrDestroyed) {
			t.Errorf("%s: got %v, want ErrDestroyed", id, err)
		}
	}
	if got, err := s.DataKey(t.Context(), "upl_stays"); err != nil || !bytes.Equal(got, stays) {
		t.Errorf("the key beside them: %v", err)
	}
	if _, err := s.DataKey(t.Context(), "upl_never"); !errors.Is(err, custody.ErrDestroyed) {
		t.Errorf("a key that never was: got %v, want ErrDestroyed", err)
	}
}

// A wrapped key is bound to what it belongs to.
func TestSwappedKeysAreRefused(t *testing.T) {
	s := open(t)
	s.create(t, "upl_a")
	s.create(t, "upl_b")
	s.create(t, "upl_")
	s.exec(t, `UPDATE data_keys SET wrapped = $1 WHERE upload_id = $2`, s.wrapped(t, "upl_a"), "upl_b")
	s.exec(t, `UPDATE data_keys SET wrapped = $1 WHERE upload_id = $2`, s.wrapped(t, "upl_a"), "upl_")
	for _, id := range []string{"upl_b", "upl_"} {
		if key, err := s.DataKey(t.Context(), id); err == nil || key != nil || errors.Is(err, custody.ErrDestroyed) {
			t.Errorf("%s opened with the key of upl_a: %v", id, err)
		}
	}
	keys, err := s.SigningKeys(t.Context(), "credential")
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d signing keys, %v", len(keys), err)
	}
	s.exec(t, `UPDATE signing_keys SET wrapped = $1`, s.wrapped(t, "upl_a"))
	if _, err := s.SigningKeys(t.Context(), "credential"); err == nil {
		t.Error("a data key passed for a signing key")
	}
	damaged := s.wrapped(t, "upl_a")
	damaged[len(damaged)-1] ^= 1
	s.exec(t, `UPDATE data_keys SET wrapped = $1 WHERE upload_id = 'upl_a'`, damaged)
	if _, err := s.DataKey(t.Context(), "upl_a"); err == nil {
		t.Error("a damaged key was opened")
	}
}

func TestAnotherKeyFileIsRefused(t *testing.T) {
	s := open(t)
	s.create(t, "upl_a")
	if _, err := s.SigningKeys(t.Context(), "credential"); err != nil {
		t.Fatal(err)
	}
	other := openAt(t, filepath.Join(t.TempDir(), "kek"), s.dbFile)
	if _, err := other.DataKey(t.Context(), "upl_a"); err == nil || errors.Is(err, custody.ErrDestroyed) {
		t.Errorf("data key under another key file: %v", err)
	}
	if keys, err := other.SigningKeys(t.Context(), "credential"); err == nil {
		t.Errorf("%d signing keys under another key file", len(keys))
	}
}

func TestSigningKeysAreMadeOnce(t *testing.T) {
	s := open(t)
	var group sync.WaitGroup
	got := make([][]custody.SigningKey, 8)
	for i := range got {
		group.Go(func() {
			var err error
			if got[i], err = s.SigningKeys(t.Context(), "credential"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, keys := range got {
		if len(keys) != 1 || keys[0].ID != got[0][0].ID || !bytes.Equal(keys[0].Key, got[0][0].Key) || len(keys[0].Key) != keystore.KeySize {
			t.Fatalf("different callers got different keys: %d and %d", len(keys), len(got[0]))
		}
	}
	other, err := s.SigningKeys(t.Context(), "webhook")
	if err != nil || len(other) != 1 || other[0].ID == got[0][0].ID || bytes.Equal(other[0].Key, got[0][0].Key) {
		t.Errorf("another purpose has %d keys, %v; want one of its own", len(other), err)
	}
	s.exec(t, `UPDATE signing_keys SET retired_at = 1 WHERE purpose = 'credential'`)
	fresh, err := s.SigningKeys(t.Context(), "credential")
	if err != nil || len(fresh) != 1 || fresh[0].ID == got[0][0].ID {
		t.Fatalf("after retirement: %d keys, %v", len(fresh), err)
	}
	s.exec(t, `UPDATE signing_keys SET retired_at = 0, created_at = 1 WHERE key_id = $1`, got[0][0].ID)
	both, err := s.SigningKeys(t.Context(), "credential")
	if err != nil || len(both) != 2 || both[0].ID != fresh[0].ID {
		t.Errorf("%d keys, %v; want two, the newest first", len(both), err)
	}
}

// broken injects faults: a keeper without an answer, a log that cannot be emptied, a deletion that does nothing.
type broken struct {
	*sqldb.SQLite
	scrub  error
	ignore bool
}

func (b broken) Scrub(ctx context.Context) error {
	if b.scrub != nil {
		return b.scrub
	}
	return b.SQLite.Scrub(ctx)
}

func (b broken) InTx(ctx context.Context, fn func(sqldb.Querier) error) error {
	if b.ignore {
		return nil
	}
	return b.SQLite.InTx(ctx, fn)
}

type noKeeper struct{}

var errKeeper = errors.New("key service does not answer")

func (noKeeper) Encrypt(context.Context, []byte) ([]byte, error) { return nil, errKeeper }
func (noKeeper) Decrypt(context.Context, []byte) ([]byte, error) { return nil, errKeeper }

func TestUnconfirmedDestructionIsAnError(t *testing.T) {
	s := open(t)
	s.create(t, "upl_a")
	keeper, err := keystore.OpenKeyFile(s.keyFile, true)
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	logStays := errors.New("log stays")
	for what, db := range map[string]broken{"a log that stays": {SQLite: s.db, scrub: logStays}, "a row that stays": {SQLite: s.db}} {
		store, err := keystore.Open(t.Context(), db, keeper)
		if err != nil {
			t.Fatal(err)
		}
		if what == "a row that stays" {
			s.create(t, "upl_b")
			store, err = keystore.Open(t.Context(), broken{SQLite: s.db, ignore: true}, keeper)
			if err != nil {
				t.Fatal(err)
			}
			err = store.DestroyDataKey(t.Context(), "upl_b")
		} else if err = store.DestroyDataKey(t.Context(), "upl_a"); !errors.Is(err, logStays) {
			t.Errorf("%s: got %v", what, err)
		}
		if err == nil {
			t.Errorf("%s: destruction was confirmed", what)
		}
	}
}

func TestNoKeeperNoKey(t *testing.T) {
	s := open(t)
	s.create(t, "upl_a")
	store, err := keystore.Open(t.Context(), s.db, noKeeper{})
	if err != nil {
		t.Fatal(err)
	}
	if key, err := store.CreateDataKey(t.Context(), "upl_b"); !errors.Is(err, errKeeper) || key != nil {
		t.Errorf("create: got a key: %v, %v", key != nil, err)
	}
	if _, err := s.DataKey(t.Context(), "upl_b"); !errors.Is(err, custody.ErrDestroyed) {
		t.Errorf("a key that could not be wrapped was kept: %v", err)
	}
	if _, err := store.DataKey(t.Context(), "upl_a"); !errors.Is(err, errKeeper) || errors.Is(err, custody.ErrDestroyed) {
		t.Errorf("read: %v", err)
	}
	if _, err := store.SigningKeys(t.Context(), "credential"); !errors.Is(err, errKeeper) {
		t.Errorf("signing keys: %v", err)
	}
}
