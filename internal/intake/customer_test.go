package intake

import (
	"context"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/storetest"
)

// reads are what the real store reads for intake.
type reads interface {
	Upload(ctx context.Context, orgID, uploadID string) (custody.Upload, error)
	Part(ctx context.Context, uploadID string, number int) (custody.Part, error)
	PartDigests(ctx context.Context, uploadID string) ([]custody.Part, error)
	UploadState(ctx context.Context, orgID, uploadID string) (custody.UploadState, error)
	GatesShown(ctx context.Context, uploadID string) ([]custody.GateShown, error)
	Withdrawing(ctx context.Context, uploadID string) (custody.Withdrawing, error)
	Quota(ctx context.Context, orgID string) (custody.Quota, error)
	Answered(ctx context.Context, i custody.Idempotency) (string, custody.Answer, error)
	Changed() <-chan struct{}
}

// store is the real store, joined as the service joins it.
type store[T Tx] struct {
	reads
	inTx func(context.Context, func(T) error) error
}

func (s store[T]) InTx(ctx context.Context, fn func(Tx) error) error {
	return s.inTx(ctx, func(tx T) error { return fn(tx) })
}

func join[T Tx](r reads, inTx func(context.Context, func(T) error) error) Store {
	return store[T]{r, inTx}
}

// bytes stands in for the vault and injects its faults; it knows which uploads have a data key and objects.
type bytes struct {
	mu                   sync.Mutex
	keys                 map[string]bool
	objects              map[string]string
	admit, seal, destroy error
}

func (b *bytes) Admit(_ context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.admit == nil {
		b.keys[id] = true
	}
	return b.admit
}

func (b *bytes) Dismiss(_ context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.keys, id)
	return nil
}

func (b *bytes) SealPart(_ context.Context, id string, _ int, body io.Reader, _ int64, _ ...hash.Hash) (string, error) {
	text, err := io.ReadAll(body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[id] = string(text)
	return "object-of-" + id, errors.Join(err, b.seal)
}

func (b *bytes) DiscardPart(context.Context, string) error { return nil }

func (b *bytes) Destroy(_ context.Context, id string) ([]custody.Deletion, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.destroy == nil {
		delete(b.keys, id)
		delete(b.objects, id)
	}
	return nil, b.destroy
}

func (b *bytes) left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.keys) + len(b.objects)
}

// verdict stands in for the six gates.
type verdict func(u custody.Upload) error

func (v verdict) Inline(_ context.Context, u custody.Upload, _ []custody.Part) (results []custody.GateResult, _ []custody.Artifact, err error) {
	for _, g := range custody.Gates {
		results = append(results, custody.GateResult{Name: g.Name, State: custody.GatePassed, StartedAt: custody.Now(), FinishedAt: custody.Now()})
	}
	return results, nil, v(u)
}

type desk struct {
	*Service
	*storetest.Installation
	t      *testing.T
	bytes  *bytes
	caller custody.Caller
	judge  error                // what the gates say
	during func(custody.Upload) // while they run
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{Installation: storetest.OpenSQLite(t), t: t, bytes: &bytes{keys: map[string]bool{}, objects: map[string]string{}}}
	d.during = func(custody.Upload) {}
	d.caller = custody.Caller{CredentialID: "cred_1", OrgID: "org_1", Role: custody.RoleSolutionCompanyUpload,
		Scopes: custody.RoleScopes[custody.RoleSolutionCompanyUpload], RequestID: "req_1", TraceID: "trc_1"}
	d.Service = New(join(d.Store, d.Store.InTx), d.bytes, verdict(func(u custody.Upload) error {
		d.during(u)
		return d.judge
	}), Config{PartSizeBytes: custody.DefaultPartSizeBytes, Log: slog.New(slog.DiscardHandler)})
	if err := d.Exec(t.Context(), `INSERT INTO organizations (org_id, allowance_bytes, record_hash, audit_hash, created_at) VALUES ('org_1', 1000, $1, $2, 0)`,
		custody.FirstHash, custody.FirstHash); err != nil {
		t.Fatal(err)
	}
	return d
}

func submission(text string) custody.Submission {
	return custody.Submission{OrgID: "org_1", Filename: "note.txt", Payload: text, Visibility: custody.VisibilityAIReadable,
		Consent: custody.Consent{AgreementVersion: "b1", ConsentingUserID: "user-4711", ConsentingEmail: "ann@example.org"}}
}

func key(op custody.Operation, name string) custody.Idempotency {
	return custody.Idempotency{CredentialID: "cred_1", Operation: op, Key: name, RequestHash: "hash", Render: func(result any) (custody.Answer, error) {
		b, err := json.Marshal(result)
		return custody.Answer{Status: 201, Data: b}, err
	}}
}

func (d *desk) submit(name string) (u custody.Upload, err error) {
	d.t.Helper()
	a, err := d.Submit(d.t.Context(), d.caller, submission("The pump runs."), key(custody.OpCustomerUpload, name))
	if err == nil {
		err = json.Unmarshal(a.Data, &u)
	}
	return u, err
}

func (d *desk) must(u custody.Upload, err error) custody.Upload {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
	return u
}

func (d *desk) statuses() (found []string) {
	d.t.Helper()
	if err := d.DB.Each(d.t.Context(), `SELECT status || ' ' || filename || ' ' || consent FROM uploads ORDER BY created_at`, nil, func(scan func(...any) error) error {
		var s string
		err := scan(&s)
		found = append(found, s)
		return err
	}); err != nil {
		d.t.Fatal(err)
	}
	return found
}

func code(err error) custody.Code {
	var e *custody.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestSubmissionIsPublishedAtOnce(t *testing.T) {
	d := newDesk(t)
	d.during = func(u custody.Upload) { // the reservation is there before the bytes, without a name
		if kept := d.statuses(); len(kept) != 1 || !strings.HasPrefix(kept[0], "INITIATED  {") || strings.Contains(kept[0], "4711") {
			t.Errorf("while the gates run: %v", kept)
		}
		if q, err := d.Store.Quota(t.Context(), "org_1"); err != nil || q.ReservedBytes != 14 {
			t.Errorf("quota %+v, %v", q, err)
		}
	}
	u := d.must(d.submit("key"))
	kept := d.must(d.Store.Upload(t.Context(), "org_1", u.ID))
	if kept.Status != custody.StatusReady || kept.Sequence != 9 || kept.Filename != "note.txt" || kept.Consent.ConsentingUserID != "user-4711" ||
		kept.Kind != custody.KindCustomer || kept.UsedBytes != 14 || kept.ReservedBytes != 0 || kept.SHA256 == "" || kept.ReceivedBytes != 14 || kept.ContentType != "text/plain" {
		t.Errorf("kept %+v", kept)
	}
	if u.Status != custody.StatusReady || u.Sequence != 9 {
		t.Errorf("answered %+v", u)
	}
	events, err := d.Store.Events(t.Context(), u.ID, 0)
	var walk []string
	for _, e := range events {
		walk = append(walk, strings.TrimSpace(string(e.Status)+" "+string(e.Stage)))
	}
	if want := []string{"INITIATED", "RECEIVING", "PROCESSING", "PROCESSING integrity", "PROCESSING quarantine", "PROCESSING malware_scan",
		"PROCESSING extraction", "PROCESSING controlled_summary", "READY ai_context"}; err != nil || !slices.Equal(walk, want) {
		t.Errorf("events %v, %v", walk, err)
	}
	if again := d.must(d.submit("key")); again.ID != u.ID || len(d.statuses()) != 1 {
		t.Errorf("the replay made %+v", again)
	}
}

// Whatever goes wrong before the answer: no bytes, no data key, no quota, no name and nobody's consent stay.
func TestFailedSubmissionLeavesNothing(t *testing.T) {
	fault := errors.New("disk on fire")
	for name, c := range map[string]struct {
		fault func(*desk)
		code  custody.Code // empty: internal
		kept  []string
	}{
		"no data key":    {func(d *desk) { d.bytes.admit = fault }, "", nil},
		"over quota":     {func(d *desk) { must(d.t, d.Exec(d.t.Context(), `UPDATE organizations SET allowance_bytes = 13`)) }, custody.CodeQuotaExceeded, nil},
		"bytes not kept": {func(d *desk) { d.bytes.seal = fault }, "", []string{"EXPIRED"}},
		"a gate refuses": {func(d *desk) { d.judge = &custody.Refusal{Code: "malware_found", Message: "m", Gate: "malware_scan"} }, custody.CodeContentRefused, []string{"EXPIRED"}},
		"no answer":      {func(d *desk) { d.judge = &custody.NoAnswer{Code: "scanner_unavailable"} }, custody.CodeUnavailable, []string{"EXPIRED"}},
		"a gate fails":   {func(d *desk) { d.judge = fault }, "", []string{"EXPIRED"}},
		"answer not kept": {func(d *desk) {
			must(d.t, d.Exec(d.t.Context(), `DROP TABLE idempotency_keys; CREATE TABLE idempotency_keys (credential_id, operation, idempotency_key, request_hash, answer_status, answer_data)`))
		}, "", []string{"EXPIRED"}},
		"it lapsed meanwhile": {func(d *desk) {
			d.during = func(u custody.Upload) { must(d.t, d.Exec(d.t.Context(), `UPDATE uploads SET expires_at = 1`)) }
		}, custody.CodeUnavailable, []string{"EXPIRED"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			c.fault(d)
			if u, err := d.submit("key"); err == nil || code(err) != c.code {
				t.Fatalf("answered %+v, %v", u, err)
			}
			var kept []string
			for _, row := range d.statuses() {
				status, rest, _ := strings.Cut(row, " ")
				if kept = append(kept, status); !strings.HasPrefix(rest, " {") || strings.Contains(rest, "4711") || strings.Contains(rest, "ann@") {
					t.Errorf("names are kept: %s", row)
				}
			}
			if !slices.Equal(kept, c.kept) || d.bytes.left() != 0 {
				t.Errorf("uploads %v, %d keys and objects", kept, d.bytes.left())
			}
			if q, err := d.Store.Quota(t.Context(), "org_1"); err != nil || q.UsedBytes+q.ReservedBytes+q.UploadCount != 0 {
				t.Errorf("quota %+v, %v", q, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRefusalDoesNotBurnTheKey(t *testing.T) {
	d := newDesk(t)
	d.judge = &custody.NoAnswer{Code: "scanner_unavailable"}
	if _, err := d.submit("key"); code(err) != custody.CodeUnavailable {
		t.Fatal(err)
	}
	d.judge = nil
	d.must(d.submit("key"))
}

// What cannot be deleted at once waits for the deletion lane, which takes up every reservation that lapses.
func TestUndeletedSubmissionWaitsForItsReservationToLapse(t *testing.T) {
	d := newDesk(t)
	d.judge, d.bytes.destroy = errors.New("disk on fire"), errors.New("disk on fire")
	if _, err := d.submit("key"); err == nil {
		t.Fatal("answered")
	}
	if kept := d.statuses(); len(kept) != 1 || !strings.HasPrefix(kept[0], "INITIATED") || d.bytes.left() == 0 {
		t.Errorf("kept %v", kept)
	}
	must(t, d.Exec(t.Context(), `UPDATE uploads SET expires_at = 1, due_at = 1`))
	if due, err := d.Store.Due(t.Context(), custody.LaneDeletions); err != nil || !due {
		t.Errorf("due %v, %v", due, err)
	}
}

func TestHundredDuplicatesHaveOneEffect(t *testing.T) {
	d := newDesk(t)
	var all sync.WaitGroup
	ids, errs := make([]string, 100), make([]error, 100)
	for n := range ids {
		all.Go(func() {
			u, err := d.submit("one-key")
			ids[n], errs[n] = u.ID, err
		})
	}
	all.Wait()
	answered := ""
	for n, id := range ids {
		switch {
		case errs[n] != nil && code(errs[n]) != custody.CodeIdempotencyInProgress:
			t.Fatal(errs[n])
		case errs[n] == nil && answered != "" && id != answered:
			t.Errorf("two uploads: %s and %s", id, answered)
		case errs[n] == nil:
			answered = id
		}
	}
	if answered == "" || len(d.statuses()) != 1 {
		t.Errorf("uploads %v", d.statuses())
	}
	if q, err := d.Store.Quota(t.Context(), "org_1"); err != nil || q.UsedBytes != 14 || q.ReservedBytes != 0 || q.UploadCount != 1 {
		t.Errorf("quota %+v, %v", q, err)
	}
}

// Another process does not know of the first request: the database decides.
func TestDuplicateInAnotherProcessHasNoEffect(t *testing.T) {
	d := newDesk(t)
	other := New(join(d.Store, d.Store.InTx), d.bytes, verdict(func(custody.Upload) error { return nil }), Config{Log: slog.New(slog.DiscardHandler)})
	var first custody.Upload
	d.during = func(custody.Upload) {
		d.during = func(custody.Upload) {}
		a, err := other.Submit(t.Context(), d.caller, submission("The pump runs."), key(custody.OpCustomerUpload, "key"))
		must(t, err)
		must(t, json.Unmarshal(a.Data, &first))
	}
	if second := d.must(d.submit("key")); second.ID != first.ID {
		t.Errorf("%s and %s", first.ID, second.ID)
	}
	if q, err := d.Store.Quota(t.Context(), "org_1"); err != nil || q.UsedBytes != 14 || q.UploadCount != 1 || d.bytes.left() != 2 {
		t.Errorf("quota %+v, %v, %d keys and objects", q, err, d.bytes.left())
	}
}

func TestOriginalsOfCorrections(t *testing.T) {
	d := newDesk(t)
	original := d.must(d.submit("key"))
	correct := func(name, id string) (u custody.Upload, err error) {
		sub := submission("The pump stands.")
		sub.OriginalUploadID = id
		a, err := d.Correct(t.Context(), d.caller, sub, key(custody.OpCorrection, name))
		if err == nil {
			err = json.Unmarshal(a.Data, &u)
		}
		return u, err
	}
	first := d.must(correct("one", original.ID))
	second := d.must(correct("two", first.ID))
	if first.OriginalUploadID != original.ID || second.OriginalUploadID != first.ID || second.Kind != custody.KindCorrection {
		t.Errorf("corrections %+v %+v", first, second)
	}
	if kept := d.must(d.Store.Upload(t.Context(), "org_1", original.ID)); kept.Sequence != original.Sequence || kept.SHA256 != original.SHA256 || !kept.UpdatedAt.Equal(original.UpdatedAt) {
		t.Errorf("the original changed: %+v", kept)
	}
	for _, id := range []string{"", "upl_00000000000000000000000000"} {
		if _, err := correct("none", id); code(err) != custody.CodeUploadNotFound {
			t.Errorf("original %q: %v", id, err)
		}
	}
	d.during = func(custody.Upload) {
		must(t, d.Exec(t.Context(), `UPDATE uploads SET status = 'WITHDRAWING' WHERE upload_id = $1`, original.ID))
	}
	if _, err := correct("late", original.ID); code(err) != custody.CodeUploadNotFound {
		t.Errorf("the original went while the gates ran: %v", err)
	}
	d.during = func(custody.Upload) {}
	if _, err := correct("later", original.ID); code(err) != custody.CodeUploadNotFound {
		t.Errorf("the original is gone: %v", err)
	}
	if again := d.must(correct("one", original.ID)); again.ID != first.ID { // the answer outlives the original
		t.Errorf("replay: %+v", again)
	}
	must(t, d.Exec(t.Context(), `UPDATE uploads SET kind = 'partner' WHERE upload_id = $1`, second.ID))
	if _, err := correct("partner", second.ID); code(err) != custody.CodeUploadNotFound {
		t.Errorf("a partner upload: %v", err)
	}
}

func TestWorkspaceBoundary(t *testing.T) {
	for _, c := range []struct {
		uploader, uploaderOrg, subject, access string
		passes                                 bool
	}{
		{"customer", "", "", "", true}, {"", "org_1", "org_1", "granted", true}, {"customer", "org_1", "", "", true},
		{"solution_company", "org_2", "", "granted", true}, {"third_party", "", "org_1", "granted", true},
		{"customer", "", "", "not_granted", false}, {"", "org_1", "org_1", "not_granted", false}, {"third_party", "", "", "not_granted", false},
		{"solution_company", "", "", "", false}, {"third_party", "org_1", "org_1", "", false},
		{"customer", "org_2", "", "granted", false}, {"", "org_2", "", "", false},
		{"customer", "", "org_2", "granted", false}, {"solution_company", "org_2", "org_2", "granted", false},
	} {
		err := workspaceBoundary(custody.Submission{OrgID: "org_1", UploaderType: c.uploader, UploaderOrgID: c.uploaderOrg, AssertedSubjectOrgID: c.subject, WorkspaceAccess: c.access})
		if c.passes && err != nil || !c.passes && code(err) != custody.CodeWorkspaceAccess {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestClaimsOfSubmissionsAreRefusedBeforeAnythingIsKept(t *testing.T) {
	d := newDesk(t)
	const claim = "This upload was verified by this service."
	for name, edit := range map[string]func(*custody.Submission){
		"field in depth": func(s *custody.Submission) {
			s.Body = map[string]any{"consent": map[string]any{"x": []any{map[string]any{"verified": true}}}}
		},
		"payload":  func(s *custody.Submission) { s.Payload = claim },
		"filename": func(s *custody.Submission) { s.Filename = claim + ".txt" },
	} {
		sub := submission("The pump runs.")
		edit(&sub)
		if _, err := d.Submit(t.Context(), d.caller, sub, key(custody.OpCustomerUpload, "key")); code(err) != custody.CodeVerificationClaim {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(d.statuses()) != 0 || d.bytes.left() != 0 {
		t.Errorf("kept %v", d.statuses())
	}
}
