package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

func newRecord(orgID, uploadID, requestID string) *custody.Record {
	return &custody.Record{
		ID: custody.NewID("rec"), RequestID: requestID, TraceID: "trc_1", OrgID: orgID, UploadID: uploadID, CredentialID: "cred_1",
		Surface: "rest", Outcome: custody.OutcomeServed, ContextSHA256: strings.Repeat("cd", 32), Bytes: 99, ServedAt: custody.Now(),
	}
}

// page reads records until there are no more.
func (in *Installation) page(t *testing.T, q custody.RecordQuery) (all []custody.Record) {
	t.Helper()
	for {
		records, next, err := in.Store.Records(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) > q.Limit || next != 0 && len(records) != q.Limit {
			t.Fatalf("a page of %d has %d records and goes on at %d", q.Limit, len(records), next)
		}
		all = append(all, records...)
		if next == 0 {
			return all
		}
		q.Before = next
	}
}

// AuditLines reads an organization's audit log, oldest first.
func (in *Installation) AuditLines(t *testing.T, orgID string) (lines []custody.AuditLine) {
	t.Helper()
	if err := in.DB.Each(t.Context(), `SELECT audit_id, org_id, at, action, credential_id, upload_id, status, detail, request_id, trace_id, previous_hash, line_hash
		FROM audit_lines WHERE org_id = $1 ORDER BY position`, []any{orgID}, func(scan func(...any) error) error {
		var l custody.AuditLine
		var at int64
		err := scan(&l.ID, &l.OrgID, &at, &l.Action, &l.CredentialID, &l.UploadID, &l.Status, &l.Detail, &l.RequestID, &l.TraceID, &l.PreviousHash, &l.Hash)
		l.At = time.UnixMilli(at).UTC()
		lines = append(lines, l)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return lines
}

// BrokenLinks counts what does not verify in an organization's two chains: a line whose hash is not its own, or that does
// not follow the one before it.
func (in *Installation) BrokenLinks(t *testing.T, orgID string) (broken int) {
	t.Helper()
	records := in.page(t, custody.RecordQuery{OrgID: orgID, Limit: 100})
	slices.Reverse(records)
	previous := custody.FirstHash
	for _, r := range records {
		kept := r.Hash
		if r.Link(previous); r.Hash != kept {
			broken++
		}
		previous = kept
	}
	previous = custody.FirstHash
	for _, l := range in.AuditLines(t, orgID) {
		kept := l.Hash
		if l.Link(previous); l.Hash != kept {
			broken++
		}
		previous = kept
	}
	return broken
}

func metadataChains(t *testing.T, in *Installation) {
	orgs := []string{"acme", "rival"}
	var group sync.WaitGroup
	for _, org := range orgs {
		in.reserved(t, org, 64) // the first audit line
		for i := range 12 {
			group.Go(func() {
				if err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
					r := newRecord(org, "upl_1", fmt.Sprint("req_", i))
					r.ServedAt = time.Now().In(time.FixedZone("CET", 3600)) // finer and elsewhere than what is kept
					return errors.Join(tx.AppendRecord(t.Context(), r), tx.AppendAudit(t.Context(), custody.AuditLine{
						OrgID: org, At: time.Now(), Action: "credential_issued", CredentialID: "admin", Detail: fmt.Sprint("größer <&> ", i),
					}))
				}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	takeBack := errors.New("take back")
	err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
		return errors.Join(tx.AppendRecord(t.Context(), newRecord("acme", "upl_1", "req_lost")), takeBack)
	})
	wantErr(t, "a transaction that was taken back", err, takeBack)
	for _, org := range orgs {
		if records := in.page(t, custody.RecordQuery{OrgID: org, Limit: 5}); len(records) != 12 {
			t.Errorf("%s has %d records, want 12", org, len(records))
		}
		if lines := in.AuditLines(t, org); len(lines) != 13 || lines[0].Action != "reserved" {
			t.Errorf("%s has %d audit lines, want 13", org, len(lines))
		}
		if n := in.BrokenLinks(t, org); n != 0 {
			t.Errorf("%d links of %s do not verify", n, org)
		}
	}
	err = in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
		return tx.AppendRecord(t.Context(), newRecord("nobody", "upl_1", "req_1"))
	})
	wantErr(t, "a record of an unknown organization", err, custody.ErrNotFound)
}

func metadataRecords(t *testing.T, in *Installation) {
	in.organization(t, "acme", 1)
	in.organization(t, "rival", 1)
	var written []custody.Record // newest first
	write := func(i int) {
		r := newRecord("acme", fmt.Sprint("upl_", i%2), fmt.Sprint("req_", i%3))
		in.must(t, func(tx *sqlstore.Tx) error {
			return errors.Join(tx.AppendRecord(t.Context(), r), tx.AppendRecord(t.Context(), newRecord("rival", r.UploadID, r.RequestID)))
		})
		written = slices.Insert(written, 0, *r)
	}
	for i := range 24 {
		write(i)
	}
	for _, c := range []struct{ uploadID, requestID string }{{"", ""}, {"upl_1", ""}, {"", "req_2"}, {"upl_0", "req_0"}, {"upl_7", ""}, {"", "req_7"}} {
		var want []custody.Record
		for _, r := range written {
			if (c.uploadID == "" || r.UploadID == c.uploadID) && (c.requestID == "" || r.RequestID == c.requestID) {
				want = append(want, r)
			}
		}
		for _, limit := range []int{1, 4, 5, 12, 24, 100} {
			got := in.page(t, custody.RecordQuery{OrgID: "acme", UploadID: c.uploadID, RequestID: c.requestID, Limit: limit})
			if !slices.Equal(got, want) {
				t.Errorf("filter %+v in pages of %d: %d records, want the %d written, newest first", c, limit, len(got), len(want))
			}
		}
	}
	if got := in.page(t, custody.RecordQuery{OrgID: "nobody", Limit: 10}); len(got) != 0 {
		t.Errorf("an unknown organization has %d records", len(got))
	}
	for _, r := range written {
		if got, err := in.Store.Record(t.Context(), r.ID); err != nil || got != r {
			t.Errorf("record %s is %+v, %v; want %+v", r.ID, got, err, r)
		}
	}
	_, unknown := in.Store.Record(t.Context(), "rec_0")
	wantErr(t, "a record that nobody wrote", unknown, custody.ErrNotFound)
	// What is written between two pages neither moves nor repeats anything.
	first, next, err := in.Store.Records(t.Context(), custody.RecordQuery{OrgID: "acme", Limit: 10})
	if err != nil || next == 0 {
		t.Fatalf("first page goes on at %d, %v", next, err)
	}
	want := slices.Clone(written)
	write(24)
	if got := append(first, in.page(t, custody.RecordQuery{OrgID: "acme", Before: next, Limit: 10})...); !slices.Equal(got, want) {
		t.Errorf("a record written between two pages moved them: %d records, want %d", len(got), len(want))
	}
}

func metadataReceipt(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 64)
	in.move(t, &u, custody.TriggerPartAccepted, custody.TriggerCompleted, custody.TriggerGatesPassed)
	in.must(t, func(tx *sqlstore.Tx) error {
		return tx.PutArtifact(t.Context(), custody.Artifact{UploadID: u.ID, Name: "context", ObjectKey: "k"})
	})
	_, err := in.Store.Withdrawing(t.Context(), u.ID)
	wantErr(t, "no withdrawal yet", err, custody.ErrNotFound)
	w := custody.Withdrawing{UploadID: u.ID, OrgID: "acme", CredentialID: "cred_9", Reason: "sent by mistake", RequestedAt: custody.Now(), RetainedUntil: custody.Now()}
	in.move(t, &u, custody.TriggerWithdrawal)
	in.must(t, func(tx *sqlstore.Tx) error {
		return errors.Join(tx.BeginWithdrawal(t.Context(), w), tx.CountWithdrawalAttempt(t.Context(), u.ID, []string{"quarantine", "key_store"}))
	})
	w.Attempts, w.Unconfirmed = 1, []string{"quarantine", "key_store"}
	got, err := in.Store.Withdrawing(t.Context(), u.ID)
	if w.UnconfirmedSince = got.UnconfirmedSince; err != nil || w.UnconfirmedSince.IsZero() || !reflect.DeepEqual(got, w) {
		t.Errorf("withdrawing is %+v, %v; want %+v", got, err, w)
	}
	in.must(t, func(tx *sqlstore.Tx) error {
		return tx.CountWithdrawalAttempt(t.Context(), u.ID, []string{"quarantine"})
	})
	w.Attempts, w.Unconfirmed = 2, []string{"quarantine"} // since the first of them
	if got, err := in.Store.Withdrawing(t.Context(), u.ID); err != nil || !reflect.DeepEqual(got, w) {
		t.Errorf("after another attempt withdrawing is %+v, %v; want %+v", got, err, w)
	}
	_, err = in.Store.Receipt(t.Context(), u.ID)
	wantErr(t, "no receipt yet", err, custody.ErrNotFound)

	noted := []custody.StoredObject{{Backend: "staging", Key: "a", SizeBytes: 3}, {Backend: "staging", Key: "b", SizeBytes: 4}, {Backend: "quarantine", Key: "a", SizeBytes: 3}}
	for _, attempt := range [][]custody.StoredObject{noted[:2], noted} { // what is noted twice counts once
		in.must(t, func(tx *sqlstore.Tx) error { return tx.NoteWithdrawalObjects(t.Context(), u.ID, attempt) })
	}
	if got, err := in.Store.WithdrawalObjects(t.Context(), u.ID); err != nil || !slices.Equal(got, []custody.DeletedObjects{{Backend: "quarantine", Objects: 1, Bytes: 3}, {Backend: "staging", Objects: 2, Bytes: 7}}) {
		t.Errorf("noted: %+v, %v", got, err)
	}
	freed := in.move(t, &u, custody.TriggerDeletionConfirmed)
	r := custody.Receipt{
		ID: custody.NewID("rct"), UploadID: u.ID, OrgID: "acme", CredentialID: "cred_9", Reason: w.Reason, RequestedAt: w.RequestedAt,
		WithdrawnAt: custody.Now(), QuotaBytes: freed, SHA256: strings.Repeat("ef", 32), Signed: "head.document.signature",
		Deletions: []custody.Deletion{{Backend: "staging", Objects: 2, Confirmation: "listing read back empty", ConfirmedAt: custody.Now()}},
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.InsertReceipt(t.Context(), r, u.Consent) })
	read := r
	read.Signed = ""
	if got, err := in.Store.Receipt(t.Context(), u.ID); err != nil || !reflect.DeepEqual(got, read) {
		t.Errorf("receipt is %+v, %v; want %+v", got, err, read)
	}
	if got, err := in.Store.SignedReceipt(t.Context(), "acme", r.ID); err != nil || got != r.Signed {
		t.Errorf("signed receipt is %q, %v", got, err)
	}
	_, err = in.Store.SignedReceipt(t.Context(), "rival", r.ID)
	wantErr(t, "another organization's receipt", err, custody.ErrNotFound)
	if left, err := in.Store.WithdrawalObjects(t.Context(), u.ID); err != nil || len(left) != 0 {
		t.Errorf("noted after the receipt: %v, %v", left, err)
	}
	if freed != 64 {
		t.Errorf("%d bytes freed, want 64", freed)
	}
	again := r
	again.ID = custody.NewID("rct")
	if in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.InsertReceipt(t.Context(), again, u.Consent) }) == nil {
		t.Error("one upload got two receipts")
	}

	kept := in.read(t, u)
	if kept.Filename != "" || kept.Notes != "" || kept.MaterialType != "" || len(kept.DigestState) != 0 {
		t.Errorf("a withdrawn upload remembers %q, %q, %q", kept.Filename, kept.Notes, kept.MaterialType)
	}
	wantConsent := u.Consent
	wantConsent.ConsentingUserID, wantConsent.ConsentingEmail = "", ""
	if kept.Consent != wantConsent {
		t.Errorf("consent is %+v, want %+v", kept.Consent, wantConsent)
	}
	if kept.Status != custody.StatusWithdrawn || kept.OrgID != "acme" || kept.SizeBytes != 64 || kept.Sequence != u.Sequence {
		t.Errorf("the audit metadata is %+v", kept)
	}
	if keys, err := in.Store.ObjectKeys(t.Context(), u.ID); err != nil || len(keys) != 0 {
		t.Errorf("the ledger still names %v, %v", keys, err)
	}
	if events, err := in.Store.Events(t.Context(), u.ID, 0); err != nil || int64(len(events)) != u.Sequence {
		t.Errorf("%d events remain, %v; want all %d", len(events), err, u.Sequence)
	}
}

func metadataRecall(t *testing.T, in *Installation) {
	u, other := in.reserved(t, "acme", 64), in.reserved(t, "acme", 64)
	in.organization(t, "rival", 1)
	var last custody.Record
	for i, r := range []custody.Record{
		{UploadID: u.ID, CredentialID: "cred_2"}, {UploadID: u.ID, CredentialID: "cred_1"}, {UploadID: other.ID, CredentialID: "cred_3"},
		{UploadID: u.ID, CredentialID: "cred_4", Outcome: custody.OutcomeRefusedVisibility}, {UploadID: u.ID, CredentialID: "cred_2"},
		{OrgID: "rival", UploadID: u.ID, CredentialID: "cred_5"},
	} {
		record := newRecord("acme", r.UploadID, "req_1")
		record.CredentialID, record.ServedAt = r.CredentialID, time.UnixMilli(int64(1000+i)).UTC()
		if r.Outcome != "" {
			record.Outcome = r.Outcome
		}
		if r.OrgID != "" {
			record.OrgID = r.OrgID
		}
		in.must(t, func(tx *sqlstore.Tx) error { return tx.AppendRecord(t.Context(), record) })
		if r.CredentialID == "cred_2" {
			last = *record
		}
	}
	want := []custody.Recall{{CredentialID: "cred_1", Servings: 1, LastServedAt: time.UnixMilli(1001).UTC()}, {CredentialID: "cred_2", Servings: 2, LastServedAt: time.UnixMilli(1004).UTC()}}
	if got, err := in.Store.Recalled(t.Context(), "acme", u.ID); err != nil || !slices.Equal(got, want) {
		t.Errorf("recalled: %+v, %v; want %+v", got, err, want)
	}
	w := custody.Withdrawing{UploadID: u.ID, OrgID: "acme", CredentialID: "cred_9", RequestedAt: custody.Now()}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.BeginWithdrawal(t.Context(), w) })
	for _, r := range in.page(t, custody.RecordQuery{OrgID: "acme", Limit: 100}) {
		if want := map[bool]time.Time{true: w.RequestedAt}[r.UploadID == u.ID]; !r.RecalledAt.Equal(want) {
			t.Errorf("a record of %s is recalled at %s, want %s", r.UploadID, r.RecalledAt, want)
		}
	}
	if r, err := in.Store.Record(t.Context(), last.ID); err != nil || !r.RecalledAt.Equal(w.RequestedAt) || r.Hash != last.Hash {
		t.Errorf("the record is %+v, %v", r, err)
	}
	if n := in.BrokenLinks(t, "acme"); n != 0 {
		t.Errorf("%d links do not verify after a recall", n)
	}
}
