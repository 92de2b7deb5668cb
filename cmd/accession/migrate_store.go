package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/keystore"
	"github.com/accession/accession/internal/move"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/vault"
)

func newMigrateStoreCommand(app *App) *cobra.Command {
	var s settings
	var from move.Places
	var finish, abandon bool
	cmd := &cobra.Command{
		Use:   "migrate-store --data DIR [--database URL] [--blobs …] [--quarantine …]",
		Short: "Move an installation from SQLite and folders to PostgreSQL and S3",
		Long: `Moves the installation in a data folder to the stores that the settings name. Give it the settings that serve will have
afterwards: what they name and what the data folder has in another place is moved. The service must be stopped.

Everything in custody is read and authenticated first; what is damaged is named, and nothing is moved. Then sealed objects are
copied as they are and read back, and keys and metadata each follow in one transaction, compared row by row. Interrupted at any
moment, run it again. From its begin on the old place refuses to be served.

The old stores stay as they are until --finish, which verifies again that the new ones have everything, and then destroys the old
key store, metadata and objects. Until then a withdrawal is not complete: the old key store could bring the document back.
--abandon gives up a move before rows were moved.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(cmd.Flags()); err != nil {
				return err
			}
			if finish && abandon {
				return usagef("--finish and --abandon: give one of them")
			}
			m, err := app.newStoreMove(s, from)
			if err != nil {
				return err
			}
			ctx := custody.AcrossOrganizations(cmd.Context())
			run := m.run
			if finish {
				run = m.finish
			} else if abandon {
				run = m.abandon
			}
			return errors.Join(run(ctx), m.svc.close())
		},
	}
	s.flags(cmd.Flags(), app.Getenv)
	cmd.Flags().StringVar(&from.Blobs, "from-blobs", "", "staging storage that is moved; default: blobs in the data folder")
	cmd.Flags().StringVar(&from.Quarantine, "from-quarantine", "", "quarantine storage that is moved; default: quarantine in the data folder")
	cmd.Flags().BoolVar(&finish, "finish", false, "verify again, then destroy what was moved in its old place")
	cmd.Flags().BoolVar(&abandon, "abandon", false, "give up a move whose target has no rows yet")
	return cmd
}

// storeMove is one installation on its way.
type storeMove struct {
	app  *App
	svc  *service // its settings are those of the target
	mark *move.Mark
}

// newStoreMove finds out what is to be moved: what the settings have elsewhere than from. Places that stay are empty.
func (a *App) newStoreMove(s settings, from move.Places) (*storeMove, error) {
	log := slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	m := &storeMove{app: a, svc: &service{settings: s, log: log}, mark: &move.Mark{Format: 1}}
	if s.shared() {
		m.mark.From.Database, m.mark.From.KeysDatabase = "metadata.db", "keys.db"
		m.mark.To.Database, m.mark.To.KeysDatabase = maskURL(s.Database), maskURL(s.keysURL())
	}
	var err error
	for _, place := range []struct {
		name, given, fallback, target string
		from, to                      *string
	}{
		{"from-blobs", from.Blobs, "blobs", s.Blobs, &m.mark.From.Blobs, &m.mark.To.Blobs},
		{"from-quarantine", from.Quarantine, "quarantine", s.Quarantine, &m.mark.From.Quarantine, &m.mark.To.Quarantine},
	} {
		if *place.from, err = checkPlace(place.name, place.given, filepath.Join(s.Data, place.fallback)); err != nil {
			return nil, s.named(err)
		}
		switch {
		case *place.from == place.target:
			*place.from = ""
		case within(*place.from, place.target), within(place.target, *place.from):
			return nil, usagef("--%s must lie apart from where it is moved to", place.name)
		case within(s.Data, *place.from):
			return nil, usagef("--%s must not have the data folder in it: --finish deletes what was moved", place.name)
		default:
			*place.from, *place.to = shortened(s.Data, *place.from), place.target
		}
	}
	if m.mark.From == (move.Places{}) {
		return nil, usagef("nothing to move: give database, blobs or quarantine as serve will have them; see accession migrate-store --help")
	}
	return m, nil
}

// shortened is a place in the data folder by its name in there: the folder may be mounted elsewhere the next time.
func shortened(data, place string) string {
	if within(place, data) {
		return strings.TrimPrefix(strings.TrimPrefix(place, data), "/")
	}
	return place
}

// full is the opposite of shortened.
func full(data, place string) string {
	if place == "" || blobstore.IsS3(place) || filepath.IsAbs(place) {
		return place
	}
	return filepath.Join(data, place)
}

// keysURL is the PostgreSQL database of the wrapped keys.
func (s *storageSettings) keysURL() string {
	if s.KeysDatabase != "" {
		return s.KeysDatabase
	}
	return s.Database
}

// resume takes over the mark that an earlier run left; done tells that the move is behind it.
func (m *storeMove) resume() (done bool, err error) {
	data := m.svc.settings.Data
	found, err := move.ReadMark(data)
	if err != nil || found == nil {
		return false, err
	}
	if found.From != m.mark.From || found.To != m.mark.To {
		return false, fmt.Errorf("this data folder is moved with other settings (%s says which); use those", filepath.Join(data, "moved.json"))
	}
	m.mark = found
	return found.State != move.Moving, nil
}

func (m *storeMove) write(state move.State) error {
	m.mark.State, m.mark.At = state, custody.Now()
	return m.mark.Write(m.svc.settings.Data)
}

func (m *storeMove) run(ctx context.Context) error {
	done, err := m.resume()
	if err != nil {
		return err
	}
	if done && m.mark.State == move.Finished {
		m.app.row("moved", "already, and finished")
		return nil
	}
	if done {
		m.app.row("moved", "already; accession migrate-store --finish destroys what is left in the old place")
		return nil
	}
	metadata, wrapped, err := m.openSource(ctx)
	if err != nil {
		return err
	}
	staging, quarantine, err := m.examine(ctx, metadata, wrapped)
	if err != nil {
		return err
	}
	if m.mark.To.Database != "" { // so that no replica ever wraps with another key-encryption key there
		if err := m.svc.keys.Agree(ctx); err != nil {
			return fmt.Errorf("key store: %w", err)
		}
	}
	// Before the first byte: what is served meanwhile would be missing in the target.
	if err := m.write(move.Moving); err != nil {
		return err
	}
	if m.mark.Staging, err = m.objects(ctx, "staging", staging, m.mark.To.Blobs); err != nil {
		return err
	}
	if m.mark.Copies, err = m.objects(ctx, "quarantine", quarantine, m.mark.To.Quarantine); err != nil {
		return err
	}
	if m.mark.To.Database != "" {
		if err := m.rows(ctx, metadata, wrapped); err != nil {
			return err
		}
	}
	if err := m.write(move.Moved); err != nil {
		return err
	}
	m.app.row("moved", "start serve with these settings; the old place is refused from now on")
	if m.mark.From.Database != "" {
		m.app.row("next", "accession migrate-store --finish: until then the old key store can bring back what is withdrawn")
	}
	return nil
}

// openSource opens the data folder, for this process alone, and brings its schema to this version.
func (m *storeMove) openSource(ctx context.Context) (metadata, wrapped *sql.DB, err error) {
	svc := m.svc
	for _, name := range []string{"metadata.db", "keys.db"} {
		if _, err := os.Stat(filepath.Join(svc.settings.Data, name)); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, usagef("--data %s has no %s: it is no installation on SQLite", svc.settings.Data, name)
		}
	}
	if err := svc.lock(); err != nil {
		return nil, nil, err
	}
	keeper, err := svc.openKeeper(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	keysDB, err := svc.openSQLite(filepath.Join(svc.settings.Data, "keys.db"))
	if err != nil {
		return nil, nil, err
	}
	if svc.keys, err = keystore.Open(ctx, keysDB, keeper); err != nil {
		return nil, nil, fmt.Errorf("key store: %w", err)
	}
	metadataDB, err := svc.openSQLite(filepath.Join(svc.settings.Data, "metadata.db"))
	if err != nil {
		return nil, nil, err
	}
	if svc.store, err = sqlstore.Open(ctx, metadataDB); err != nil {
		return nil, nil, fmt.Errorf("metadata: %w", err)
	}
	return m.readSource()
}

func (m *storeMove) readSource() (metadata, wrapped *sql.DB, err error) {
	if metadata, err = m.opened(move.OpenSQLite(filepath.Join(m.svc.settings.Data, "metadata.db"))); err != nil {
		return nil, nil, err
	}
	wrapped, err = m.opened(move.OpenSQLite(filepath.Join(m.svc.settings.Data, "keys.db")))
	return metadata, wrapped, err
}

// opened has db closed at the end.
func (m *storeMove) opened(db *sql.DB, err error) (*sql.DB, error) {
	if err == nil {
		m.svc.closers = append(m.svc.closers, db.Close)
	}
	return db, err
}

// examine refuses to move what is damaged: a copy of it would look right.
func (m *storeMove) examine(ctx context.Context, metadata, wrapped *sql.DB) (staging, quarantine blobstore.Store, err error) {
	s := m.svc.settings
	place := func(moved, stays string) string {
		if moved != "" {
			return full(s.Data, moved)
		}
		return stays
	}
	if staging, err = m.svc.openPlace(ctx, storagePlace{"staging", "from-blobs", place(m.mark.From.Blobs, s.Blobs)}); err != nil {
		return nil, nil, err
	}
	if quarantine, err = m.svc.openPlace(ctx, storagePlace{"quarantine", "from-quarantine", place(m.mark.From.Quarantine, s.Quarantine)}); err != nil {
		return nil, nil, err
	}
	broken, err := brokenChains(ctx, m.svc.store)
	if err != nil {
		return nil, nil, err
	}
	e, err := move.Examine(ctx, metadata, wrapped, m.svc.keys, vault.New(m.svc.keys, staging, quarantine), vault.New(m.svc.keys, quarantine, staging))
	if err != nil {
		return nil, nil, err
	}
	m.app.row("examined", fmt.Sprintf("%d keys, %d objects, %s", e.Keys, e.Objects, bytesText(e.Bytes)))
	if damages := append(broken, e.Damages...); len(damages) > 0 {
		for _, d := range damages {
			m.app.row("damaged", d)
		}
		return nil, nil, &adviceError{fmt.Errorf("%d damages; nothing was moved", len(damages)),
			"bring the objects back from a backup or the other storage root, or start the service once more and withdraw their uploads; then run it again"}
	}
	return staging, quarantine, nil
}

// brokenChains recomputes every chain that a store has.
func brokenChains(ctx context.Context, store sqlstore.Chains) (broken []string, err error) {
	from := &storedEvidence{chains: store}
	stated, err := allHeads(ctx, from)
	if err != nil {
		return nil, err
	}
	for _, h := range stated.Heads {
		for _, chain := range []string{client.ChainAudit, client.ChainRecords} {
			r, err := client.VerifyChain(ctx, from, h.OrgID, chain, h.Of(chain))
			if err != nil {
				return nil, err
			}
			if r.Finding != nil {
				broken = append(broken, fmt.Sprintf("%s of %s: %s at %d: %s", chain, orgName(h.OrgID), r.Finding.Problem, r.Finding.Position, r.Finding.Detail))
			}
		}
	}
	return broken, nil
}

// objects copies one storage root, unless it stays.
func (m *storeMove) objects(ctx context.Context, name string, from blobstore.Store, to string) (move.Copied, error) {
	if to == "" {
		return move.Copied{}, nil
	}
	target, err := m.svc.openPlace(ctx, storagePlace{name, name, to})
	if err != nil {
		return move.Copied{}, err
	}
	c, err := move.Objects(ctx, from, target, func(c move.Copied) {
		fmt.Fprintf(m.app.Stderr, "%s: %d objects, %s\n", name, c.Objects, bytesText(c.Bytes))
	})
	if err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	m.app.row(name, fmt.Sprintf("%d objects, %s, read back by SHA-256 (%d of an earlier run)", c.Objects, bytesText(c.Bytes), c.Before))
	for _, key := range c.LeftOut {
		m.app.row("left out", key+" (no object)")
	}
	return c, nil
}

// rows moves keys, then the metadata, which makes everything visible.
func (m *storeMove) rows(ctx context.Context, metadata, wrapped *sql.DB) error {
	targetKeys, targetMetadata, err := m.openTarget(ctx)
	if err != nil {
		return err
	}
	for _, db := range []struct {
		name, schema string
		from, to     *sql.DB
		tables       *[]move.Table
	}{{"keys", keysSchema, wrapped, targetKeys, &m.mark.Keys}, {"metadata", metadataSchema, metadata, targetMetadata, &m.mark.Tables}} {
		tables, moved, err := move.Database(ctx, db.from, db.to, db.schema)
		if errors.Is(err, move.ErrOccupied) {
			return &adviceError{fmt.Errorf("%s: %w", db.name, err), "give an empty database; or drop the schema " + db.schema + " if nobody needs what is in it"}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", db.name, err)
		}
		*db.tables = tables
		n := int64(0)
		for _, t := range tables {
			n += t.Rows
		}
		note := "compared by SHA-256"
		if !moved {
			note += ", of an earlier run"
		}
		m.app.row(db.name, fmt.Sprintf("%d rows in %d tables, %s", n, len(tables), note))
	}
	broken, err := brokenChains(ctx, m.svc.store) // which is the target's now
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("the target's chains do not hold: %s", broken[0])
	}
	return err
}

// openTarget makes the schemas where they are not there, as serve would, and opens them for long statements.
func (m *storeMove) openTarget(ctx context.Context) (keys, metadata *sql.DB, err error) {
	s := m.svc.settings
	keysDB, err := m.svc.openPostgres(ctx, "keys-database", s.keysURL(), sqldb.PostgresOptions{Schema: keysSchema})
	if err != nil {
		return nil, nil, err
	}
	if _, err := keystore.Migrate(ctx, keysDB); err != nil {
		return nil, nil, fmt.Errorf("key store: %w", err)
	}
	metadataDB, err := m.svc.openPostgres(ctx, "database", s.Database, sqldb.PostgresOptions{Schema: metadataSchema, Organizations: true})
	if err != nil {
		return nil, nil, err
	}
	if m.svc.store, err = sqlstore.Open(ctx, metadataDB); err != nil {
		return nil, nil, fmt.Errorf("metadata: %w", err)
	}
	if keys, err = m.opened(move.OpenPostgres(ctx, s.keysURL(), keysSchema)); err != nil {
		return nil, nil, err
	}
	metadata, err = m.opened(move.OpenPostgres(ctx, s.Database, metadataSchema))
	return keys, metadata, err
}

// abandon lets the old place be served again.
func (m *storeMove) abandon(ctx context.Context) error {
	done, err := m.resume()
	if err != nil {
		return err
	}
	if m.mark.State == "" {
		return usagef("no move was begun in %s", m.svc.settings.Data)
	}
	if err := m.svc.lock(); err != nil {
		return err
	}
	empty := !done
	if empty && m.mark.To.Database != "" {
		keys, metadata, err := m.openTarget(ctx)
		if err != nil {
			return err
		}
		noKeys, err := move.Empty(ctx, keys, keysSchema)
		if err != nil {
			return err
		}
		noRows, err := move.Empty(ctx, metadata, metadataSchema)
		if err != nil {
			return err
		}
		empty = noKeys && noRows
	}
	if !empty {
		return &adviceError{errors.New("the target has what was moved: two places would have one installation"),
			"run accession migrate-store again; or destroy the target's schemas first, if nobody was served from them"}
	}
	if err := move.Unmark(m.svc.settings.Data); err != nil {
		return err
	}
	m.app.row("abandoned", "the old place can be served again; objects that were copied lie in the target until you delete them")
	return nil
}
