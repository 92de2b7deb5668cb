package custody_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

var update = flag.Bool("update", false, "write the lifecycle diagram into docs/architecture.md")

const (
	architecture = "../../docs/architecture.md"
	diagramBegin = "<!-- lifecycle -->\n"
	diagramEnd   = "<!-- /lifecycle -->"
)

func TestArchitectureShowsTheLifecycle(t *testing.T) {
	page, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(page), diagramBegin)
	shown, after, ended := strings.Cut(rest, diagramEnd)
	if !begun || !ended {
		t.Fatalf("docs/architecture.md lacks the markers %q and %q", diagramBegin, diagramEnd)
	}
	want := "```mermaid\n" + custody.Diagram() + "```\n"
	if shown == want {
		return
	}
	if !*update {
		t.Fatalf("docs/architecture.md does not show the lifecycle table; run go test ./internal/custody -run Architecture -update\nwant:\n%s", want)
	}
	if err := os.WriteFile(architecture, []byte(before+diagramBegin+want+diagramEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The drawing read back is the table: nothing is lost, nothing added, and only WITHDRAWN ends it.
func TestDiagramDrawsTheTable(t *testing.T) {
	head, body, _ := strings.Cut(custody.Diagram(), "\n")
	if head != "stateDiagram-v2" {
		t.Errorf("the diagram begins with %q", head)
	}
	arrow := regexp.MustCompile(`^    (\[\*\]|[A-Z]+) --> ([A-Z]+): ([a-z_]+)$`)
	var drawn []custody.Transition
	var ends []string
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if end, ok := strings.CutSuffix(line, " --> [*]"); ok {
			ends = append(ends, strings.TrimSpace(end))
			continue
		}
		m := arrow.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("line %q is no transition", line)
		}
		drawn = append(drawn, custody.Transition{
			From: custody.Status(strings.TrimPrefix(m[1], "[*]")), Trigger: custody.Trigger(m[3]), To: custody.Status(m[2]),
		})
	}
	if len(drawn) != len(custody.Transitions) {
		t.Fatalf("%d transitions drawn, the table has %d", len(drawn), len(custody.Transitions))
	}
	for i, want := range custody.Transitions {
		if drawn[i] != want {
			t.Errorf("transition %d is drawn as %v, the table says %v", i, drawn[i], want)
		}
	}
	if len(ends) != 1 || ends[0] != string(custody.StatusWithdrawn) {
		t.Errorf("the diagram ends at %v, want WITHDRAWN alone", ends)
	}
}
