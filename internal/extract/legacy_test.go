package extract

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/internal/extract/office"
)

func legacyNote(t testing.TB, ending string) []byte {
	t.Helper()
	content, err := os.ReadFile("../../testdata/documents/harbour-note." + ending)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Where LibreOffice is installed, its formats are read; elsewhere they are refused with the ordinary sentence.
func TestLegacyDocuments(t *testing.T) {
	t.Parallel()
	for format, kind := range legacyTypes {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			e := extractor(t)
			if findLibreOffice("soffice") == "" {
				t.Log("LibreOffice is not installed here: refused")
				refused(t, e, legacyNote(t, format), kind.media, CodeUnsupported)
				return
			}
			doc := extract(t, e, legacyNote(t, format), kind.media)
			if doc.MediaType != kind.media || doc.DeclaredMediaType != kind.media || !strings.Contains(said(doc), "amber-lighthouse-44") {
				t.Errorf("%+v", doc)
			}
		})
	}
}

func said(doc *Document) (text string) {
	for _, p := range doc.Pages {
		text += p.Text + "\n"
	}
	return text
}

func TestLegacyRefusals(t *testing.T) {
	t.Parallel()
	doc, xls := legacyNote(t, "doc"), legacyNote(t, "xls")
	locked, broken := bytes.Clone(doc), bytes.Clone(doc)
	office.OLEStreams(bytes.NewReader(doc), int64(len(doc)), func(name string, begin func() []byte) bool {
		if name == "WordDocument" {
			at := bytes.Index(doc, begin())
			locked[at+11] |= 1
			copy(broken[at:], make([]byte, 512))
		}
		return true
	})
	if !lockedWorkbook([]byte{9, 8, 2, 0, 0, 0, 0x2f, 0, 2, 0, 1, 1}) || lockedWorkbook([]byte{9, 8, 2, 0, 0x2f, 0, 0x30, 0, 200, 0, 1}) {
		t.Error("locked workbooks are not told apart")
	}
	e := extractor(t)
	none := extractor(t, func(c *Config) { c.LibreOffice = "soffice-is-not-here" })
	refused(t, e, locked, "application/msword", CodeEncrypted)
	refused(t, e, xls, "application/msword", CodeMismatch)
	refused(t, e, doc, "application/pdf", CodeMismatch)
	refused(t, none, doc, "application/msword", CodeUnsupported)
	if findLibreOffice("soffice") != "" {
		refused(t, e, broken, "application/msword", CodeBroken)
	}
}

// standInOffice puts a shell script in LibreOffice's place: it tries what an exploited LibreOffice would. $HOME is its room.
func standInOffice(t *testing.T, script string) func(*Config) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "program")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"soffice": "#!/bin/sh\n", "soffice.bin": "#!/bin/bash\nexec 2>/dev/null\n" + script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return func(c *Config) { c.LibreOffice = filepath.Join(dir, "soffice") }
}

// throughOffice converts a document with a script in LibreOffice's place.
func throughOffice(t *testing.T, script string, change ...func(*Config)) (*Document, error) {
	t.Helper()
	content := legacyNote(t, "doc")
	return extractor(t, append([]func(*Config){standInOffice(t, script)}, change...)...).
		Extract(within(t), bytes.NewReader(content), int64(len(content)), "application/msword", nil)
}

// The script says by its exit status whether it got through.
func TestOfficeCageWalls(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := os.MkdirTemp(memoryFolder, "extract-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	for name, attempt := range map[string]string{
		"read":         "true < " + secret,
		"passwords":    "true < /etc/passwd",
		"write":        "echo x > " + filepath.Join(dir, "out"),
		"other rooms":  "echo x > " + filepath.Join(other, "out"),
		"network":      "true <> /dev/tcp/" + host + "/" + port,
		"datagrams":    "echo x > /dev/udp/" + host + "/" + port,
		"signal":       "kill -0 $PPID",
		"parent":       "true < /proc/$PPID/environ",
		"longer files": "ulimit -f unlimited",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := throughOffice(t, "if "+attempt+"; then exit 41; else exit 42; fi\n"); err == nil || !strings.Contains(err.Error(), "exit status 42") {
				t.Errorf("%s: %v", attempt, err)
			}
		})
	}
	if _, err := throughOffice(t, "true < /usr/bin/env && echo x > $HOME/out/x && exit 41\n"); err == nil || !strings.Contains(err.Error(), "exit status 41") {
		t.Errorf("the cage does not even let it read its libraries and write in its room: %v", err)
	}
	// A shell that may not fork ends; one that may says so.
	if _, err := throughOffice(t, "( true ) && exit 41\n"); err == nil || strings.Contains(err.Error(), "exit status 41") {
		t.Errorf("it forks: %v", err)
	}
}

// Whatever LibreOffice leaves in its room, nothing outside is read for it and nothing of it stays.
func TestOfficeFaults(t *testing.T) {
	t.Parallel()
	outside, err := filepath.Abs("../../testdata/documents/harbour-note.odt")
	if err != nil {
		t.Fatal(err)
	}
	result := "$HOME/out/in.odt"
	for name, c := range map[string]struct {
		script string
		limits Limits
		code   string // of a refusal
		says   string // else
	}{
		"no result":          {"exit 0", Limits{}, CodeBroken, ""},
		"no document":        {"echo words > " + result, Limits{}, CodeBroken, ""},
		"the document again": {"exec cp $HOME/in.doc " + result, Limits{}, CodeBroken, ""},
		"a link to a file":   {"exec ln -s " + outside + " " + result, Limits{}, CodeBroken, ""},
		"a folder":           {"exec mkdir " + result, Limits{}, CodeBroken, ""},
		"writes without end": {"for ((i=0;;i++)); do printf %1048576s x > $HOME/f$i; done", Limits{ExpandedBytes: 64 << 20}, CodeExpands, ""},
		"many small files":   {"for ((i=0;;i++)); do : > $HOME/f$i; done", Limits{ExpandedBytes: 16 << 20}, CodeExpands, ""},
		"one long file":      {"printf %99999999s x > " + result, Limits{ExpandedBytes: 16 << 20}, "", "LibreOffice was killed"},
		"loops":              {"while :; do :; done", Limits{WorkerCPU: time.Second}, "", "used more than it may"},
		"hides its files":    {"echo x > $HOME/out/x; exec chmod 0 $HOME/out", Limits{}, CodeBroken, ""},
		"restarts for ever":  {"exit 81", Limits{}, "", "does not come to work"},
		"fails":              {"exit 3", Limits{}, "", "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := throughOffice(t, c.script+"\n", func(config *Config) { config.Limits = c.limits })
			var refusal *Refusal
			errors.As(err, &refusal)
			switch {
			case err == nil:
				t.Errorf("document %+v, error %v", doc, err)
			case c.code != "" && (refusal == nil || refusal.Code != c.code), c.code == "" && (refusal != nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("want %s%s, got %v", c.code, c.says, err)
			}
		})
	}
}

// TestRoomsAreRemoved looks at the folder that all services of this machine share, so it asks for its own rooms only.
func TestRoomsAreRemoved(t *testing.T) {
	t.Parallel()
	held, err := newRoom()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(held.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	syscall.ForkLock.RLock() // or a child that another test starts now would hold the lock until it has become its program
	left, err := newRoom()
	if err == nil {
		err = errors.Join(left.put("in.doc", strings.NewReader("words")), left.lock.Close()) // as after a death
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := extractor(t).Warm(within(t)); err != nil { // as when the service starts
		t.Fatal(err)
	}
	there := func(r *room) bool { _, err := os.Lstat(r.dir); return err == nil }
	if there(left) || !there(held) {
		t.Errorf("left behind is there: %t, in use is there: %t", there(left), there(held))
	}
	if err := held.remove(); err != nil || there(held) {
		t.Errorf("removed: %v, there: %t", err, there(held))
	}
	if _, _, err := func() (*os.File, int64, error) {
		r, err := newRoom()
		if err != nil {
			t.Fatal(err)
		}
		defer r.remove()
		if err := unix.Mkfifo(filepath.Join(r.dir, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		return r.take("pipe", 1<<20)
	}(); err == nil {
		t.Error("a pipe was taken for a file")
	}
}
