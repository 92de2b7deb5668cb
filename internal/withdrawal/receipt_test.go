package withdrawal

import (
	"slices"
	"strings"
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
	for _, k := range none[:len(none)-1] { // the last are answers
		if !k.Until.IsZero() {
			t.Errorf("%+v has an end", k)
		}
	}
}

// Answers that can be repeated remain for 26 hours at most.
func TestAnswersRemainForADay(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	kept := remains(custody.Upload{Kind: custody.KindCorrection, CreatedAt: at.Add(-time.Hour), UpdatedAt: at}, 0)
	if last := kept[len(kept)-1]; !strings.Contains(last.What, "without the file's name") || !last.Until.Equal(at.Add(26*time.Hour)) {
		t.Errorf("%+v", kept)
	}
}
