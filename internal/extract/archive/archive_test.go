package archive

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seen is what a walk showed of one member.
type seen struct {
	name    string
	content string
	link    bool
}

func walk(t *testing.T, raw []byte, limits Limits) ([]seen, *Budget, error) {
	t.Helper()
	kind, ok := Detect(bytes.NewReader(raw), int64(len(raw)))
	if !ok {
		t.Fatal("not detected")
	}
	return walkAs(kind, raw, limits)
}

func walkAs(kind Kind, raw []byte, limits Limits) ([]seen, *Budget, error) {
	var got []seen
	b := NewBudget(limits, int64(len(raw)))
	err := Walk(kind, bytes.NewReader(raw), int64(len(raw)), b, func(m Member, content io.Reader) error {
		all, err := io.ReadAll(content)
		got = append(got, seen{m.Name, string(all), m.Link})
		return err
	})
	return got, b, err
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func lines() string {
	var s strings.Builder
	for i := range 200 {
		fmt.Fprintf(&s, "line %d of a text that compresses\n", i+1)
	}
	return s.String()
}

func TestWalkOfRealFiles(t *testing.T) {
	const fox = "The quick brown fox.\n"
	hole := strings.Repeat("\x00", 100<<10) + "tail"
	box := []seen{{"box/fox.txt", fox, false}, {"box/hole.bin", hole, false}, {"box/sub/lines.txt", lines(), false}}
	boxWithLink := append(slices.Clone(box), seen{"box/sub/link", "../../etc/passwd", true})
	for _, c := range []struct {
		name    string
		kind    Kind
		want    []seen
		members int // directories and links too
		err     error
	}{
		{"infozip.zip", Zip, boxWithLink, 6, nil},
		{"prefixed.zip", Zip, boxWithLink, 6, nil},
		{"adjusted.zip", Zip, boxWithLink, 6, nil},
		{"piped.zip", Zip, []seen{{"-", "piped in\n", false}}, 1, nil},
		{"python64.zip", Zip, []seen{{"größe.txt", strings.Repeat("streamed with zip64 sizes\n", 40), false}, {"up.txt", "up\n", false}}, 2, nil},
		{"encrypted.zip", Zip, nil, 0, ErrEncrypted},
		{"bzip2.zip", Zip, nil, 0, ErrUnsupported},
		{"gnu.tar", Tar, box, 6, nil},
		{"pax.tar", Tar, box, 6, nil},
		{"v7.tar", Tar, box[:1], 1, nil},
		{"fox.gz", Gzip, []seen{{"fox.txt", fox, false}}, 1, nil},
		{"two.gz", Gzip, []seen{{"fox.txt", fox + lines(), false}}, 1, nil},
		{"lines.bz2", Bzip2, []seen{{"", lines(), false}}, 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := file(t, c.name)
			if kind, ok := Detect(bytes.NewReader(raw), int64(len(raw))); !ok || kind != c.kind {
				t.Errorf("kind %q %t", kind, ok)
			}
			got, b, err := walk(t, raw, DefaultLimits())
			if !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			slices.SortFunc(got, func(a, b seen) int { return strings.Compare(a.name, b.name) })
			if !slices.Equal(got, c.want) {
				t.Errorf("members %.400s, want %.400s", fmt.Sprint(got), fmt.Sprint(c.want))
			}
			if b.Members() != c.members {
				t.Errorf("%d members counted, want %d", b.Members(), c.members)
			}
			if c.err != nil && b.Expanded() != 0 {
				t.Errorf("%d bytes expanded of what is refused", b.Expanded())
			}
		})
	}
}

func TestWalkAgreesWithTheStandardLibraryOnOfficeFiles(t *testing.T) {
	for _, name := range []string{"note.odt", "note.docx", "made.jar", "infozip.zip", "prefixed.zip", "adjusted.zip", "python64.zip"} {
		raw := file(t, name)
		got, _, err := walk(t, raw, DefaultLimits())
		if err != nil || len(got) == 0 {
			t.Errorf("%s: %d members, %v", name, len(got), err)
		}
		if want := standard(t, raw); !slices.Equal(got, want) {
			t.Errorf("%s: members differ from archive/zip's", name)
		}
	}
}

// standard is what archive/zip makes of content.
func standard(t testing.TB, raw []byte) []seen {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatalf("archive/zip refuses what is walked: %v", err)
	}
	var all []seen
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatalf("archive/zip refuses what is walked: %v", err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("archive/zip refuses what is walked: %v", err)
		}
		all = append(all, seen{CleanName(f.Name), string(content), f.ExternalAttrs>>28 == 0o12})
	}
	return all
}

func TestNestedContainersShareOneBudget(t *testing.T) {
	raw := file(t, "box.tar.gz")
	b := NewBudget(DefaultLimits(), int64(len(raw)))
	var names []string
	var open Visitor
	depth := 0
	open = func(m Member, content io.Reader) error {
		all, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		names = append(names, m.Name)
		if kind, ok := Detect(bytes.NewReader(all), int64(len(all))); ok {
			depth++
			return Walk(kind, bytes.NewReader(all), int64(len(all)), b, open)
		}
		return nil
	}
	if err := Walk(Gzip, bytes.NewReader(raw), int64(len(raw)), b, open); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "box/sub/lines.txt"}; !slices.Equal(names, want) || depth != 1 {
		t.Errorf("members %q, want %q", names, want)
	}
	if tarBytes := int64(10240); b.Expanded() != tarBytes+int64(len(lines())) || b.Members() != 4 {
		t.Errorf("%d bytes, %d members", b.Expanded(), b.Members())
	}
}

func TestWalkPassesOnErrors(t *testing.T) {
	raw := file(t, "infozip.zip")
	mine := errors.New("mine")
	err := Walk(Zip, bytes.NewReader(raw), int64(len(raw)), NewBudget(DefaultLimits(), 1), func(Member, io.Reader) error { return mine })
	if !errors.Is(err, mine) || errors.Is(err, ErrBroken) {
		t.Errorf("visit's error became %v", err)
	}
	for _, name := range []string{"infozip.zip", "gnu.tar", "fox.gz", "lines.bz2"} {
		raw := file(t, name)
		kind, _ := Detect(bytes.NewReader(raw), int64(len(raw)))
		for from := 0; from < len(raw); from += 1 + len(raw)/20 {
			err := Walk(kind, faulty{bytes.NewReader(raw), int64(from), mine}, int64(len(raw)), NewBudget(DefaultLimits(), int64(len(raw))),
				func(_ Member, content io.Reader) error { _, err := io.Copy(io.Discard, content); return err })
			if !errors.Is(err, mine) || errors.Is(err, ErrBroken) {
				t.Errorf("%s unreadable from %d: %v", name, from, err)
			}
		}
	}
}

// faulty cannot be read from an offset on.
type faulty struct {
	*bytes.Reader
	from int64
	err  error
}

func (f faulty) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > f.from {
		return 0, f.err
	}
	return f.Reader.ReadAt(p, offset)
}

func TestAnErrorThatVisitSwallowsEndsTheWalk(t *testing.T) {
	raw := file(t, "fox.gz")
	raw[len(raw)-8] ^= 1 // the checksum
	for _, visit := range []Visitor{
		func(_ Member, content io.Reader) error { _, _ = io.Copy(io.Discard, content); return nil },
		func(Member, io.Reader) error { return nil },
	} {
		if err := Walk(Gzip, bytes.NewReader(raw), int64(len(raw)), NewBudget(DefaultLimits(), 100), visit); !errors.Is(err, ErrBroken) {
			t.Errorf("error %v", err)
		}
	}
}

func TestDetectRefusesOtherContent(t *testing.T) {
	for _, raw := range []string{"", "P", "PK\x05", "BZh9 is a line of text", strings.Repeat("\x00", 10240), "PK\x05\x06 in a text" + strings.Repeat(" ", 40),
		strings.Repeat("ustar", 200)} {
		if kind, ok := Detect(strings.NewReader(raw), int64(len(raw))); ok {
			t.Errorf("%.20q is %q", raw, kind)
		}
	}
}

func TestEndsAsZip(t *testing.T) {
	raw := zipOf(plain("a", text))
	for tail, want := range map[string]bool{string(raw[len(raw)-endBytes:]): true, string(raw[len(raw)-endBytes:]) + "PK\x05\x06": true,
		string(raw[:len(raw)-1]): false, "": false} {
		if got := EndsAsZip([]byte(tail)); got != want {
			t.Errorf("%q: %t", tail, got)
		}
	}
}

func TestCleanName(t *testing.T) {
	for raw, want := range map[string]string{
		"a/b.txt":                   "a/b.txt",
		"../../etc/passwd":          "etc/passwd",
		"/etc/passwd":               "etc/passwd",
		`C:\Windows\..\x`:           "C:/x",
		"a\x00b\x1b[2J\r\n.txt":     "a_b_[2J__.txt",
		"gpj.\u202eexe":             "gpj._exe",
		"\x81ber.txt":               "über.txt", // code page 437
		"":                          "",
		"..":                        "",
		strings.Repeat("é", 400):    strings.Repeat("é", 127),
		strings.Repeat("/../x", 99): "x",
		strings.Repeat("x", 250) + "/../" + strings.Repeat("y", 252) + "..": strings.Repeat("y", 252)[:252] + "..",
	} {
		if got := CleanName(raw); got != want {
			t.Errorf("%.40q became %q, want %q", raw, got, want)
		}
	}
	if got := CleanName(strings.Repeat("z", 30) + ".." + "/" + strings.Repeat("y", 252)); len(got) > 255 || strings.Contains(got, "..") {
		t.Errorf("the cut made %q", got)
	}
}

// A directory that is not where its length says is still found by readers that go by its offset.
func TestDetectGoesByEitherPlace(t *testing.T) {
	raw := zipOf(plain("a", text))
	at := bytes.Index(raw, directorySignature)
	wrong := append([]byte("prefix"), end(end(raw, 12, le(uint32(1))), 16, le(uint32(at+len("prefix"))))...)
	if kind, ok := Detect(bytes.NewReader(wrong), int64(len(wrong))); !ok || kind != Zip {
		t.Errorf("kind %q", kind)
	}
	if _, _, err := walkAs(Zip, wrong, DefaultLimits()); !errors.Is(err, ErrBroken) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkWalk(b *testing.B) {
	content := strings.Repeat(lines(), 2000)
	for name, raw := range map[string][]byte{"stored": zipOf(plain("a", content)), "deflated": zipOf(squeezed("a", content))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				err := Walk(Zip, bytes.NewReader(raw), int64(len(raw)), NewBudget(DefaultLimits(), int64(len(raw))), func(_ Member, content io.Reader) error {
					_, err := io.Copy(io.Discard, content)
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
