package sqlstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/storetest"
)

// house holds READY uploads that were made one millisecond after the other.
type house struct {
	*storetest.Installation
	t    *testing.T
	made time.Time
}

func newHouse(t *testing.T) *house {
	h := &house{storetest.OpenSQLite(t), t, custody.Now()}
	h.in(func(tx *sqlstore.Tx) error { return tx.EnsureOrganization(t.Context(), "org_1", 1<<30) })
	h.in(func(tx *sqlstore.Tx) error { return tx.EnsureOrganization(t.Context(), "org_2", 1<<30) })
	return h
}

func (h *house) in(fn func(*sqlstore.Tx) error) {
	h.t.Helper()
	if err := h.Store.InTx(h.t.Context(), fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) upload(org, original string) string {
	h.t.Helper()
	h.made = h.made.Add(time.Millisecond)
	u := custody.Upload{
		ID: custody.NewID("upl"), OrgID: org, Kind: custody.KindCorrection, OriginalUploadID: original, SizeBytes: 1, PartSizeBytes: 64,
		Importance: custody.ImportanceNormal, CreatedAt: h.made, UpdatedAt: h.made, ExpiresAt: h.made.Add(time.Hour),
	}
	h.in(func(tx *sqlstore.Tx) error { return tx.InsertUpload(h.t.Context(), &u, custody.Cause{}) })
	h.status(u.ID, custody.StatusReady)
	return u.ID
}

func (h *house) status(id string, s custody.Status) {
	h.t.Helper()
	if err := h.Exec(h.t.Context(), `UPDATE uploads SET status = $1, due_at = 0 WHERE upload_id = $2`, s, id); err != nil {
		h.t.Fatal(err)
	}
}

func TestCorrectionsNewestLast(t *testing.T) {
	h := newHouse(t)
	wants := func(what, org, id string, limit int, want ...string) {
		t.Helper()
		got, err := h.Store.Corrections(t.Context(), org, id, limit)
		if err != nil || got == nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q, %v", what, got, want, err)
		}
	}
	original, other := h.upload("org_1", ""), h.upload("org_1", "")
	wants("none yet", "org_1", original, 20)
	wants("of no upload", "org_1", "", 20) // though most uploads have the original ''
	first := h.upload("org_1", original)
	second := h.upload("org_1", original)
	ofFirst := h.upload("org_1", first)
	ofOther := h.upload("org_1", other)
	wants("of the original", "org_1", original, 20, first, second, ofFirst)
	wants("the newest two", "org_1", original, 2, second, ofFirst)
	wants("of a correction", "org_1", first, 20, ofFirst)
	wants("of another", "org_1", other, 20, ofOther)
	wants("of the last", "org_1", ofFirst, 20)
	wants("for another organization", "org_2", original, 20)
	for _, hidden := range []custody.Status{custody.StatusInitiated, custody.StatusExpired, custody.StatusWithdrawing, custody.StatusWithdrawn} {
		h.status(first, hidden)
		wants(string(hidden), "org_1", original, 20, second, ofFirst)
	}
	h.status(ofFirst, custody.StatusWithdrawn)
	wants("two withdrawn", "org_1", original, 20, second)
	h.upload("org_2", original) // no door lets this in; no door may show it either
	h.upload("org_2", second)
	wants("made by another organization", "org_1", original, 20, second)
}

func TestReferencesNewestLast(t *testing.T) {
	h := newHouse(t)
	id, other := h.upload("org_1", ""), h.upload("org_1", "")
	for n := range 25 {
		h.in(func(tx *sqlstore.Tx) error {
			return tx.AppendReference(t.Context(), custody.Review{UploadID: id, ReviewID: fmt.Sprint(n), SourceURL: "https://a.example", Reviewer: "R", Notes: "n", AttachedAt: h.made}, "cred_1")
		})
	}
	got, err := h.Store.References(t.Context(), id, 20)
	if err != nil || len(got) != 20 || got[0].ReviewID != "5" || got[19].ReviewID != "24" ||
		got[19] != (custody.Reference{ReviewID: "24", SourceURL: "https://a.example", Reviewer: "R", AttachedAt: h.made}) {
		t.Errorf("references %+v, %v", got, err)
	}
	if got, err := h.Store.References(t.Context(), other, 20); err != nil || got == nil || len(got) != 0 {
		t.Errorf("references of another: %+v, %v", got, err)
	}
}

func TestOnlyANamelessReservationIsNamed(t *testing.T) {
	h := newHouse(t)
	u := custody.Upload{ID: h.upload("org_1", ""), Filename: "note.txt", Consent: custody.Consent{ConsentingUserID: "user-4711"}}
	name := func() error {
		return h.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.NameUpload(t.Context(), u) })
	}
	if err := name(); err != custody.ErrConflict {
		t.Errorf("a READY upload: %v", err)
	}
	h.status(u.ID, custody.StatusInitiated)
	if err := name(); err != nil {
		t.Fatal(err)
	}
	if err := name(); err != custody.ErrConflict {
		t.Errorf("a named upload: %v", err)
	}
	if got, err := h.Store.Upload(t.Context(), "org_1", u.ID); err != nil || got.Filename != "note.txt" || got.Consent != u.Consent {
		t.Errorf("upload %+v, %v", got, err)
	}
}
