// Command scan makes page pictures look like the output of an office scanner
// and binds them into a PDF that holds pictures only, with no text layer.
//
//	scan -dpi 200 -out record.pdf page-1.png page-2.png
//
// The same pages and seed give the same bytes.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	_ "image/png" // page pictures come as PNG
	"log"
	"math"
	"math/rand/v2"
	"os"

	"golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("scan: ")
	out := flag.String("out", "scan.pdf", "PDF to write")
	dpi := flag.Int("dpi", 200, "resolution of the page pictures, dots per inch")
	quality := flag.Int("quality", 45, "JPEG quality, 1 to 100")
	noise := flag.Float64("noise", 5, "standard deviation of the paper's grain, in grey levels")
	seed := flag.Uint64("seed", 7, "seed of skew and grain")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("name at least one page picture")
	}

	chance := rand.New(rand.NewPCG(*seed, *seed))
	var pages []page
	for _, name := range flag.Args() {
		flat, err := readGray(name)
		if err != nil {
			log.Fatal(err)
		}
		// An odd page leans one way, an even one the other, 0.3 to 1 degree.
		degrees := 0.3 + 0.7*chance.Float64()
		if len(pages)%2 == 1 {
			degrees = -degrees
		}
		scanned := roughen(skew(flat, degrees), *noise, chance)
		var picture bytes.Buffer
		if err := jpeg.Encode(&picture, scanned, &jpeg.Options{Quality: *quality}); err != nil {
			log.Fatal(err)
		}
		size := scanned.Bounds().Size()
		pages = append(pages, page{jpeg: picture.Bytes(), width: size.X, height: size.Y})
	}
	if err := os.WriteFile(*out, bind(pages, *dpi), 0o644); err != nil {
		log.Fatal(err)
	}
}

func readGray(name string) (*image.Gray, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	decoded, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	gray := image.NewGray(decoded.Bounds())
	draw.Draw(gray, gray.Bounds(), decoded, decoded.Bounds().Min, draw.Src)
	return gray, nil
}

// skew turns the page about its middle; what comes in at the corners is paper.
func skew(flat *image.Gray, degrees float64) *image.Gray {
	turned := image.NewGray(flat.Bounds())
	draw.Draw(turned, turned.Bounds(), image.NewUniform(color.Gray{Y: 255}), image.Point{}, draw.Src)
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	cx, cy := float64(flat.Bounds().Dx())/2, float64(flat.Bounds().Dy())/2
	draw.BiLinear.Transform(turned, f64.Aff3{
		cos, -sin, cx - cos*cx + sin*cy,
		sin, cos, cy - sin*cx - cos*cy,
	}, flat, flat.Bounds(), draw.Src, nil)
	return turned
}

// roughen lowers the contrast to that of toner on paper, lets the light fall
// off towards one edge and adds grain.
func roughen(p *image.Gray, noise float64, chance *rand.Rand) *image.Gray {
	width := p.Bounds().Dx()
	for i, level := range p.Pix {
		shade := 12 * float64(i%p.Stride) / float64(width)
		v := 35 + float64(level)*(245-35)/255 - shade + noise*chance.NormFloat64()
		p.Pix[i] = uint8(max(0, min(255, v)))
	}
	return p
}

type page struct {
	jpeg          []byte
	width, height int // pixels
}

// bind writes the smallest PDF that shows each picture on a page of its own
// size: ISO 32000-1 with one DCTDecode image and one content stream per page.
func bind(pages []page, dpi int) []byte {
	var pdf bytes.Buffer
	var offsets []int
	object := func(dict string, stream []byte) {
		offsets = append(offsets, pdf.Len())
		fmt.Fprintf(&pdf, "%d 0 obj\n", len(offsets))
		if stream == nil {
			fmt.Fprintf(&pdf, "<< %s >>\nendobj\n", dict)
			return
		}
		fmt.Fprintf(&pdf, "<< %s /Length %d >>\nstream\n%s\nendstream\nendobj\n", dict, len(stream), stream)
	}

	pdf.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	object("/Type /Catalog /Pages 2 0 R", nil)
	var kids bytes.Buffer
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 3+3*i)
	}
	object(fmt.Sprintf("/Type /Pages /Count %d /Kids [ %s]", len(pages), kids.String()), nil)
	for i, p := range pages {
		number := 3 + 3*i
		w, h := float64(p.width)*72/float64(dpi), float64(p.height)*72/float64(dpi)
		object(fmt.Sprintf("/Type /Page /Parent 2 0 R /MediaBox [0 0 %.2f %.2f] /Contents %d 0 R "+
			"/Resources << /XObject << /Scan %d 0 R >> >>", w, h, number+1, number+2), nil)
		object("", fmt.Appendf(nil, "q %.2f 0 0 %.2f 0 0 cm /Scan Do Q", w, h))
		object(fmt.Sprintf("/Type /XObject /Subtype /Image /Width %d /Height %d "+
			"/ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode", p.width, p.height), p.jpeg)
	}
	start := pdf.Len()
	fmt.Fprintf(&pdf, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&pdf, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&pdf, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return pdf.Bytes()
}
