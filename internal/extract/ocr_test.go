package extract

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// standIn installs a shell script in tesseract's place. It injects faults; recognition itself is tested with the real one.
func standIn(t *testing.T, body string) func(*Config) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bin", "tesseract")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/bash\nif [ \"$1\" = --list-langs ]; then printf 'List:\\neng\\nosd\\n'; exit; fi\n" + body
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return func(config *Config) { config.Tesseract = path }
}

const swallow = "while read -r -N 65536 _; do :; done\n"

func TestOCRFaults(t *testing.T) {
	t.Parallel()
	picture := asPNG(t, blank(400, 200))
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"fails":                {standIn(t, swallow+"exit 1"), "tesseract ended with exit status 1"},
		"ends before it reads": {standIn(t, "exit 3"), "tesseract ended with exit status 3"},
		"loops":                {standIn(t, swallow+"while :; do :; done"), "used more than it may"},
		"not installed":        {func(c *Config) { c.Tesseract = "tesseract-is-not-here" }, "apt-get install tesseract-ocr"},
		"language missing":     {func(c *Config) { c.Languages = []string{"eng", "xxx_yy"} }, "apt-get install tesseract-ocr-xxx-yy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := extractor(t, c.change, func(c *Config) { c.Limits.OCRCPU = time.Second })
			_, err := e.Extract(within(t), bytes.NewReader(picture), int64(len(picture)), "image/png", nil)
			var refusal *Refusal
			if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q and no refusal, got %v", c.want, err)
			}
			if missing := strings.Contains(c.want, "apt-get"); missing != errors.Is(err, ErrEngineMissing) {
				t.Errorf("ErrEngineMissing: %v", err)
			}
		})
	}
}

func TestOCRPrintsWithoutEnd(t *testing.T) {
	t.Parallel()
	picture := asPNG(t, blank(400, 200))
	doc := extract(t, extractor(t, standIn(t, swallow+"while :; do echo 'again and again'; done")), picture, "image/png")
	if !doc.Truncated || len(doc.Pages[0].Text) > ocrPageTextBytes || len(doc.Pages[0].Text) < ocrPageTextBytes-4 {
		t.Errorf("truncated %t, %d bytes", doc.Truncated, len(doc.Pages[0].Text))
	}
}

// TestOCRCageWalls puts a shell where tesseract would be, and lets it try what an exploited tesseract would.
func TestOCRCageWalls(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	dir := t.TempDir() // no part of the stand-in's prefix
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	attempts := map[string]string{
		"read":       "true < " + secret,
		"etc":        "true < /etc/passwd",
		"write":      "echo x > " + filepath.Join(dir, "out"),
		"network":    "true <> /dev/tcp/" + host + "/" + port,
		"fork":       "( true )",
		"signal":     "kill -0 $PPID",
		"parent mem": "true < /proc/$PPID/environ",
	}
	for name, attempt := range attempts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := "if " + attempt + "; then echo through; else echo refused; fi\n"
			doc, err := func() (*Document, error) {
				picture := asPNG(t, blank(400, 200))
				return extractor(t, standIn(t, swallow+script)).Extract(within(t), bytes.NewReader(picture), int64(len(picture)), "image/png", nil)
			}()
			// A shell that may not fork ends with an error; that is a refusal too.
			if err == nil && doc.Pages[0].Text != "refused" {
				t.Errorf("%s: %q", attempt, doc.Pages[0].Text)
			}
			if err != nil && name != "fork" {
				t.Errorf("%s: %v", attempt, err)
			}
		})
	}
	if doc := extract(t, extractor(t, standIn(t, swallow+"if true < /usr/bin/env; then echo through; fi")), asPNG(t, blank(400, 200)), "image/png"); doc.Pages[0].Text != "through" {
		t.Errorf("the cage of tesseract does not even let it read its libraries: %+v", doc)
	}
}
