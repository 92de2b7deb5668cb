package extract

import (
	"bufio"
	"errors"

	"github.com/accession/accession/internal/extract/page"
)

// errEnough ends a reading at a limit: what was sent so far is what there will be.
var errEnough = errors.New("a limit is reached")

// sink is where readings put what they find. It numbers the pages.
type sink struct {
	out          *bufio.Writer
	numbered     int // pages sent
	pagesLeft    int
	textLeft     int64
	picturesLeft int
	truncated    bool
	members      int
	leftOut      int
}

func (s *sink) send(kind byte, payload any) error {
	if err := writeFrame(s.out, kind, payload); err != nil {
		return err
	}
	return s.out.Flush()
}

// count says that so many pages are to come, besides those counted before.
func (s *sink) count(pages int, repaired bool) error {
	return s.send(frameCount, countFrame{Pages: pages, Repaired: repaired})
}

// limits is what is left for the next reading.
func (s *sink) limits(j job) page.Limits {
	return page.Limits{Pages: max(s.pagesLeft, 1), TextBytes: max(s.textLeft, 1), ExpandedBytes: j.ExpandedBytes}
}

// emit sends a page that was not counted before.
func (s *sink) emit(p page.Page) error {
	if s.pagesLeft <= 0 || s.textLeft <= 0 {
		s.truncated = true
		return errEnough
	}
	if err := s.count(1, false); err != nil {
		return err
	}
	return s.page(p)
}

// page sends one page of text.
func (s *sink) page(p page.Page) error {
	if s.pagesLeft <= 0 || s.textLeft <= 0 {
		s.truncated = true
		return errEnough
	}
	p = plainPage(p)
	s.pagesLeft--
	s.numbered++
	s.textLeft -= int64(len(p.Text))
	return s.send(framePage, pageFrame{Number: s.numbered, Text: p.Text, Hidden: p.Hidden})
}

// picture sends a page to be recognised: pixels holds width × height bytes of gray, row by row. The frame's number is set here.
func (s *sink) picture(f pictureFrame, pixels []byte) error {
	if s.pagesLeft <= 0 || s.textLeft <= 0 {
		s.truncated = true
		return errEnough
	}
	layer := plainPage(page.Page{Text: f.Text, Hidden: f.Hidden})
	f.Text, f.Hidden = layer.Text, layer.Hidden
	s.pagesLeft--
	s.picturesLeft--
	s.numbered++
	s.textLeft -= int64(len(f.Text))
	f.Number = s.numbered
	if err := writeFrame(s.out, framePicture, f); err != nil {
		return err
	}
	if _, err := s.out.Write(pixels); err != nil {
		return err
	}
	return s.out.Flush()
}
