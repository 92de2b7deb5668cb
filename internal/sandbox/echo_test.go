package sandbox_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sandbox"
)

// Inputs at the limit and past it. A character is a code point: neither a byte nor what a reader sees as one.
var inputs = []struct {
	name, input string
	reason      string // empty: it is echoed
}{
	{"nothing", "", ""},
	{"a word", "hello", ""},
	{"controls, markup and a NUL", "a\x00b\r\n\t<script>&\u2028", ""},
	{"1000 of one byte", strings.Repeat("a", 1000), ""},
	{"1001 of one byte", strings.Repeat("a", 1001), "expected at most 1000 characters (Unicode code points)"},
	{"1000 of two bytes", strings.Repeat("é", 1000), ""},
	{"1001 of two bytes", strings.Repeat("é", 1001), "expected at most 1000 characters (Unicode code points)"},
	{"1000 of three bytes", strings.Repeat("語", 1000), ""},
	{"1001 of three bytes", strings.Repeat("語", 1001), "expected at most 1000 characters (Unicode code points)"},
	{"1000 of four bytes", strings.Repeat("😀", 1000), ""},
	{"1001 of four bytes", strings.Repeat("😀", 1001), "expected at most 1000 characters (Unicode code points)"},
	{"500 letters with an accent each", strings.Repeat("e\u0301", 500), ""},
	{"501 letters with an accent each", strings.Repeat("e\u0301", 501), "expected at most 1000 characters (Unicode code points)"},
	{"999 and one of four bytes", strings.Repeat("a", 999) + "😀", ""},
	{"1000 and one of four bytes", strings.Repeat("a", 1000) + "😀", "expected at most 1000 characters (Unicode code points)"},
	{"a megabyte", strings.Repeat("a", 1<<20), "expected at most 1000 characters (Unicode code points)"},
	{"a cut character", "caf\xc3", "expected UTF-8"},
	{"a surrogate", "\xed\xa0\x80", "expected UTF-8"},
	{"1001 bytes that are no characters", strings.Repeat("\xff", 1001), "expected UTF-8"},
}

// wants checks that err names exactly these fields, in order.
func wants(t *testing.T, err error, sent string, fields ...map[string]string) {
	t.Helper()
	e := refused(t, err, custody.CodeInvalidRequest, sent)
	if e.Code.HTTPStatus() != 400 {
		t.Errorf("status is %d, want 400", e.Code.HTTPStatus())
	}
	if !reflect.DeepEqual(e.Details, map[string]any{"fields": fields}) {
		t.Errorf("details are %v, want fields %v", e.Details, fields)
	}
}

func TestEcho(t *testing.T) {
	s := at(t, noon, key)
	for _, c := range inputs {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.Echo(goldenID, c.input)
			if c.reason != "" {
				wants(t, err, c.input, map[string]string{"path": "/input", "reason": c.reason})
				if got != (sandbox.Echo{}) {
					t.Error("a refused input is echoed all the same")
				}
				return
			}
			want := sandbox.Echo{
				Status: "sandbox_ok", ProductionDataAccess: false, Persisted: false, Echo: c.input, CredentialID: goldenID,
			}
			if err != nil || got != want {
				t.Errorf("Echo = %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestBatchHoldsEachInputToTheSameLimits(t *testing.T) {
	s := at(t, noon, key)
	for _, c := range inputs {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.Batch(goldenID, []sandbox.Operation{{Input: "first"}, {Input: c.input}})
			if c.reason != "" {
				wants(t, err, c.input, map[string]string{"path": "/operations/1/input", "reason": c.reason})
				if !reflect.DeepEqual(got, sandbox.Batch{}) {
					t.Error("a refused batch has results")
				}
				return
			}
			want := sandbox.Batch{
				Status: "sandbox_ok", ProductionDataAccess: false, Persisted: false,
				Results: []sandbox.Result{{0, "sandbox_ok", "first"}, {1, "sandbox_ok", c.input}},
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("Batch = %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestBatchTakesOneToEightOperations(t *testing.T) {
	s := at(t, noon, key)
	for n := range 12 {
		ops := make([]sandbox.Operation, n)
		for i := range ops {
			ops[i].Input = strings.Repeat("x", i) // the first has no input
		}
		got, err := s.Batch(goldenID, ops)
		if n < 1 || n > 8 {
			wants(t, err, "", map[string]string{"path": "/operations", "reason": "expected 1 to 8 operations"})
			continue
		}
		if err != nil || len(got.Results) != n {
			t.Fatalf("%d operations: %d results, %v", n, len(got.Results), err)
		}
		for i, r := range got.Results {
			if want := (sandbox.Result{Index: i, Status: "sandbox_ok", Echo: ops[i].Input}); r != want {
				t.Errorf("result %d of %d is %+v, want %+v", i, n, r, want)
			}
		}
	}
	_, err := s.Batch(goldenID, nil)
	wants(t, err, "", map[string]string{"path": "/operations", "reason": "expected 1 to 8 operations"})
}

func TestBatchNamesEveryOperationThatMustChange(t *testing.T) {
	long := strings.Repeat("secret-of-the-sender ", 50)
	_, err := at(t, noon, key).Batch(goldenID, []sandbox.Operation{{Input: long}, {Input: "fine"}, {Input: "\xff"}, {}, {Input: long}})
	wants(t, err, "secret-of-the-sender",
		map[string]string{"path": "/operations/0/input", "reason": "expected at most 1000 characters (Unicode code points)"},
		map[string]string{"path": "/operations/2/input", "reason": "expected UTF-8"},
		map[string]string{"path": "/operations/4/input", "reason": "expected at most 1000 characters (Unicode code points)"})
}

// A door that forgot to authenticate gets nothing, and no word on the form of the request.
func TestNothingIsEchoedToAStranger(t *testing.T) {
	s := at(t, noon, key)
	echo, err := s.Echo("", strings.Repeat("a", 2000))
	if refused(t, err, custody.CodeAuthenticationRequired); echo != (sandbox.Echo{}) {
		t.Errorf("echoed %+v", echo)
	}
	batch, err := s.Batch("", nil)
	if refused(t, err, custody.CodeAuthenticationRequired); batch.Results != nil {
		t.Errorf("echoed %+v", batch)
	}
}
