package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A release is refused for what may not be passed on, and for what nobody has read.
func TestAllowed(t *testing.T) {
	own, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, text, refused string }{
		"a permissive licence":            {"LICENSE", string(own), ""},
		"the same below a linked package": {"inner/COPYING", string(own), ""},
		"no licence":                      {"README.md", "Do what you like.", "has no licence"},
		"a notice alone":                  {"NOTICE", "Copyright somebody", "has no licence"},
		"code that is called so":          {"license.go", "package license", "has no licence"},
		"a licence of one's own":          {"LICENSE.md", strings.Repeat("Ask me on a Tuesday before you copy any of this. ", 20), "no licence that is known"},
		"one that is not permissive":      {"COPYING", "SPDX-License-Identifier: AGPL-3.0-only\n\n" + agpl, "which is none of"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &module{path: "example.org/m", version: "v1.0.0", dir: t.TempDir()}
			path := filepath.Join(m.dir, c.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			m.packages = []string{filepath.Dir(path)}
			if err := m.read(); err != nil {
				t.Fatal(err)
			}
			err := m.allowed()
			if (c.refused == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v, want %q", err, c.refused)
			}
			folder := filepath.Join(t.TempDir(), "licenses")
			if writeErr := writeLicenses(folder, []*module{m}); (writeErr == nil) != (c.refused == "") {
				t.Errorf("written: %v", writeErr)
			}
			if kept, err := os.ReadFile(filepath.Join(folder, m.path, c.file)); c.refused == "" && (err != nil || string(kept) != c.text) {
				t.Errorf("the text that was written: %v", err)
			}
		})
	}
}

// The beginning by which the licence is known.
const agpl = `GNU AFFERO GENERAL PUBLIC LICENSE
Version 3, 19 November 2007

This program is free software: you can redistribute it and/or modify it under the terms of the GNU Affero General Public License as
published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.

This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of
MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU Affero General Public License for more details.
`

// This test itself is a program that was not built as a release is.
func TestReleased(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := released(program, info, arch); err == nil {
			t.Errorf("a test is a release for %s", arch)
		} else {
			t.Log(err)
		}
	}
}
