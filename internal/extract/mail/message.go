// Package mail reads one e-mail message (RFC 5322, MIME): its text for a reader of text, and every part of it for a scanner.
//
// Messages within a message are handed out as parts of type message/rfc822; to open them is the caller's, with the same budget. A
// message that two readers could understand in two ways, or of which a part cannot be decoded, is archive.ErrBroken: what was
// scanned must be what is opened later.
//
// It is not built on enmime, which repairs what is damaged (it drops what is not base64, and says so in a list of remarks) and
// holds all parts in memory, nor on mime/multipart, which drops what lies before and behind the parts. Parts are stretches of
// content here, decoded as they are read.
//
// Source: contract decisions, gate 2 "malware" and gate 4 "extraction".
package mail

import (
	"bufio"
	"io"
	"strings"

	"github.com/accession/accession/internal/extract/archive"
	"github.com/accession/accession/internal/extract/charset"
)

const (
	textBytes = 8 << 20 // bytes of text, and of HTML, that Read takes of a message
	pgpBegins = "-----BEGIN PGP MESSAGE-----"
)

// Message is what a person sees of a message.
type Message struct {
	Subject, From, To, Cc, Date string // decoded, one line each, at most 8 KiB; empty when missing

	Text string // all parts of plain text that are not attachments, in their order, a blank line between them
	HTML []byte // the first part of HTML that is no attachment, as it is; further ones are among the attachments

	HTMLCharset string // as declared; empty when it is not
	// Alternative says that Text and HTML are two forms of the same words, of which a mail program shows one. If not, both are shown.
	Alternative bool
	Truncated   bool // Text or HTML is longer than 8 MiB; what is beyond was left out

	Attachments []Attachment // all other parts, in their order
}

// Attachment is a part of a message that is not its text: a file, a picture, another message.
type Attachment struct {
	Name      string // see archive.CleanName; may be empty
	MediaType string // as declared, lower case
	Inline    bool   // shown within the message

	part   *part
	src    *archive.Source
	budget *archive.Budget
}

// Open reads the attachment's decoded bytes, which count in the budget given to Read. Errors: archive.ErrBroken, ErrUnsupported,
// ErrTooLarge, ErrRatio, and content's.
func (a Attachment) Open() io.Reader { return a.budget.Reader(a.part.open(a.src)) }

// Head is the message's head as lines of text: From, To, Cc, Date, Subject, as far as they are there.
func (m *Message) Head() string {
	var b strings.Builder
	for _, f := range [][2]string{{"From", m.From}, {"To", m.To}, {"Cc", m.Cc}, {"Date", m.Date}, {"Subject", m.Subject}} {
		if f[1] != "" {
			b.WriteString(f[0] + ": " + f[1] + "\n")
		}
	}
	return b.String()
}

// Read reads a message. Attachments count as members of b; bytes count when they are read. Errors: those of package archive
// (ErrEncrypted also for a message whose text is an OpenPGP message), and content's.
func Read(content io.ReaderAt, size int64, b *archive.Budget) (*Message, error) {
	src := archive.NewSource(content, size)
	parts, err := parse(src, b)
	if err != nil {
		return nil, err
	}
	head := parts[0].header
	m := &Message{Subject: head.line("Subject"), From: head.line("From"), To: head.line("To"), Cc: head.line("Cc"), Date: head.line("Date")}
	var text []string
	room := textBytes
	plainIn := map[*part]bool{} // the alternatives that have a plain text
	var html *part
	for _, p := range parts {
		switch {
		case p.children, p.aside:
			continue
		case p.body("text/plain"), p.body("text/html") && html == nil:
		default:
			if err := b.Count(); err != nil {
				return nil, err
			}
			m.Attachments = append(m.Attachments, Attachment{Name: p.name(), MediaType: p.media, Inline: !p.attached(), part: p, src: src, budget: b})
			continue
		}
		limit := textBytes
		if p.media == "text/plain" {
			limit = room
		}
		raw, err := io.ReadAll(io.LimitReader(b.Reader(p.open(src)), int64(limit)+1))
		if err != nil {
			return nil, err
		}
		if len(raw) > limit {
			raw, m.Truncated = raw[:limit], true
		}
		if p.media == "text/html" {
			html, m.HTML, m.HTMLCharset = p, raw, p.params["charset"]
			continue
		}
		decoded, ok := charset.Decode(raw, p.params["charset"])
		if !ok {
			if err := b.Count(); err != nil {
				return nil, err
			}
			m.Attachments = append(m.Attachments, Attachment{Name: p.name(), MediaType: p.media, Inline: true, part: p, src: src, budget: b})
			continue
		}
		room -= len(raw)
		text = append(text, strings.TrimRight(strings.ReplaceAll(decoded, "\r\n", "\n"), "\n"))
		plainIn[p.choice] = true
	}
	m.Text = strings.Join(text, "\n\n")
	m.Alternative = html != nil && html.choice != nil && plainIn[html.choice]
	return m, nil
}

// Walk calls visit with every part's decoded bytes: text, attachments, messages within, and the text before and behind the parts of
// a multipart, which old mail programs show. It takes one level of b's depth while it runs, as archive.Walk does; every part
// counts as a member, and is read to its end. Errors: those of package archive, visit's, and content's.
func Walk(content io.ReaderAt, size int64, b *archive.Budget, visit archive.Visitor) error {
	if err := b.Enter(); err != nil {
		return err
	}
	defer b.Leave()
	src := archive.NewSource(content, size)
	parts, err := parse(src, b)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.children {
			continue
		}
		if err := b.Visit(archive.Member{Name: p.name(), Size: -1, Type: p.media}, p.open(src), visit); err != nil {
			return err
		}
	}
	return nil
}

// open decodes a part. Text that is an OpenPGP message is archive.ErrEncrypted.
func (p *part) open(src *archive.Source) io.Reader {
	r := p.decoded(src)
	if !strings.HasPrefix(p.media, "text/") {
		return r
	}
	in := bufio.NewReader(r)
	head, _ := in.Peek(1024) // its error comes again
	if strings.HasPrefix(strings.TrimSpace(string(head)), pgpBegins) {
		return failing{archive.ErrEncrypted}
	}
	return in
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
