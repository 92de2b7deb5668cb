package archive

import (
	"bytes"
	"encoding/binary"
	"io"
	"strconv"
	"strings"
)

// Detect finds the kind of a container: what it begins with, else a zip directory near its end, also behind a prefix of any
// length and before a comment, which is where readers of zip look. It reads at most 70 KB. Content that is two kinds at once is
// reported as the one it begins with; Walk refuses it. An error of content's ReadAt is found again by Walk, or nothing is found.
func Detect(content io.ReaderAt, size int64) (Kind, bool) {
	src := NewSource(content, size)
	if kind := leading(src); kind != "" {
		return kind, true
	}
	if len(zipEnds(src)) > 0 {
		return Zip, true
	}
	return "", false
}

// EndsAsZip tells whether content of which only the end is at hand may be a zip: tail has an end record. It needs the last 65,557
// bytes. Unlike Detect it cannot see whether there is a directory.
func EndsAsZip(tail []byte) bool {
	at := bytes.LastIndex(tail, endSignature)
	for at >= 0 && len(tail)-at < endBytes {
		at = bytes.LastIndex(tail[:at], endSignature)
	}
	return at >= 0
}

// leading is the kind that content begins with, or empty.
func leading(src *Source) Kind {
	head := make([]byte, tarBlock)
	n, _ := src.ReadAt(head, 0)
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte{0x1F, 0x8B}):
		return Gzip
	case len(head) >= 10 && bytes.HasPrefix(head, []byte("BZh")) && head[3] >= '1' && head[3] <= '9' &&
		(string(head[4:10]) == "\x31\x41\x59\x26\x53\x59" || string(head[4:10]) == "\x17\x72\x45\x38\x50\x90"):
		return Bzip2
	case tarSum(head):
		return Tar
	case bytes.HasPrefix(head, localSignature), bytes.HasPrefix(head, emptyZip):
		return Zip
	case len(head) == tarBlock && (string(head[257:263]) == "ustar\x00" || string(head[257:263]) == "ustar "):
		return Tar
	}
	return ""
}

// tarSum tells whether a block is a tar header by its checksum: the sum of its bytes, as signed or unsigned, with the checksum's
// own field taken as spaces.
func tarSum(block []byte) bool {
	if len(block) < tarBlock {
		return false
	}
	want, err := strconv.ParseInt(strings.Trim(string(block[148:156]), " \x00"), 8, 64)
	if err != nil {
		return false
	}
	var unsigned, signed int64
	for i, b := range block {
		if i >= 148 && i < 156 {
			b = ' '
		}
		unsigned += int64(b)
		signed += int64(int8(b))
	}
	return want == unsigned || want == signed
}

// emptyZip is what a zip without members begins with.
var emptyZip = append([]byte("PK\x05\x06"), make([]byte, 16)...)

// span is a stretch of content, in bytes from its start.
type span struct{ start, end int64 }

// zipEnds finds every zip archive that a reader could find from the end of content: an end record within the last 64 KiB that has
// a directory where it says, either counted from the start of content or lying right before the record.
func zipEnds(src *Source) []span {
	tail := make([]byte, min(src.Size(), endBytes+1<<16-1))
	at := src.Size() - int64(len(tail))
	if n, _ := src.ReadAt(tail, at); n < len(tail) {
		return nil
	}
	var found []span
	for i := 0; ; i++ {
		next := bytes.Index(tail[i:], endSignature)
		if next < 0 || len(tail)-i-next < endBytes {
			return found
		}
		i += next
		record := tail[i:]
		pos := at + int64(i)
		size, offset := int64(binary.LittleEndian.Uint32(record[12:])), int64(binary.LittleEndian.Uint32(record[16:]))
		end := min(pos+endBytes+int64(binary.LittleEndian.Uint16(record[20:])), src.Size())
		switch {
		case signedAt(src, pos-locatorBytes, locatorSignature):
			found = append(found, span{start64(src, pos), end})
		case signedAt(src, pos-size, directorySignature):
			found = append(found, span{max(pos-size-offset, 0), end})
		case signedAt(src, offset, directorySignature):
			found = append(found, span{0, end})
		}
	}
}

// start64 is where the zip64 archive begins whose end record lies at pos; 0 when its own record is not where it should be.
func start64(src *Source, pos int64) int64 {
	at := pos - locatorBytes - end64Bytes
	raw, err := src.bytesAt(at, end64Bytes)
	if err != nil || !bytes.HasPrefix(raw, end64Signature) {
		return 0
	}
	size, offset := binary.LittleEndian.Uint64(raw[40:]), binary.LittleEndian.Uint64(raw[48:])
	if size > uint64(at) || offset > uint64(at)-size {
		return 0
	}
	return at - int64(size) - int64(offset)
}

func signedAt(src *Source, offset int64, signature []byte) bool {
	var got [4]byte
	n, _ := src.ReadAt(got[:], offset)
	return n == len(got) && bytes.Equal(got[:], signature)
}
