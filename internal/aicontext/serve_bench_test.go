package aicontext

import (
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// What one serving costs beside its store: the published context is read, framed and written.
func BenchmarkServe(b *testing.B) {
	u := custody.Upload{ID: "upl_1", OrgID: "org_1", Kind: custody.KindCustomer, Status: custody.StatusReady, Visibility: custody.VisibilityAIReadable, Filename: "note.txt"}
	pages := []Page{{Number: 1, Text: strings.Repeat("The harbour was dredged in May. It is open to ships again. ", 34)}}
	summary, err := Summarize(pages, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := Compose(u, "text/plain", pages, false, summary, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	s := &shelf{upload: u, context: c}
	room := NewService(s, s)
	b.ReportAllocs()
	for b.Loop() {
		s.asked, s.kept = s.asked[:0], s.kept[:0]
		if _, err := room.Serve(b.Context(), reader, "org_1", "upl_1", "rest"); err != nil {
			b.Fatal(err)
		}
	}
}
