package custody_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func TestNewIDShapeOrderAndUniqueness(t *testing.T) {
	shape := regexp.MustCompile(`^upl_[0-9a-hjkmnp-tv-z]{26}$`)
	const many = 20_000
	seen := make(map[string]bool, many)
	var times []string
	earliest := stamp(time.Now())
	for range many {
		id := custody.NewID("upl")
		if !shape.MatchString(id) {
			t.Fatalf("%q does not have the shape of an id", id)
		}
		if seen[id] {
			t.Fatalf("%q was made twice", id)
		}
		seen[id] = true
		times = append(times, id[len("upl_"):len("upl_")+9]) // 45 of the 48 bits of time
	}
	if times = append([]string{earliest}, append(times, stamp(time.Now()))...); !slices.IsSorted(times) {
		t.Errorf("ids do not sort by the time they were made: from %s to %s, between %s and %s", times[1], times[many], earliest, times[many+1])
	}
}

// stamp is how an id made at that time begins.
func stamp(at time.Time) string {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	s := make([]byte, 9)
	for i, ms := len(s)-1, at.UnixMilli()>>3; i >= 0; i, ms = i-1, ms>>5 {
		s[i] = digits[ms&31]
	}
	return string(s)
}

func TestNowIsWhatCustodyKeeps(t *testing.T) {
	now := custody.Now()
	if now.Location() != time.UTC || !now.Equal(now.Truncate(time.Millisecond)) {
		t.Errorf("%v is not UTC in milliseconds", now)
	}
	if !time.UnixMilli(now.UnixMilli()).Equal(now) {
		t.Errorf("%v does not survive being kept as milliseconds", now)
	}
}

func TestRecordHashCoversEveryField(t *testing.T) {
	base := custody.Record{
		ID: "rec_1", RequestID: "req_1", TraceID: "trc_1", OrgID: "acme", UploadID: "upl_1", CredentialID: "cred_1",
		Surface: "rest", Outcome: custody.OutcomeServed, ContextSHA256: strings.Repeat("a", 64), Bytes: 12, ServedAt: time.UnixMilli(1_800_000_000_123).UTC(),
	}
	base.Link(custody.FirstHash)
	again := base
	again.Link(custody.FirstHash)
	if again.Hash != base.Hash || len(base.Hash) != 64 || base.PreviousHash != custody.FirstHash {
		t.Fatalf("linking is not repeatable: %q, %q", base.Hash, again.Hash)
	}
	hashes := map[string]string{base.Hash: "nothing"}
	for field, change := range map[string]func(*custody.Record){
		"record_id":      func(r *custody.Record) { r.ID = "rec_2" },
		"request_id":     func(r *custody.Record) { r.RequestID = "req_2" },
		"trace_id":       func(r *custody.Record) { r.TraceID = "trc_2" },
		"org_id":         func(r *custody.Record) { r.OrgID = "acme2" },
		"upload_id":      func(r *custody.Record) { r.UploadID = "upl_2" },
		"credential_id":  func(r *custody.Record) { r.CredentialID = "cred_2" },
		"surface":        func(r *custody.Record) { r.Surface = "mcp" },
		"outcome":        func(r *custody.Record) { r.Outcome = custody.OutcomeRefusedVisibility },
		"context_sha256": func(r *custody.Record) { r.ContextSHA256 = strings.Repeat("b", 64) },
		"bytes":          func(r *custody.Record) { r.Bytes++ },
		"served_at":      func(r *custody.Record) { r.ServedAt = r.ServedAt.Add(time.Millisecond) },
	} {
		changed := base
		change(&changed)
		changed.Link(custody.FirstHash)
		if same, taken := hashes[changed.Hash]; taken {
			t.Errorf("a record with another %s has the hash of one with another %s", field, same)
		}
		hashes[changed.Hash] = field
	}
	next := base
	next.Link(base.Hash)
	if next.Hash == base.Hash || next.PreviousHash != base.Hash {
		t.Error("the hash does not cover the record before it")
	}
}

func TestAuditHashCoversEveryField(t *testing.T) {
	base := custody.AuditLine{
		ID: "aud_1", OrgID: "acme", At: time.UnixMilli(1_800_000_000_123).UTC(), Action: "completed", CredentialID: "cred_1",
		UploadID: "upl_1", Status: custody.StatusProcessing, Detail: "d", RequestID: "req_1", TraceID: "trc_1",
	}
	base.Link(custody.FirstHash)
	hashes := map[string]bool{base.Hash: true}
	changes := []func(*custody.AuditLine){
		func(l *custody.AuditLine) { l.ID = "aud_2" },
		func(l *custody.AuditLine) { l.OrgID = "acme2" },
		func(l *custody.AuditLine) { l.At = l.At.Add(time.Millisecond) },
		func(l *custody.AuditLine) { l.Action = "resumed" },
		func(l *custody.AuditLine) { l.CredentialID = "cred_2" },
		func(l *custody.AuditLine) { l.UploadID = "upl_2" },
		func(l *custody.AuditLine) { l.Status = custody.StatusReady },
		func(l *custody.AuditLine) { l.Detail = "" },
		func(l *custody.AuditLine) { l.RequestID = "req_2" },
		func(l *custody.AuditLine) { l.TraceID = "trc_2" },
	}
	for _, change := range changes {
		changed := base
		change(&changed)
		changed.Link(custody.FirstHash)
		hashes[changed.Hash] = true
	}
	if len(hashes) != len(changes)+1 {
		t.Errorf("%d different hashes, want %d", len(hashes), len(changes)+1)
	}
}

func TestCaptureRedactsTheConsent(t *testing.T) {
	consent := custody.Consent{
		AgreementVersion: "b1", AIReadableVersion: "a1", TextHashSHA256: strings.Repeat("0", 64),
		ConsentingUserID: "user-7", ConsentingEmail: "ann@example.org", AcceptedAt: time.UnixMilli(5).UTC(),
	}
	want := custody.ConsentCapture{
		Status: "captured", BetaAgreementVersion: "b1", AIReadableUseConsentVersion: "a1",
		TextHashSHA256: strings.Repeat("0", 64), AcceptedAt: time.UnixMilli(5).UTC(),
	}
	if got := consent.Capture(); got != want {
		t.Errorf("captured %+v, want %+v", got, want)
	}
}

func TestPartArithmetic(t *testing.T) {
	for _, c := range []struct {
		size, part int64
		last       int
		lastLength int64
	}{
		{1, 64, 1, 1}, {63, 64, 1, 63}, {64, 64, 1, 64}, {65, 64, 2, 1}, {128, 64, 2, 64}, {custody.MaxUploadBytes, 16 << 20, 512, 16 << 20},
	} {
		u := custody.Upload{SizeBytes: c.size, PartSizeBytes: c.part}
		if u.LastPart() != c.last || u.PartLength(c.last) != c.lastLength {
			t.Errorf("%d bytes in parts of %d: last part %d of %d bytes, want %d of %d", c.size, c.part, u.LastPart(), u.PartLength(u.LastPart()), c.last, c.lastLength)
		}
		total := int64(0)
		for n := 1; n <= u.LastPart(); n++ {
			total += u.PartLength(n)
		}
		if total != c.size {
			t.Errorf("%d bytes in parts of %d: the parts add up to %d", c.size, c.part, total)
		}
	}
}

func TestAvailableBytesAreNeverNegative(t *testing.T) {
	for want, q := range map[int64]custody.Quota{
		0:  {AllowanceBytes: 10, UsedBytes: 8, ReservedBytes: 5}, // the allowance was lowered
		3:  {AllowanceBytes: 10, UsedBytes: 2, ReservedBytes: 5},
		10: {AllowanceBytes: 10},
	} {
		if got := q.AvailableBytes(); got != want {
			t.Errorf("%+v has %d bytes available, want %d", q, got, want)
		}
	}
}
