package extract

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Only text that nobody takes for anything else does without a worker: here there is none.
func TestMembersOfTextNeedNoWorker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		none    bool
	}{
		"text":                     {"The harbour was dredged in May.\r\n\tIt is open again.\n", true},
		"text in other words":      {"Der Hafen ist wieder geöffnet. 港は再び開かれた。", true},
		"markup":                   {"<p>The harbour was dredged.</p>", true},
		"a text as long as any":    {strings.Repeat("m", shortText), true},
		"a longer text":            {strings.Repeat("m", shortText+1), false},
		"a text of other bytes":    {"The harbour \xff was dredged.", false},
		"a text with a null":       {"The harbour \x00 was dredged.", false},
		"a text with an escape":    {"The harbour \x1b[2J was dredged.", false},
		"mail":                     {"From: a@example.org\nSubject: harbour\n\nIt was dredged.", false},
		"a mailbox":                {"From a@example.org Mon Jan  2 15:04:05 2006\nFrom: a@example.org\nSubject: harbour\n\nIt was dredged.", false},
		"PDF":                      {"%PDF-1.7\nThe harbour was dredged.", false},
		"PDF behind words":         {strings.Repeat("m", 900) + "%PDF-1.7\n", false},
		"a tar that is text alone": {textTar(), false},
		"bzip2 by its first words": {"BZh91AY&SY and more", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := extractor(t, func(c *Config) { c.Executable = "/bin/false" })
			visited, err := members(t, e, []byte(c.content))
			if len(visited) != 0 || (err == nil) != c.none {
				t.Errorf("%d members, error %v; is there a way around the worker: %v", len(visited), err, c.none)
			}
		})
	}
}

// textTar is a header block without a byte that is no text, and with a sum that holds.
func textTar() string {
	block := bytes.Repeat([]byte(" "), 512)
	copy(block, "harbour.txt")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:156], fmt.Sprintf("%06o  ", sum))
	return string(block)
}
