package withdrawal

import (
	"slices"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func TestDurationIsISO8601(t *testing.T) {
	for d, want := range map[time.Duration]string{
		720 * time.Hour: "PT720H", time.Hour: "PT1H", 90 * time.Minute: "PT5400S", time.Second: "PT1S", 0: "PT0S",
	} {
		if got := duration(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

func TestTotalIsOfAllAttempts(t *testing.T) {
	got := total([]custody.Deletion{{Backend: "staging"}, {Backend: "quarantine", Objects: 7}, {Backend: "key_store", Objects: 1}},
		[]custody.DeletedObjects{{Backend: "key_store", Objects: 1}, {Backend: "staging", Objects: 5, Bytes: 90}})
	want := []custody.Deletion{{Backend: "staging", Objects: 5, Bytes: 90}, {Backend: "quarantine"}, {Backend: "key_store", Objects: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestBackupsOfKeysRemainUntilTheirHorizon(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	u := custody.Upload{Kind: custody.KindPartner, CreatedAt: at, UpdatedAt: at}
	none, some := remains(u, 0), remains(u, time.Hour)
	if last := some[len(some)-1]; len(some) != len(none)+1 || !last.Until.Equal(at.Add(time.Hour)) {
		t.Errorf("%+v", some)
	}
	for _, k := range none {
		if !k.Until.IsZero() {
			t.Errorf("%+v has an end", k)
		}
	}
}

// A customer upload's own answer names the file for as long as it can be repeated.
func TestAnswerOfACustomerUploadRemainsForADay(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	fresh := custody.Upload{Kind: custody.KindCorrection, CreatedAt: at, UpdatedAt: at.Add(time.Hour)}
	old := custody.Upload{Kind: custody.KindCorrection, CreatedAt: at, UpdatedAt: at.Add(answersEnd)}
	now, later := remains(fresh, 0), remains(old, 0)
	if last := now[len(now)-1]; len(now) != len(later)+1 || !last.Until.Equal(at.Add(answersEnd)) {
		t.Errorf("%+v, and later %+v", now, later)
	}
}
