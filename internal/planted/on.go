//go:build planted

package planted

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// Environment names the variable that names the bug.
const Environment = "ACCESSION_PLANTED"

var (
	chosen = choose()
	told   sync.Once
)

func choose() string {
	name := os.Getenv(Environment)
	if name != "" && !slices.Contains(Names, name) {
		fmt.Fprintf(os.Stderr, "%s must name one of the planted bugs: %q\n", Environment, Names)
		os.Exit(2)
	}
	return name
}

// Bug tells whether the bug of that name is at work. The first time that it is, standard error says so: a test that fails
// elsewhere did not catch it.
func Bug(name string) bool {
	if name != chosen {
		return false
	}
	told.Do(func() { fmt.Fprintf(os.Stderr, "planted bug at work: %s\n", name) })
	return true
}
