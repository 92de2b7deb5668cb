package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// snippet is a fenced block of a page.
type snippet struct {
	at       string // page and line
	section  string // the heading of level 2 above it
	language string
	text     string
	notRun   string // the page's reason, where it is not run
	serves   string // what it prints once it serves; it runs until the page ends
}

// What a page says to this test, in a comment above a block. Nobody else sees it.
var (
	notRunMark = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	servesMark = regexp.MustCompile(`^<!-- run: serves "(.+)" -->$`)
	fence      = regexp.MustCompile("^( *)```([a-z]*)$")
)

// snippetsOf reads the blocks of a Markdown file, in order.
func snippetsOf(t *testing.T, path string) (found []snippet) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var open *snippet
	section, mark, indent := "", "", ""
	for i, line := range strings.Split(string(content), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open != nil && m != nil:
			if m[2] != "" {
				t.Fatalf("%s:%d: a block begins inside the block of %s", path, i+1, open.at)
			}
			found, open = append(found, *open), nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case m != nil:
			open = &snippet{at: fmt.Sprintf("%s:%d", filepath.Base(path), i+1), section: section, language: m[2]}
			indent = m[1]
			if m := notRunMark.FindStringSubmatch(mark); m != nil {
				open.notRun = m[1]
			}
			if m := servesMark.FindStringSubmatch(mark); m != nil {
				open.serves = m[1]
			}
		case strings.HasPrefix(line, "## "):
			section = strings.TrimPrefix(line, "## ")
		}
		if strings.TrimSpace(line) != "" {
			mark = strings.TrimSpace(line)
		}
	}
	if open != nil {
		t.Fatalf("the block of %s does not end", open.at)
	}
	return found
}

// reader follows a page: a folder, an environment, and what stands in for the names that are the reader's own.
type reader struct {
	t    *testing.T
	s    *service // nil where the page starts its own
	dir  string
	env  []string
	fill []string // old and new, in pairs
}

// newReader has the credentials that the pages speak of, for the organization acme, and a service at the pages' address.
func newReader(t *testing.T, flags ...string) *reader {
	r := newcomer(t)
	r.s = start(t, options{flags: append([]string{"--webhook-private-addresses", "allow"}, flags...)})
	spare := freeAddress(t)
	r.fill = append(r.fill, "https://custody.example", r.s.url, "http://127.0.0.1:8080", r.s.url, "127.0.0.1:8080", spare)
	p := r.s.partner("acme")
	client := r.s.oauthClient("acme", "ai_reader")
	r.export(
		"ACCESSION_URL", r.s.url, "URL", r.s.url, "ACCESSION_ADMIN_TOKEN", adminToken, "ACCESSION_ORG", "acme", "ORG", "acme",
		"ACCESSION_TOKEN", p.token, "ACCESSION_READER_KEY", r.s.issue("acme", "ai_reader"),
		"CLIENT_ID", client.id, "CLIENT_SECRET", client.secret,
	)
	r.write(".accession-data/admin-token", []byte(adminToken+"\n"))
	return r
}

// newcomer has the binary on the path and nothing else of accession: the page is to say the rest.
func newcomer(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir()}
	for _, folder := range []string{"bin", "home", "etc", "var"} {
		if err := os.Mkdir(filepath.Join(r.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(binary, filepath.Join(r.dir, "bin", "accession")); err != nil {
		t.Fatal(err)
	}
	r.fill = []string{"/etc/accession", filepath.Join(r.dir, "etc"), "/var/lib/accession", filepath.Join(r.dir, "var", "accession")}
	r.export("PATH", filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"), "HOME", filepath.Join(r.dir, "home"), "ACCESSION_CACHE", cache, "ACCESSION_CLAMD_ADDRESS", clamd)
	return r
}

func (r *reader) export(pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		r.env = append(r.env, pair[0]+"="+pair[1])
	}
}

func (r *reader) write(name string, content []byte) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

// follow runs the blocks one after the other in one shell, so that what one sets the next can use.
func (r *reader) follow(blocks []snippet) {
	r.t.Helper()
	var script strings.Builder
	script.WriteString(followed)
	runs := false
	for i, b := range blocks {
		if b.notRun != "" {
			continue
		}
		step := r.step(fmt.Sprintf("block-%d", i+1), b)
		if step == "" {
			continue
		}
		runs = true
		fmt.Fprintf(&script, "echo '@@ %s' >&2\n", b.at)
		if b.serves != "" {
			fmt.Fprintf(&script, "serve %q block-%d.log %s\n", b.serves, i+1, step)
		} else {
			fmt.Fprintln(&script, step)
		}
	}
	if !runs {
		return
	}
	r.write("page.sh", []byte(script.String()))
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "page.sh")
	cmd.Dir, cmd.Env = r.dir, r.env
	// Asked to end, with what it waits for, it ends the blocks that serve.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	leavesNothing(r.t, filepath.Join(r.dir, "home"))
	said, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Errorf("%v; the last block named is the one that fails:\n%s", err, said)
	}
}

// followed is how a page's blocks begin: a block that serves runs beside the others and ends with them.
const followed = `set -euo pipefail
served=()
ended() {
  local code=$?
  for job in "${served[@]}"; do kill -TERM -- "-$job" 2>/dev/null || true; done
  wait
  exit $code
}
trap ended EXIT
trap 'exit 1' TERM
serve() {
  local says=$1 log=$2
  shift 2
  set -m
  ("$@") >"$log" 2>&1 &
  set +m
  served+=($!)
  for ((i = 0; i < 600; i++)); do
    if grep -q -- "$says" "$log"; then return; fi
    if ! kill -0 $!; then break; fi
    sleep 0.1
  done
  cat "$log" >&2
  exit 1
}
`

// step is the shell command that runs a block; empty where reading it is all.
func (r *reader) step(name string, b snippet) string {
	r.t.Helper()
	text := strings.NewReplacer(r.fill...).Replace(b.text)
	switch b.language {
	case "sh":
		r.write(name+".sh", []byte(text))
		return ". ./" + name + ".sh"
	case "js":
		r.node()
		r.write(name+".mjs", []byte(text))
		return "node " + name + ".mjs"
	case "ts":
		r.node()
		r.write(name+".mts", []byte(text))
		return r.compiled(name)
	case "go":
		return r.built(b.at, name, text)
	case "yaml":
		r.write(name+".yaml", []byte(text))
		return "accession config check --data var --config " + name + ".yaml"
	case "sql":
		r.write(name+".sql", []byte(text))
		return "psql -v ON_ERROR_STOP=1 -f " + name + ".sql"
	case "json":
		if !json.Valid([]byte(text)) {
			r.t.Errorf("%s is not JSON", b.at)
		}
	case "mermaid": // the drawn lifecycle: compared with the table where that is
	case "":
		if command.MatchString(text) {
			r.t.Errorf("%s looks like a command: name its language, so that it is run", b.at)
		}
	default:
		r.t.Errorf("%s: nothing here runs the language %q", b.at, b.language)
	}
	return ""
}

var command = regexp.MustCompile(`(?m)^\s*(\$ |accession |curl |make |go |npm )`)

// built compiles a Go program as a package of this module that is nowhere on disk.
func (r *reader) built(at, name, text string) string {
	r.t.Helper()
	if !strings.Contains(text, "package main") {
		r.t.Errorf("%s is not a whole program", at)
		return ""
	}
	r.write(name+".go", []byte(text))
	root, err := filepath.Abs("..")
	if err != nil {
		r.t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "documented", "main.go"): filepath.Join(r.dir, name+".go")}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(name+".overlay", overlay)
	cmd := exec.CommandContext(r.t.Context(), "go", "build", "-overlay", filepath.Join(r.dir, name+".overlay"), "-o", filepath.Join(r.dir, name), "./documented")
	cmd.Dir = root
	if said, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("%s: %v\n%s", at, err, said)
		return ""
	}
	return "./" + name
}

// node makes the packages that the pages import findable: the client of this repository, and the official MCP client.
func (r *reader) node() {
	r.t.Helper()
	modules := filepath.Join(r.dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return
	}
	client, others := typescriptClient(r.t).dir, filepath.Join(npmPackages(r.t, "testdata/mcp"), "node_modules")
	err := errors.Join(
		os.MkdirAll(filepath.Join(modules, "@accession"), 0o700),
		os.Symlink(client, filepath.Join(modules, "@accession", "client")),
		os.Symlink(filepath.Join(client, "node_modules", "@types"), filepath.Join(modules, "@types")),
		os.Symlink(filepath.Join(client, "node_modules", "typescript"), filepath.Join(modules, "typescript")),
		os.Symlink(filepath.Join(others, "@modelcontextprotocol"), filepath.Join(modules, "@modelcontextprotocol")),
	)
	if err != nil {
		r.t.Fatal(err)
	}
}

// compiled checks a TypeScript program's types and makes a module of it.
func (r *reader) compiled(name string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "node", "node_modules/typescript/bin/tsc", "--strict", "--skipLibCheck", "--noEmitOnError",
		"--target", "es2022", "--module", "nodenext", "--types", "node", name+".mts")
	cmd.Dir = r.dir
	if said, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("%s: %v\n%s", name, err, bytes.TrimSpace(said))
		return ""
	}
	return "node " + name + ".mjs"
}

// Every command and program of README and documentation does what the page says, in order, against a real service.
func TestDocumentedSnippets(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md") {
		name := filepath.Base(page)
		blocks := snippetsOf(t, page)
		for _, b := range blocks {
			if b.notRun != "" {
				left = append(left, name+": "+b.notRun)
			}
		}
		if len(blocks) == 0 {
			continue
		}
		if inSections[name] {
			for _, section := range sectionsOf(blocks) {
				of := slices.DeleteFunc(slices.Clone(blocks), func(b snippet) bool { return b.section != section })
				t.Run(name+"/"+section, func(t *testing.T) {
					t.Parallel()
					readerOf(t, name+"/"+section).follow(of)
				})
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readerOf(t, name).follow(blocks)
		})
	}
	if !slices.Equal(left, notRun) {
		t.Errorf("what is not run has changed; is there no way to run it?\n%s", strings.Join(left, "\n"))
	}
}

func sectionsOf(blocks []snippet) (sections []string) {
	for _, b := range blocks {
		if !slices.Contains(sections, b.section) {
			sections = append(sections, b.section)
		}
	}
	return sections
}

var (
	inlineCode  = regexp.MustCompile("`(accession(?: [^`]+)?)`")
	commandWord = regexp.MustCompile(`^[a-z][a-z-]*$`)
	flagWord    = regexp.MustCompile(`^--[a-z][a-z-]*`)
)

// Commands that a page names in a sentence are there too, with the flags that it gives them.
func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	helps := map[string]string{}
	help := func(words []string) string {
		path := strings.Join(words, " ")
		if said, ok := helps[path]; ok {
			return said
		}
		cmd := exec.CommandContext(t.Context(), binary, append(slices.Clone(words), "--help")...)
		cmd.Env = []string{"HOME=" + t.TempDir()}
		said, err := cmd.CombinedOutput()
		if err != nil {
			said = nil // there is no such command
		}
		helps[path] = string(said)
		return helps[path]
	}
	named := 0
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md") {
		for _, m := range inlineCode.FindAllStringSubmatch(string(readFile(t, page)), -1) {
			words := strings.Fields(m[1])[1:]
			if len(words) == 0 || words[0] == strings.ToUpper(words[0]) || strings.HasPrefix(m[1], "accession is ready at") {
				continue // the program, any command, and what it prints
			}
			named++
			depth := 0
			for depth < len(words) && depth < 3 && commandWord.MatchString(words[depth]) {
				depth++
			}
			said := ""
			for ; depth >= 0; depth-- { // what follows the command are its arguments
				if said = help(words[:depth]); strings.Contains(said, strings.Join(append([]string{"  accession"}, words[:depth]...), " ")) {
					break
				}
			}
			if depth < 1 && !strings.HasPrefix(m[1], "accession --") {
				t.Errorf("%s: there is no command `%s`", filepath.Base(page), m[1])
				continue
			}
			for _, word := range words[max(depth, 0):] {
				if flag := flagWord.FindString(word); flag != "" && !strings.Contains(said, flag) {
					t.Errorf("%s: `%s`: the command has no flag %s", filepath.Base(page), m[1], flag)
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d commands were found in the pages", named)
	}
}
