package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

// metadataOrganizations lists organizations in pages, with their figures.
func metadataOrganizations(t *testing.T, in *Installation) {
	now := custody.Now()
	for _, org := range []string{"zebra", "Zoo", "", "acme", "größe"} {
		in.organization(t, org, 1000)
	}
	in.reserved(t, "acme", 64)
	done := in.reserved(t, "acme", 100)
	in.move(t, &done, custody.TriggerPartAccepted, custody.TriggerCompleted)
	in.must(t, func(tx *sqlstore.Tx) error {
		credential := func(id, org string, ends time.Time) error {
			return tx.InsertCredential(t.Context(), custody.Credential{ID: id, OrgID: org, Role: custody.RoleAIReader, CreatedAt: now, ExpiresAt: ends})
		}
		return errors.Join(credential("cred_1", "acme", now.Add(time.Hour)), credential("cred_2", "acme", now.Add(time.Hour)), credential("cred_3", "acme", now),
			credential("cred_4", "acme", now.Add(time.Hour)), tx.RevokeCredential(t.Context(), "cred_4", now), credential("cred_5", "zebra", now.Add(time.Hour)),
			tx.SetRetention(t.Context(), custody.Retention{OrgID: "acme", Days: 9}))
	})
	for limit := 1; limit <= 5; limit++ {
		var found []custody.OrganizationState
		for after := ""; ; {
			page, more, err := in.Store.Organizations(t.Context(), custody.OrganizationQuery{After: after, Limit: limit, At: now})
			if err != nil || len(page) > limit || more && len(page) != limit || len(found) > 4 {
				t.Fatalf("after %q: %+v, %v; %d before", after, page, err, len(found))
			}
			if found = append(found, page...); !more {
				break
			}
			after = page[len(page)-1].OrgID
		}
		var ids []string
		for _, o := range found {
			ids = append(ids, o.OrgID)
		}
		if !slices.Equal(ids, []string{"Zoo", "acme", "größe", "zebra"}) {
			t.Fatalf("in pages of %d: %q", limit, ids)
		}
		acme := found[1]
		if acme.CreatedAt.IsZero() || acme.CreatedAt.Before(now.Add(-time.Minute)) {
			t.Errorf("acme is from %s", acme.CreatedAt)
		}
		acme.CreatedAt = time.Time{}
		want := custody.OrganizationState{
			Quota:         custody.Quota{OrgID: "acme", AllowanceBytes: 1000, UsedBytes: 100, ReservedBytes: 64, UploadCount: 2},
			RetentionDays: 9, ActiveCredentials: 2,
		}
		if acme != want || found[0].ActiveCredentials != 0 || found[3].ActiveCredentials != 1 {
			t.Errorf("acme is %+v, want %+v", acme, want)
		}
	}
}

// metadataAllowance changes an allowance while reservations run: what is reserved never goes beyond what was allowed when it was.
func metadataAllowance(t *testing.T, in *Installation) {
	set := func(bytes int64) custody.Quota {
		t.Helper()
		var q custody.Quota
		in.must(t, func(tx *sqlstore.Tx) (err error) {
			q, err = tx.SetAllowance(t.Context(), "acme", bytes)
			return err
		})
		return q
	}
	reserve := func(size int64) error {
		return in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.ReserveQuota(t.Context(), "acme", size) })
	}
	err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
		_, err := tx.SetAllowance(t.Context(), "acme", 1)
		return err
	})
	wantErr(t, "an allowance for nobody", err, custody.ErrConflict)
	in.organization(t, "acme", 100)
	in.organization(t, "rival", 100)
	if err := reserve(80); err != nil {
		t.Fatal(err)
	}
	if q := set(50); q != (custody.Quota{OrgID: "acme", AllowanceBytes: 50, ReservedBytes: 80, UploadCount: 1}) || q.AvailableBytes() != 0 {
		t.Errorf("below what is reserved: %+v", q)
	}
	wantErr(t, "one byte more", reserve(1), custody.ErrQuota)
	set(81)
	if err := reserve(1); err != nil {
		t.Errorf("to the last byte: %v", err)
	}
	wantErr(t, "beyond the last byte", reserve(1), custody.ErrQuota)
	if q := in.quota(t, "rival"); q.AllowanceBytes != 100 {
		t.Errorf("the other's is %+v", q)
	}
	if err := in.Exec(t.Context(), `UPDATE organizations SET allowance_bytes = -1`); err == nil {
		t.Error("an allowance below 0 was taken")
	}

	// 40 reservations of one byte, and a change from room for all to room for 10 more than there are at that moment: never more.
	set(1000)
	var taken atomic.Int64
	var atChange int64
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if err := reserve(1); err == nil {
				taken.Add(1)
			} else if !errors.Is(err, custody.ErrQuota) {
				t.Error(err)
			}
		})
		if i == 10 {
			all.Go(func() {
				err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
					q, err := tx.SetAllowance(t.Context(), "acme", 0) // holds the row: what is read stays so until the commit
					if err != nil {
						return err
					}
					atChange = q.ReservedBytes
					_, err = tx.SetAllowance(t.Context(), "acme", q.ReservedBytes+10)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	q := in.quota(t, "acme")
	if q.ReservedBytes != 81+taken.Load() || q.AllowanceBytes != atChange+10 || q.ReservedBytes > q.AllowanceBytes || q.ReservedBytes != min(81+40, atChange+10) {
		t.Errorf("quota is %+v; %d were taken, %d were there at the change", q, taken.Load(), atChange)
	}
}

// metadataStuck counts what waits, runs, is held and has failed.
func metadataStuck(t *testing.T, in *Installation) {
	ctx := custody.AcrossOrganizations(t.Context())
	busy := func(lane custody.Lane, waits, runs int) {
		t.Helper()
		waiting, _, err := in.Store.Backlog(ctx, lane)
		running, err2 := in.Store.Running(ctx, lane)
		if err = errors.Join(err, err2); err != nil || waiting != waits || running != runs {
			t.Errorf("%v: %d wait, %d run, %v; want %d and %d", lane, waiting, running, err, waits, runs)
		}
	}
	if stuck, err := in.Store.StuckUploads(ctx, 5); err != nil || stuck.Held != 0 || stuck.Failed != 0 || len(stuck.Listed) != 0 {
		t.Errorf("nothing is stuck, and there is %+v, %v", stuck, err)
	}
	processing := []custody.Trigger{custody.TriggerPartAccepted, custody.TriggerCompleted}
	var uploads []custody.Upload
	for i := range 6 {
		u := in.reserved(t, []string{"acme", "rival"}[i%2], 64)
		in.move(t, &u, processing...)
		uploads = append(uploads, u)
	}
	in.reserved(t, "acme", 64) // its reservation has an hour
	busy(custody.LaneGates, 6, 0)
	busy(custody.LaneDeletions, 0, 0)
	var claims []custody.Claim
	in.must(t, func(tx *sqlstore.Tx) (err error) {
		claims, err = tx.ClaimDue(ctx, custody.LaneGates, 4)
		return err
	})
	if err := in.Exec(ctx, `UPDATE uploads SET lease_until = lease_until + 3600000 WHERE lease <> ''`); err != nil { // however slow this test is
		t.Fatal(err)
	}
	busy(custody.LaneGates, 2, 4)
	began := custody.Now().Add(-time.Hour)
	hold := func(c custody.Claim, began time.Time, detail map[string]any) {
		in.must(t, func(tx *sqlstore.Tx) error {
			return tx.SetGate(ctx, c.Upload.ID, custody.GateResult{Name: custody.GateMalwareScan, State: custody.GateRunning, StartedAt: began, Detail: detail})
		})
	}
	why := map[string]any{"last_error": "scanner_unavailable", "last_message": `the engine says "last"`}
	hold(claims[0], began, why)
	hold(claims[1], began.Add(-time.Minute), why)
	hold(claims[2], began, map[string]any{"page": 3, "note": `"last_error"`}) // had no attempt without an answer
	in.must(t, func(tx *sqlstore.Tx) error { return tx.Postpone(ctx, claims[0], time.Minute) })
	busy(custody.LaneGates, 2, 3) // the held one is due later
	failed := map[string]bool{}
	for _, u := range uploads {
		if u.ID != claims[0].Upload.ID && u.ID != claims[1].Upload.ID && u.ID != claims[2].Upload.ID {
			in.move(t, &u, custody.TriggerGateExhausted)
			failed[u.ID] = true
		}
	}
	stuck, err := in.Store.StuckUploads(ctx, 2)
	if err != nil || stuck.Held != 2 || stuck.Failed != 3 || len(stuck.Listed) != 4 {
		t.Fatalf("%+v, %v", stuck, err)
	}
	for i, want := range []custody.StuckUpload{
		{UploadID: claims[1].Upload.ID, OrgID: claims[1].Upload.OrgID, Since: began.Add(-time.Minute)}, {UploadID: claims[0].Upload.ID, OrgID: claims[0].Upload.OrgID, Since: began},
	} {
		want.Status, want.Failure = custody.StatusProcessing, custody.Failure{Gate: custody.GateMalwareScan, Code: "scanner_unavailable", Message: `the engine says "last"`}
		if stuck.Listed[i] != want {
			t.Errorf("held %d is %+v, want %+v", i, stuck.Listed[i], want)
		}
	}
	for i, u := range stuck.Listed[2:] {
		if !failed[u.UploadID] || u.Status != custody.StatusFailed || u.Gate != custody.GateExtraction || u.Code != "extractor_unavailable" || u.Message != "No answer." || u.Since.IsZero() {
			t.Errorf("failed %d is %+v", i, u)
		}
	}
	if a, b := stuck.Listed[2], stuck.Listed[3]; a.Since.Before(b.Since) || a.UploadID == b.UploadID {
		t.Errorf("the newest failure is not the first: %+v", stuck.Listed[2:])
	}
}

// metadataAuditSearch finds audit lines by every filter, in pages of every size.
func metadataAuditSearch(t *testing.T, in *Installation) {
	const lines = 40
	start := custody.Now().Add(-time.Hour)
	var all []custody.AuditLine
	for _, org := range []string{"", "acme", "rival"} {
		in.organization(t, org, 1)
	}
	for i := range lines { // four in each millisecond, three organizations, and times that do not always grow
		l := custody.AuditLine{
			OrgID: []string{"acme", "rival", ""}[i%3], At: start.Add(time.Duration((i/4)^1) * time.Millisecond), Action: []string{"completed", "quota_set"}[i/5%2],
			CredentialID: fmt.Sprint("cred_", i%4), RequestID: fmt.Sprint("req_", i), Detail: "größer <&>",
		}
		if i%2 == 0 {
			l.UploadID = fmt.Sprint("upl_", i%6)
		}
		in.must(t, func(tx *sqlstore.Tx) error { return tx.AppendAudit(t.Context(), l) })
		all = append(all, l)
	}
	for name, q := range map[string]custody.AuditQuery{
		"all": {}, "an organization": {OrgID: "acme"}, "an upload": {UploadID: "upl_2"}, "a credential": {CredentialID: "cred_3"}, "an action": {Action: "quota_set"},
		"since": {Since: start.Add(4 * time.Millisecond)}, "until": {Until: start.Add(4 * time.Millisecond)}, "a time": {Since: start.Add(2 * time.Millisecond), Until: start.Add(3 * time.Millisecond)},
		"everything": {OrgID: "rival", UploadID: "upl_4", CredentialID: "cred_0", Action: "completed", Since: start, Until: start.Add(time.Second)},
		"nobody":     {OrgID: "nobody"}, "a quote": {Action: "' OR 1 = 1 --"}, "no time": {Until: time.UnixMilli(0)},
	} {
		want := map[string]bool{}
		for _, l := range all {
			if (q.OrgID == "" || q.OrgID == l.OrgID) && (q.UploadID == "" || q.UploadID == l.UploadID) && (q.CredentialID == "" || q.CredentialID == l.CredentialID) &&
				(q.Action == "" || q.Action == l.Action) && !l.At.Before(q.Since) && (q.Until.IsZero() || l.At.Before(q.Until)) {
				want[l.RequestID] = true
			}
		}
		if unfit := name == "nobody" || name == "a quote" || name == "no time"; unfit != (len(want) == 0) {
			t.Fatalf("%s: %d lines fit", name, len(want))
		}
		for _, limit := range []int{1, 3, 7, lines + 1} {
			q, found, last := q, map[string]bool{}, custody.AuditPosition{At: start.Add(time.Hour)}
			for q.Limit = limit; ; {
				page, next, err := in.Store.AuditLines(t.Context(), q)
				if err != nil || len(page) > limit || next.ID != "" && len(page) != limit || len(found) > lines || t.Failed() {
					t.Fatalf("%s in pages of %d: %d lines, then %+v, %v", name, limit, len(page), next, err)
				}
				for _, l := range page {
					if l.Audit.At.After(last.At) || l.Audit.At.Equal(last.At) && l.Audit.ID >= last.ID || l.Position == 0 || l.Audit.Detail != "größer <&>" || found[l.Audit.RequestID] {
						t.Errorf("%s in pages of %d: after %+v comes %+v at %d", name, limit, last, l.Audit, l.Position)
					}
					last = custody.AuditPosition{At: l.Audit.At, ID: l.Audit.ID}
					found[l.Audit.RequestID] = true
				}
				if q.Before = next; next.ID == "" {
					break
				}
			}
			if len(found) != len(want) {
				t.Errorf("%s in pages of %d: %d lines, want %d", name, limit, len(found), len(want))
			}
			for id := range found {
				if !want[id] {
					t.Errorf("%s in pages of %d: %s does not fit", name, limit, id)
				}
			}
		}
	}
	// A line as it is found is the line that its hash covers.
	page, _, err := in.Store.AuditLines(t.Context(), custody.AuditQuery{OrgID: "acme", Limit: 1})
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	l, hash := *page[0].Audit, page[0].Audit.Hash
	if l.Link(l.PreviousHash); l.Hash != hash || strings.Trim(hash, "0123456789abcdef") != "" {
		t.Errorf("the hash of %+v is %s", page[0].Audit, l.Hash)
	}
}
