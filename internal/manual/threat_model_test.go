package manual_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	quoted       = regexp.MustCompile("`([^`]+)`")
	namedTest    = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w*$`)
	namedFile    = regexp.MustCompile(`^(?:internal|cmd|client|docs|e2e|deploy)/[\w./-]+$`)
)

// Each threat has a defence, and a test that is there or the word that it has none; every file that the page names is there.
func TestThreatModelNamesWhatIsThere(t *testing.T) {
	tests := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && name != "../.." && (name == "node_modules" || strings.HasPrefix(name, ".") && name != "..") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range testFunction.FindAllSubmatch(source, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	threats, named, inTable := 0, 0, false
	for line := range strings.Lines(string(page)) {
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			switch word := m[1]; {
			case namedTest.MatchString(word):
				if named++; !tests[word] {
					t.Errorf("there is no test %s: %.80s", word, line)
				}
			case namedFile.MatchString(word):
				if _, err := os.Stat(filepath.Join("../..", word)); err != nil {
					t.Errorf("there is no file %s: %.80s", word, line)
				}
			}
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		switch inTable = strings.HasPrefix(line, "| Threat |") || inTable && strings.HasPrefix(line, "|"); {
		case !inTable, strings.HasPrefix(line, "| Threat |"), strings.HasPrefix(line, "|---"):
			continue
		case len(cells) != 4:
			t.Errorf("%d cells, want threat, defence, test and what is left: %.80s", len(cells), line)
			continue
		}
		threats++
		if !strings.Contains(cells[2], "`Test") && !strings.Contains(cells[2], "Not tested") {
			t.Errorf("no test, and no word that there is none: %.80s", line)
		}
		if strings.TrimSpace(cells[1]) == "" || strings.TrimSpace(cells[3]) == "" {
			t.Errorf("no defence, or nothing said of what is left: %.80s", line)
		}
	}
	if threats < 60 || named < 150 || len(tests) < 500 {
		t.Errorf("%d threats, %d tests named, of %d: the page or this test reads something else", threats, named, len(tests))
	}
}
