package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/accession/accession/internal/custody"
)

// problem is one object or key about which rows and backends disagree.
type problem struct {
	what    custody.StorageProblem
	backend string
	key     string
}

// Check does one step of comparing rows, objects and keys. It is safe beside live requests: what disagrees is looked at twice, and
// orphans count once they are older than 2 hours. With Repair it deletes the orphans; what is missing it can only report. Render
// gets the custody.StorageReport. Errors: 401 for all but the administrator.
func (s *Service) Check(ctx context.Context, c custody.Caller, q custody.StorageCheck, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpCheckStorage, c, ""); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	report, err := s.step(ctx, q)
	if err != nil {
		return custody.Answer{}, err
	}
	repaired := 0
	for _, f := range report.Findings {
		if f.Repaired {
			repaired += f.Objects
		}
	}
	return custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		if repaired == 0 {
			return report, nil
		}
		if err := tx.EnsureOrganization(ctx, house, 0); err != nil {
			return nil, err
		}
		return report, tx.AppendAudit(ctx, custody.AuditLine{
			OrgID: house, At: custody.Now(), Action: "storage_repaired", CredentialID: c.CredentialID,
			Detail: fmt.Sprintf("orphans=%d", repaired), RequestID: c.RequestID, TraceID: c.TraceID,
		})
	})
}

func (s *Service) step(ctx context.Context, q custody.StorageCheck) (report custody.StorageReport, err error) {
	report.Findings = []custody.StorageFinding{}
	if q.After == "" {
		unknown, err := s.unknown(ctx)
		if err != nil {
			return report, err
		}
		for _, id := range unknown {
			if err := s.look(ctx, custody.Upload{ID: id}, q.Repair, &report); err != nil {
				return report, err
			}
		}
	}
	uploads, err := s.store.UploadsAfter(ctx, q.After, page)
	if err != nil {
		return report, err
	}
	for _, u := range uploads {
		if err := s.look(ctx, u, q.Repair, &report); err != nil {
			return report, err
		}
	}
	report.Uploads = len(uploads)
	if len(uploads) == page {
		report.NextAfter = uploads[page-1].ID
	}
	return report, nil
}

// unknown lists the ids that have objects or a data key older than the grace, and no row.
func (s *Service) unknown(ctx context.Context) (ids []string, err error) {
	named, err := s.vault.Uploads(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := s.vault.KeysBefore(ctx, custody.Now().Add(-grace))
	if err != nil {
		return nil, err
	}
	for _, id := range keys {
		named[id] = true
	}
	for id := range named {
		if _, err := s.store.StatusOf(ctx, id); errors.Is(err, custody.ErrNotFound) {
			ids = append(ids, id)
		} else if err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// look adds what is wrong with one upload to the report; u has only its id where there is no row.
func (s *Service) look(ctx context.Context, u custody.Upload, repair bool, report *custody.StorageReport) error {
	found, err := s.compare(ctx, u)
	if err != nil || len(found) == 0 {
		return err
	}
	// Something was on its way, perhaps: only what disagrees again does.
	again, err := s.compare(ctx, u)
	if err != nil {
		return err
	}
	byKind := map[problem][]string{}
	for p := range found {
		if again[p] {
			kind := problem{what: p.what, backend: p.backend}
			byKind[kind] = append(byKind[kind], p.key)
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(byKind), func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.backend, b.backend))
	}) {
		if len(report.Findings) == mostFindings {
			report.Omitted++
			continue
		}
		f := custody.StorageFinding{UploadID: u.ID, OrgID: u.OrgID, Problem: kind.what, Backend: kind.backend, Objects: len(byKind[kind])}
		if u.OrgID != "" {
			if f.Status, err = s.store.StatusOf(ctx, u.ID); err != nil {
				return err
			}
		}
		if repair && kind.what.Orphan() {
			if err := s.discard(ctx, u.ID, kind, byKind[kind]); err != nil {
				return err
			}
			f.Repaired = true
		}
		s.log.WarnContext(ctx, "storage disagrees", "upload_id", u.ID, "status", f.Status, "problem", f.Problem, "backend", f.Backend, "objects", f.Objects, "repaired", f.Repaired)
		report.Findings = append(report.Findings, f)
	}
	return nil
}

func (s *Service) discard(ctx context.Context, uploadID string, kind problem, keys []string) error {
	if kind.what == custody.ProblemOrphanKey {
		return s.vault.Dismiss(ctx, uploadID)
	}
	for _, key := range keys {
		if err := s.vault.Discard(ctx, custody.StoredObject{Backend: kind.backend, Key: key}); err != nil {
			return err
		}
	}
	return nil
}

// compare lists what disagrees about one upload. It reads the backends before the rows: an object that is published meanwhile is
// then named.
func (s *Service) compare(ctx context.Context, u custody.Upload) (map[problem]bool, error) {
	held, err := s.vault.Held(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	keyErr := s.vault.KeyOpens(ctx, u.ID)
	status, err := s.store.StatusOf(ctx, u.ID)
	if err != nil && !errors.Is(err, custody.ErrNotFound) {
		return nil, err
	}
	found := map[problem]bool{}
	switch status {
	case custody.StatusWithdrawing:
		return nil, nil // a worker is at it
	case custody.StatusInitiated, custody.StatusReceiving:
		if u.ExpiresAt.Before(custody.Now()) {
			return nil, nil // likewise
		}
	case "", custody.StatusWithdrawn, custody.StatusExpired:
		return found, s.gone(ctx, u, held, keyErr, found)
	}
	// Of a text that was refused the key goes first, and the row when its reservation lapses where the two were torn apart.
	if keyErr != nil && !(status == custody.StatusInitiated && u.Kind != custody.KindPartner) {
		found[problem{custody.ProblemMissingKey, custody.BackendKeys, ""}] = true
	}
	return found, s.compareRows(ctx, u.ID, held, found)
}

// gone finds what is left of an upload that must have nothing. Without a row it may be about to get one.
func (s *Service) gone(ctx context.Context, u custody.Upload, held []custody.HeldObject, keyErr error, found map[problem]bool) error {
	before := custody.Now().Add(-grace)
	young := false
	for _, o := range held {
		if u.OrgID == "" && o.ModTime.After(before) {
			young = true
			continue
		}
		found[problem{custody.ProblemOrphanObjects, o.Backend, o.Key}] = true
	}
	if errors.Is(keyErr, custody.ErrDestroyed) || young {
		return nil
	}
	if u.OrgID == "" {
		old, err := s.vault.KeysBefore(ctx, before)
		if err != nil || !slices.Contains(old, u.ID) {
			return err
		}
	}
	found[problem{custody.ProblemOrphanKey, custody.BackendKeys, ""}] = true
	return nil
}

// compareRows compares the ledger of an upload with what the backends hold.
func (s *Service) compareRows(ctx context.Context, uploadID string, held []custody.HeldObject, found map[problem]bool) error {
	parts, err := s.store.Parts(ctx, uploadID)
	if err != nil {
		return err
	}
	artifacts, err := s.store.Artifacts(ctx, uploadID)
	if err != nil {
		return err
	}
	gates, err := s.store.Gates(ctx, uploadID)
	if err != nil {
		return err
	}
	there, named := map[custody.StoredObject]bool{}, map[string]bool{}
	for _, o := range held {
		there[o.StoredObject] = true
	}
	staging, copies := s.vault.Expected(parts, artifacts)
	for _, o := range staging {
		named[o.Key] = true
		if !there[o] {
			found[problem{custody.ProblemMissingObjects, o.Backend, o.Key}] = true
		}
	}
	quarantined := slices.ContainsFunc(gates, func(g custody.GateResult) bool {
		return g.Name == custody.GateQuarantine && g.State == custody.GatePassed
	})
	for _, o := range copies {
		if quarantined && !there[o] {
			found[problem{custody.ProblemMissingCopies, o.Backend, o.Key}] = true
		}
	}
	for _, o := range held {
		if !named[o.Key] && o.ModTime.Before(custody.Now().Add(-grace)) {
			found[problem{custody.ProblemOrphanObjects, o.Backend, o.Key}] = true
		}
	}
	return nil
}
