package sandbox_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/accession/accession/"

// What the sandbox is made of. All that stands on the standard library reaches os somewhere below (fmt does), so our own
// packages are asked what they import by name, and the whole graph what has no innocent reason to be in it.
var (
	ours       = []string{module + "internal/custody", module + "internal/sandbox"}
	storesHere = regexp.MustCompile(`^(database/.*|os|os/.*|io/fs|io/ioutil|embed|net|net/.*|log/syslog|syscall|plugin|unsafe|C)$`)
	storesDeep = regexp.MustCompile(`^(database/.*|os/exec|io/ioutil|net|net/.*|log/syslog|plugin)$`)
)

type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// The sandbox cannot reach production data: from its package no store, no network, no process and no other room can be
// reached, tests apart. (Section 1; .depguard.yml holds the direct imports, this the whole graph.)
func TestNoStoreCanBeReached(t *testing.T) {
	graph := dependencies(t, ".")
	if found := trespasses(graph); found != nil {
		t.Errorf("%s", strings.Join(found, "\n"))
	}
	if len(graph) < 20 || graph[len(graph)-1].ImportPath != module+"internal/sandbox" {
		t.Errorf("the graph has %d packages and does not end with ours: the check looked at something else", len(graph))
	}
}

// The check above would find what it looks for.
func TestTheCheckFindsStores(t *testing.T) {
	for _, c := range []struct {
		name string
		pkg  goPackage
		want string
	}{
		{"a room", goPackage{ImportPath: module + "internal/tenant"}, "internal/tenant is neither"},
		{"a library", goPackage{ImportPath: "example.org/kv"}, "example.org/kv is neither"},
		{"files by name", goPackage{ImportPath: ours[1], Imports: []string{"fmt", "os"}}, "imports os"},
		{"a database below", goPackage{ImportPath: "database/sql", Standard: true}, "database/sql is in the graph"},
		{"a network below", goPackage{ImportPath: "net/http", Standard: true}, "net/http is in the graph"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := trespasses([]goPackage{{ImportPath: "os", Standard: true}, c.pkg})
			if len(found) != 1 || !strings.Contains(found[0], c.want) {
				t.Errorf("found %q, want one that says %q", found, c.want)
			}
		})
	}
}

func trespasses(graph []goPackage) (found []string) {
	for _, p := range graph {
		switch {
		case p.Standard && storesDeep.MatchString(p.ImportPath):
			found = append(found, p.ImportPath+" is in the graph")
		case p.Standard:
		case !slices.Contains(ours, p.ImportPath):
			found = append(found, p.ImportPath+" is neither the standard library nor custody")
		default:
			for _, name := range p.Imports {
				if storesHere.MatchString(name) {
					found = append(found, p.ImportPath+" imports "+name)
				}
			}
		}
	}
	return found
}

// dependencies lists pkg and all it stands on, itself last; what only tests import is not in it.
func dependencies(t *testing.T, pkg string) (graph []goPackage) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports", pkg).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return graph
		case err != nil:
			t.Fatal(err)
		}
		graph = append(graph, p)
	}
}
