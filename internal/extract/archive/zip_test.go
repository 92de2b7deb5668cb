package archive

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
)

// row is one member as the test wants it written, lies included. What begins with local is exclusive or'ed into the local header.
type row struct {
	name, localName                        string // localName: name when empty
	content                                string // as it lies in the file
	flags, method, localFlags, localMethod uint16
	sum, packed, size                      uint32
	localSum, localPacked, localSize       uint32
	attributes                             uint32
	extra                                  string // in the directory
	behind                                 string // bytes after the data: a descriptor, or what nobody lists
	at                                     int    // where the directory says the header is; 0: where it is; -1: at 0
	hidden                                 bool   // not in the directory
	shared                                 bool   // only in the directory
}

func plain(name, content string) row {
	return row{name: name, content: content, sum: crc32.ChecksumIEEE([]byte(content)), size: uint32(len(content)), packed: uint32(len(content))}
}

func squeezed(name, content string) row {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 9)
	_, _ = io.WriteString(w, content)
	_ = w.Close()
	r := plain(name, content)
	r.content, r.packed, r.method = b.String(), uint32(b.Len()), deflated
	return r
}

func zipOf(rows ...row) []byte {
	var out, directory []byte
	u16, u32 := binary.LittleEndian.AppendUint16, binary.LittleEndian.AppendUint32
	count := 0
	for _, r := range rows {
		at := len(out)
		if r.at != 0 {
			at = max(r.at, 0)
		}
		name := r.name
		if r.localName != "" {
			name = r.localName
		}
		if !r.shared {
			out = u16(u16(u16(append(out, localSignature...), 20), r.flags^r.localFlags), r.method^r.localMethod)
			out = u32(u32(u32(u32(out, 0), r.sum^r.localSum), r.packed^r.localPacked), r.size^r.localSize)
			out = append(u16(u16(out, uint16(len(name))), 0), name...)
			out = append(append(out, r.content...), r.behind...)
		}
		if r.hidden {
			continue
		}
		count++
		d := u16(u16(u16(u16(append(directory, directorySignature...), 3<<8|20), 20), r.flags), r.method)
		d = u32(u32(u32(u32(d, 0), r.sum), r.packed), r.size)
		d = u16(u16(u16(d, uint16(len(r.name))), uint16(len(r.extra))), 0)
		d = u32(u32(u32(d, 0), r.attributes), uint32(at))
		directory = append(append(d, r.name...), r.extra...)
	}
	start := len(out)
	out = append(out, directory...)
	out = u16(u16(u32(append(out, endSignature...), 0), uint16(count)), uint16(count))
	return u16(u32(u32(out, uint32(len(directory))), uint32(start)), 0)
}

// le writes numbers as a zip does: 2, 4 or 8 bytes by their type.
func le(numbers ...any) string {
	var b bytes.Buffer
	for _, n := range numbers {
		if err := binary.Write(&b, binary.LittleEndian, n); err != nil {
			panic(err)
		}
	}
	return b.String()
}

const text = "some text, some more text"

// one is a zip of one member, after a change of it.
func one(r row, change func(*row)) []byte {
	change(&r)
	return zipOf(r)
}

// end is a zip with its end record changed at a place.
func end(raw []byte, at int, bytes string) []byte {
	raw = slices.Clone(raw)
	copy(raw[len(raw)-endBytes+at:], bytes)
	return raw
}

func TestZipRefusals(t *testing.T) {
	good, packed := plain("good.txt", text), squeezed("packed.txt", text)
	hidden := plain("hidden.exe", "malware")
	hidden.hidden = true
	small := Limits{Depth: 2, Members: 3, MemberBytes: 1 << 20, ExpandedBytes: 2 << 20, Ratio: 1000}
	megabyte := strings.Repeat("x", 1<<20)
	first := zipOf(good)
	directory := bytes.Index(first, directorySignature)
	other := append(append(make([]byte, directory), directorySignature...), make([]byte, 100)...) // before it: what offsets point to
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"encrypted":                  {zipOf(good, row{name: "b", flags: flagEncrypted}), ErrEncrypted},
		"strong encryption":          {one(good, func(r *row) { r.flags = flagStrong }), ErrEncrypted},
		"masked headers":             {one(good, func(r *row) { r.flags = flagMasked }), ErrEncrypted},
		"AES":                        {one(good, func(r *row) { r.method = methodAES }), ErrEncrypted},
		"deflate64":                  {one(good, func(r *row) { r.method = 9 }), ErrUnsupported},
		"LZMA":                       {one(good, func(r *row) { r.method = 14 }), ErrUnsupported},
		"PPMd":                       {one(good, func(r *row) { r.method = 98 }), ErrUnsupported},
		"patched data":               {one(good, func(r *row) { r.flags = flagPatch }), ErrUnsupported},
		"other volume":               {end(first, 4, "\x01"), ErrUnsupported},
		"too many members":           {zipOf(good, good, good, good), ErrTooMany},
		"too many declared":          {end(first, 8, "\xfe\xff\xfe\xff"), ErrTooMany},
		"member declared too large":  {zipOf(good, func() row { r := packed; r.size = 1<<20 + 1; return r }()), ErrTooLarge},
		"members declared too large": {zipOf(squeezed("a", megabyte), squeezed("b", megabyte), good), ErrTooLarge},
		"zip64 size":                 {one(packed, func(r *row) { r.size = 1<<32 - 1; r.extra = le(uint16(1), uint16(8), uint64(1<<63-1)) }), ErrRatio},
		"zip64 size beyond int64":    {one(packed, func(r *row) { r.size = 1<<32 - 1; r.extra = le(uint16(1), uint16(8), uint64(1<<64-1)) }), ErrRatio},
		"zip64 size missing":         {one(packed, func(r *row) { r.size = 1<<32 - 1 }), ErrBroken},
		"zip64 sizes twice":          {one(packed, func(r *row) { r.extra = strings.Repeat(le(uint16(1), uint16(8), uint64(9)), 2) }), ErrBroken},
		"size too small":             {one(packed, func(r *row) { r.size -= 1 }), ErrBroken},
		"size too large":             {one(packed, func(r *row) { r.size += 1 }), ErrBroken},
		"stored with two sizes":      {one(good, func(r *row) { r.size -= 1 }), ErrBroken},
		"wrong checksum":             {one(packed, func(r *row) { r.sum++ }), ErrBroken},
		"checksum left out":          {one(packed, func(r *row) { r.sum = 0 }), ErrBroken},
		"garbage compressed":         {one(packed, func(r *row) { r.content = "\xff" + r.content[1:] }), ErrBroken},
		"slack behind the data":      {one(packed, func(r *row) { r.content += "slack"; r.packed += 5 }), ErrBroken},
		"cut data":                   {one(packed, func(r *row) { r.content = r.content[:4]; r.packed = 4 }), ErrBroken},
		"other local name":           {one(good, func(r *row) { r.localName = "evil.exe" }), ErrBroken},
		"other local method":         {one(packed, func(r *row) { r.localMethod = deflated }), ErrBroken},
		"other local flags":          {one(good, func(r *row) { r.localFlags = flagEncrypted }), ErrBroken},
		"other local size":           {one(packed, func(r *row) { r.localSize = 1 }), ErrBroken},
		"other local packed size":    {one(packed, func(r *row) { r.localPacked = 1 }), ErrBroken},
		"other local checksum":       {one(packed, func(r *row) { r.localSum = 1 }), ErrBroken},
		"no local header":            {zipOf(good, func() row { r := good; r.at = 2; return r }()), ErrBroken},
		"outside the file":           {one(good, func(r *row) { r.at = 1 << 20 }), ErrBroken},
		"descriptor that lies":       {one(packed, func(r *row) { r.flags = flagDescriptor; r.behind = "PK\x07\x08" + le(r.sum, r.packed, r.size+1) }), ErrBroken},
		"descriptor missing":         {one(packed, func(r *row) { r.flags = flagDescriptor }), ErrBroken},
		"folder with content":        {one(good, func(r *row) { r.name = "folder/" }), ErrBroken},
		"folder with slack":          {one(packed, func(r *row) { r.name = "folder/"; r.size = 0 }), ErrBroken},
		"hidden first":               {zipOf(hidden, good), ErrBroken},
		"hidden between":             {zipOf(good, hidden, good), ErrBroken},
		"hidden last":                {zipOf(good, hidden), ErrBroken},
		"zip in front of a zip":      {append(zipOf(plain("other", text)), first...), ErrBroken},
		"zip in the comment":         {append(end(first, 20, le(uint16(len(first)))), first...), ErrBroken},
		"bytes behind the end":       {append(slices.Clone(first), "\x00\x00behind"...), ErrBroken},
		"comment cut off":            {end(first, 20, "\x09\x00"), ErrBroken},
		"fewer rows than there are":  {end(zipOf(good, good), 8, "\x01\x00\x01\x00"), ErrBroken},
		"more rows than there are":   {end(first, 8, "\x02\x00\x02\x00"), ErrBroken},
		"directory too short":        {end(first, 12, "\x05\x00"), ErrBroken},
		"directory begins before":    {end(first, 16, "\x00\x01"), ErrBroken},
		"two directories":            {append(other, first...), ErrBroken},
		"no directory":               {first[:len(first)-endBytes], ErrBroken},
		"two members, one header":    {zipOf(good, func() row { r := good; r.at = -1; return r }()), ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			got, b, err := walkAs(Zip, c.raw, small)
			if !errors.Is(err, c.want) {
				t.Fatalf("%d members, error %v, want %v", len(got), err, c.want)
			}
			if !errors.Is(c.want, ErrBroken) && b.Expanded() != 0 {
				t.Errorf("%d bytes were expanded first", b.Expanded())
			}
		})
	}
}

func TestZipAccepts(t *testing.T) {
	good, packed := plain("good.txt", text), squeezed("good.txt", text)
	descriptor := func(r row, behind string) row {
		r.flags, r.behind = flagDescriptor, behind
		r.localSize, r.localPacked, r.localSum = r.size, r.packed, r.sum
		return r
	}
	link := plain("link", "/etc/passwd")
	link.attributes = 0o120777 << 16
	for name, c := range map[string]struct {
		raw  []byte
		want []seen
	}{
		"nothing":                  {zipOf(), nil},
		"one name twice":           {zipOf(good, packed), []seen{{"good.txt", text, false}, {"good.txt", text, false}}},
		"folder":                   {zipOf(row{name: "a/"}, row{name: "b/", method: deflated, content: "\x03\x00", packed: 2}, good), []seen{{"good.txt", text, false}}},
		"link":                     {zipOf(link), []seen{{"link", "/etc/passwd", true}}},
		"hostile names":            {zipOf(plain("../../x\x00\xff", text)), []seen{{"x_\u00a0", text, false}}},
		"descriptor":               {zipOf(descriptor(packed, "PK\x07\x08"+le(packed.sum, packed.packed, packed.size))), []seen{{"good.txt", text, false}}},
		"descriptor, no signature": {zipOf(descriptor(packed, le(packed.sum, packed.packed, packed.size))), []seen{{"good.txt", text, false}}},
		"long descriptor":          {zipOf(descriptor(packed, "PK\x07\x08"+le(packed.sum, uint64(packed.packed), uint64(packed.size)))), []seen{{"good.txt", text, false}}},
		"prefix":                   {append([]byte("%PDF-1.7 or whatever it is"), zipOf(good)...), []seen{{"good.txt", text, false}}},
		"comment":                  {append(end(zipOf(good), 20, "\x07\x00"), "comment"...), []seen{{"good.txt", text, false}}},
		"zeros behind":             {append(zipOf(good), make([]byte, 500)...), []seen{{"good.txt", text, false}}},
		"gap between":              {zipOf(func() row { r := good; r.behind = "a gap"; return r }(), packed), []seen{{"good.txt", text, false}, {"good.txt", text, false}}},
		"zip in a zip, not packed": {zipOf(plain("a.zip", string(zipOf(good)))), []seen{{"a.zip", string(zipOf(good)), false}}},
		"zip64 offset and sizes":   {zip64(packed), []seen{{"good.txt", text, false}}},
		"zip64 with a prefix":      {append([]byte("prefix"), zip64(packed)...), []seen{{"good.txt", text, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := walk(t, c.raw, DefaultLimits())
			if err != nil || !slices.Equal(got, c.want) {
				t.Fatalf("members %v, error %v; want %v", got, err, c.want)
			}
			if !strings.Contains(name, "zip64 with a prefix") && !slices.Equal(standard(t, c.raw), c.want) {
				t.Errorf("archive/zip sees %v", standard(t, c.raw))
			}
		})
	}
}

// zip64 is a zip whose every size, count and offset is in the long fields.
func zip64(r row) []byte {
	size, packed := r.size, r.packed
	r.size, r.packed = 1<<32-1, 1<<32-1
	local := le(uint16(1), uint16(16), uint64(size), uint64(packed))
	head := "PK\x03\x04" + le(uint16(45), r.flags, r.method, uint32(0), r.sum, r.packed, r.size, uint16(len(r.name)), uint16(len(local))) + r.name + local + r.content
	extra := le(uint16(1), uint16(24), uint64(size), uint64(packed), uint64(0))
	rows := "PK\x01\x02" + le(uint16(45), uint16(45), r.flags, r.method, uint32(0), r.sum, r.packed, r.size, uint16(len(r.name)), uint16(len(extra)),
		uint16(0), uint16(0), uint16(0), uint32(0), uint32(1<<32-1)) + r.name + extra
	end := "PK\x06\x06" + le(uint64(44), uint16(45), uint16(45), uint32(0), uint32(0), uint64(1), uint64(1), uint64(len(rows)), uint64(len(head)))
	locator := "PK\x06\x07" + le(uint32(0), uint64(len(head)+len(rows)), uint32(1))
	return []byte(head + rows + end + locator + "PK\x05\x06" + le(uint32(0), uint16(1<<16-1), uint16(1<<16-1), uint32(1<<32-1), uint32(1<<32-1), uint16(0)))
}
