package archive

import (
	"archive/zip"
	"bytes"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

var tight = Limits{Depth: 4, Members: 50, MemberBytes: 1 << 20, ExpandedBytes: 2 << 20, Ratio: 50}

// bounded walks whatever it is given, and holds the walk to its budget and to what archive/zip sees.
func bounded(t testing.TB, raw []byte) {
	t.Helper()
	kind, ok := Detect(bytes.NewReader(raw), int64(len(raw)))
	if !ok {
		return
	}
	got, b, err := walkAs(kind, raw, tight)
	if b.Expanded() > tight.ExpandedBytes || b.Members() > tight.Members {
		t.Fatalf("%d bytes, %d members", b.Expanded(), b.Members())
	}
	if err != nil || kind != Zip {
		return
	}
	if _, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw))); err != nil && bytes.Contains(raw, locatorSignature) {
		return // archive/zip takes no prefix before a zip64
	}
	if want := standard(t, raw); !slices.Equal(got, want) {
		t.Fatalf("archive/zip sees other members")
	}
}

func mutated(raw []byte, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 42))
	raw = slices.Clone(raw)
	for range 1 + random.IntN(4) {
		if len(raw) == 0 {
			break
		}
		at := random.IntN(len(raw))
		if random.IntN(3) > 0 { // headers lie at the ends
			at = min(random.IntN(200), len(raw)-1)
			if random.IntN(2) == 0 {
				at = len(raw) - 1 - at
			}
		}
		switch random.IntN(5) {
		case 0:
			raw[at] ^= 1 << random.IntN(8)
		case 1:
			raw[at] = []byte{0, 1, 0x7F, 0x80, 0xFF}[random.IntN(5)]
		case 2:
			raw = raw[:at]
		case 3:
			raw = slices.Insert(raw, at, raw[at:min(at+random.IntN(64), len(raw))]...)
		case 4:
			for i := at; i < min(at+4, len(raw)); i++ {
				raw[i] = 0xFF
			}
		}
	}
	return raw
}

func TestMutations(t *testing.T) {
	for _, name := range realFiles(t) {
		raw := file(t, filepath.Base(name))
		for seed := range uint64(400) {
			bounded(t, mutated(raw, seed))
		}
	}
}

func realFiles(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.zip", "*.tar", "*.gz", "*.bz2", "*.docx"} {
		names, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		all = append(all, names...)
	}
	return all
}

func FuzzWalk(f *testing.F) {
	for _, name := range realFiles(f) {
		f.Add(file(f, filepath.Base(name)))
	}
	f.Add(zip64(squeezed("a", text)))
	f.Add(quoting())
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, kind := range []Kind{Zip, Tar, Gzip, Bzip2} {
			b := NewBudget(tight, int64(len(raw)))
			_ = Walk(kind, bytes.NewReader(raw), int64(len(raw)), b, func(m Member, content io.Reader) error {
				if CleanName(m.Name) != m.Name {
					t.Errorf("name %q is not clean", m.Name)
				}
				_, err := io.Copy(io.Discard, content)
				return err
			})
			if b.Expanded() > tight.ExpandedBytes {
				t.Errorf("%d bytes expanded", b.Expanded())
			}
		}
		bounded(t, raw)
	})
}
