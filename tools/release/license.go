package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// permitted may be passed on in a binary beside this service's own licence, with their texts. The Mozilla licence asks for the
// source of its files too: the bill of materials names the unchanged, published module.
var permitted = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unlicense", "Zlib"}

// read are texts that the scanner does not understand and a person did, by the SHA-256 of the text: a changed one is read again.
var read = map[string][]string{
	// kernel.org/pub/linux/libs/security/libcap/psx: "one or the other" of BSD and GPL; this service takes the first
	"279fa656c62857d42952b86a0789b98669ca1cb4b324a8d9e91397c174af4c14": {"BSD-3-Clause"},
	// modernc.org/libc, LICENSE-3RD-PARTY.md: Go and musl, with musl's own list of BSD and MIT parts
	"f597097efe3d97021f89170746bd3a0fb9a8b6fb26b82043ed68a4e0283bee6c": {"BSD-2-Clause", "BSD-3-Clause", "MIT"},
	// modernc.org/memory, LICENSE-LOGO: where the picture of its documentation is from; no picture is linked
	"5ae5bee3072a841376451b48d8cfcec7188e10543926d5870828d36c8a750dc5": {},
	// modernc.org/sqlite, LICENSE-SQLITE: SQLite's authors' dedication to the public domain
	"8438c9c89b849131ead81d5435cb97fcf052df5b0b286dda8a2d4c29e6cb3fd0": {},
}

var (
	licence = regexp.MustCompile(`(?i)^(un)?licen[sc]e|^copying`)
	notice  = regexp.MustCompile(`(?i)^(notice|patents|authors|copyright)`)
	code    = regexp.MustCompile(`(?i)\.(go|s|c|h|py|sh|json|ya?ml)$`)
)

// text is a file that has to be passed on.
type text struct {
	name    string // in its module
	content []byte
	ids     []string // SPDX; none in a notice
}

func textsIn(root, dir string) (found []text, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		is := licence.MatchString(entry.Name())
		if !entry.Type().IsRegular() || code.MatchString(entry.Name()) || !is && !notice.MatchString(entry.Name()) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		t := text{name: name, content: content}
		if is {
			t.ids = recognized(content)
		}
		found = append(found, t)
	}
	return found, nil
}

// recognized is what a text is, once each; "" among them if a good part of it is not known.
func recognized(content []byte) (ids []string) {
	if ids, ok := read[fmt.Sprintf("%x", sha256.Sum256(content))]; ok {
		return ids
	}
	cover := licensecheck.Scan(content)
	for _, match := range cover.Match {
		if match.IsURL || slices.Contains(ids, match.ID) {
			continue
		}
		ids = append(ids, match.ID)
	}
	if cover.Percent < 60 {
		ids = append(ids, "")
	}
	slices.Sort(ids)
	return ids
}

// ids are the licences of the module.
func (m *module) ids() (all []string) {
	for _, t := range m.texts {
		all = append(all, t.ids...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// allowed says what keeps a module out of a release.
func (m *module) allowed() error {
	var wrong []error
	if len(m.ids()) == 0 {
		wrong = append(wrong, fmt.Errorf("%s %s has no licence in %s", m.path, m.version, m.dir))
	}
	for _, t := range m.texts {
		for _, id := range t.ids {
			switch {
			case id == "":
				wrong = append(wrong, fmt.Errorf("%s %s: %s is no licence that is known", m.path, m.version, t.name))
			case !slices.Contains(permitted, id):
				wrong = append(wrong, fmt.Errorf("%s %s: %s is %s, which is none of %s", m.path, m.version, t.name, id, strings.Join(permitted, ", ")))
			}
		}
	}
	return errors.Join(wrong...)
}

// writeLicenses writes <folder>/<module>/<file> for all.
func writeLicenses(folder string, modules []*module) error {
	var wrong []error
	for _, m := range modules {
		wrong = append(wrong, m.allowed())
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	for _, m := range modules {
		for _, t := range m.texts {
			path := filepath.Join(folder, m.path, t.name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, t.content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
