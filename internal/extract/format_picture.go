package extract

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/accession/accession/internal/extract/page"
)

// pictureMinimum is the side in pixels below which nothing can be read.
const pictureMinimum = 16

// picture is one picture of a file, not decoded yet.
type picture struct {
	measure func() (width, height int, err error)
	decode  func() (image.Image, error)
	scanned scanned
}

// scanned is what the file says of how its picture was made. Zero: nothing.
type scanned struct {
	across, down float64 // pixels per inch
	turned       int     // EXIF's and TIFF's orientation, 1 to 8
}

// readPicture reads PNG, JPEG, WebP and TIFF, a TIFF with all its pages. Every page goes to OCR. The decoders are Go: a broken
// picture costs an error, not the worker.
func (w *worker) readPicture(media string, content io.ReaderAt, size int64) error {
	if size > w.job.InputBytes {
		return refuse(CodeTooLarge)
	}
	raw, err := whole(content, size)
	if err != nil {
		return err
	}
	j, to := w.job, w.to
	var pictures []picture
	switch media {
	case "image/png":
		pictures = onePicture(raw, png.DecodeConfig, png.Decode, pngScanned(raw))
	case "image/jpeg":
		pictures = onePicture(raw, jpeg.DecodeConfig, jpeg.Decode, jpegScanned(raw))
	case "image/webp":
		if animated(raw) {
			return refuse(CodeUnsupported)
		}
		pictures = onePicture(raw, webp.DecodeConfig, webp.Decode, scanned{})
	case "image/tiff":
		pictures = tiffPictures(raw, max(to.pagesLeft, 1)+1)
	default:
		return refuse(CodeUnsupported)
	}
	// All pages are measured before the first is decoded: a small file can name a picture of gigabytes.
	for _, p := range pictures {
		width, height, err := p.measure()
		if err != nil {
			return refuse(pictureFault(err))
		}
		if width < 1 || height < 1 || int64(width) > j.PagePixels/int64(height) {
			return refuse(CodeTooLarge)
		}
	}
	if err := to.count(len(pictures), false); err != nil {
		return err
	}
	for _, p := range pictures {
		if to.picturesLeft <= 0 {
			to.truncated = true
			return nil
		}
		decoded, err := p.decode()
		if err != nil {
			return refuse(pictureFault(err))
		}
		pixels, dpi := fitForOCR(turn(gray(decoded), p.scanned.turned), p.scanned, j.PagePixels)
		size := pixels.Rect.Size()
		if size.X < pictureMinimum || size.Y < pictureMinimum {
			err = to.page(page.Page{})
		} else {
			err = to.picture(pictureFrame{Width: size.X, Height: size.Y, DPI: dpi}, pixels.Pix)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func onePicture(raw []byte, config func(io.Reader) (image.Config, error), decode func(io.Reader) (image.Image, error), s scanned) []picture {
	return []picture{{
		measure: func() (int, int, error) {
			c, err := config(bytes.NewReader(raw))
			return c.Width, c.Height, err
		},
		decode:  func() (image.Image, error) { return decode(bytes.NewReader(raw)) },
		scanned: s,
	}}
}

// animated tells whether a WebP is a film, which the decoder does not know.
func animated(raw []byte) bool {
	const flags, animation = 20, 1 << 1
	return len(raw) > flags && string(raw[12:16]) == "VP8X" && raw[flags]&animation != 0
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
