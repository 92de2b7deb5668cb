package keystore_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/keystore"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/storetest/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

// replica opens the key store at url as one of several processes does, with a key file of its own.
func replica(t *testing.T, url, keyFile string) (*keystore.Store, *sqldb.Postgres) {
	t.Helper()
	keeper, err := keystore.OpenKeyFile(keyFile, false)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.OpenPostgres(t.Context(), url, sqldb.PostgresOptions{Schema: "accession_keys", Connections: 4, Scrubbed: []string{"data_keys", "signing_keys"}})
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
	return store, db
}

func TestPostgresKeepsAndDestroysDataKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kek")
	url := cluster.Database(t)
	a, db := replica(t, url, file)
	b, _ := replica(t, url, file)
	if has, err := keystore.Migrate(t.Context(), db); has || err != nil {
		t.Errorf("an empty key store has keys: %v, %v", has, err)
	}
	made, err := a.CreateDataKey(t.Context(), "upl_1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.DataKey(t.Context(), "upl_1"); err != nil || !bytes.Equal(got, made) {
		t.Errorf("another replica reads another key: %v", err)
	}
	if _, err := b.CreateDataKey(t.Context(), "upl_1"); err == nil {
		t.Error("a second key for one upload")
	}
	if err := b.DestroyDataKey(t.Context(), "upl_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.DataKey(t.Context(), "upl_1"); !errors.Is(err, custody.ErrDestroyed) {
		t.Errorf("after its destruction: %v", err)
	}
	if err := a.DestroyDataKey(t.Context(), "upl_1"); err != nil {
		t.Errorf("again: %v", err)
	}
	// A vacuum cut the empty pages off; until then the deleted row would be in one.
	var bytes int
	if err := db.Row(t.Context(), `SELECT pg_relation_size('data_keys')`, nil, &bytes); err != nil || bytes != 0 {
		t.Errorf("the table that held the destroyed key has %d bytes, %v", bytes, err)
	}
}

func TestReplicasMakeOneFirstSecret(t *testing.T) {
	file, url := filepath.Join(t.TempDir(), "kek"), cluster.Database(t)
	var stores []*keystore.Store
	for range 4 {
		s, _ := replica(t, url, file)
		stores = append(stores, s)
	}
	got := make([][]custody.SigningKey, 2*len(stores))
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			var err error
			if got[i], err = stores[i%len(stores)].SigningSecrets(t.Context(), "oauth", generates(secret(64))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, keys := range got {
		if len(keys) != 1 || keys[0].ID != got[0][0].ID {
			t.Errorf("%d keys, want the same one everywhere", len(keys))
		}
	}
}

// A replica with a key file of its own must not start: what it wraps nobody else could unwrap.
func TestReplicasAgreeOnTheKeyEncryptionKey(t *testing.T) {
	dir, url := t.TempDir(), cluster.Database(t)
	first, db := replica(t, url, filepath.Join(dir, "first"))
	if err := first.Agree(t.Context()); err != nil {
		t.Fatal(err)
	}
	if has, err := keystore.Migrate(t.Context(), db); !has || err != nil {
		t.Errorf("a key store that was agreed on has no keys: %v, %v", has, err)
	}
	same, _ := replica(t, url, filepath.Join(dir, "first"))
	if err := same.Agree(t.Context()); err != nil {
		t.Errorf("with the same key: %v", err)
	}
	other, _ := replica(t, url, filepath.Join(dir, "other"))
	if err := other.Agree(t.Context()); !errors.Is(err, keystore.ErrOtherKeeper) {
		t.Errorf("with another key: %v", err)
	}
}

// Where replicas share the key store, a rotation uses the new key that the operator put into every key file, and makes none.
func TestReplicasRotateToAKeyThatAllHave(t *testing.T) {
	dir, url := t.TempDir(), cluster.Database(t)
	files := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	a, _ := replica(t, url, files[0])
	if err := a.Agree(t.Context()); err != nil {
		t.Fatal(err)
	}
	made, err := a.CreateDataKey(t.Context(), "upl_1")
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Rotate(t.Context()); err == nil {
		t.Error("a replica made a key that no other has")
	}
	if after, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refused rotation changed the key file: %v", err)
	}
	both := append([]byte(base64.StdEncoding.EncodeToString(secret(32))+"\n"), before...)
	for _, file := range files {
		if err := os.WriteFile(file, both, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, _ = replica(t, url, files[0]) // started again, one after the other
	b, _ := replica(t, url, files[1])
	if err := errors.Join(a.Agree(t.Context()), b.Agree(t.Context())); err != nil {
		t.Fatal(err)
	}
	if r, err := a.Rotate(t.Context()); err != nil || r != (custody.KeyRotation{Rewrapped: 2, Retired: 1}) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := b.Agree(t.Context()); err != nil {
		t.Errorf("the other replica after the rotation: %v", err)
	}
	if got, err := b.DataKey(t.Context(), "upl_1"); err != nil || !bytes.Equal(got, made) {
		t.Errorf("the other replica does not unwrap: %v", err)
	}
}
