package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func tarOf(t testing.TB, members ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range members {
		body := h.Linkname // of a file: what is in it
		if h.Typeflag == tar.TypeReg {
			h.Linkname, h.Size = "", int64(len(body))
		} else {
			body = ""
		}
		if h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode = 0o600
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func regular(name, content string) tar.Header {
	return tar.Header{Name: name, Linkname: content, Typeflag: tar.TypeReg}
}

// patch changes a tar header and makes its checksum right again.
func patch(raw []byte, at int, change string) []byte {
	raw = slices.Clone(raw)
	copy(raw[at:], change)
	block := raw[at/tarBlock*tarBlock:][:tarBlock]
	copy(block[148:], "        ")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	digits := []byte("000000\x00 ")
	for i := 5; i >= 0; i, sum = i-1, sum/8 {
		digits[i] = byte('0' + sum%8)
	}
	copy(block[148:], digits)
	return raw
}

func TestTarRefusals(t *testing.T) {
	limits := Limits{Depth: 1, Members: 3, MemberBytes: 1 << 20, ExpandedBytes: 2 << 20, Ratio: 1}
	first := tarOf(t, regular("a", text))
	nested := tarOf(t, regular("a", string(first[:1024]))) // some readers skip what is in it, some read on in it
	global := tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"size": "5"}}
	sized := tarOf(t, tar.Header{Name: "a", Typeflag: tar.TypeReg, Linkname: text, PAXRecords: map[string]string{"comment": "size"}, Format: tar.FormatPAX})
	sized = bytes.Replace(sized, []byte("16 comment=size\n"), []byte("16 size=0000021\n"), 1)
	zipped := string(zipOf(plain("evil.txt", text)))
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"wrong checksum":        {func() []byte { r := slices.Clone(first); r[0] ^= 1; return r }(), ErrBroken},
		"second header wrong":   {func() []byte { r := tarOf(t, regular("a", text), regular("b", text)); r[1024] ^= 1; return r }(), ErrBroken},
		"cut member":            {first[:520], ErrBroken},
		"member behind the end": {append(slices.Clone(first), first...), ErrBroken},
		"bytes behind the end":  {append(slices.Clone(first), 1), ErrBroken},
		"folder with a size":    {patch(nested, 156, "5"), ErrBroken},
		"link with a size":      {patch(nested, 156, "1"), ErrBroken},
		"size in a pax record":  {sized, ErrBroken},
		"size for all":          {tarOf(t, global, regular("a", text)), ErrBroken},
		"too many":              {tarOf(t, regular("a", ""), regular("b", ""), tar.Header{Name: "c/", Typeflag: tar.TypeDir}, regular("d", "")), ErrTooMany},
		"member too large":      {patch(first, 124, "00004000001"), ErrTooLarge},
		"sparse bomb":           {sparse(1 << 30), ErrRatio},
		"sparse, too large":     {sparse(1<<20 + 1), ErrTooLarge},
		"zip across members":    {tarOf(t, regular("a", zipped[:40]), regular("b", zipped[40:])), ErrBroken},
		"zip around the tar":    {append(first[:1024:1024], zipOf(plain("evil.txt", text))...), ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			got, b, err := walkAs(Tar, c.raw, limits)
			if !errors.Is(err, c.want) {
				t.Fatalf("%d members, error %v, want %v", len(got), err, c.want)
			}
			if errors.Is(c.want, ErrRatio) && b.Expanded() != 0 {
				t.Errorf("%d bytes were expanded first", b.Expanded())
			}
		})
	}
}

// sparse is a file of one hole, in GNU's old form.
func sparse(size int64) []byte {
	block := make([]byte, 3*tarBlock)
	octal := func(at, width int, n int64) {
		for i := width - 2; i >= 0; i, n = i-1, n/8 {
			block[at+i] = byte('0' + n%8)
		}
	}
	copy(block, "hole")
	copy(block[257:], "ustar  \x00")
	octal(124, 12, 0)
	block[156] = tar.TypeGNUSparse
	octal(386, 12, size) // one fragment, of no bytes, at the end
	octal(398, 12, 0)
	octal(483, 12, size)
	return patch(block, 0, "hole")
}

func TestTarAccepts(t *testing.T) {
	zipped := string(zipOf(plain("a.txt", text)))
	first := tarOf(t, regular("a", text))
	one := []seen{{"a", text, false}}
	for name, c := range map[string]struct {
		raw     []byte
		want    []seen
		members int
	}{
		"no end":              {first[:1024], one, 1},
		"zeros behind":        {append(slices.Clone(first), make([]byte, 10000)...), one, 1},
		"zip as last member":  {tarOf(t, regular("a", text), regular("b.zip", zipped)), []seen{one[0], {"b.zip", zipped, false}}, 2},
		"links and a device":  {tarOf(t, regular("a", text), tar.Header{Name: "l", Linkname: "../x", Typeflag: tar.TypeSymlink}, tar.Header{Name: "h", Linkname: "a", Typeflag: tar.TypeLink}, tar.Header{Name: "d", Typeflag: tar.TypeChar}), one, 4},
		"unknown type flag":   {patch(first, 156, "Q"), one, 1},
		"hostile name":        {tarOf(t, regular("../../a", text)), one, 1},
		"long name":           {tarOf(t, regular(strings.Repeat("n/", 300)+"a", "")), []seen{{strings.Repeat("n/", 127) + "a", "", false}}, 1},
		"sparse in the limit": {sparse(1000), []seen{{"hole", strings.Repeat("\x00", 1000), false}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, b, err := walk(t, c.raw, DefaultLimits())
			if err != nil || !slices.Equal(got, c.want) || b.Members() != c.members {
				t.Errorf("%d members %v, error %v", b.Members(), got, err)
			}
		})
	}
}

func TestCompressedRefusals(t *testing.T) {
	fox, two, bz := file(t, "fox.gz"), file(t, "two.gz"), file(t, "lines.bz2")
	flagged := func(flag byte) []byte { r := slices.Clone(fox); r[3] |= flag; return r }
	whole := zipOf(plain("evil.txt", text))
	var level0 bytes.Buffer // not compressed: the zip lies in it as it is
	w, _ := gzip.NewWriterLevel(&level0, gzip.NoCompression)
	_, _ = w.Write(whole)
	_ = w.Close()
	for name, c := range map[string]struct {
		kind Kind
		raw  []byte
		want error
	}{
		"gzip cut":                {Gzip, fox[:len(fox)-9], ErrBroken},
		"gzip trailer cut":        {Gzip, fox[:len(fox)-1], ErrBroken},
		"gzip header cut":         {Gzip, fox[:3], ErrBroken},
		"gzip checksum":           {Gzip, func() []byte { r := slices.Clone(fox); r[len(r)-8] ^= 1; return r }(), ErrBroken},
		"gzip second cut":         {Gzip, two[:len(two)-20], ErrBroken},
		"gzip and garbage":        {Gzip, append(slices.Clone(fox), "garbage"...), ErrBroken},
		"gzip, zeros and garbage": {Gzip, append(slices.Clone(fox), "\x00\x00garbage"...), ErrBroken},
		"gzip and a zip":          {Gzip, append(slices.Clone(fox), whole...), ErrBroken},
		"gzip and zip at once":    {Gzip, level0.Bytes(), ErrBroken},
		"gzip encrypted":          {Gzip, flagged(0x20), ErrEncrypted},
		"gzip reserved flag":      {Gzip, flagged(0x40), ErrUnsupported},
		"bzip2 cut":               {Bzip2, bz[:len(bz)-3], ErrBroken},
		"bzip2 and garbage":       {Bzip2, append(slices.Clone(bz), "garbage"...), ErrBroken},
		"bzip2 and a zip":         {Bzip2, append(slices.Clone(bz), whole...), ErrBroken},
		"zip that begins as gzip": {Zip, append(slices.Clone(fox), whole...), ErrBroken},
		"zip that begins as tar":  {Zip, append(tarOf(t, regular("a", "b")), whole...), ErrBroken},
		"no such kind":            {"rar", fox, ErrUnsupported},
	} {
		if got, _, err := walkAs(c.kind, c.raw, DefaultLimits()); !errors.Is(err, c.want) {
			t.Errorf("%s: %d members, error %v, want %v", name, len(got), err, c.want)
		}
	}
	if got, _, err := walkAs(Gzip, append(slices.Clone(fox), make([]byte, 100)...), DefaultLimits()); err != nil || len(got) != 1 {
		t.Errorf("gzip padded with zeros: %v", err)
	}
	if got, _, err := walkAs(Bzip2, append(slices.Clone(bz), bz...), DefaultLimits()); err != nil || got[0].content != lines()+lines() {
		t.Errorf("two bzip2 streams: %v", err)
	}
}
