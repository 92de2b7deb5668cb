package mail

import (
	"mime"
	"slices"
	"strings"

	"github.com/accession/accession/internal/extract/archive"
)

const (
	nesting       = 16  // multiparts in each other in one message
	boundaryBytes = 200 // RFC 2046 allows 70
)

// stretch is a piece of content, in bytes from its start.
type stretch struct{ start, end int64 }

// part is one node of a message's tree.
type part struct {
	header   header
	media    string // lower case; text/plain when nothing is declared
	params   map[string]string
	encoding string // lower case
	at       stretch
	children bool  // it is a multipart: what it holds are its parts
	aside    bool  // text before or behind the parts of a multipart
	choice   *part // the multipart/alternative that it is in
}

// parse finds all parts of a message. The first is the message itself.
func parse(src *archive.Source, b *archive.Budget) ([]*part, error) {
	var parts []*part
	err := parsePart(src, b, stretch{0, src.Size()}, "text/plain", nil, 0, &parts)
	return parts, err
}

func parsePart(src *archive.Source, b *archive.Budget, at stretch, media string, choice *part, depth int, parts *[]*part) error {
	if depth > nesting {
		return archive.ErrTooDeep
	}
	h, body, err := readHeader(src, at)
	if err != nil {
		return err
	}
	p := &part{header: h, media: media, at: stretch{body, at.end}, choice: choice}
	if err := p.classify(); err != nil {
		return err
	}
	*parts = append(*parts, p)
	if err := b.FitsMembers(uint64(len(*parts))); err != nil {
		return err
	}
	if !p.children {
		return nil
	}
	within, aside, err := split(src, b, p.at, p.params["boundary"])
	if err != nil {
		return err
	}
	if p.media == "multipart/alternative" {
		choice = p
	}
	media = "text/plain"
	if p.media == "multipart/digest" {
		media = "message/rfc822"
	}
	for _, s := range within {
		if err := parsePart(src, b, s, media, choice, depth+1, parts); err != nil {
			return err
		}
	}
	for _, s := range aside {
		if blank, err := blank(src, s); err != nil {
			return err
		} else if blank {
			continue
		}
		*parts = append(*parts, &part{media: "text/plain", at: s, aside: true})
	}
	return nil
}

// blank tells whether a short stretch has nothing but white space.
func blank(src *archive.Source, at stretch) (bool, error) {
	if at.end-at.start > 64 {
		return false, nil
	}
	raw := make([]byte, at.end-at.start)
	if n, err := src.ReadAt(raw, at.start); n < len(raw) {
		return false, src.Fault(err, "it ends too early")
	}
	return strings.TrimSpace(string(raw)) == "", nil
}

// classify reads what a part declares, and refuses what cannot be looked into.
func (p *part) classify() error {
	p.encoding = strings.ToLower(strings.TrimSpace(p.header.get("Content-Transfer-Encoding")))
	if declared := p.header.get("Content-Type"); declared != "" {
		media, params, err := mime.ParseMediaType(declared)
		lower := strings.ToLower(declared)
		if (err != nil || !strings.Contains(media, "/")) &&
			(strings.Contains(lower, "multipart") || strings.Contains(lower, "message/") || strings.Contains(lower, "pkcs7")) {
			return broken("a Content-Type cannot be read")
		}
		switch {
		case media == "text": // what mail programs said before MIME
			media = "text/plain"
		case !strings.Contains(media, "/"):
			media = "application/octet-stream"
		}
		if strings.HasPrefix(media, "multipart/") && strings.Contains(lower, "boundary*") {
			return broken("a boundary is given in pieces")
		}
		p.media, p.params = media, params
	}
	switch p.media {
	case "multipart/encrypted", "application/pgp-encrypted":
		return archive.ErrEncrypted
	case "application/pkcs7-mime", "application/x-pkcs7-mime":
		switch strings.ToLower(p.params["smime-type"]) {
		case "signed-data", "compressed-data":
			return archive.ErrUnsupported // a message within a signature, which is not opened here
		case "certs-only":
		default:
			return archive.ErrEncrypted
		}
	case "message/partial":
		return archive.ErrUnsupported // a message in several messages
	}
	if p.children = strings.HasPrefix(p.media, "multipart/"); !p.children {
		return nil
	}
	boundary := p.params["boundary"]
	switch {
	case !slices.Contains([]string{"", "7bit", "8bit", "binary"}, p.encoding):
		return broken("a multipart is encoded as a whole")
	case boundary == "" || len(boundary) > boundaryBytes || strings.ContainsAny(boundary, "\r\n") || strings.TrimRight(boundary, " \t") != boundary:
		return broken("a multipart has no boundary that can be found")
	}
	return nil
}

func (p *part) attached() bool {
	disposition := strings.ToLower(p.header.get("Content-Disposition"))
	return strings.HasPrefix(strings.TrimSpace(disposition), "attachment")
}

// body tells whether the part is of that type and belongs to the message's text.
func (p *part) body(media string) bool {
	return p.media == media && !p.children && !p.aside && !p.attached() && p.name() == ""
}

// name is the file's name as declared, for display.
func (p *part) name() string {
	_, params, _ := mime.ParseMediaType(p.header.get("Content-Disposition"))
	name := params["filename"]
	if name == "" {
		name = p.params["name"]
	}
	return archive.CleanName(decodeWords(name))
}
