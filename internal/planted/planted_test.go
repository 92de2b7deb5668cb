package planted

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	guarded      = regexp.MustCompile(`planted\.Bug\("([^"…]*)"\)`)
	control      = regexp.MustCompile(`(?m)^([a-z-]+) +\| [^|]+ \| ([A-Za-z ]+)$`)
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Za-z]+)\(`)
)

// Every bug lies somewhere, has its line in the script that plants it with tests that exist, and its row in the manual.
func TestEveryBugIsPlantedTriedAndTold(t *testing.T) {
	planted := map[string]bool{}
	for _, match := range find(t, "../../internal", guarded) {
		if planted[match[1]] = true; !slices.Contains(Names, match[1]) {
			t.Errorf("planted.Bug(%q) is in no list of names", match[1])
		}
	}
	tests := map[string]bool{}
	for _, match := range find(t, "../../e2e", testFunction) {
		tests[match[1]] = true
	}
	script, manual := read(t, "../../scripts/negative-controls.sh"), read(t, "../../docs/reliability.md")
	var tried []string
	for _, line := range control.FindAllStringSubmatch(script, -1) {
		name, catching := line[1], strings.Fields(line[2])
		tried = append(tried, name)
		told := regexp.MustCompile("(?m)^\\| `" + name + "` \\|.*").FindString(manual)
		if told == "" {
			t.Errorf("docs/reliability.md has no row for %s", name)
		}
		for _, test := range catching {
			if !tests[test] {
				t.Errorf("%s: there is no test %s", name, test)
			}
			if !strings.Contains(told, "`"+test+"`") {
				t.Errorf("docs/reliability.md does not say that %s catches %s", test, name)
			}
		}
	}
	if !slices.Equal(tried, Names) {
		t.Errorf("scripts/negative-controls.sh tries %q, want %q", tried, Names)
	}
	for _, name := range Names {
		if !planted[name] {
			t.Errorf("%s is planted nowhere", name)
		}
	}
}

// find lists the matches in the Go files below root: of the program, or in e2e of its tests.
func find(t *testing.T, root string, what *regexp.Regexp) (found [][]string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		wanted := strings.HasSuffix(path, ".go") && (strings.HasSuffix(path, "_test.go") == strings.HasSuffix(root, "e2e"))
		if err == nil && !entry.IsDir() && wanted {
			found = append(found, what.FindAllStringSubmatch(read(t, path), -1)...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
