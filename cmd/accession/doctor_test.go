package main

import (
	"bytes"
	"strings"
	"testing"
)

// A fix that did not help is not said to have mended anything.
func TestDiagnosisLooksAgain(t *testing.T) {
	for _, mended := range []bool{true, false} {
		var out bytes.Buffer
		app := &App{Stdout: &out, Getenv: func(string) string { return "" }}
		fixed := false
		f := finding{Name: "a fault", Detail: "before", Remedy: "mend it", Command: "mend"}
		f.fix = func() error { fixed = true; return nil }
		f.again = func() finding {
			if !fixed {
				t.Error("looked at before it was fixed")
			}
			if mended {
				return finding{Name: "a fault", OK: true, Detail: "after"}
			}
			return finding{Name: "a fault", Detail: "still", Remedy: "mend it otherwise"}
		}
		err := app.diagnosis([]finding{f}, true, false)
		if mended == (err != nil) || mended != strings.Contains(out.String(), "mended: mend") || mended == strings.Contains(out.String(), "otherwise") {
			t.Errorf("mended %v: %v: %s", mended, err, out.String())
		}
	}
}
