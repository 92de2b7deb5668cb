package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// in is the same service, failing another test.
func (s *service) in(t testing.TB) *service {
	other := *s
	other.t = t
	return &other
}

func (p partner) in(t testing.TB) partner { return partner{p.service.in(t), p.org, p.token} }

// objects lists every file in the storage roots and in the scratch folder of a managed clamd.
func (s *service) objects() (found []string) {
	s.t.Helper()
	for _, root := range []string{"blobs", "quarantine", "clamd/scratch"} {
		found = append(found, files(s.t, filepath.Join(s.data, root))...)
	}
	return found
}

// files lists what is below root and no folder; a root that is not there has none.
func files(t testing.TB, root string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // the service works in there
		}
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// wantNoObjects fails the test where any byte of any upload is left.
func (s *service) wantNoObjects() {
	s.t.Helper()
	if left := s.objects(); len(left) > 0 {
		s.t.Fatalf("left behind: %v", left)
	}
}

// showing lists the files of the data folder, and "log", that hold one of the texts. Marks that stand in several files,
// or across their lines, are found as the bytes they are.
func (s *service) showing(texts ...string) (found []string) {
	s.t.Helper()
	look := func(name string, content []byte) {
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				found = append(found, name+": "+strings.ToValidUTF8(text, "?"))
			}
		}
	}
	for _, path := range files(s.t, s.data) {
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil && !strings.HasSuffix(path, ".sock") {
			s.t.Fatal(err)
		}
		look(path, content)
	}
	look("log", []byte(s.log.String()))
	return found
}

// wantUnseen fails the test where one of the texts stands in a file of the data folder or in the log.
func (s *service) wantUnseen(texts ...string) {
	s.t.Helper()
	if found := s.showing(texts...); len(found) > 0 {
		s.t.Fatalf("content in clear: %q", found)
	}
}

// fragments cuts content into pieces that would be recognised wherever they lie.
func fragments(content []byte) (pieces []string) {
	for at := 0; at < len(content); at += max(64, len(content)/16) {
		pieces = append(pieces, string(content[at:min(at+48, len(content))]))
	}
	return pieces
}
