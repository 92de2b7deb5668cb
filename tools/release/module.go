package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is one that the binary holds code of.
type module struct {
	path, version, sum string
	dir                string   // its root
	packages           []string // folders of those packages that are linked
	texts              []text
}

// linked lists the modules of a binary, the Go standard library among them, sorted by path.
func linked(info *buildinfo.BuildInfo, arch string) ([]*module, error) {
	cmd := exec.Command("go", "list", "-deps", "-tags", "grpcnotrace", "-json=Dir,Standard,Module", "./"+strings.TrimPrefix(info.Path, info.Main.Path+"/"))
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root := map[string]string{}
	folders := map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Dir string
				Replace   *struct{ Dir string }
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Standard || p.Module == nil {
			continue
		}
		root[p.Module.Path] = p.Module.Dir
		folders[p.Module.Path] = append(folders[p.Module.Path], p.Dir)
	}

	standard, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	modules := []*module{{path: "std", version: version, dir: strings.TrimSpace(string(standard))}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return nil, fmt.Errorf("%s is replaced; a release is made of published modules", dep.Path)
		}
		if root[dep.Path] == "" {
			return nil, fmt.Errorf("the binary holds %s %s, but go list does not know it here: was the binary built from this tree?", dep.Path, dep.Version)
		}
		modules = append(modules, &module{path: dep.Path, version: dep.Version, sum: dep.Sum, dir: root[dep.Path], packages: folders[dep.Path]})
	}
	for _, m := range modules {
		if err := m.read(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(modules, func(a, b *module) int { return cmp.Compare(a.path, b.path) })
	return modules, nil
}

// read finds the texts in the module's root and beside its linked packages, whose own licences may differ.
func (m *module) read() error {
	looked := map[string]bool{}
	for _, dir := range append([]string{m.dir}, m.packages...) {
		for ; !looked[dir]; dir = filepath.Dir(dir) {
			looked[dir] = true
			found, err := textsIn(m.dir, dir)
			if err != nil {
				return err
			}
			m.texts = append(m.texts, found...)
			if dir == m.dir {
				break
			}
		}
	}
	slices.SortFunc(m.texts, func(a, b text) int { return cmp.Compare(a.name, b.name) })
	return nil
}
