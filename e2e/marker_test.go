package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/storetest/cluster"
	"github.com/accession/accession/internal/telemetry/otlptest"
)

// marks stand where an upload has words of its own, and nowhere else in the world.
type marks struct {
	content           string // in the file, and in the text that is extracted from it
	name, notes, mail string
}

func newMarks() marks {
	mark := func(what string) string { return what + strings.ToLower(rand.Text()[:14]) }
	return marks{mark("inside-"), mark("name-"), mark("notes-"), mark("mail-")}
}

// forms are the ways in which a mark could lie about: as it is, in base64 at each alignment, in hex, in UTF-16.
func forms(mark string) (needles [][]byte) {
	for _, text := range []string{mark, strings.ToUpper(mark)} {
		wide := utf16.Encode([]rune(text))
		little, big := make([]byte, 0, 2*len(wide)), make([]byte, 0, 2*len(wide))
		for _, u := range wide {
			little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
		}
		needles = append(needles, []byte(text), []byte(hex.EncodeToString([]byte(text))), []byte(strings.ToUpper(hex.EncodeToString([]byte(text)))), little, big)
		for before := range 3 { // only the characters that depend on nothing beside the mark
			encoded := base64.StdEncoding.EncodeToString(append(make([]byte, before), text...))
			encoded = strings.TrimRight(encoded, "=")
			encoded = encoded[(8*before+5)/6 : len(encoded)-1]
			needles = append(needles, []byte(encoded), []byte(strings.NewReplacer("+", "-", "/", "_").Replace(encoded)))
		}
	}
	return needles
}

// find lists what holds a mark in any form.
func find(where string, content []byte, sought ...string) (found []string) {
	for _, mark := range sought {
		for _, needle := range forms(mark) {
			if bytes.Contains(content, needle) {
				found = append(found, where+" holds "+strconv.QuoteToASCII(string(needle)))
			}
		}
	}
	return found
}

// findBelow is find in every file below root.
func findBelow(t testing.TB, root string, since time.Time, sought ...string) (found []string) {
	t.Helper()
	for _, path := range files(t, root) {
		if strings.HasPrefix(path, sharedMemory+"/"+cluster.FolderPrefix) { // another test's, whose content TestDumpOfTheDatabaseHoldsNoContent looks for
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.ModTime().Before(since) {
			continue
		}
		if content, err := os.ReadFile(path); err == nil { // or gone meanwhile
			found = append(found, find(path, content, sought...)...)
		}
		found = append(found, find("the name of "+path, []byte(path), sought...)...)
	}
	return found
}

// bench is a service whose every trace can be searched: nothing it writes lies outside its root, the memory file system and
// the shared cache of compiled engines.
type bench struct {
	partner
	marks
	root, metrics string
	options       options
	argv          *commandLines
	traces        *otlptest.Collector
}

const sharedMemory = "/dev/shm"

func newBench(t *testing.T, o options) *bench {
	t.Helper()
	b := &bench{root: t.TempDir(), metrics: freeAddress(t), marks: newMarks(), traces: otlptest.Start(t)}
	for _, folder := range []string{"tmp", "home"} {
		if err := os.Mkdir(filepath.Join(b.root, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	o.data = filepath.Join(b.root, "data")
	o.env = append([]string{"TMPDIR=" + filepath.Join(b.root, "tmp"), "HOME=" + filepath.Join(b.root, "home"), exportAtOnce}, o.env...)
	o.flags = append(o.flags, "--metrics-listen", b.metrics, "--otlp-endpoint", b.traces.URL)
	b.options = o
	b.argv = watchCommandLines(t)
	b.service = start(t, o)
	b.argv.follow(b.cmd.Process.Pid)
	b.partner = b.service.partner("harbour")
	return b
}

// restart starts the service on the same folder after a kill.
func (b *bench) restart() {
	b.t.Helper()
	b.service = start(b.t, b.options)
	b.argv.follow(b.cmd.Process.Pid)
	b.partner = partner{b.service, b.org, b.token}
}

// reserve initiates an upload with a mark in everything that an uploader can say.
func (b *bench) reserve(contentType string, size int) string {
	b.t.Helper()
	agreed := consent()
	agreed["consenting_user_email"] = b.mail + "@example.com"
	return b.do(call{method: "POST", path: b.path("/partner-uploads/initiate"), token: b.token, key: client.NewIdempotencyKey(),
		json: map[string]any{"filename": b.name + ".txt", "content_type": contentType, "size_bytes": size, "notes": "About " + b.notes + ".", "consent": agreed}}).
		want(b.t, 200, "").field(b.t, "upload_id")
}

// deposit reserves, sends and completes.
func (b *bench) deposit(contentType string, content []byte) string {
	b.t.Helper()
	id := b.reserve(contentType, len(content))
	b.part(id, 1, content).want(b.t, 200, "")
	b.complete(id, [][]byte{content}).want(b.t, 202, "")
	return id
}

// wantNowhere fails the test where content is in clear anywhere, or the words of its uploader where nobody keeps them.
func (b *bench) wantNowhere(more ...string) {
	b.t.Helper()
	content := append([]string{b.content}, more...)
	b.failIf(append(findBelow(b.t, b.root, time.Time{}, content...), b.findShown(append(content, b.name, b.notes, b.mail)...)...))
	b.wantGone(sharedMemory, content...) // engines delete after they have answered
}

// wantForgotten fails the test where anything of a withdrawn upload is left. The uploader's words were in the database: they leave
// its files right after the withdrawal is confirmed.
func (b *bench) wantForgotten(more ...string) {
	b.t.Helper()
	b.wantNowhere(more...)
	b.wantNoObjects()
	b.wantGone(b.root, b.name, b.notes, b.mail)
	b.wantGone(sharedMemory, b.name, b.notes, b.mail)
}

// wantGone waits until nothing below root holds a mark.
func (b *bench) wantGone(root string, sought ...string) {
	b.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		found := findBelow(b.t, root, time.Time{}, sought...)
		if len(found) == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.failIf(found)
		}
	}
}

// findShown searches what the service shows without being asked for a document.
func (b *bench) findShown(sought ...string) []string {
	found := find("the log", []byte(b.log.String()), sought...)
	if res, err := http.Get("http://" + b.metrics + "/metrics"); err == nil { // a killed one has none
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		found = append(found, find("the metrics", text, sought...)...)
	}
	found = append(found, find("the traces", b.traces.Raw(), sought...)...)
	return append(found, find("a command line or environment", b.argv.all(), sought...)...)
}

func (b *bench) failIf(found []string) {
	b.t.Helper()
	if len(found) > 0 {
		b.t.Fatalf("in clear:\n%s", strings.Join(found, "\n"))
	}
}

// commandLines collects the arguments and environments of a service's processes while they run.
type commandLines struct {
	mu    sync.Mutex
	roots map[int]bool
	seen  map[string]bool
}

func watchCommandLines(t *testing.T) *commandLines {
	c := &commandLines{roots: map[int]bool{}, seen: map[string]bool{}}
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			c.look()
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(ended)
		watch.Wait()
	})
	return c
}

func (c *commandLines) follow(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roots[pid] = true
}

func (c *commandLines) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	family := map[int]bool{}
	for pid := range c.roots {
		family[pid] = true
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	slices.SortFunc(stats, func(a, b string) int { return len(a) - len(b) }) // parents mostly first
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		if fields := bytes.Fields(rest); len(fields) > 1 {
			if parent, _ := strconv.Atoi(string(fields[1])); family[parent] {
				family[pid] = true
			}
		}
		if family[pid] {
			for _, name := range []string{"cmdline", "environ"} {
				if text, err := os.ReadFile(filepath.Join(filepath.Dir(path), name)); err == nil {
					c.seen[string(text)] = true
				}
			}
		}
	}
}

func (c *commandLines) all() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []byte
	for text := range c.seen {
		all = append(append(all, text...), '\n')
	}
	return all
}

// A search that finds nothing proves nothing unless it would have found something.
func TestMarkerGrepFindsEveryForm(t *testing.T) {
	t.Parallel()
	m := newMarks()
	for name, form := range map[string][]byte{
		"plain": []byte(m.content), "upper": []byte(strings.ToUpper(m.content)), "hex": fmt.Appendf(nil, "%x", m.content), "HEX": fmt.Appendf(nil, "%X", m.content),
		"base64": []byte(base64.StdEncoding.EncodeToString([]byte("?" + m.content + "and more"))), "base64url": []byte(base64.RawURLEncoding.EncodeToString([]byte("??" + m.content))),
		"base64 at a border": []byte(base64.StdEncoding.EncodeToString([]byte("???" + m.content + "."))),
		"UTF-16":             []byte(strings.Join(strings.Split(m.content, ""), "\x00") + "\x00"),
	} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "file"), append([]byte("before "), form...), 0o600); err != nil {
			t.Fatal(err)
		}
		if found := findBelow(t, root, time.Time{}, m.name, m.content); len(found) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
	c := watchCommandLines(t)
	c.follow(os.Getpid())
	c.look()
	if !bytes.Contains(c.all(), []byte(os.Args[0])) {
		t.Error("the command line of this process is not seen")
	}
}
