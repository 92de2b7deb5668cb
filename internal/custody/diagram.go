package custody

import (
	"fmt"
	"strings"
)

// Diagram draws Transitions as a Mermaid stateDiagram-v2, one line per row in the table's order; a status without a way
// out ends it. docs/architecture.md shows it, and a test keeps both equal. (Architecture, "Lifecycle".)
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	left := map[Status]bool{}
	for _, t := range Transitions {
		left[t.From] = true
		fmt.Fprintf(&b, "    %s --> %s: %s\n", node(t.From), t.To, t.Trigger)
	}
	ended := map[Status]bool{}
	for _, t := range Transitions {
		if !left[t.To] && !ended[t.To] {
			ended[t.To] = true
			fmt.Fprintf(&b, "    %s --> [*]\n", t.To)
		}
	}
	return b.String()
}

// node is how the diagram writes a status; [*] is before the first.
func node(s Status) string {
	if s == "" {
		return "[*]"
	}
	return string(s)
}
