package extract

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/draw"
	"image/jpeg"
	"io"

	"golang.org/x/image/tiff"
)

// Tags of a TIFF directory.
const (
	tiffWidth         = 256
	tiffHeight        = 257
	tiffCompression   = 259
	tiffPhotometric   = 262
	tiffStripOffsets  = 273
	tiffOrientation   = 274
	tiffRowsPerStrip  = 278
	tiffStripCounts   = 279
	tiffXResolution   = 282
	tiffYResolution   = 283
	tiffUnit          = 296
	tiffTileWidth     = 322
	tiffTileHeight    = 323
	tiffTileOffsets   = 324
	tiffTileCounts    = 325
	tiffJPEGTables    = 347
	tiffCompressJPEG  = 7
	tiffWhiteIsZero   = 0
	tiffCentimetre    = 3
	tiffEntryBytes    = 12
	tiffMostValues    = 1 << 20 // of one entry
	tiffMargin        = 1 << 22 // pixels
	tiffTypeByte      = 1
	tiffTypeShort     = 3
	tiffTypeLong      = 4
	tiffTypeRational  = 5
	tiffTypeUndefined = 7
)

// directory is one page of a TIFF.
type directory struct {
	raw     []byte // the whole file
	order   binary.ByteOrder
	entries []byte
}

// firstDirectory is that of a TIFF, or of EXIF data.
func firstDirectory(raw []byte) (directory, bool) {
	order, ok := tiffOrder(raw)
	if !ok || len(raw) < 8 {
		return directory{}, false
	}
	return directoryAt(raw, order, int64(order.Uint32(raw[4:])))
}

func tiffOrder(raw []byte) (binary.ByteOrder, bool) {
	switch {
	case bytes.HasPrefix(raw, []byte("MM")):
		return binary.BigEndian, true
	case bytes.HasPrefix(raw, []byte("II")):
		return binary.LittleEndian, true
	}
	return nil, false
}

func directoryAt(raw []byte, order binary.ByteOrder, at int64) (directory, bool) {
	if at < 8 || at+2 > int64(len(raw)) {
		return directory{}, false
	}
	entries := raw[at+2:]
	entries = entries[:min(len(entries), tiffEntryBytes*int(order.Uint16(raw[at:])))]
	return directory{raw, order, entries}, true
}

// value is the bytes and the type of an entry; nil: there is none.
func (d directory) value(tag uint16) ([]byte, uint16) {
	for e := d.entries; len(e) >= tiffEntryBytes; e = e[tiffEntryBytes:] {
		if d.order.Uint16(e) != tag {
			continue
		}
		kind, count := d.order.Uint16(e[2:]), int64(d.order.Uint32(e[4:]))
		size := map[uint16]int64{tiffTypeByte: 1, tiffTypeShort: 2, tiffTypeLong: 4, tiffTypeRational: 8, tiffTypeUndefined: 1}[kind] * count
		if size <= 4 {
			return e[8:][:size], kind
		}
		at := int64(d.order.Uint32(e[8:]))
		if count > tiffMostValues || at+size > int64(len(d.raw)) {
			return nil, 0
		}
		return d.raw[at : at+size], kind
	}
	return nil, 0
}

func (d directory) numbers(tag uint16) (out []int64) {
	value, kind := d.value(tag)
	switch kind {
	case tiffTypeShort:
		for ; len(value) >= 2; value = value[2:] {
			out = append(out, int64(d.order.Uint16(value)))
		}
	case tiffTypeLong:
		for ; len(value) >= 4; value = value[4:] {
			out = append(out, int64(d.order.Uint32(value)))
		}
	}
	return out
}

// number is 0 where there is none.
func (d directory) number(tag uint16) int {
	if n := d.numbers(tag); len(n) > 0 {
		return int(n[0])
	}
	return 0
}

func (d directory) ratio(tag uint16) float64 {
	value, kind := d.value(tag)
	if kind != tiffTypeRational || len(value) < 8 || d.order.Uint32(value[4:]) == 0 {
		return 0
	}
	return float64(d.order.Uint32(value)) / float64(d.order.Uint32(value[4:]))
}

func (d directory) scanned() scanned {
	inch := 1.0
	if d.number(tiffUnit) == tiffCentimetre {
		inch = 2.54
	}
	return scanned{across: inch * d.ratio(tiffXResolution), down: inch * d.ratio(tiffYResolution), turned: d.number(tiffOrientation)}
}

// tiffPictures walks a TIFF's chain of directories, at most limit of them. The decoder knows only the first directory, so
// each page is the same file under a header that points at its own. A chain that is broken or runs in a circle ends there.
func tiffPictures(raw []byte, limit int) (pages []picture) {
	order, ok := tiffOrder(raw)
	seen := make(map[uint32]bool)
	for link := int64(4); ok && link+4 <= int64(len(raw)) && len(pages) < limit; {
		at := order.Uint32(raw[link:])
		d, found := directoryAt(raw, order, int64(at))
		if at == 0 || seen[at] || !found {
			break
		}
		seen[at] = true
		header := bytes.Clone(raw[:8])
		order.PutUint32(header[4:], at)
		pages = append(pages, tiffPicture(d, io.NewSectionReader(overlay{header, raw}, 0, int64(len(raw)))))
		link = int64(at) + 2 + tiffEntryBytes*int64(order.Uint16(raw[at:]))
	}
	if len(pages) == 0 { // let the decoder say what is wrong
		pages = onePicture(raw, tiff.DecodeConfig, tiff.Decode, scanned{})
	}
	return pages
}

func tiffPicture(d directory, file *io.SectionReader) picture {
	var decode func() (image.Image, error)
	switch d.number(tiffCompression) {
	case tiffCompressJPEG:
		decode = d.decodeJPEG
	case tiffCompressGroup3:
		decode = d.decodeFax
	}
	if decode != nil {
		return picture{
			measure: func() (int, int, error) { return d.number(tiffWidth), d.number(tiffHeight), nil },
			decode:  decode,
			scanned: d.scanned(),
		}
	}
	return picture{
		measure: func() (int, int, error) {
			file.Seek(0, io.SeekStart)
			c, err := tiff.DecodeConfig(file)
			return c.Width, c.Height, err
		},
		decode: func() (image.Image, error) {
			file.Seek(0, io.SeekStart)
			return tiff.Decode(file)
		},
		scanned: d.scanned(),
	}
}

var errTIFF = errors.New("TIFF is damaged")

// decodeJPEG puts the picture together from its pieces, each a JPEG that may lack its tables. The TIFF decoder knows none of this.
func (d directory) decodeJPEG() (image.Image, error) {
	width, height := d.number(tiffWidth), d.number(tiffHeight)
	pieceWidth, pieceHeight := width, d.number(tiffRowsPerStrip)
	offsets, counts := d.numbers(tiffStripOffsets), d.numbers(tiffStripCounts)
	if d.number(tiffTileWidth) > 0 {
		pieceWidth, pieceHeight = d.number(tiffTileWidth), d.number(tiffTileHeight)
		offsets, counts = d.numbers(tiffTileOffsets), d.numbers(tiffTileCounts)
	}
	if pieceHeight <= 0 || pieceHeight > height && d.number(tiffTileWidth) == 0 {
		pieceHeight = height
	}
	tables, _ := d.value(tiffJPEGTables)
	tables = bytes.TrimSuffix(tables, []byte("\xff\xd9"))
	whole := image.NewGray(image.Rect(0, 0, width, height))
	across := (width + pieceWidth - 1) / pieceWidth
	down := (height + pieceHeight - 1) / pieceHeight
	if len(offsets) != len(counts) || len(offsets) < across*down {
		return nil, errTIFF
	}
	for i := range across * down {
		at, size := offsets[i], counts[i]
		if at+size > int64(len(d.raw)) || size < 2 {
			return nil, errTIFF
		}
		piece := d.raw[at : at+size]
		if len(tables) > 2 {
			piece = append(bytes.Clone(tables), piece[2:]...)
		}
		config, err := jpeg.DecodeConfig(bytes.NewReader(piece))
		if err != nil {
			return nil, err
		}
		// The picture's own size was held against the limit, and a piece is no larger, but for a margin.
		if config.Width > pieceWidth || config.Height > pieceHeight || config.Width*config.Height > 2*width*height+tiffMargin {
			return nil, errTIFF
		}
		decoded, err := jpeg.Decode(bytes.NewReader(piece))
		if err != nil {
			return nil, err
		}
		corner := image.Pt(i%across*pieceWidth, i/across*pieceHeight)
		draw.Draw(whole, image.Rectangle{corner, corner.Add(decoded.Bounds().Size())}, gray(decoded), image.Point{}, draw.Src)
	}
	if photometric := d.numbers(tiffPhotometric); len(photometric) > 0 && photometric[0] == tiffWhiteIsZero {
		for i := range whole.Pix {
			whole.Pix[i] = ^whole.Pix[i]
		}
	}
	return whole, nil
}

// overlay is a file whose first bytes are replaced by others.
type overlay struct{ head, raw []byte }

func (o overlay) ReadAt(p []byte, at int64) (int, error) {
	n, err := bytes.NewReader(o.raw).ReadAt(p, at)
	if at < int64(len(o.head)) {
		copy(p[:n], o.head[at:])
	}
	return n, err
}
