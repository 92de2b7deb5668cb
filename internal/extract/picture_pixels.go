package extract

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	scale "golang.org/x/image/draw"
)

const (
	ocrDPI         = 300       // what tesseract reads best
	ocrSmallPixels = 3_000_000 // a picture of fewer pixels, and of unknown density, is taken from a screen, or for one
	ocrCoarseDPI   = 200       // below this, letters have too few pixels
	ocrLeastDPI    = 50        // a density below this, or above ocrMostDPI, is a mistake
	ocrMostDPI     = 2400
)

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

// turn sets a picture upright, as its file says that it lies. tesseract finds out by itself how a page lies, but not of a page
// with few words, and not of a mirrored one.
func turn(from *image.Gray, orientation int) *image.Gray {
	if orientation < 2 || orientation > 8 {
		return from
	}
	size := from.Rect.Size()
	right, bottom := size.X-1, size.Y-1
	to := image.NewGray(image.Rect(0, 0, size.X, size.Y))
	if orientation >= 5 {
		to = image.NewGray(image.Rect(0, 0, size.Y, size.X))
	}
	for y := range to.Rect.Dy() {
		for x := range to.Rect.Dx() {
			fx, fy := x, y
			switch orientation {
			case 2:
				fx = right - x
			case 3:
				fx, fy = right-x, bottom-y
			case 4:
				fy = bottom - y
			case 5:
				fx, fy = y, x
			case 6:
				fx, fy = y, bottom-x
			case 7:
				fx, fy = right-y, bottom-x
			case 8:
				fx, fy = right-y, x
			}
			to.Pix[y*to.Stride+x] = from.Pix[fy*from.Stride+fx]
		}
	}
	return to
}

// fitForOCR makes pixels as wide as high, which a fax's are not, and gives small letters more of them. It tells the density that
// results; 0: unknown. It makes no picture of more than limit pixels.
func fitForOCR(from *image.Gray, s scanned, limit int64) (*image.Gray, int) {
	across, down := s.across, s.down
	if s.turned >= 5 {
		across, down = down, across
	}
	if !sensible(across) || !sensible(down) || math.Max(across, down) > 4*math.Min(across, down) {
		across, down = 0, 0
	}
	size := from.Rect.Size()
	wide, high := 1.0, 1.0
	if down > across*1.1 {
		wide = down / across
	} else if across > down*1.1 {
		high = across / down
	}
	density := math.Max(across, down)
	// Screens say 72 or 96 of themselves, and so do cameras, whose pictures have pixels enough.
	if size.X*size.Y < ocrSmallPixels && math.Min(across, down) < ocrCoarseDPI {
		more := 2.0
		if density > 0 {
			more = min(max(ocrDPI/density, 1), 2)
		}
		wide, high, density = wide*more, high*more, density*more
	}
	if density < ocrCoarseDPI {
		density = 0
	}
	to := image.Rect(0, 0, int(float64(size.X)*wide), int(float64(size.Y)*high))
	if to.Size() == size {
		return from, int(density)
	}
	if int64(to.Dx())*int64(to.Dy()) > limit {
		return from, 0
	}
	larger := image.NewGray(to)
	scale.BiLinear.Scale(larger, to, from, from.Rect, scale.Src, nil)
	return larger, int(density)
}

func sensible(dpi float64) bool { return dpi >= ocrLeastDPI && dpi <= ocrMostDPI }
