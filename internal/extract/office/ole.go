package office

import (
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"
)

const maxDirectorySectors = 256 // of an OLE file: an encrypted document's directory has some entries, not thousands

// EncryptedOLE tells that content is an OLE2 compound file that holds an encrypted office document: its directory names a
// stream EncryptedPackage or EncryptionInfo. It reads no more than some hundred KiB, and is false when it cannot tell.
func EncryptedOLE(content io.ReaderAt, size int64) (encrypted bool) {
	OLEStreams(content, size, func(name string, _ func() []byte) bool {
		encrypted = name == "EncryptedPackage" || name == "EncryptionInfo"
		return !encrypted
	})
	return encrypted
}

// OLEStreams visits what the directory of an OLE2 compound file names, until visit returns false. begin reads the first sector of
// the named stream, 512 or 4096 bytes; nothing of one shorter than 4096 bytes, which lies elsewhere. Damage ends the walk.
func OLEStreams(content io.ReaderAt, size int64, visit func(name string, begin func() []byte) bool) {
	head := make([]byte, 512)
	if n, _ := content.ReadAt(head, 0); n < len(head) || !bytes.HasPrefix(head, []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")) {
		return
	}
	shift := binary.LittleEndian.Uint16(head[30:])
	if shift != 9 && shift != 12 {
		return
	}
	bytesPer := int64(1) << shift
	read := func(sector uint32) []byte {
		at := (int64(sector) + 1) * bytesPer
		if at >= size {
			return nil
		}
		block := make([]byte, bytesPer)
		n, _ := content.ReadAt(block, at)
		return block[:n]
	}
	perSector := uint32(bytesPer / 4)
	sector := binary.LittleEndian.Uint32(head[48:])
	for range maxDirectorySectors {
		block := read(sector)
		for at := 0; at+128 <= len(block); at += 128 {
			entry := block[at : at+128]
			begin := func() []byte {
				if binary.LittleEndian.Uint32(entry[120:]) < 4096 {
					return nil
				}
				return read(binary.LittleEndian.Uint32(entry[116:]))
			}
			if name := entryName(entry); name != "" && !visit(name, begin) {
				return
			}
		}
		// The table that says which sector comes next lies in sectors that the header lists.
		list := sector / perSector
		if len(block) == 0 || list >= 109 {
			return
		}
		table := read(binary.LittleEndian.Uint32(head[76+4*list:]))
		entry := int(sector%perSector) * 4
		if entry+4 > len(table) {
			return
		}
		sector = binary.LittleEndian.Uint32(table[entry:])
	}
}

// entryName reads the name of a directory entry.
func entryName(entry []byte) string {
	n := int(binary.LittleEndian.Uint16(entry[64:]))
	if n < 2 || n > 64 {
		return ""
	}
	units := make([]uint16, n/2-1)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(entry[2*i:])
	}
	return string(utf16.Decode(units))
}
