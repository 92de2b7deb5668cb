package aicontext

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCountTokens(t *testing.T) {
	// Counts published for o200k_base.
	for text, want := range map[string]int{"": 0, "hello world": 2, "antidisestablishmentarianism": 6, "お誕生日おめでとう": 8} {
		if got := count(t, text); got != want {
			t.Errorf("%q counts %d tokens, want %d", text, got, want)
		}
	}
	if n := count(t, "<|endoftext|>"); n < 2 {
		t.Errorf("a special-token marker counts %d, want it to count as ordinary text", n)
	}
}

func TestClip(t *testing.T) {
	for _, text := range []string{strings.Repeat("The pump ran. ", 50), strings.Repeat("密封件", 50), strings.Repeat("a", 900), "👩👧"} {
		for _, limit := range []int{0, 1, 3, 20, 10_000} {
			got, err := clip(text, limit)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(text, got) || !utf8.ValidString(got) || count(t, got) > limit {
				t.Errorf("clip to %d gives %q, %d tokens", limit, got, count(t, got))
			}
			if limit == 10_000 && got != text {
				t.Errorf("clipped %q although it fits", got)
			}
		}
	}
}
