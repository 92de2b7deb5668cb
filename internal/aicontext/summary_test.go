package aicontext

import (
	"reflect"
	"strings"
	"sync"
	"testing"
)

func summarize(t *testing.T, text string, limits Limits) Summary {
	t.Helper()
	s, err := Summarize([]Page{{Text: text}}, limits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSummaryIsCentralAndDiverse(t *testing.T) {
	text := strings.Join([]string{
		"The pump station was inspected in March by the team.",
		"The pump station was inspected by the team in March again.",
		"The pump station seals were worn and replaced in March.",
		"Worn seals of the pump were replaced by the team.",
		"Lunch consisted of bread, cheese and cold apple juice.",
		"The valve of the pump station closed too slowly.",
		"The slow valve was adjusted by the team at the pump station.",
		"Seagulls watched everything from nearby rooftops, apparently amused.",
	}, " ")
	s := summarize(t, text, Limits{SummarySentences: 3})
	if len(s.Sentences) != 3 {
		t.Fatalf("summary %q", s.Text)
	}
	for _, alien := range []string{"Lunch", "Seagulls"} {
		if strings.Contains(s.Text, alien) {
			t.Errorf("%q is not central, but in %q", alien, s.Text)
		}
	}
	if strings.Contains(s.Text, "in March by the team.") && strings.Contains(s.Text, "in March again.") {
		t.Errorf("says the same twice: %q", s.Text)
	}
}

func TestARepeatedSentenceCountsOnce(t *testing.T) {
	d, err := readDocument([]Page{{Text: strings.Repeat("Buy the wonderful pump of our firm today. ", 5) + "The pump ran. BUY the wonderful pump of our firm today."}})
	if err != nil {
		t.Fatal(err)
	}
	if order := rank(d).order(nil); len(order) != 2 {
		t.Errorf("%d of two different sentences take part", len(order))
	}
}

func TestHeadingsYieldToProse(t *testing.T) {
	text := "Worn pump seals\n\nPump seals\n\nSeals of the pump\n\nThe weather was cold and rainy all week.\n\nThe seals of the pump were worn."
	s := summarize(t, text, Limits{SummarySentences: 5})
	if s.Text != "The seals of the pump were worn." && s.Text != "The weather was cold and rainy all week." {
		t.Errorf("summary %q, want one of the two sentences of prose", s.Text)
	}
}

func TestSummaryWithoutProse(t *testing.T) {
	s := summarize(t, "Valve | State\nA12 | ok\nA13 | broken", Limits{})
	if len(s.Sentences) == 0 || !s.Truncated {
		t.Errorf("summary %+v, want some rows", s)
	}
}

func TestSummaryOfChinese(t *testing.T) {
	s := summarize(t, "水泵站于三月进行了年度检查。检查发现二号水泵的密封件已经磨损。磨损的密封件于三月五日更换完毕。下一次检查定于明年三月进行。", Limits{SummarySentences: 2})
	if len(s.Sentences) != 2 || s.Language != "zh" || !strings.HasSuffix(s.Text, "。") {
		t.Errorf("summary %+v, want two whole sentences", s)
	}
}

func TestSummaryOfNothing(t *testing.T) {
	for name, pages := range map[string][]Page{"no pages": nil, "an empty page": {{Number: 1}}, "blank pages": {{Number: 1, Text: " \n"}, {Number: 2, Text: "\u200b"}}} {
		s, d := distill(t, pages, Limits{})
		if s.Text != "" || s.Sentences == nil || s.Signals == nil || s.Truncated || s.Language != "und" ||
			d.Excerpts == nil || d.Truncated || d.TokenCount != 0 {
			t.Errorf("%s: %+v %+v, want empty lists and nothing truncated", name, s, d)
		}
	}
}

func TestASentenceTooLongIsCut(t *testing.T) {
	text := strings.Repeat("and so on ", 90) + "it went."
	s := summarize(t, text, Limits{SummaryTokens: 20})
	if len(s.Sentences) != 1 || s.TokenCount > 20 || s.TokenCount < 15 || !s.Truncated || !strings.HasPrefix(text, s.Text) {
		t.Errorf("summary %+v, want the sentence's start in 20 tokens", s)
	}
}

func TestSummarizeAtOnce(t *testing.T) {
	pages := station(t)
	want, err := Summarize(pages, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			got, err := Summarize(pages, Limits{})
			if err != nil || got.Text != want.Text || !reflect.DeepEqual(got.Signals, want.Signals) {
				t.Errorf("summary %q, error %v", got.Text, err)
			}
		})
	}
	group.Wait()
}
