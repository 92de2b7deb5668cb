package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/storetest"
)

// reads are what this room reads of the real store; its transactions are of a type that this package does not know.
type reads interface {
	UploadsAfter(context.Context, string, int) ([]custody.Upload, error)
	StatusOf(context.Context, string) (custody.Status, error)
	Parts(context.Context, string) ([]custody.Part, error)
	Artifacts(context.Context, string) ([]custody.Artifact, error)
	Gates(context.Context, string) ([]custody.GateResult, error)
	Answered(context.Context, custody.Idempotency) (string, custody.Answer, error)
	Backlog(context.Context, custody.Lane) (int, time.Duration, error)
	Running(context.Context, custody.Lane) (int, error)
	StuckUploads(context.Context, int) (custody.StuckUploads, error)
	WebhookBacklog(context.Context) (int, int, time.Duration, error)
	RescanState(context.Context, custody.RescanScope, time.Time) (custody.RescanState, error)
}

type realStore struct {
	reads
	inTx func(context.Context, func(Tx) error) error
}

func (s realStore) InTx(ctx context.Context, fn func(Tx) error) error { return s.inTx(ctx, fn) }

func joined[T Tx](inTx func(context.Context, func(T) error) error) func(context.Context, func(Tx) error) error {
	return func(ctx context.Context, fn func(Tx) error) error {
		return inTx(ctx, func(tx T) error { return fn(tx) })
	}
}

// backends hold what the test puts there.
type backends struct {
	held      map[string][]custody.HeldObject
	keys      map[string]time.Time
	discarded []string
	looked    func(uploadID string) // at each listing of an upload
}

func (b *backends) Uploads(context.Context) (map[string]bool, error) {
	ids := map[string]bool{}
	for id := range b.held {
		ids[id] = true
	}
	return ids, nil
}

func (b *backends) Held(_ context.Context, id string) ([]custody.HeldObject, error) {
	held := b.held[id]
	if b.looked != nil {
		b.looked(id)
	}
	return held, nil
}

func (b *backends) Expected([]custody.Part, []custody.Artifact) (staging, copies []custody.StoredObject) {
	return nil, nil
}

func (b *backends) KeyOpens(_ context.Context, id string) error {
	if b.keys[id].IsZero() {
		return custody.ErrDestroyed
	}
	return nil
}

func (b *backends) KeysBefore(_ context.Context, then time.Time) (ids []string, err error) {
	for id, made := range b.keys {
		if made.Before(then) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (b *backends) Discard(_ context.Context, o custody.StoredObject) error {
	b.discarded = append(b.discarded, o.Key)
	return nil
}

func (b *backends) Dismiss(_ context.Context, id string) error {
	b.discarded = append(b.discarded, "key of "+id)
	return nil
}

var admin = custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true, RequestID: "req_1", TraceID: "trc_1"}

// check does one step and returns its report.
func check(t *testing.T, s *Service, q custody.StorageCheck) (r custody.StorageReport) {
	t.Helper()
	a, err := s.Check(t.Context(), admin, q, custody.Idempotency{CredentialID: admin.CredentialID, Operation: custody.OpCheckStorage,
		Render: func(v any) (custody.Answer, error) {
			b, err := json.Marshal(v)
			return custody.Answer{Status: 200, Data: b}, err
		}})
	if err = errors.Join(err, json.Unmarshal(a.Data, &r)); err != nil {
		t.Fatal(err)
	}
	return r
}

func install(t *testing.T) (*storetest.Installation, *backends, *Service) {
	t.Helper()
	in, b := storetest.OpenSQLite(t), &backends{held: map[string][]custody.HeldObject{}, keys: map[string]time.Time{}}
	return in, b, New(realStore{in.Store, joined(in.Store.InTx)}, b, Installation{}, slog.New(slog.DiscardHandler))
}

func TestCheckGoesStepByStep(t *testing.T) {
	in, b, s := install(t)
	in.Ready(t, "acme", "x")
	for _, statement := range []string{
		`CREATE TABLE copies AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ` + strconv.Itoa(2*page) + `) SELECT u.*, n.i FROM uploads u, n`,
		`UPDATE copies SET upload_id = 'upl_copy' || i`, `ALTER TABLE copies DROP COLUMN i`,
		`INSERT INTO uploads SELECT * FROM copies`, `DROP TABLE copies`,
	} {
		if err := in.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	b.held["upl_unknown"] = []custody.HeldObject{{StoredObject: custody.StoredObject{Backend: "staging", Key: "a"}}}
	steps, uploads, missing, orphans := 0, 0, map[string]bool{}, 0
	for after := ""; ; steps++ {
		r := check(t, s, custody.StorageCheck{After: after})
		uploads += r.Uploads
		for _, f := range r.Findings {
			switch f.Problem {
			case custody.ProblemMissingKey:
				missing[f.UploadID] = true
			case custody.ProblemOrphanObjects:
				orphans++
			}
		}
		if after = r.NextAfter; after == "" {
			break
		}
	}
	if steps != 2 || uploads != 2*page+1 || len(missing) != 2*page+1 || orphans != 1 {
		t.Errorf("%d more steps, %d uploads, %d without a key, %d orphans", steps, uploads, len(missing), orphans)
	}
	if len(b.discarded) > 0 {
		t.Errorf("a check deleted %q", b.discarded)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	_, b, s := install(t)
	for i := range mostFindings + 7 {
		b.keys["upl_"+strconv.Itoa(i)] = time.Unix(1, 0)
	}
	r := check(t, s, custody.StorageCheck{Repair: true})
	if len(r.Findings) != mostFindings || r.Omitted != 7 || len(b.discarded) != mostFindings {
		t.Errorf("%d findings, %d omitted, %d repaired", len(r.Findings), r.Omitted, len(b.discarded))
	}
}

// What is published while the check looks is no problem: only what disagrees twice is.
func TestOnlyWhatDisagreesTwiceCounts(t *testing.T) {
	in, b, s := install(t)
	u := in.Ready(t, "acme", "x")
	looks := 0
	b.looked = func(id string) { // the key's row shows after the first look
		if looks++; looks == 2 {
			b.keys[u.ID] = time.Now()
		}
	}
	if r := check(t, s, custody.StorageCheck{Repair: true}); len(r.Findings) != 0 || looks != 2 {
		t.Errorf("%+v after %d looks", r, looks)
	}
}

func TestOnlyTheAdministratorMay(t *testing.T) {
	_, _, s := install(t)
	caller := custody.Caller{CredentialID: "cred_1", OrgID: "acme", Role: custody.RoleSolutionCompanyUpload}
	var refusal *custody.Error
	if _, err := s.Check(t.Context(), caller, custody.StorageCheck{}, custody.Idempotency{}); !errors.As(err, &refusal) || refusal.Code != custody.CodeCredentialInvalid {
		t.Errorf("check: %v", err)
	}
	if _, err := s.Resume(t.Context(), caller, custody.Resumption{}, custody.Idempotency{}); !errors.As(err, &refusal) || refusal.Code != custody.CodeCredentialInvalid {
		t.Errorf("resume: %v", err)
	}
}
