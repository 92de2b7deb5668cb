package extract

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/tiff"
)

// pictureMinimum is the side in pixels below which nothing can be read.
const pictureMinimum = 16

type decoder struct {
	config func(io.Reader) (image.Config, error)
	image  func(io.Reader) (image.Image, error)
}

var decoders = map[string]decoder{
	"image/png":  {png.DecodeConfig, png.Decode},
	"image/jpeg": {jpeg.DecodeConfig, jpeg.Decode},
	"image/tiff": {tiff.DecodeConfig, tiff.Decode},
}

// openPicture reads PNG, JPEG and TIFF, a TIFF with all its pages. Every page goes to OCR. The decoders are Go: a broken
// picture costs an error, not the worker.
func openPicture(string) (reading, error) { return readPicture, nil }

func readPicture(j job, content io.Reader, to *sink) error {
	raw := make([]byte, j.Size)
	if _, err := io.ReadFull(content, raw); err != nil {
		return err
	}
	decode, ok := decoders[j.Media]
	if !ok {
		return refuse(CodeUnsupported)
	}
	pages := []io.ReadSeeker{bytes.NewReader(raw)}
	if j.Media == "image/tiff" {
		pages = tiffPages(raw, max(j.Pages, 1)+1)
	}
	// All pages are measured before the first is decoded: a small file can name a picture of gigabytes.
	for _, page := range pages {
		config, err := decode.config(page)
		if err != nil {
			return refuse(pictureFault(err))
		}
		if int64(config.Width)*int64(config.Height) > j.PagePixels {
			return refuse(CodeTooLarge)
		}
	}
	if err := to.count(len(pages), false); err != nil {
		return err
	}
	for i, page := range pages {
		if i == j.Pages || to.picturesLeft <= 0 {
			to.truncated = true
			return nil
		}
		page.Seek(0, io.SeekStart)
		decoded, err := decode.image(page)
		if err != nil {
			return refuse(pictureFault(err))
		}
		pixels := gray(decoded)
		size := pixels.Rect.Size()
		if size.X < pictureMinimum || size.Y < pictureMinimum {
			err = to.page(pageFrame{Number: i + 1})
		} else {
			err = to.picture(pictureFrame{Number: i + 1, Width: size.X, Height: size.Y}, pixels.Pix)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pictureFault tells a picture in a variant we cannot read from a broken one.
func pictureFault(err error) string {
	var tiffVariant tiff.UnsupportedError
	var jpegVariant jpeg.UnsupportedError
	var pngVariant png.UnsupportedError
	if errors.As(err, &tiffVariant) || errors.As(err, &jpegVariant) || errors.As(err, &pngVariant) {
		return CodeUnsupported
	}
	return CodeBroken
}

// gray returns the picture as tightly packed gray pixels, transparent ones on white.
func gray(from image.Image) *image.Gray {
	bounds := from.Bounds()
	to := image.NewGray(image.Rectangle{Max: bounds.Size()})
	switch from := from.(type) {
	case *image.Gray:
		for y := range to.Rect.Dy() {
			copy(to.Pix[y*to.Stride:][:to.Rect.Dx()], from.Pix[y*from.Stride:])
		}
	case *image.YCbCr: // brightness is a plane of its own
		for y := range to.Rect.Dy() {
			copy(to.Pix[y*to.Stride:][:to.Rect.Dx()], from.Y[y*from.YStride:])
		}
	default:
		draw.Draw(to, to.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.Draw(to, to.Rect, from, bounds.Min, draw.Over)
	}
	return to
}

// tiffPages walks a TIFF's chain of directories, at most limit of them. The decoder knows only the first directory, so
// each page is the same file under a header that points at its own. A chain that is broken or runs in a circle ends there.
func tiffPages(raw []byte, limit int) (pages []io.ReadSeeker) {
	var order binary.ByteOrder = binary.LittleEndian
	if bytes.HasPrefix(raw, []byte("MM")) {
		order = binary.BigEndian
	}
	seen := make(map[uint32]bool)
	for link := 4; link+4 <= len(raw) && len(pages) < limit; {
		at := order.Uint32(raw[link:])
		if at == 0 || seen[at] || int64(at)+2 > int64(len(raw)) {
			break
		}
		seen[at] = true
		header := bytes.Clone(raw[:8])
		order.PutUint32(header[4:], at)
		pages = append(pages, io.NewSectionReader(overlay{header, raw}, 0, int64(len(raw))))
		link = int(at) + 2 + 12*int(order.Uint16(raw[at:]))
	}
	if len(pages) == 0 { // let the decoder say what is wrong
		pages = append(pages, bytes.NewReader(raw))
	}
	return pages
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
