package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/move"
)

// finish destroys what was moved in its old place, once it is sure that the target has it.
func (m *storeMove) finish(ctx context.Context) error {
	done, err := m.resume()
	if err != nil {
		return err
	}
	if !done {
		return usagef("the move is not complete; run accession migrate-store without --finish first")
	}
	if m.mark.State == move.Finished {
		m.app.row("finished", "already")
		return nil
	}
	var roots []blobstore.Store
	for _, root := range []struct{ name, from, to string }{
		{"staging", m.mark.From.Blobs, m.mark.To.Blobs}, {"quarantine", m.mark.From.Quarantine, m.mark.To.Quarantine},
	} {
		if root.from == "" {
			continue
		}
		from, err := m.svc.openPlace(ctx, storagePlace{root.name, root.name, full(m.svc.settings.Data, root.from)})
		if err != nil {
			return err
		}
		roots = append(roots, from)
		if m.mark.State != move.Moved { // an earlier run has verified it
			continue
		}
		to, err := m.svc.openPlace(ctx, storagePlace{root.name, root.name, root.to})
		if err != nil {
			return err
		}
		if err := m.verifyRoot(ctx, root.name, from, to); err != nil {
			return err
		}
	}
	if m.mark.State == move.Moved && m.mark.To.Database != "" {
		if err := m.verifyRows(ctx); err != nil {
			return err
		}
	}
	if err := m.write(move.Finishing); err != nil {
		return err
	}
	if m.mark.From.Database != "" { // keys first: without them nothing else can be read
		if err := m.destroyDatabases(); err != nil {
			return err
		}
		m.app.row("destroyed", "the old key store and metadata")
	}
	for _, root := range roots {
		n, err := move.Clear(ctx, root)
		if err != nil {
			return fmt.Errorf("%s: %w", root.Name(), err)
		}
		m.app.row("destroyed", fmt.Sprintf("%d objects of the old %s storage", n, root.Name()))
	}
	if err := m.write(move.Finished); err != nil {
		return err
	}
	if m.mark.From.Database != "" {
		m.app.row("next", "delete every copy of the old key store that accession backup keys made, by its horizon")
	}
	return nil
}

func (m *storeMove) destroyDatabases() error {
	data := m.svc.settings.Data
	if err := move.Destroy(full(data, m.mark.From.KeysDatabase)); err != nil {
		return err
	}
	return move.Destroy(full(data, m.mark.From.Database))
}

// metadata is what names objects now: the target's, or the one that stayed.
func (m *storeMove) metadata(ctx context.Context) (*sql.DB, error) {
	if m.mark.To.Database == "" {
		metadata, _, err := m.readSource()
		return metadata, err
	}
	return m.opened(move.OpenPostgres(ctx, m.svc.settings.Database, metadataSchema))
}

func (m *storeMove) verifyRoot(ctx context.Context, name string, from, to blobstore.Store) error {
	metadata, err := m.metadata(ctx)
	if err != nil {
		return err
	}
	if err := move.Kept(ctx, metadata, from, to); err != nil {
		return fmt.Errorf("%s: %w; nothing was destroyed", name, err)
	}
	return nil
}

func (m *storeMove) verifyRows(ctx context.Context) error {
	metadata, wrapped, err := m.readSource()
	if err != nil {
		return err
	}
	targetKeys, targetMetadata, err := m.openTarget(ctx)
	if err != nil {
		return err
	}
	err = move.Continues(ctx, metadata, wrapped, targetMetadata, targetKeys)
	if err == nil {
		var broken []string
		if broken, err = brokenChains(ctx, m.svc.store); len(broken) > 0 {
			err = errors.New(broken[0])
		}
	}
	if err != nil {
		return fmt.Errorf("%w; nothing was destroyed", err)
	}
	return nil
}

// refuseMoved keeps an installation that was moved from being served in its old place, and one on its way from being served at all.
func (svc *service) refuseMoved(ctx context.Context) error {
	mark, err := move.ReadMark(svc.settings.Data)
	if err != nil || mark == nil {
		return err
	}
	if mark.State == move.Moving {
		return errors.New("this installation is being moved, and the move is not complete: run accession migrate-store again, or give it up with --abandon")
	}
	s := svc.settings
	if mark.From.Database != "" && !s.shared() {
		return fmt.Errorf("this installation was moved to %s; set database and keys-database as at its move", mark.To.Database)
	}
	for _, place := range []struct{ setting, old, now, moved string }{
		{"blobs", mark.From.Blobs, s.Blobs, mark.To.Blobs}, {"quarantine", mark.From.Quarantine, s.Quarantine, mark.To.Quarantine},
	} {
		if place.old != "" && full(s.Data, place.old) == place.now {
			return fmt.Errorf("%s: this storage was moved to %s; set that", place.setting, place.moved)
		}
	}
	if mark.State != move.Finished && mark.From.Database != "" {
		svc.log.WarnContext(ctx, "THE OLD KEY STORE IS STILL THERE: what is withdrawn could be brought back with it", "advice", "accession migrate-store --finish")
	}
	return nil
}
