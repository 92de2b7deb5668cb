package extract

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"testing"
)

// members are the files that Members visits, in order.
func members(t testing.TB, e *Extractor, content []byte) (visited []string, err error) {
	t.Helper()
	err = e.Members(within(t), bytes.NewReader(content), int64(len(content)), func(r io.Reader) error {
		b, err := io.ReadAll(r)
		visited = append(visited, string(b))
		return err
	})
	return visited, err
}

func gzipOf(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestMembers(t *testing.T) {
	t.Parallel()
	packed := zipOf(t, "a.txt")
	twice := gzipOf(t, gzipOf(t, []byte("twice")))
	long := bytes.Repeat([]byte("a long member, of several frames. "), 60_000)
	for name, c := range map[string]struct {
		content []byte
		want    []string
	}{
		"text":              {[]byte("words"), nil},
		"picture":           {asPNG(t, blank(20, 20)), nil},
		"PDF":               {makePDF(textPage("One page.")), nil},
		"zip":               {packed, []string{"words"}},
		"zip behind junk":   {append([]byte("junk, as of a self-extracting program. "), packed...), []string{"words"}},
		"gzip of a zip":     {gzipOf(t, packed), []string{"words", string(packed)}},
		"gzip of gzip":      {twice, []string{"twice", string(gzipOf(t, []byte("twice")))}},
		"a long member":     {gzipOf(t, long), []string{string(long)}},
		"broken PDF header": {[]byte("%PDF-1.7\nno more"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := members(t, extractor(t), c.content)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%d members, error %v", len(got), err)
			}
		})
	}
}

// Nothing of a bomb is handed out that whoever takes it would begin to unpack.
func TestMembersOfABombAreRefusedBeforeTheyAreHandedOut(t *testing.T) {
	t.Parallel()
	zeros := gzipOf(t, make([]byte, 20<<20))
	visited, err := members(t, extractor(t), gzipOf(t, gzipOf(t, append(gzipOf(t, zeros), zeros...))))
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code != CodeExpands || len(visited) != 0 {
		t.Errorf("%d members, error %v", len(visited), err)
	}
}

func TestMembersThatNobodyCanLookInto(t *testing.T) {
	t.Parallel()
	deep := []byte("innermost")
	for range 20 {
		deep = gzipOf(t, deep)
	}
	cutOff := gzipOf(t, noise(300, 300).Pix)
	cutOff = cutOff[:len(cutOff)/2]
	for name, c := range map[string]struct {
		content []byte
		code    string
	}{
		"packed too deep": {deep, CodeExpands},
		"a bomb":          {gzipOf(t, make([]byte, 64<<20)), CodeExpands},
		"cut off":         {cutOff, CodeBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := members(t, extractor(t), c.content)
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Code != c.code {
				t.Errorf("want refusal %s, got %v", c.code, err)
			}
		})
	}
}

func TestMembersEndWithTheirVisitor(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	err := extractor(t).Members(within(t), bytes.NewReader(zipOf(t, "a.txt")), int64(len(zipOf(t, "a.txt"))), func(io.Reader) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("want %v, got %v", enough, err)
	}
	content := zipOf(t, "a.txt")
	err = extractor(t).Members(within(t), failing{content, 20}, int64(len(content)), func(io.Reader) error { return nil })
	if !errors.Is(err, errStore) {
		t.Errorf("want %v, got %v", errStore, err)
	}
	e := extractor(t, func(config *Config) { config.Executable = "/bin/false" })
	if err := e.Members(within(t), bytes.NewReader(content), int64(len(content)), nil); !errors.Is(err, ErrUnfinished) {
		t.Errorf("want %v, got %v", ErrUnfinished, err)
	}
}
