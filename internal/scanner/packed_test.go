package scanner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// unpacking hands out its files, then its error.
type unpacking struct {
	files []string
	err   error
}

func (u unpacking) Members(_ context.Context, _ io.ReaderAt, _ int64, visit func(io.Reader) error) error {
	for _, file := range u.files {
		if err := visit(strings.NewReader(file)); err != nil {
			return err
		}
	}
	return u.err
}

func TestPackedFilesAreScannedEachForItself(t *testing.T) {
	clamd := client()
	bad := string(eicar())
	gone := errors.New("worker is gone")
	for name, c := range map[string]struct {
		content string
		unpacking
		want    Outcome
		members int
		reason  string
		err     error
	}{
		"nothing packed":             {content: "words", want: Clean},
		"clean members":              {content: "words", unpacking: unpacking{files: []string{"one", "", "two"}}, want: Clean, members: 3},
		"an infected member":         {content: "words", unpacking: unpacking{files: []string{"one", bad, "two"}}, want: Infected, members: 2},
		"infected itself":            {content: bad, unpacking: unpacking{files: []string{"one"}}, want: Infected, members: 1},
		"infected, not unpacked":     {content: bad, unpacking: unpacking{err: gone}, want: Infected},
		"cannot be looked into":      {content: "words", unpacking: unpacking{[]string{"one"}, &custody.Refusal{Code: "c", Message: "Too deep."}}, want: Unscannable, members: 1, reason: "Too deep."},
		"refused before it is given": {content: bad, unpacking: unpacking{err: &custody.Refusal{Code: "c", Message: "Too large."}}, want: Unscannable, reason: "Too large."},
		"unpacking came to no end":   {content: "words", unpacking: unpacking{[]string{"one"}, gone}, err: gone},
		"infected before the fault":  {content: "words", unpacking: unpacking{[]string{bad}, gone}, want: Infected, members: 1},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := NewPacked(clamd, c.unpacking).Scan(t.Context(), strings.NewReader(c.content), int64(len(c.content)))
			if !errors.Is(err, c.err) || report.Outcome != c.want || report.Members != c.members || report.Reason != c.reason {
				t.Errorf("%+v, error %v", report, err)
			}
			if c.err == nil && report.Engine.Name != "ClamAV" {
				t.Errorf("engine %+v", report.Engine)
			}
			if c.want == Infected && !strings.Contains(report.Signature, "EICAR") {
				t.Errorf("signature %q", report.Signature)
			}
		})
	}
}

func TestScanStream(t *testing.T) {
	clamd := client()
	clamd.WindowBytes = 1 << 20
	bad := eicar()
	for name, c := range map[string]struct {
		content []byte
		want    Outcome
	}{
		"empty":                    {nil, Clean},
		"clean":                    {bytes.Repeat([]byte("words "), 1000), Clean},
		"exactly one window":       {make([]byte, 1<<20), Clean},
		"one byte more":            {make([]byte, 1<<20+1), Unscannable},
		"infected":                 {bad, Infected},
		"infected after some time": {append(bytes.Repeat([]byte("words "), 100_000), bad...), Infected},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := clamd.ScanStream(t.Context(), bytes.NewReader(c.content))
			if err != nil || report.Outcome != c.want {
				t.Errorf("%+v, error %v", report, err)
			}
		})
	}
	fault := errors.New("store is gone")
	if _, err := clamd.ScanStream(t.Context(), io.MultiReader(strings.NewReader("words"), failingReader{fault})); !errors.Is(err, fault) {
		t.Errorf("want %v, got %v", fault, err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
