package extract

import (
	"bytes"
	"image"
	"io"

	"golang.org/x/image/ccitt"
	"golang.org/x/image/tiff"
)

// Tags and values of a TIFF that holds a fax.
const (
	tiffFillOrder       = 266
	tiffT4Options       = 292
	tiffCompressGroup3  = 3
	tiffT4TwoDimensions = 1
	tiffLowBitFirst     = 2
)

// decodeFax reads Group 3 faxes of one dimension. The TIFF decoder does too, but for those with bits filled in before a line's
// end, which is most of them. So each line is decoded by itself. Lines that are missing at the end are white.
func (d directory) decodeFax() (image.Image, error) {
	if d.number(tiffT4Options)&tiffT4TwoDimensions != 0 {
		return nil, tiff.UnsupportedError("Group 3 in two dimensions")
	}
	whole := image.NewGray(image.Rect(0, 0, d.number(tiffWidth), d.number(tiffHeight)))
	width, height := whole.Rect.Dx(), whole.Rect.Dy()
	for i := range whole.Pix {
		whole.Pix[i] = 255
	}
	y, packed := 0, make([]byte, (width+7)/8)
	offsets, counts := d.numbers(tiffStripOffsets), d.numbers(tiffStripCounts)
	for i := range min(len(offsets), len(counts)) {
		if offsets[i]+counts[i] > int64(len(d.raw)) {
			return nil, errTIFF
		}
		err := faxLines(d.raw[offsets[i]:offsets[i]+counts[i]], d.number(tiffFillOrder) == tiffLowBitFirst, func(line []byte) error {
			if y == height {
				return nil
			}
			if _, err := io.ReadFull(ccitt.NewReader(bytes.NewReader(line), ccitt.MSB, ccitt.Group3, width, 1, nil), packed); err != nil {
				return err
			}
			row := whole.Pix[y*whole.Stride:][:width]
			for x := range row {
				row[x] = 255 * (packed[x/8] >> (7 - x%8) & 1)
			}
			y++
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if y == 0 {
		return nil, errTIFF
	}
	if photometric := d.numbers(tiffPhotometric); len(photometric) > 0 && photometric[0] != tiffWhiteIsZero {
		for i := range whole.Pix {
			whole.Pix[i] = ^whole.Pix[i]
		}
	}
	return whole, nil
}

// faxLines splits a fax at its lines' ends: eleven zeros or more, and a one. Each line is handed on with an end before it.
func faxLines(raw []byte, lowBitFirst bool, visit func(line []byte) error) error {
	const endZeros = 11
	var line []byte
	free, zeros, ones := 0, 0, 0
	put := func(bit byte) {
		if free == 0 {
			line, free = append(line, 0), 8
		}
		free--
		line[len(line)-1] |= bit << free
	}
	begin := func() {
		line, free, zeros, ones = line[:0], 0, 0, 0
		for range endZeros {
			put(0)
		}
		put(1)
	}
	begin()
	for _, b := range raw {
		for i := range 8 {
			bit := b >> (7 - i) & 1
			if lowBitFirst {
				bit = b >> i & 1
			}
			if bit == 1 && zeros >= endZeros {
				if ones > 0 { // else it is the first end, or one of several
					if err := visit(line); err != nil {
						return err
					}
				}
				begin()
				continue
			}
			put(bit)
			if bit == 0 {
				zeros++
			} else {
				zeros, ones = 0, ones+1
			}
		}
	}
	if ones == 0 {
		return nil
	}
	return visit(line)
}
