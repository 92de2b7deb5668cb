package archive

import (
	"bufio"
	"bytes"
	"compress/flate"
	"hash/crc32"
	"io"
)

// Methods of compression that are expanded.
const (
	stored   = 0
	deflated = 8
)

// walkZip reads the whole directory first, and holds it against the budget and against the headers in front of the members.
// archive/zip is not used: it takes what it finds from the directory alone, any number of entries of any length, passes over
// overlaps, headers that disagree and bytes that nothing lists. It is the oracle in the tests instead.
func walkZip(src *Source, b *Budget, visit Visitor) error {
	if kind := leading(src); kind != "" && kind != Zip {
		return broken("it is a " + string(kind) + " archive at the same time")
	}
	d, err := readDirectory(src, b)
	if err != nil {
		return err
	}
	if err := d.check(src); err != nil {
		return err
	}
	for i := range d.entries {
		e := &d.entries[i]
		if e.folder() {
			if err := b.Count(); err != nil {
				return err
			}
			continue
		}
		r := newEntryReader(src, e)
		if err := b.Visit(Member{Name: CleanName(e.name), Size: e.size, Link: e.link}, r, visit); err != nil {
			return err
		}
	}
	return nil
}

// entryReader expands one entry, and refuses it when it is not exactly what its header says.
type entryReader struct {
	src   *Source
	entry *entry
	in    *bufio.Reader
	out   io.Reader
	read  int64
	sum   uint32
}

func newEntryReader(src *Source, e *entry) *entryReader {
	r := &entryReader{src: src, entry: e}
	r.in = bufio.NewReaderSize(src.Section(e.data, e.data+e.packed), int(min(max(e.packed, 16), readBuffer)))
	r.out = r.in
	if e.method == deflated {
		r.out = flate.NewReader(r.in) // takes no byte more of a ByteReader than it needs
	}
	return r
}

func (r *entryReader) Read(p []byte) (int, error) {
	n, err := r.out.Read(p)
	r.sum = crc32.Update(r.sum, crc32.IEEETable, p[:n])
	r.read += int64(n)
	switch {
	case r.read > r.entry.size:
		return 0, broken("a zip member is larger than declared")
	case err == nil:
		return n, nil
	case err != io.EOF:
		return 0, r.src.Fault(err, "a zip member cannot be expanded")
	case r.src.Err() != nil:
		return 0, r.src.Err()
	case r.read != r.entry.size:
		return 0, broken("a zip member is smaller than declared")
	case r.sum != r.entry.sum:
		return 0, broken("a zip member's checksum is wrong")
	}
	if _, err := r.in.Peek(1); err != io.EOF {
		return 0, broken("bytes follow a zip member's compressed data")
	}
	return n, io.EOF
}

// findHidden looks for a member's header in bytes that the directory does not account for.
func findHidden(src *Source, gap span) error {
	const step = 64 << 10
	if gap.end <= gap.start {
		return nil
	}
	buf := make([]byte, min(step, gap.end-gap.start)+int64(len(localSignature)))
	for at := gap.start; at < gap.end; at += step {
		n := min(int64(len(buf)), gap.end-at)
		if got, err := src.ReadAt(buf[:n], at); int64(got) < n {
			return src.Fault(err, "it ends too early")
		}
		if bytes.Contains(buf[:n], localSignature) {
			return broken("a zip member is not in the directory")
		}
	}
	return nil
}
