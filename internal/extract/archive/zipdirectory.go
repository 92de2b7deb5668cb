package archive

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
)

// Records of a zip archive. Source: APPNOTE.TXT 6.3.10, section 4.3.
var (
	localSignature      = []byte("PK\x03\x04")
	directorySignature  = []byte("PK\x01\x02")
	endSignature        = []byte("PK\x05\x06")
	end64Signature      = []byte("PK\x06\x06")
	locatorSignature    = []byte("PK\x06\x07")
	descriptorSignature = []byte("PK\x07\x08")
)

const (
	localBytes   = 30
	headerBytes  = 46
	endBytes     = 22
	end64Bytes   = 56
	locatorBytes = 20

	directoryBytes = 32 << 20 // the largest directory that is read: 10,000 entries with names and extra fields of 3 KB

	flagEncrypted  = 1 << 0
	flagDescriptor = 1 << 3
	flagPatch      = 1 << 5
	flagStrong     = 1 << 6
	flagMasked     = 1 << 13
	methodAES      = 99
)

// directory is a zip's central directory.
type directory struct {
	entries []entry
	start   int64 // where it begins
}

// entry is one row of the directory.
type entry struct {
	name         string // raw
	flags        uint16
	method       uint16
	sum          uint32
	packed, size int64
	link         bool
	header       int64 // where its local header begins
	data, end    int64 // where its data begins; where they and a descriptor end
}

func (e *entry) folder() bool { return strings.HasSuffix(e.name, "/") }

// readDirectory reads the rows, and holds what they declare against the budget.
func readDirectory(src *Source, b *Budget) (*directory, error) {
	count, rows, base, err := readEnd(src)
	if err != nil {
		return nil, err
	}
	if err := b.FitsMembers(count); err != nil {
		return nil, err
	}
	length := rows.end - rows.start
	if length > directoryBytes {
		return nil, ErrTooLarge
	}
	if count > uint64(length)/headerBytes {
		return nil, broken("the zip directory is shorter than its entries")
	}
	d := &directory{entries: make([]entry, 0, count), start: rows.start}
	in := bufio.NewReader(src.Section(rows.start, rows.end))
	var expanded int64
	for range count {
		e, err := readRow(src, in, base)
		if err != nil {
			return nil, err
		}
		if err := b.FitsMember(e.size); err != nil {
			return nil, err
		}
		expanded += e.size // each fits the budget, so this cannot overflow before it is refused
		if err := b.Fits(expanded); err != nil {
			return nil, err
		}
		d.entries = append(d.entries, e)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return nil, src.Fault(err, "the zip directory is longer than its entries")
	}
	return d, nil
}

// readEnd finds the directory by the record at the end of content: the number of its rows, where they lie, and what their offsets
// count from. Exactly one reading is allowed: nothing but zeros behind the record and its comment, the directory right before it.
func readEnd(src *Source) (count uint64, rows span, base int64, err error) {
	none := func(what string) (uint64, span, int64, error) { return 0, span{}, 0, broken(what) }
	length := min(src.Size(), endBytes+1<<16-1)
	if length < endBytes {
		return none("it has no zip directory")
	}
	tail, err := src.bytesAt(src.Size()-length, int(length))
	if err != nil {
		return 0, span{}, 0, err
	}
	i := bytes.LastIndex(tail[:length-endBytes+int64(len(endSignature))], endSignature)
	if i < 0 {
		return none("it has no zip directory")
	}
	record := tail[i:]
	at := src.Size() - length + int64(i)
	comment := int(binary.LittleEndian.Uint16(record[20:]))
	if endBytes+comment > len(record) {
		return none("the zip comment is cut off")
	}
	for _, c := range record[endBytes+comment:] {
		if c != 0 {
			return none("bytes follow the zip directory")
		}
	}
	disk, directoryDisk := binary.LittleEndian.Uint16(record[4:]), binary.LittleEndian.Uint16(record[6:])
	here, all := uint64(binary.LittleEndian.Uint16(record[8:])), uint64(binary.LittleEndian.Uint16(record[10:]))
	size, offset := uint64(binary.LittleEndian.Uint32(record[12:])), uint64(binary.LittleEndian.Uint32(record[16:]))
	long := at >= locatorBytes && bytes.Equal(signatureAt(src, at-locatorBytes), locatorSignature)
	switch {
	case long:
		wide, err := src.bytesAt(at-locatorBytes-end64Bytes, end64Bytes+locatorBytes)
		if err != nil {
			return 0, span{}, 0, err
		}
		u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(wide[i:]) }
		if !bytes.HasPrefix(wide, end64Signature) || u64(4) != end64Bytes-12 {
			return none("the zip64 record is wrong or extended")
		}
		at -= locatorBytes + end64Bytes
		if !agrees(here, u64(24), math.MaxUint16) || !agrees(all, u64(32), math.MaxUint16) ||
			!agrees(size, u64(40), math.MaxUint32) || !agrees(offset, u64(48), math.MaxUint32) {
			return none("the two records at the end of the zip disagree")
		}
		here, all, size, offset = u64(24), u64(32), u64(40), u64(48)
		if binary.LittleEndian.Uint32(wide[16:]) != 0 || binary.LittleEndian.Uint32(wide[20:]) != 0 || here != all {
			return 0, span{}, 0, ErrUnsupported // more than one volume
		}
		locator := binary.LittleEndian.Uint64(wide[end64Bytes+8:])
		if size > uint64(at) || offset > uint64(at)-size || locator > uint64(at) ||
			locator != uint64(at) && uint64(at)-locator != uint64(at)-size-offset {
			return none("the zip directory is not where it is said to be")
		}
	case disk != 0 || directoryDisk != 0 || here != all:
		return 0, span{}, 0, ErrUnsupported // more than one volume
	}
	if size > uint64(at) || offset > uint64(at)-size {
		return none("the zip directory is not where it is said to be")
	}
	rows = span{at - int64(size), at}
	base = rows.start - int64(offset)
	if base > 0 && bytes.Equal(signatureAt(src, int64(offset)), directorySignature) {
		return none("it has two zip directories")
	}
	return all, rows, base, nil
}

// agrees tells whether a short field says what its long one says, or leaves it to that.
func agrees(short, long, left uint64) bool { return short == long || short == left }

func signatureAt(src *Source, offset int64) []byte {
	raw, _ := src.bytesAt(offset, 4)
	return raw
}

func readRow(src *Source, in *bufio.Reader, base int64) (entry, error) {
	const short = "the zip directory ends too early"
	var raw [headerBytes]byte
	if _, err := io.ReadFull(in, raw[:]); err != nil {
		return entry{}, src.Fault(err, short)
	}
	if !bytes.HasPrefix(raw[:], directorySignature) {
		return entry{}, broken("the zip directory has something else than entries")
	}
	u16 := func(i int) uint16 { return binary.LittleEndian.Uint16(raw[i:]) }
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(raw[i:]) }
	name, extra, comment := make([]byte, u16(28)), make([]byte, u16(30)), int(u16(32))
	if _, err := io.ReadFull(in, name); err != nil {
		return entry{}, src.Fault(err, short)
	}
	if _, err := io.ReadFull(in, extra); err != nil {
		return entry{}, src.Fault(err, short)
	}
	if _, err := in.Discard(comment); err != nil {
		return entry{}, src.Fault(err, short)
	}
	e := entry{name: string(name), flags: u16(8), method: u16(10), sum: u32(16)}
	e.link = u32(38)>>28 == 0o12 // the file type in a unix mode, as every reader that looks takes it
	fields := []uint64{uint64(u32(24)), uint64(u32(20)), uint64(u32(42))}
	if err := widen(fields, extra); err != nil {
		return entry{}, err
	}
	for _, f := range fields[1:] {
		if f > uint64(src.Size()) {
			return entry{}, broken("a zip member lies outside the file")
		}
	}
	e.size, e.packed = int64(min(fields[0], math.MaxInt64)), int64(fields[1])
	e.header = base + int64(fields[2])
	return e, nil
}

// widen replaces the fields that are all ones with those of the zip64 extra field, which has only these, in this order.
func widen(fields []uint64, extra []byte) error {
	var wide []byte
	seen := false
	for len(extra) >= 4 {
		id, length := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if extra = extra[4:]; length > len(extra) {
			break
		}
		if id == 1 {
			if seen {
				return broken("a zip member has its sizes twice")
			}
			wide, seen = extra[:length], true
		}
		extra = extra[length:]
	}
	for i, f := range fields {
		if f != math.MaxUint32 {
			continue
		}
		if len(wide) < 8 {
			return broken("a zip member's size is missing")
		}
		fields[i], wide = binary.LittleEndian.Uint64(wide), wide[8:]
	}
	return nil
}

// check refuses what cannot be expanded, then what different readers would see differently: headers that disagree with the
// directory, entries that overlap, members that the directory leaves out.
func (d *directory) check(src *Source) error {
	for _, e := range d.entries {
		if e.flags&(flagEncrypted|flagStrong|flagMasked) != 0 || e.method == methodAES {
			return ErrEncrypted
		}
	}
	for _, e := range d.entries {
		switch {
		case e.method != stored && e.method != deflated, e.flags&flagPatch != 0:
			return ErrUnsupported
		case e.folder() && (e.size != 0 || e.packed > 2): // two bytes are nothing, deflated
			return broken("a folder in a zip has content")
		case e.method == stored && e.packed != e.size:
			return broken("a zip member that is not compressed has two sizes")
		}
	}
	for i := range d.entries {
		if err := d.entries[i].checkLocal(src); err != nil {
			return err
		}
	}
	inOrder := make([]*entry, len(d.entries))
	for i := range d.entries {
		inOrder[i] = &d.entries[i]
	}
	slices.SortFunc(inOrder, func(a, b *entry) int { return int(min(max(a.header-b.header, -1), 1)) })
	var at int64
	for _, e := range inOrder {
		if e.header < at {
			return broken("zip members overlap")
		}
		if err := findHidden(src, span{at, e.header}); err != nil {
			return err
		}
		at = e.end
	}
	if at > d.start {
		return broken("a zip member overlaps the directory")
	}
	return findHidden(src, span{at, d.start})
}

// checkLocal holds an entry's row against the header before its data, and finds where it ends.
func (e *entry) checkLocal(src *Source) error {
	raw, err := src.bytesAt(e.header, localBytes)
	if err != nil {
		return err
	}
	u16 := func(i int) uint16 { return binary.LittleEndian.Uint16(raw[i:]) }
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(raw[i:]) }
	const differ = "a zip member's header and the directory disagree"
	const telling = flagEncrypted | flagDescriptor | flagPatch | flagStrong | flagMasked
	if !bytes.HasPrefix(raw, localSignature) || u16(8) != e.method || (u16(6)^e.flags)&telling != 0 || int(u16(26)) != len(e.name) {
		return broken(differ)
	}
	name, err := src.bytesAt(e.header+localBytes, len(e.name))
	if err != nil {
		return err
	}
	if string(name) != e.name {
		return broken(differ)
	}
	e.data = e.header + localBytes + int64(len(name)) + int64(u16(28))
	sizes := []uint64{uint64(u32(22)), uint64(u32(18))}
	if sizes[0] == math.MaxUint32 || sizes[1] == math.MaxUint32 {
		extra, err := src.bytesAt(e.data-int64(u16(28)), int(u16(28)))
		if err != nil {
			return err
		}
		if err := widen(sizes, extra); err != nil {
			return err
		}
	}
	later := e.flags&flagDescriptor != 0 // sizes and checksum may be zero here
	same := func(local, row uint64) bool { return local == row || later && local == 0 }
	if !same(sizes[0], uint64(e.size)) || !same(sizes[1], uint64(e.packed)) || !same(uint64(u32(14)), uint64(e.sum)) {
		return broken(differ)
	}
	e.end = e.data + e.packed
	if e.end > src.Size() {
		return broken("a zip member lies outside the file")
	}
	if later {
		length := e.descriptor(src)
		if length == 0 && e.size > 0 {
			return broken("a zip member's descriptor and the directory disagree")
		}
		e.end += length
	}
	return nil
}

// descriptor is the length of the descriptor behind the data, which comes in four forms, or 0 when none of them is there.
func (e *entry) descriptor(src *Source) int64 {
	raw := make([]byte, 24)
	n, _ := src.ReadAt(raw, e.end)
	raw = raw[:n]
	for _, signature := range [][]byte{descriptorSignature, nil} {
		short := binary.LittleEndian.AppendUint32(slices.Clone(signature), e.sum)
		long := binary.LittleEndian.AppendUint64(slices.Clone(short), uint64(e.packed))
		long = binary.LittleEndian.AppendUint64(long, uint64(e.size))
		short = binary.LittleEndian.AppendUint32(short, uint32(e.packed))
		short = binary.LittleEndian.AppendUint32(short, uint32(e.size))
		for _, form := range [][]byte{long, short} {
			if bytes.HasPrefix(raw, form) {
				return int64(len(form))
			}
		}
	}
	return 0
}
