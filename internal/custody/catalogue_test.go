package custody_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

const (
	errorsPage   = "../../docs/errors.md"
	errorsBegin  = "<!-- codes -->\n"
	errorsEnding = "<!-- /codes -->"
)

// The page of errors shows the catalogue, row by row.
func TestErrorsPageShowsTheCatalogue(t *testing.T) {
	page, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(page), errorsBegin)
	shown, after, ended := strings.Cut(rest, errorsEnding)
	if !begun || !ended {
		t.Fatalf("docs/errors.md lacks the markers %q and %q", errorsBegin, errorsEnding)
	}
	var want strings.Builder
	want.WriteString("| Status | Code | What happened | What to do |\n|---|---|---|---|\n")
	for _, c := range custody.Codes {
		fmt.Fprintf(&want, "| %d | `%s` | %s | %s |\n", c.Status, c.Code, c.Meaning, c.Advice)
	}
	if shown == want.String() {
		return
	}
	if !*update {
		t.Fatalf("docs/errors.md does not show the catalogue; run go test ./internal/custody -run ErrorsPage -update\nwant:\n%s", &want)
	}
	if err := os.WriteFile(errorsPage, []byte(before+errorsBegin+want.String()+errorsEnding+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
