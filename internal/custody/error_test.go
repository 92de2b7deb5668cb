package custody_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

func TestErrorCatalogue(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	seen := map[custody.Code]bool{}
	for _, info := range custody.Codes {
		if seen[info.Code] {
			t.Errorf("%s stands in the catalogue twice", info.Code)
		}
		seen[info.Code] = true
		if !snake.MatchString(string(info.Code)) {
			t.Errorf("%q is not lower snake case", info.Code)
		}
		if info.Status < 400 || info.Status > 599 || info.Status == 422 {
			t.Errorf("%s has status %d", info.Code, info.Status)
		}
		if info.Code.HTTPStatus() != info.Status {
			t.Errorf("%s: HTTPStatus says %d, the catalogue %d", info.Code, info.Code.HTTPStatus(), info.Status)
		}
		for _, sentence := range []string{info.Meaning, info.Advice} {
			if !strings.HasSuffix(sentence, ".") {
				t.Errorf("%s: %q is no sentence", info.Code, sentence)
			}
		}
	}
	if got := custody.Code("never_heard_of").HTTPStatus(); got != 500 {
		t.Errorf("an unknown code is %d, want 500", got)
	}
}

// A code that is declared but not in the catalogue would answer 500 and be missing in the published enum.
func TestEveryDeclaredCodeIsInTheCatalogue(t *testing.T) {
	listed := map[string]bool{}
	for _, info := range custody.Codes {
		listed[string(info.Code)] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) != 1 {
			return true
		}
		if code, is := spec.Values[0].(*ast.BasicLit); is {
			declared++
			if !listed[strings.Trim(code.Value, `"`)] {
				t.Errorf("%s = %s is not in the catalogue", spec.Names[0].Name, code.Value)
			}
		}
		return true
	})
	if declared != len(custody.Codes) {
		t.Errorf("%d codes are declared, the catalogue has %d rows", declared, len(custody.Codes))
	}
}

// One refusal is shared by many requests: what one adds must not reach another.
func TestErrorsAreCopiedNotChanged(t *testing.T) {
	base := custody.UploadNotFound()
	first := base.With("a", 1)
	second := first.With("a", 2).With("b", 3).Because(errors.New("disk"))
	if base.Details != nil || len(first.Details) != 1 || first.Details["a"] != 1 {
		t.Errorf("With changed its receiver: %v, %v", base.Details, first.Details)
	}
	if len(second.Details) != 2 || second.Details["a"] != 2 || second.Details["b"] != 3 {
		t.Errorf("details are %v, want a: 2, b: 3", second.Details)
	}
	if errors.Unwrap(first) != nil || errors.Unwrap(second) == nil {
		t.Error("the cause went to the wrong error")
	}
	if strings.Contains(second.Message, "disk") {
		t.Error("the client sees the internal cause")
	}
	var e *custody.Error
	if !errors.As(error(second), &e) || e.Code != custody.CodeUploadNotFound {
		t.Error("the copy lost its code")
	}
}
