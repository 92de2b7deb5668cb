package aicontext

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func split(t *testing.T, text string) []string {
	t.Helper()
	d, err := readDocument([]Page{{Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, s := range d.sentences {
		out = append(out, d.text(s))
	}
	return out
}

func TestSentences(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{}},
		{"two", "The pump ran. It stopped at noon!", []string{"The pump ran.", "It stopped at noon!"}},
		{"titles", "Dr. Weber and Mr. J. Smith signed. Prof. Lang did not.", []string{"Dr. Weber and Mr. J. Smith signed.", "Prof. Lang did not."}},
		{"number words", "See Fig. 3 and No. 12. No. They agreed.", []string{"See Fig. 3 and No. 12.", "No.", "They agreed."}},
		{"German", "Die Prüfung war am 3. Mai, z. B. im Werk. Sie dauerte bzw. Herr Lang half.",
			[]string{"Die Prüfung war am 3. Mai, z. B. im Werk.", "Sie dauerte bzw. Herr Lang half."}},
		{"a year ends a sentence", "It was built in 2019. March was dry.", []string{"It was built in 2019.", "March was dry."}},
		{"list markers", "1. Scope\n2. Terms\n- Pump one", []string{"1. Scope", "2. Terms", "- Pump one"}},
		{"Chinese", "水泵运行正常。密封件已更换！", []string{"水泵运行正常。", "密封件已更换！"}},
		{"wrapped lines", "The inspection of the pump station covered all of the\nmechanical parts and found that the seals were worn at\nboth ends.\n\nFindings\nNone.",
			[]string{"The inspection of the pump station covered all of the mechanical parts and found that the seals were worn at both ends.", "Findings", "None."}},
		{"rows of figures stay apart", "Pump one reached a pressure of 12.40 bar 99 kW\nPump two reached a pressure of 12.50 bar 98 kW 10 20 30\n",
			[]string{"Pump one reached a pressure of 12.40 bar 99 kW", "Pump two reached a pressure of 12.50 bar 98 kW 10 20 30"}},
	} {
		if got := split(t, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

func TestSentencesCoverTheTextAndStayBounded(t *testing.T) {
	for name, text := range hostileTexts() {
		d, err := readDocument([]Page{{Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		var joined strings.Builder
		end := int32(0)
		for _, s := range d.sentences {
			if s.start < end || s.end-s.start > maxSentenceBytes {
				t.Fatalf("%s: sentence at %d to %d after one that ended at %d", name, s.start, s.end, end)
			}
			end = s.end
			joined.WriteString(d.text(s))
		}
		visible := func(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(s) }
		if got, want := visible(joined.String()), visible(PageText(text)); !d.cut && got != want {
			t.Errorf("%s: sentences hold %d bytes of %d", name, len(got), len(want))
		}
	}
}

func TestPagesMustBeInOrder(t *testing.T) {
	for _, numbers := range [][]int{{2, 1}, {1, 1}, {-1}, {0, 0}} {
		var pages []Page
		for _, n := range numbers {
			pages = append(pages, Page{Number: n, Text: "Some text."})
		}
		if _, err := Summarize(pages, Limits{}); !errors.Is(err, ErrPages) {
			t.Errorf("pages %v: error %v, want ErrPages", numbers, err)
		}
		if _, err := Distill(pages, Summary{}, Limits{}); !errors.Is(err, ErrPages) {
			t.Errorf("pages %v: error %v, want ErrPages from Distill", numbers, err)
		}
	}
}
