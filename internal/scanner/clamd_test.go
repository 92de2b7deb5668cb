package scanner

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

const eicarInside = "Accession.Test.EICAR.UNOFFICIAL"

// noise returns n bytes that compress and repeat nowhere, the same every time.
func noise(n int) []byte {
	out := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(out)
	return out
}

func zipOf(t *testing.T, method uint16, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	member, err := w.CreateHeader(&zip.FileHeader{Name: "member.bin", Method: method})
	if err == nil {
		_, err = member.Write(content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestScan(t *testing.T) {
	encrypted, err := encryptedArchive()
	if err != nil {
		t.Fatal(err)
	}
	nested, err := nestedArchive()
	if err != nil {
		t.Fatal(err)
	}
	deep := append(append(noise(5<<20+123), eicar()...), noise(1<<20)...)
	for _, tc := range []struct {
		name      string
		content   []byte
		outcome   Outcome
		signature string
		reason    string
	}{
		{"empty", nil, Clean, "", ""},
		{"innocent", []byte("an ordinary sentence"), Clean, "", ""},
		{"noise of several chunks", noise(3 * chunkBytes), Clean, "", ""},
		{"EICAR", eicar(), Infected, eicarInside, ""},
		{"EICAR deep inside", deep, Infected, eicarInside, ""},
		{"EICAR in an archive", zipOf(t, zip.Deflate, deep), Infected, eicarInside, ""},
		{"marker", []byte("an accession harmless test marker " + "bravo e29b58."), Infected, "Accession.Test.MarkerBravo.UNOFFICIAL", ""},
		{"encrypted archive", encrypted, Unscannable, "", "encrypted"},
		{"encrypted archive with EICAR beside it", append(eicar(), encrypted...), Infected, eicarInside, ""},
		{"archive nested beyond the limit", nested, Unscannable, "", "MaxRecursion"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := scan(t, client(), tc.content)
			if got.Outcome != tc.outcome || got.Signature != tc.signature || !strings.Contains(got.Reason, tc.reason) {
				t.Errorf("got %+v, want %s %q because of %q", got, tc.outcome, tc.signature, tc.reason)
			}
			if (got.Reason != "") != (tc.outcome == Unscannable) {
				t.Errorf("reason %q with outcome %s", got.Reason, got.Outcome)
			}
			if got.Windows != 1 || got.ScannedBytes != int64(len(tc.content)) {
				t.Errorf("%d windows with %d bytes, want 1 with %d", got.Windows, got.ScannedBytes, len(tc.content))
			}
		})
	}
}

func TestScanInWindows(t *testing.T) {
	const window, overlap = 64 << 10, 1 << 10
	clean := noise(300 << 10)
	at := func(offset int) []byte {
		out := bytes.Clone(clean)
		copy(out[offset:], eicar())
		return out
	}
	step := window - overlap
	for _, tc := range []struct {
		name    string
		content []byte
		outcome Outcome
		windows int
	}{
		{"fits one", clean[:window], Clean, 1},
		{"one byte more", clean[:window+1], Clean, 2},
		{"ends with a window", clean[:window+step], Clean, 2},
		{"clean", clean, Clean, 5},
		{"across the end of the first", at(window - 34), Infected, 2},
		{"across the start of the second", at(step - 34), Infected, 1},
		{"across the end of the third", at(2*step + window - 1), Infected, 4},
		{"at the very end", at(len(clean) - len(eicar())), Infected, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := client()
			c.WindowBytes, c.OverlapBytes = window, overlap
			got := scan(t, c, tc.content)
			if got.Outcome != tc.outcome || got.Windows != tc.windows {
				t.Errorf("got %s in %d windows, want %s in %d", got.Outcome, got.Windows, tc.outcome, tc.windows)
			}
			if want := int64(len(tc.content) + (tc.windows-1)*overlap); tc.outcome == Clean && got.ScannedBytes != want {
				t.Errorf("sent %d bytes, want %d", got.ScannedBytes, want)
			}
		})
	}

	t.Run("one byte of overlap too few misses it", func(t *testing.T) {
		c := client()
		c.WindowBytes, c.OverlapBytes = window, int64(len(eicar())-2)
		if got := scan(t, c, at(window-len(eicar())+1)); got.Outcome != Clean {
			t.Errorf("got %s: then the tests above do not prove that the overlap is needed", got.Outcome)
		}
	})
	t.Run("could not look at one window, found in a later one", func(t *testing.T) {
		encrypted, err := encryptedArchive()
		if err != nil {
			t.Fatal(err)
		}
		content := append(bytes.Clone(encrypted), noise(2*window)...)
		c := client()
		c.WindowBytes, c.OverlapBytes = window, overlap
		if got := scan(t, c, content); got.Outcome != Unscannable || got.Windows != 3 || got.Reason == "" {
			t.Errorf("got %+v, want unscannable in 3 windows", got)
		}
		if got := scan(t, c, append(content, eicar()...)); got.Outcome != Infected || got.Reason != "" {
			t.Errorf("got %+v, want infected", got)
		}
	})
	t.Run("sizes that make no sense", func(t *testing.T) {
		c := client()
		c.WindowBytes, c.OverlapBytes = window, window
		if _, err := c.Scan(t.Context(), bytes.NewReader(clean), 1); err == nil {
			t.Error("an overlap as large as the window is taken")
		}
		if _, err := client().Scan(t.Context(), bytes.NewReader(clean), -1); err == nil {
			t.Error("a negative size is taken")
		}
	})
}

func TestScanReportsEngine(t *testing.T) {
	content := []byte("an ordinary sentence")
	report, err := shared.Scan(t.Context(), bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	e := report.Engine
	if e.Name != "ClamAV" || e.Version == "" || e.FullDatabase || e.SignatureDate != InspectDatabase(testSignatures).Date {
		t.Errorf("got %+v, want ClamAV, a version, no full database and the date of the test signatures", e)
	}
	if known, err := shared.Engine(); err != nil || known != e {
		t.Errorf("Engine gives %+v, %v; the report says %+v", known, err, e)
	}
}

func TestScanContentThatCannotBeRead(t *testing.T) {
	broken := errors.New("disk is gone")
	_, err := client().Scan(t.Context(), readerAt(func([]byte, int64) (int, error) { return 0, broken }), 10)
	if !errors.Is(err, broken) || errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want the content's own error", err)
	}
	_, err = client().Scan(t.Context(), strings.NewReader("short"), 10)
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want unexpected EOF", err)
	}
}

func TestScanEndsWithItsContext(t *testing.T) {
	cause := errors.New("the service stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	var reads int
	endless := readerAt(func(p []byte, _ int64) (int, error) { // 1 TiB of zeros: only the context can end it in time
		if reads++; reads == 2 {
			cancel(cause)
		}
		return len(p), nil
	})
	_, err := client().Scan(ctx, endless, 1<<40)
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

type readerAt func(p []byte, off int64) (int, error)

func (f readerAt) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

func TestNewClamd(t *testing.T) {
	for address, ok := range map[string]bool{
		"unix:/run/clamav/clamd.ctl": true, "tcp:127.0.0.1:3310": true, "tcp:[::1]:3310": true,
		"": false, "unix:": false, "unix:relative": false, "tcp:nowhere": false, "tcp:host:": false, "/run/clamd.ctl": false,
	} {
		if _, err := NewClamd(address); (err == nil) != ok {
			t.Errorf("NewClamd(%q): %v", address, err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	for _, bc := range []struct {
		name    string
		content []byte
	}{{"noise 16 MiB", noise(16 << 20)}, {"text 16 MiB", bytes.Repeat([]byte("An ordinary sentence. "), 16<<20/22)}} {
		b.Run(bc.name, func(b *testing.B) {
			b.SetBytes(int64(len(bc.content)))
			for n := byte(0); b.Loop(); n++ {
				bc.content[0] = n // or clamd remembers it as clean
				if _, err := shared.Scan(b.Context(), bytes.NewReader(bc.content), int64(len(bc.content))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
