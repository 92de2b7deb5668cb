package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// What scripts/package.sh is told for these tests; version is like that of a commit after a tag.
const (
	packagedVersion = "v1.2.3-4-gabcdef0"
	debianVersion   = "1.2.3+4.gabcdef0"
	packagedAt      = 1700000000
)

// packages makes what `make package` makes, for this machine's architecture, from the tree into dir.
func packages(t *testing.T, tree, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(tree, "scripts/package.sh"), dir)
	cmd.Env = append(os.Environ(), "ARCHITECTURES="+runtime.GOARCH, "VERSION="+packagedVersion, fmt.Sprint("SOURCE_DATE_EPOCH=", packagedAt))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// copyTree is a copy of the repository's files in tree, in another folder and without its history.
func copyTree(t *testing.T, tree string) string {
	t.Helper()
	dir := t.TempDir()
	root := os.DirFS(tree)
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", ".cache", ".accession-data", "bin", "node_modules", "e2e", "testdata"}, path) || entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(dir, path), 0o755)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := fs.ReadFile(root, path)
		if errors.Is(err, fs.ErrNotExist) { // somebody's editor was here
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, path), content, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPackage(t *testing.T) {
	t.Parallel()
	made, again := t.TempDir(), t.TempDir()
	tree := copyTree(t, "..")
	packages(t, tree, made)
	base := filepath.Join(made, "accession_"+packagedVersion+"_linux_"+runtime.GOARCH)
	deb := filepath.Join(made, "accession_"+debianVersion+"_"+runtime.GOARCH+".deb")
	unpacked := unpack(t, base+".tar.gz")
	program := filepath.Join(unpacked, "accession")

	t.Run("another folder gives the same bytes", func(t *testing.T) {
		packages(t, copyTree(t, tree), again)
		first, second := listed(t, made), listed(t, again)
		if first != second {
			t.Errorf("two builds of one tree:\n%s\n%s", first, second)
		}
	})
	t.Run("the checksums are those of all that was made", func(t *testing.T) {
		sums := listed(t, made)
		for _, file := range files(t, made) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(file)
			if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name); name != "SHA256SUMS" && !strings.Contains(sums, line) {
				t.Errorf("%q is not in SHA256SUMS:\n%s", line, sums)
			}
		}
	})
	t.Run("the archive's program is a release", func(t *testing.T) {
		if said := output(t, program, "version"); !strings.Contains(said, packagedVersion) {
			t.Errorf("its version: %s", said)
		}
		holds := func(path, name string) bool {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Contains(content, []byte(name))
		}
		if !holds(armedBinary(t), "ACCESSION_CRASH_AT") {
			t.Error("the variable of crash points is not found where it is")
		}
		if holds(program, "ACCESSION_CRASH_AT") {
			t.Error("the release has crash points")
		}
		if !holds(program, "net/http.(*Server).Serve") {
			t.Error("the names of functions are not found where they are")
		}
		if holds(program, "text/template.(*state).evalField") {
			t.Error("the release can evaluate templates, which keeps every method of every type in it: 10 MiB; go build -ldflags=-dumpdep tells who asks for that")
		}
		for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "accession.1", "completions/accession.bash", "completions/accession.zsh",
			"completions/accession.fish", "systemd/accession.service", "systemd/accession.sysusers", "systemd/accession.yaml", "licenses/std/LICENSE"} {
			if info, err := os.Stat(filepath.Join(unpacked, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("the bill of materials names every module", func(t *testing.T) { billNamesAll(t, base+".cdx.json", program, unpacked) })
	t.Run("the Debian package comes and goes", func(t *testing.T) { installs(t, deb) })
}

func listed(t *testing.T, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// unpack returns the one folder of an archive, all of whose entries belong to root and have the commit's time.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for entries := tar.NewReader(packed); ; {
		h, err := entries.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.ModTime.Unix() != packagedAt {
			t.Errorf("%s is of %d:%d %s, %s", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime)
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(entries); err == nil {
				err = os.WriteFile(path, content, h.FileInfo().Mode().Perm())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "accession-"+packagedVersion)
}

func billNamesAll(t *testing.T, bill, program, unpacked string) {
	content, err := os.ReadFile(bill)
	if err != nil {
		t.Fatal(err)
	}
	type component struct {
		Name, Version string
		Hashes        []struct{ Alg, Content string }
		Licenses      []struct{ License struct{ ID string } }
	}
	var b struct {
		BOMFormat, SpecVersion string
		Metadata               struct{ Component component }
		Components             []component
	}
	if err := json.Unmarshal(content, &b); err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if h := b.Metadata.Component.Hashes; b.BOMFormat != "CycloneDX" || len(h) != 1 || h[0].Content != fmt.Sprintf("%x", sha256.Sum256(binary)) {
		t.Errorf("it is %s of %+v", b.BOMFormat, h)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
	for _, dep := range info.Deps {
		want = append(want, dep.Path+" "+dep.Version)
	}
	var got []string
	for _, c := range b.Components {
		got = append(got, c.Name+" "+c.Version)
		if len(c.Licenses) == 0 {
			t.Errorf("%s has no licence", c.Name)
		}
		if found := files(t, filepath.Join(unpacked, "licenses", c.Name)); len(found) == 0 {
			t.Errorf("the archive has no licence text of %s", c.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("components:\n%q\nlinked:\n%q", got, want)
	}
}

// installs puts the package into a root of its own, where its scripts run without leaving anything in this system.
func installs(t *testing.T, deb string) {
	root := t.TempDir()
	at := func(path string) string { return filepath.Join(root, path) }
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) {
		t.Helper()
		// The new root has none of the packages that this one needs.
		args = append([]string{"dpkg", "--root=" + root, "--force-script-chrootless", "--force-depends", "--log=" + at("log")}, args...)
		if os.Geteuid() != 0 {
			args = append([]string{"fakeroot"}, args...)
		}
		output(t, args[0], args[1:]...)
	}
	exists := func(path string) bool {
		_, err := os.Lstat(at(path))
		return err == nil
	}

	dpkg("--install", deb)
	if said := output(t, at("usr/bin/accession"), "version"); !strings.Contains(said, packagedVersion) {
		t.Errorf("its version: %s", said)
	}
	output(t, "env", "ACCESSION_DATA=/var/lib/accession", at("usr/bin/accession"), "config", "check", "--config", at("etc/accession/accession.yaml"))
	// The targets that the unit stands among are systemd's own.
	targets, err := filepath.Glob("/usr/lib/systemd/system/*.target")
	if len(targets) == 0 {
		targets, err = filepath.Glob("/lib/systemd/system/*.target")
	}
	if err != nil || len(targets) == 0 {
		t.Fatalf("no targets of systemd: %v", err)
	}
	output(t, "cp", append(targets, at("usr/lib/systemd/system/"))...)
	output(t, "systemd-analyze", "verify", "--man=no", "--root="+root, "accession.service")
	user, err := os.ReadFile(at("etc/passwd"))
	if err != nil || !strings.Contains(string(user), "\naccession:") && !strings.HasPrefix(string(user), "accession:") {
		t.Errorf("the user accession: %v\n%s", err, user)
	}
	settings, err := os.Stat(at("etc/accession/accession.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if settings.Mode().Perm() != 0o640 {
		t.Errorf("the settings have mode %v", settings.Mode())
	}
	if os.Geteuid() == 0 {
		groups, err := os.ReadFile(at("etc/group"))
		if gid := settings.Sys().(*syscall.Stat_t).Gid; err != nil || gid == 0 || !strings.Contains(string(groups), fmt.Sprintf("accession:x:%d:", gid)) {
			t.Errorf("the settings are of group %d: %v\n%s", gid, err, groups)
		}
	}
	for _, path := range []string{"usr/share/man/man1/accession.1.gz", "usr/share/doc/accession/copyright", "usr/share/doc/accession/sbom.cdx.json",
		"usr/share/doc/accession/licenses/std/LICENSE", "usr/share/bash-completion/completions/accession", "usr/share/zsh/vendor-completions/_accession",
		"usr/share/fish/vendor_completions.d/accession.fish"} {
		if !exists(path) {
			t.Errorf("%s is missing", path)
		}
	}

	// What an administrator wrote, and what the service took into custody.
	mine := []byte("base_url: https://mine.example\n")
	if err := os.WriteFile(at("etc/accession/accession.yaml"), mine, 0o640); err != nil {
		t.Fatal(err)
	}
	kept := []string{"var/lib/accession/accession.db", "var/cache/accession/wasm", "etc/accession/environment"}
	for _, path := range kept {
		if err := os.MkdirAll(filepath.Dir(at(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(path), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stays := func(after string) {
		t.Helper()
		for _, path := range kept {
			if !exists(path) {
				t.Errorf("%s is gone after %s", path, after)
			}
		}
		if now, err := os.ReadFile(at("etc/accession/accession.yaml")); err != nil || !bytes.Equal(now, mine) {
			t.Errorf("the settings after %s: %v %s", after, err, now)
		}
	}
	dpkg("--install", deb)
	stays("an update")
	dpkg("--remove", "accession")
	stays("removal")
	if exists("usr/bin/accession") || exists("usr/lib/systemd/system/accession.service") {
		t.Error("the program or its unit stayed after removal")
	}
	dpkg("--purge", "accession")
	for _, path := range []string{"var/lib/accession", "var/cache/accession", "etc/accession", "usr/share/doc/accession"} {
		if exists(path) {
			t.Errorf("%s is still there after purging", path)
		}
	}
}
