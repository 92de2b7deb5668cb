package extract

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/accession/accession/internal/extract/page"
)

// The wire between parent and worker: frames of one kind byte, four length bytes (big endian) and a payload, which is JSON
// but for frameBytes. The worker asks for the content piece by piece: each frameRead is answered with exactly the bytes
// asked for, bare. A picture is followed by its pixels, as bare bytes of the announced number.
const (
	frameJob       = 'J' // parent → worker: the first and only frame in that direction
	frameRead      = 'D' // worker → parent: send these bytes of the content
	frameUnpack    = 'U' // a part of the content is unpacked next: if the worker breaks down before its next frame, that is why
	frameNeed      = 'W' // the worker must be started anew with the PDF engine; last frame
	frameLegacy    = 'L' // the content is of a legacy format; last frame
	frameType      = 'T' // what the content is
	frameCount     = 'N' // so many further pages are to come
	framePage      = 'P' // one page of text
	framePicture   = 'I' // one page to recognise; width × height gray pixels follow
	frameMember    = 'M' // a member of a container begins
	frameBytes     = 'B' // bytes of the member
	frameMemberEnd = 'm' // the member is complete
	frameRefusal   = 'R' // the content is refused; last frame
	frameEnd       = 'E' // everything is sent; last frame
)

const (
	readLimit  = 1 << 20   // bytes that one frameRead may ask for
	bytesLimit = 256 << 10 // bytes in one frameBytes
)

type job struct {
	Size          int64  `json:"size"`
	Declared      string `json:"declared,omitempty"` // by the submitter
	InputBytes    int64  `json:"input_bytes"`
	Pages         int    `json:"pages"`
	OCRPages      int    `json:"ocr_pages"`
	PagePixels    int64  `json:"page_pixels"`
	TextBytes     int64  `json:"text_bytes"`
	ExpandedBytes int64  `json:"expanded_bytes"`
}

type readFrame struct {
	At int64 `json:"at"`
	N  int   `json:"n"`
}

type typeFrame struct {
	Media    string `json:"media"`
	Declared string `json:"declared,omitempty"` // without parameters
}

type countFrame struct {
	Pages    int  `json:"pages"`
	Repaired bool `json:"repaired,omitempty"`
}

type pageFrame struct {
	Number int        `json:"number"`
	Text   string     `json:"text"`
	Hidden []page.Run `json:"hidden,omitempty"`
}

type pictureFrame struct {
	Number int        `json:"number"`
	Text   string     `json:"text,omitempty"` // the text layer that the page has
	Hidden []page.Run `json:"hidden,omitempty"`
	Check  bool       `json:"check,omitempty"` // the layer is kept; OCR only tells whether it says what the picture shows
	Width  int        `json:"width"`
	Height int        `json:"height"`
	DPI    int        `json:"dpi,omitempty"` // 0: unknown
}

type refusalFrame struct {
	Code string `json:"code"`
}

type endFrame struct {
	Truncated bool `json:"truncated,omitempty"`
	Members   int  `json:"members,omitempty"`  // documents inside the content that were read
	LeftOut   int  `json:"left_out,omitempty"` // and that were not
}

var errFrame = fmt.Errorf("%w: it broke the protocol", ErrStopped)

func writeFrame(w io.Writer, kind byte, payload any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	return writeRaw(w, kind, body)
}

func writeRaw(w io.Writer, kind byte, body []byte) error {
	var head [5]byte
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(len(body)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// takeFrame reads one frame whose payload is at most limit bytes; a longer one is refused before it is read.
func takeFrame(r io.Reader, limit int64) (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[1:]))
	if size > limit {
		return 0, nil, fmt.Errorf("%w: frame of %d bytes", errFrame, size)
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return head[0], payload, nil
}
