package storetest

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
)

func metadataUpload(t *testing.T, in *Installation) {
	in.organization(t, "acme", 1000)
	u := in.insert(t, newUpload("acme", 200))
	got := in.read(t, u)
	if len(got.DigestState) != 0 {
		t.Errorf("a new upload has the digest state %x", got.DigestState)
	}
	got.DigestState = u.DigestState // empty and nil are one
	if !reflect.DeepEqual(got, u) {
		t.Errorf("got  %+v\nwant %+v", got, u)
	}
	if got.Status != custody.StatusInitiated || got.Sequence != 1 || got.NextPart != 1 {
		t.Errorf("a new upload is %s, sequence %d, next part %d", got.Status, got.Sequence, got.NextPart)
	}
	gates, err := in.Store.Gates(t.Context(), u.ID)
	if err != nil || len(gates) != len(custody.Gates) {
		t.Fatalf("%d gates, %v", len(gates), err)
	}
	for i, g := range gates {
		if want := (custody.GateResult{Name: custody.Gates[i].Name, State: custody.GatePending, Detail: map[string]any{}}); !reflect.DeepEqual(g, want) {
			t.Errorf("gate %d is %+v, want %+v", i+1, g, want)
		}
	}
	shown, err := in.Store.GatesShown(t.Context(), u.ID)
	if err != nil || len(shown) != len(custody.Gates) {
		t.Fatalf("%d gates to show, %v", len(shown), err)
	}
	for i, g := range shown {
		if want := (custody.GateShown{Name: custody.Gates[i].Name, State: custody.GatePending, Detail: json.RawMessage(`{}`)}); !reflect.DeepEqual(g, want) {
			t.Errorf("gate %d is shown as %+v, want %+v", i+1, g, want)
		}
	}
	events, err := in.Store.Events(t.Context(), u.ID, 0)
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	e := events[0]
	if e.ID == "" || e.OccurredAt.IsZero() {
		t.Errorf("the first event has no id or no time: %+v", e)
	}
	e.ID, e.OccurredAt = "", time.Time{}
	if want := (custody.Event{
		UploadID: u.ID, OrgID: "acme", PipelineID: u.PipelineID, Sequence: 1, Trigger: custody.TriggerReserved, Status: custody.StatusInitiated, Cause: cause("initiate"),
	}); e != want {
		t.Errorf("the first event is %+v, want %+v", e, want)
	}
	if status, err := in.Store.StatusOf(t.Context(), u.ID); err != nil || status != custody.StatusInitiated {
		t.Errorf("StatusOf: %s, %v", status, err)
	}
}

// A status tells the same of an upload as its row, retention included, and nothing of what no status tells.
func metadataState(t *testing.T, in *Installation) {
	in.organization(t, "acme", 1000)
	in.must(t, func(tx *sqlstore.Tx) error {
		return tx.SetRetention(t.Context(), custody.Retention{OrgID: "acme", Days: 2})
	})
	u := in.insert(t, newUpload("acme", 200))
	told := func(until time.Time) {
		t.Helper()
		row := in.read(t, u)
		want := custody.UploadState{RetainedUntil: until, Upload: custody.Upload{
			ID: row.ID, OrgID: row.OrgID, PipelineID: row.PipelineID, Status: row.Status, Sequence: row.Sequence, Filename: row.Filename, SizeBytes: row.SizeBytes,
			PartSizeBytes: row.PartSizeBytes, ReceivedBytes: row.ReceivedBytes, NextPart: row.NextPart, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
			ExpiresAt: row.ExpiresAt, Failure: row.Failure,
		}}
		if got, err := in.Store.UploadState(t.Context(), "acme", u.ID); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
		}
	}
	until := u.CreatedAt.Add(48 * time.Hour)
	told(until)
	in.move(t, &u, custody.TriggerPartAccepted)
	in.must(t, func(tx *sqlstore.Tx) error {
		return tx.Transition(t.Context(), &u, custody.Change{Trigger: custody.TriggerReservationLapsed, Failure: &custody.Failure{Code: "reservation_expired", Message: "it lapsed"}})
	})
	told(until)
	in.must(t, func(tx *sqlstore.Tx) error { return tx.SetRetention(t.Context(), custody.Retention{OrgID: "acme"}) })
	told(time.Time{})
	in.must(t, func(tx *sqlstore.Tx) error {
		return tx.SetRetention(t.Context(), custody.Retention{OrgID: "acme", Days: 2})
	})
	in.move(t, &u, custody.TriggerWithdrawal)
	told(time.Time{}) // a withdrawal began
}

func metadataOtherOrganization(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 200)
	in.organization(t, "rival", 1000)
	for _, c := range []struct{ orgID, uploadID string }{{"rival", u.ID}, {"nobody", u.ID}, {"", u.ID}, {"acme", "upl_nothing"}, {"acme", ""}} {
		_, err := in.Store.Upload(t.Context(), c.orgID, c.uploadID)
		wantErr(t, "Upload of "+c.orgID, err, custody.ErrNotFound)
		_, err = in.Store.UploadState(t.Context(), c.orgID, c.uploadID)
		wantErr(t, "UploadState of "+c.orgID, err, custody.ErrNotFound)
		_, err = in.Store.Published(t.Context(), c.orgID, c.uploadID)
		wantErr(t, "Published of "+c.orgID, err, custody.ErrNotFound)
		err = in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
			_, err := tx.UploadForChange(t.Context(), c.orgID, c.uploadID)
			return err
		})
		wantErr(t, "UploadForChange of "+c.orgID, err, custody.ErrNotFound)
		err = in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
			_, err := tx.StatusForChange(t.Context(), c.orgID, c.uploadID)
			return err
		})
		wantErr(t, "StatusForChange of "+c.orgID, err, custody.ErrNotFound)
	}
	_, err := in.Store.StatusOf(t.Context(), "upl_nothing")
	wantErr(t, "StatusOf", err, custody.ErrNotFound)
	_, err = in.Store.Part(t.Context(), u.ID, 1)
	wantErr(t, "Part", err, custody.ErrNotFound)
	_, err = in.Store.Quota(t.Context(), "nobody")
	wantErr(t, "Quota", err, custody.ErrNotFound)
}

func metadataPartRace(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 3*64)
	var want []custody.Part
	for number := 1; number <= 3; number++ {
		var winner atomic.Pointer[custody.Part]
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				p, u := newPart(u, number), u
				err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
					return tx.AppendPart(t.Context(), &u, p, []byte{byte(number)}, "")
				})
				switch {
				case err == nil && !winner.CompareAndSwap(nil, &p):
					t.Errorf("part %d has two winners", number)
				case err != nil && !errors.Is(err, custody.ErrConflict):
					t.Errorf("part %d: %v", number, err)
				}
			})
		}
		group.Wait()
		if winner.Load() == nil {
			t.Fatalf("part %d has no winner", number)
		}
		want = append(want, *winner.Load())
		u = in.read(t, u)
		if u.ReceivedBytes != int64(64*number) || u.NextPart != number+1 || !slices.Equal(u.DigestState, []byte{byte(number)}) || !u.UpdatedAt.Equal(winner.Load().AcceptedAt) {
			t.Errorf("after part %d: %d bytes, next part %d, state %x", number, u.ReceivedBytes, u.NextPart, u.DigestState)
		}
	}
	got, err := in.Store.Parts(t.Context(), u.ID)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the ledger is %+v, %v; want the winners %+v", got, err, want)
	}
	digests, err := in.Store.PartDigests(t.Context(), u.ID)
	if err != nil || !slices.EqualFunc(digests, want, func(d, p custody.Part) bool {
		return d == custody.Part{UploadID: p.UploadID, Number: p.Number, SizeBytes: p.SizeBytes, SHA256: p.SHA256}
	}) {
		t.Errorf("the ledger's digests are %+v, %v; want those of the winners %+v", digests, err, want)
	}
	for _, p := range want {
		if one, err := in.Store.Part(t.Context(), u.ID, p.Number); err != nil || one != p {
			t.Errorf("part %d: %+v, %v", p.Number, one, err)
		}
	}
}

func metadataPartStatus(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 3*64)
	attempt := func(number int) error {
		return in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
			u := u
			return tx.AppendPart(t.Context(), &u, newPart(u, number), nil, "")
		})
	}
	wantErr(t, "part 2 before part 1", attempt(2), custody.ErrConflict)
	in.move(t, &u, custody.TriggerPartAccepted)
	wantErr(t, "part 1 again", attempt(1), custody.ErrConflict)
	in.must(t, func(tx *sqlstore.Tx) error {
		if err := tx.AppendPart(t.Context(), &u, newPart(u, 2), nil, ""); err != nil {
			return err
		}
		return tx.AppendPart(t.Context(), &u, newPart(u, 3), nil, "c0ffee")
	})
	if kept := in.read(t, u); kept.SHA256 != "c0ffee" || len(kept.DigestState) != 0 || kept.ReceivedBytes != kept.SizeBytes || u.NextPart != kept.NextPart {
		t.Errorf("after the last part: %+v", kept)
	}
	if err := attempt(4); err == nil {
		t.Error("a part past the declared size was accepted")
	}
	withdrawn := in.reserved(t, "acme", 3*64)
	in.move(t, &withdrawn, custody.TriggerWithdrawal)
	u = withdrawn
	wantErr(t, "part 1 of a withdrawn upload", attempt(1), custody.ErrConflict)
	if parts, err := in.Store.Parts(t.Context(), u.ID); err != nil || len(parts) != 0 {
		t.Errorf("a refused part is in the ledger: %v, %v", parts, err)
	}
}

func metadataDerived(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 64)
	in.move(t, &u, custody.TriggerPartAccepted)
	g := custody.GateResult{
		Name: custody.GateMalwareScan, State: custody.GatePassed, StartedAt: custody.Now(), FinishedAt: custody.Now(),
		Detail: map[string]any{"engine": "ClamAV <1 & \"more\">", "windows": 2.0, "nested": map[string]any{"a": true}},
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.SetGate(t.Context(), u.ID, g) })
	gates, err := in.Store.Gates(t.Context(), u.ID)
	if err != nil || !reflect.DeepEqual(gates[2], g) || gates[1].State != custody.GatePending || gates[3].State != custody.GatePending {
		t.Errorf("gates are %+v, %v", gates, err)
	}
	shown, err := in.Store.GatesShown(t.Context(), u.ID)
	want := custody.GateShown{Name: g.Name, State: g.State, StartedAt: g.StartedAt, FinishedAt: g.FinishedAt, Detail: json.RawMessage(`{"engine":"ClamAV <1 & \"more\">","nested":{"a":true},"windows":2}`)}
	if err != nil || !reflect.DeepEqual(shown[2], want) || shown[1].State != custody.GatePending || shown[3].State != custody.GatePending {
		t.Errorf("gates are shown as %+v, %v", shown, err)
	}
	detail := func(is string) {
		t.Helper()
		if err := in.DB.InTx(t.Context(), func(q sqldb.Querier) error {
			_, err := q.Exec(t.Context(), `UPDATE gates SET detail = $1 WHERE upload_id = $2 AND name = 'malware_scan'`, is, u.ID)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, damaged := range []string{`{"engine":"Clam`, `[1]`, ``} {
		detail(damaged)
		if shown, err := in.Store.GatesShown(t.Context(), u.ID); err == nil {
			t.Errorf("the detail %q is shown: %+v", damaged, shown)
		}
	}
	detail(string(want.Detail))
	err = in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
		return tx.SetGate(t.Context(), u.ID, custody.GateResult{Name: "seventh", State: custody.GatePassed})
	})
	wantErr(t, "a gate that is not there", err, custody.ErrConflict)
	err = in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
		return tx.SetGate(t.Context(), u.ID, custody.GateResult{Name: custody.GateIntegrity, State: "waved_through"})
	})
	if err == nil {
		t.Error("a gate state that does not exist was kept")
	}

	first := custody.Artifact{UploadID: u.ID, Name: "text", ObjectKey: "k1", SizeBytes: 3, SHA256: "s1"}
	second := custody.Artifact{UploadID: u.ID, Name: "text", ObjectKey: "k2", SizeBytes: 4, SHA256: "s2"}
	for _, a := range []custody.Artifact{first, second} {
		in.must(t, func(tx *sqlstore.Tx) error { return tx.PutArtifact(t.Context(), a) })
		if got, err := in.Store.Artifact(t.Context(), u.ID, "text"); err != nil || got != a {
			t.Errorf("artifact is %+v, %v; want %+v", got, err, a)
		}
	}
	if got, err := in.Store.Published(t.Context(), "acme", u.ID); err != nil || got != (custody.Published{Status: u.Status, Visibility: u.Visibility}) {
		t.Errorf("without a context %+v is published, %v", got, err)
	}
	context := custody.Artifact{UploadID: u.ID, Name: "context", ObjectKey: "k3", SizeBytes: 5, SHA256: "s3"}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.PutArtifact(t.Context(), context) })
	if got, err := in.Store.Published(t.Context(), "acme", u.ID); err != nil || got != (custody.Published{Status: u.Status, Visibility: u.Visibility, Context: context}) {
		t.Errorf("%+v is published, %v", got, err)
	}
	in.must(t, func(tx *sqlstore.Tx) error {
		status, err := tx.StatusForChange(t.Context(), "acme", u.ID)
		if status != u.Status {
			t.Errorf("the status for change is %s", status)
		}
		return err
	})
	_, err = in.Store.Artifact(t.Context(), u.ID, "summary")
	wantErr(t, "an artifact that was not made", err, custody.ErrNotFound)
	p, err := in.Store.Part(t.Context(), u.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := in.Store.ObjectKeys(t.Context(), u.ID)
	if want := map[string]bool{p.ObjectKey: true, "k2": true, "k3": true}; err != nil || !maps.Equal(keys, want) {
		t.Errorf("object keys are %v, %v; want %v", keys, err, want)
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.DropLedger(t.Context(), u.ID) })
	if keys, err := in.Store.ObjectKeys(t.Context(), u.ID); err != nil || len(keys) != 0 {
		t.Errorf("after DropLedger: %v, %v", keys, err)
	}
}

func metadataCredentials(t *testing.T, in *Installation) {
	in.organization(t, "acme", 500)
	in.organization(t, "acme", 900)
	if q, want := in.quota(t, "acme"), (custody.Quota{OrgID: "acme", AllowanceBytes: 500}); q != want {
		t.Errorf("quota is %+v, want the first allowance %+v", q, want)
	}
	now := custody.Now()
	c := custody.Credential{
		ID: "cred_1", OrgID: "acme", Role: custody.RoleAIReader, Scopes: []custody.Scope{custody.ScopeMCP, custody.ScopeAIContext},
		KeyID: "key_1", CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.InsertCredential(t.Context(), c) })
	if got, err := in.Store.Credential(t.Context(), "cred_1"); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v; want %+v", got, err, c)
	}
	_, err := in.Store.Credential(t.Context(), "cred_2")
	wantErr(t, "unknown credential", err, custody.ErrNotFound)
	for what, bad := range map[string]custody.Credential{
		"taken id":             c,
		"unknown role":         {ID: "cred_3", OrgID: "acme", Role: "owner"},
		"unknown organization": {ID: "cred_4", OrgID: "nobody", Role: custody.RoleAIReader},
	} {
		if in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.InsertCredential(t.Context(), bad) }) == nil {
			t.Errorf("a credential with %s was kept", what)
		}
	}
	if err := in.Store.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
