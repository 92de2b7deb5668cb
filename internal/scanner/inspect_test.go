package scanner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// header is the start of an official database, padded to the 512 bytes it has.
func header(version int, built time.Time) string {
	return fmt.Sprintf("%-512s", fmt.Sprintf("ClamAV-VDB:%s:%d:100:90:md5:dsig:builder:%d",
		built.Format("02 Jan 2006 15-04 -0700"), version, built.Unix())) + "compressed signatures"
}

func TestInspectDatabase(t *testing.T) {
	old, recent := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 11, 18, 8, 35, 0, 0, time.UTC)
	touched := time.Date(2026, 5, 5, 5, 5, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		files  map[string]string
		want   Database
		advice string
	}{
		"empty":       {nil, Database{}, "no signature database in FOLDER: run freshclam"},
		"other files": {map[string]string{"README.md": "x", "freshclam.dat": "x"}, Database{}, "no signature database in FOLDER: run freshclam"},
		"test only":   {map[string]string{"a.ndb": "x"}, Database{Usable: true, Date: touched}, "run freshclam"},
		"full": {map[string]string{"main.cvd": header(62, old), "daily.cld": header(27460, recent), "a.ndb": "x"},
			Database{Usable: true, Full: true, Version: "27460", Date: recent}, ""},
		"no main": {map[string]string{"daily.cvd": header(27460, recent)},
			Database{Usable: true, Version: "27460", Date: recent}, "run freshclam"},
		"no daily":     {map[string]string{"main.cvd": header(62, old)}, Database{Usable: true, Date: old}, "run freshclam"},
		"cut off":      {map[string]string{"daily.cvd": "ClamAV-VDB:"}, Database{Usable: true}, "daily.cvd in FOLDER is damaged"},
		"not a header": {map[string]string{"main.cld": strings.Repeat(":", 600)}, Database{Usable: true}, "main.cld in FOLDER is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tc.files {
				path := filepath.Join(dir, file)
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, touched, touched); err != nil {
					t.Fatal(err)
				}
			}
			got := InspectDatabase(dir)
			if again := InspectDatabase(dir); (got.Fingerprint != "") != got.Usable || again != got {
				t.Errorf("fingerprint %q, then %q", got.Fingerprint, again.Fingerprint)
			}
			got.Fingerprint = ""
			advice := got.Advice
			got.Advice, tc.want.Folder = "", dir
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if want := strings.ReplaceAll(tc.advice, "FOLDER", dir); !strings.Contains(advice, want) || (advice == "") != (want == "") {
				t.Errorf("advice %q, want %q", advice, want)
			}
		})
	}
	t.Run("missing folder", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "none")
		if got := InspectDatabase(dir); got.Usable || got.Advice != "no signature database in "+dir+": run freshclam" {
			t.Errorf("got %+v", got)
		}
	})
	if got := InspectDatabase(""); got.Folder != DefaultDatabase {
		t.Errorf("default folder is %s", got.Folder)
	}
}

func TestInspectBinary(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // as for an ordinary user, who has no sbin on it
	if got := InspectBinary(t.Context(), ""); got.Path == "" || got.Version == "" || got.Advice != "" {
		t.Errorf("the installed clamd: %+v", got)
	}
	for _, name := range []string{"no-such-clamd", "/no/such/clamd"} {
		if got := InspectBinary(t.Context(), name); got != (Binary{Advice: adviceInstall}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := InspectBinary(t.Context(), "/bin/true"); got.Version != "" || !strings.Contains(got.Advice, "reinstall") {
		t.Errorf("a program that is no clamd: %+v", got)
	}
	both := Inspect(t.Context(), "no-such-clamd", t.TempDir())
	if both.Binary.Advice == "" || both.Database.Advice == "" {
		t.Errorf("Inspect: %+v", both)
	}
}

func TestFingerprintChangesWithEveryFile(t *testing.T) {
	dir := signatures(t)
	seen := map[string]string{InspectDatabase(dir).Fingerprint: "nothing"}
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"a file more", func() error { return os.WriteFile(filepath.Join(dir, "a.ndb"), []byte("x"), 0o644) }},
		{"its time alone", func() error { return os.Chtimes(filepath.Join(dir, "a.ndb"), time.Unix(9, 0), time.Unix(9, 0)) }},
		{"its name alone", func() error { return os.Rename(filepath.Join(dir, "a.ndb"), filepath.Join(dir, "b.ndb")) }},
		{"its length", func() error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "b.ndb"), []byte("xy"), 0o644), os.Chtimes(filepath.Join(dir, "b.ndb"), time.Unix(9, 0), time.Unix(9, 0)))
		}},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		print := InspectDatabase(dir).Fingerprint
		if before, known := seen[print]; known {
			t.Errorf("%s leaves the fingerprint of %s", change.what, before)
		}
		seen[print] = change.what
	}
	print := InspectDatabase(dir).Fingerprint
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("no signatures"), 0o644); err != nil {
		t.Fatal(err)
	}
	if InspectDatabase(dir).Fingerprint != print {
		t.Error("a file without signatures changes the fingerprint")
	}
}
