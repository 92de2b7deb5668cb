package e2e

import (
	"testing"
	"time"

	"github.com/accession/accession/client"
)

func TestQuotaIsReservedUsedAndGivenBack(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"ACCESSION_QUOTA_BYTES=1000"}})
	p, other := s.partner("harbour"), s.partner("island")
	want := func(reserved, used, count int64) {
		t.Helper()
		q := s.quota("harbour", p.token)
		if q.OrgID != "harbour" || q.AllowanceBytes != 1000 || q.UsedBytes != used || q.ReservedBytes != reserved ||
			q.AvailableBytes != 1000-reserved-used || q.UploadCount != count {
			t.Fatalf("quota %+v, want %d reserved, %d used, %d uploads", q, reserved, used, count)
		}
	}
	want(0, 0, 0)
	content := note("first-ferry")[:90]
	first := p.initiate("a.txt", "text/plain", 90)
	second := p.initiate("b.txt", "text/plain", 600)
	want(690, 0, 2)

	key := client.NewIdempotencyKey()
	over := s.do(p.reserving(key, 311)).want(t, 409, "quota_exceeded")
	for name, value := range map[string]float64{"requested_bytes": 311, "allowance_bytes": 1000, "used_bytes": 0, "reserved_bytes": 690, "available_bytes": 310} {
		if over.Details[name] != value {
			t.Errorf("details.%s is %v, want %v", name, over.Details[name], value)
		}
	}
	want(690, 0, 2)
	third := p.initiate("c.txt", "text/plain", 310) // to the last byte
	want(1000, 0, 3)
	s.do(p.reserving(client.NewIdempotencyKey(), 1)).want(t, 409, "quota_exceeded")
	other.initiate("d.txt", "text/plain", 1000) // another organization has its own
	p.wantWithdrawn(third, 310)

	p.part(first, 1, content).want(t, 200, "")
	want(690, 0, 2)
	p.complete(first, [][]byte{content}).want(t, 202, "")
	want(600, 90, 2)
	p.wantReady(first)
	want(600, 90, 2)
	p.wantWithdrawn(second, 600)
	want(0, 90, 1)
	s.do(p.reserving(key, 311)).want(t, 200, "") // the refusal did not burn the key
	want(311, 90, 2)
	p.wantWithdrawn(first, 90)
	want(311, 0, 1)
	p.withdraw(first).want(t, 200, "") // again: nothing more comes back
	want(311, 0, 1)
	s.do(p.reserving(client.NewIdempotencyKey(), 8589934593)).want(t, 400, "invalid_request")
	s.do(p.reserving(client.NewIdempotencyKey(), 8589934592)).want(t, 409, "quota_exceeded")
}

func TestLapsedReservationGivesItsQuotaBack(t *testing.T) {
	t.Parallel()
	const lifetime = 30 * time.Minute // longer than any machine needs for what is to be done within it
	s := start(t, options{env: []string{"ACCESSION_RESERVATION_LIFETIME=" + lifetime.String()}, flags: []string{"--part-size-bytes", "4096"}})
	p := s.partner("harbour")
	reader := s.issue("harbour", "ai_reader")
	parts := cut(noise(partSize+10, 5), partSize)
	untouched := p.initiate("a.bin", "application/octet-stream", 500)
	begun := p.initiate("b.bin", "application/octet-stream", partSize+10)
	p.part(begun, 1, parts[0]).want(t, 200, "")
	for _, id := range []string{untouched, begun} {
		if st := p.status(id); st.ExpiresAt.Sub(st.CreatedAt) != lifetime {
			t.Errorf("reserved at %s until %s", st.CreatedAt, st.ExpiresAt)
		}
	}
	s.lapse(t)
	for _, id := range []string{untouched, begun} {
		if st := p.follow(id); st.Status != "EXPIRED" {
			t.Fatalf("status %s", st.Status)
		}
	}
	if q := s.quota("harbour", p.token); q.ReservedBytes != 0 || q.UsedBytes != 0 || q.UploadCount != 0 {
		t.Errorf("quota: %+v", q)
	}
	s.wantNoObjects()
	p.part(untouched, 1, noise(500, 1)).want(t, 409, "reservation_expired")
	p.part(begun, 2, parts[1]).want(t, 409, "reservation_expired")
	p.part(begun, 1, parts[0]).want(t, 409, "reservation_expired")
	p.complete(begun, parts).want(t, 409, "reservation_expired")
	s.context("harbour", reader, begun).want(t, 404, "context_not_ready")
	s.wantNoObjects()
	p.wantWithdrawn(begun, 0)

	// A completed upload has no reservation that could lapse.
	kept := p.send("c.txt", "text/plain", note("in-time"))
	p.wantReady(kept)
	last := p.initiate("d.txt", "text/plain", 10)
	mustExec(t, s.database(t, "metadata.db"), `UPDATE uploads SET expires_at = created_at`) // that of kept, too
	s.lapse(t)
	if st := p.follow(last); st.Status != "EXPIRED" {
		t.Errorf("status %s", st.Status)
	}
	if st := p.status(kept); st.Status != "READY" {
		t.Errorf("status %s", st.Status)
	}
}
