package aicontext

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestASummaryPrefersTheStartAndExcerptsDoNot(t *testing.T) {
	// The late sentences are the more central ones, by a little; between the groups lies what has nothing to do with either.
	var early, between, late []string
	for _, subject := range strings.Fields("pump valve seal") {
		early = append(early, "The "+subject+" at the harbour gate was inspected in spring.")
	}
	for i := range 40 {
		word := string(rune('a'+i/26)) + string(rune('a'+i%26))
		between = append(between, fmt.Sprintf("The%s was%s quite%s other%s.", word, word, word, word))
	}
	for _, subject := range strings.Fields("motor screen hopper") {
		late = append(late, "The "+subject+" at the harbour gate was inspected in spring by divers.")
	}
	d, err := readDocument([]Page{{Text: strings.Join(slices.Concat(early, between, late), " ")}})
	if err != nil {
		t.Fatal(err)
	}
	r := rank(d)
	flat, fromStart := r.order(nil), r.fromStart()
	if first := flat[0]; first < len(early)+len(between) {
		t.Errorf("sentence %d comes first without regard to its place, want one of the last three", first)
	}
	if first := fromStart[0]; first >= len(early) {
		t.Errorf("sentence %d comes first for a summary, want one of the first three", first)
	}
	slices.Sort(flat)
	slices.Sort(fromStart)
	if !slices.Equal(flat, fromStart) {
		t.Errorf("different sentences take part: %v and %v", flat, fromStart)
	}
}

func TestAHeadingAtTheStartYieldsToProse(t *testing.T) {
	s := summarize(t, "Report\n\nPump seals of the harbour\n\nWorn seals of the harbour pump\n\n"+
		"The weather was cold and rainy all week.\n\nThe seals of the harbour pump were worn and replaced.", Limits{SummarySentences: 1})
	if !strings.HasSuffix(s.Text, ".") {
		t.Errorf("summary %q, want a sentence", s.Text)
	}
}
