package extract

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The wire between parent and worker: frames of one kind byte, four length bytes (big endian) and a JSON payload.
// A job is followed by the content, a picture by its pixels; both as bare bytes of the announced number.
const (
	frameJob     = 'J' // parent → worker
	frameCount   = 'N' // worker → parent: pages the document has
	framePage    = 'P' // one page of text
	framePicture = 'I' // one page to recognise; width × height gray pixels follow
	frameRefusal = 'R' // the content is refused; last frame
	frameEnd     = 'E' // everything is sent; last frame
)

type job struct {
	Size       int64  `json:"size"`
	Charset    string `json:"charset,omitempty"` // declared by the submitter
	Media      string `json:"media"`
	Pages      int    `json:"pages"`
	OCRPages   int    `json:"ocr_pages"`
	PagePixels int64  `json:"page_pixels"`
	TextBytes  int64  `json:"text_bytes"`
}

type countFrame struct {
	Pages    int  `json:"pages"`
	Repaired bool `json:"repaired,omitempty"`
}

type pageFrame struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
	Hidden int    `json:"hidden,omitempty"`
}

type pictureFrame struct {
	Number int    `json:"number"`
	Text   string `json:"text,omitempty"` // the little text layer that the page has
	Hidden int    `json:"hidden,omitempty"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	DPI    int    `json:"dpi,omitempty"` // 0: unknown
}

type refusalFrame struct {
	Code string `json:"code"`
}

type endFrame struct {
	Truncated bool `json:"truncated,omitempty"`
}

var errFrame = errors.New("extraction worker broke the protocol")

func writeFrame(w io.Writer, kind byte, payload any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	frame := make([]byte, 5, 5+len(body))
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// readFrame reads one frame whose payload is at most limit bytes; a longer one is refused before it is read.
func readFrame(r io.Reader, limit int64) (kind byte, payload []byte, err error) {
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
