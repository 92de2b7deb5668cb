package markup

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html"
	htmlcharset "golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	wide "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/accession/accession/internal/extract/charset"
	"github.com/accession/accession/internal/extract/page"
)

const (
	sampleBytes    = 64 << 10 // that the encoding is found by
	manyAttributes = 256      // of one tag, after which the tokenizer is replaced
	maxTitle       = 4 << 10  // bytes of a title
	maxStyles      = 16       // style sheets of one document
)

// maxToken is the bytes of one tag, comment, script or piece of text; reading ends at a longer one. The tests lower it.
var maxToken = 32 << 20

// ReadHTML reads HTML or XHTML as one page: its title, then what a browser would show, by lines. Blocks end lines, paragraphs
// have blank lines between them, items of lists their marks, rows of tables their cells with tabs between. Programs,
// comments, embedded documents, pictures' replacement texts and form values are left out.
//
// Hidden runs are found by attributes, style attributes and <style> rules whose selector is a tag, class, id or
// tag.class. declaredCharset comes after a byte order mark and before what the document says of itself; it may be empty.
// Text that is no text is ErrBroken. Truncated: more than limits.TextBytes, or one piece of markup is above 32 MiB.
func ReadHTML(content io.ReaderAt, size int64, declaredCharset string, limits page.Limits, emit func(page.Page) error) (truncated bool, err error) {
	d := document{open: func() (io.Reader, error) { return io.NewSectionReader(content, 0, size), nil }, declared: declaredCharset}
	p, truncated, err := d.read(limits.TextBytes)
	if err != nil {
		return false, err
	}
	return truncated, emit(p)
}

// document is one HTML or XHTML file. It is read twice: styles count wherever they stand.
type document struct {
	open     func() (io.Reader, error)
	declared string
	untitled bool                     // its title is not shown
	linked   func(href string) *sheet // style sheets of its own package, nil where there are none
}

func (d document) read(room int64) (page.Page, bool, error) {
	text, xhtml, err := d.decoded()
	if err != nil {
		return page.Page{}, false, err
	}
	s, err := surveyed(text, xhtml, d.linked)
	if err != nil {
		return page.Page{}, false, err
	}
	if text, _, err = d.decoded(); err != nil {
		return page.Page{}, false, err
	}
	v := &view{flow: flow{w: page.NewWriter(room)}, sheets: s.sheets}
	if !d.untitled {
		v.words(strings.ToValidUTF8(s.title, "\uFFFD"), "")
		v.paragraph()
	}
	cut, err := v.feed(text, xhtml)
	if err != nil {
		return page.Page{}, false, err
	}
	return v.w.Page(), cut || v.w.Full(), nil
}

var xmlEncoding = regexp.MustCompile(`^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']`)

// decoded opens the document as UTF-8. The encoding: byte order mark, what was declared, what the document says, then a guess.
func (d document) decoded() (text io.Reader, xhtml bool, err error) {
	raw, err := d.open()
	if err != nil {
		return nil, false, err
	}
	sample := make([]byte, sampleBytes)
	n, err := io.ReadFull(raw, sample)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, false, err
	}
	sample = sample[:n]
	raw = io.MultiReader(bytes.NewReader(sample), raw)

	from := encodingOf(sample, d.declared)
	start, _, _ := transform.Bytes(wide.BOMOverride(from.NewDecoder()), sample)
	plain, ok := charset.Decode(start, "utf-8")
	if !ok {
		return nil, false, page.ErrBroken
	}
	xhtml = strings.HasPrefix(strings.TrimLeft(plain, "\uFEFF"+space), "<?xml")
	return transform.NewReader(raw, wide.BOMOverride(from.NewDecoder())), xhtml, nil
}

func encodingOf(sample []byte, declared string) encoding.Encoding {
	if e, _ := htmlcharset.Lookup(declared); e != nil {
		return validUTF8(e)
	}
	if m := xmlEncoding.FindSubmatch(sample[:min(len(sample), 1024)]); m != nil {
		if e, _ := htmlcharset.Lookup(string(m[1])); e != nil {
			return validUTF8(e)
		}
	}
	if e := declaredInMeta(sample); e != nil {
		return validUTF8(e)
	}
	if e := charset.Wide(sample); e != nil {
		return e
	}
	if utf8.Valid(sample[:max(0, len(sample)-utf8.UTFMax)]) {
		return wide.UTF8
	}
	if best, err := chardet.NewHtmlDetector().DetectBest(sample); err == nil && best.Confidence >= 25 {
		if e, _ := htmlcharset.Lookup(strings.ReplaceAll(best.Charset, "GB-18030", "gb18030")); e != nil {
			return validUTF8(e)
		}
	}
	e, _ := htmlcharset.Lookup("windows-1252")
	return e
}

// validUTF8 stands in for the decoder that passes UTF-8 on as it is.
func validUTF8(e encoding.Encoding) encoding.Encoding {
	if e == encoding.Nop {
		return wide.UTF8
	}
	return e
}

// declaredInMeta is the encoding that a <meta> names. UTF-16 cannot be true, because it was read as ASCII.
func declaredInMeta(sample []byte) encoding.Encoding {
	z := html.NewTokenizer(bytes.NewReader(sample))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return nil
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			if string(name) != "meta" {
				continue
			}
			var label, content, equiv string
			for more {
				var key, value []byte
				switch key, value, more = z.TagAttr(); string(key) {
				case "charset":
					label = string(value)
				case "content":
					content = strings.ToLower(string(value))
				case "http-equiv":
					equiv = strings.ToLower(string(value))
				}
			}
			if _, after, ok := strings.Cut(content, "charset="); label == "" && ok && equiv == "content-type" {
				label, _, _ = strings.Cut(strings.Trim(after, `"'`+space), ";")
			}
			e, name2 := htmlcharset.Lookup(label)
			if strings.HasPrefix(name2, "utf-16") {
				return wide.UTF8
			}
			if e != nil {
				return e
			}
		}
	}
}

// survey is what has to be known of a document before its text is written.
type survey struct {
	title  string
	sheets []*sheet
}

func surveyed(text io.Reader, xhtml bool, linked func(string) *sheet) (survey, error) {
	var s survey
	within := ""
	var css sheet
	titled := false
	_, err := tokens(text, xhtml, func(z *html.Tokenizer, kind html.TokenType, tag string, a attributes) bool {
		if tag == "link" && linked != nil && kind != html.EndTagToken && len(s.sheets) < maxStyles && strings.EqualFold(a.rel, "stylesheet") {
			if sheet := linked(a.href); sheet != nil {
				s.sheets = append(s.sheets, sheet)
			}
		}
		switch kind {
		case html.StartTagToken:
			if tag == "style" || tag == "title" && !titled || within == "" && (tag == "svg" || tag == "template" || tag == "noscript") {
				within = tag
			}
		case html.EndTagToken:
			if tag == within {
				titled = titled || tag == "title"
				within = ""
			}
		case html.TextToken:
			switch within {
			case "style":
				css.add(string(z.Text()))
			case "title":
				t := z.Text()
				s.title += string(t[:min(len(t), max(0, maxTitle-len(s.title)))])
			}
		}
		return true
	})
	s.sheets = append(s.sheets, &css) // usually after the linked ones
	return s, err
}

// feed takes a document or a piece of one. It stops when there is no more room.
func (v *view) feed(text io.Reader, xhtml bool) (cut bool, err error) {
	return tokens(text, xhtml, func(z *html.Tokenizer, kind html.TokenType, tag string, a attributes) bool {
		switch kind {
		case html.StartTagToken:
			v.start(tag, a, false)
		case html.SelfClosingTagToken:
			v.start(tag, a, xhtml || tag == "svg" || tag == "math")
		case html.EndTagToken:
			v.end(tag)
		case html.TextToken:
			if v.skip == "" {
				v.text(strings.ToValidUTF8(string(z.Text()), "\uFFFD"))
			}
		}
		if v.skip == "svg" {
			z.NextIsNotRawText()
		}
		return !v.w.Full()
	})
}

// tokens calls each for every token until it returns false. cut: a token was too long to be read, and what comes after it was not.
func tokens(text io.Reader, xhtml bool, each func(*html.Tokenizer, html.TokenType, string, attributes) bool) (cut bool, err error) {
	z := html.NewTokenizer(text)
	for {
		z.SetMaxBuf(maxToken)
		z.AllowCDATA(xhtml)
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			switch err := z.Err(); {
			case errors.Is(err, io.EOF):
				return false, nil
			case errors.Is(err, html.ErrBufferExceeded):
				return true, nil
			default:
				return false, err
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			tag := tagName(name)
			a, count := readAttributes(z, more)
			if kind == html.SelfClosingTagToken && xhtml {
				z.NextIsNotRawText()
			}
			if !each(z, kind, tag, a) {
				return false, nil
			}
			if count > manyAttributes {
				// The tokenizer keeps a map of the attributes that stays as large as it once was, and clears it for every tag.
				rest := bytes.Clone(z.Buffered())
				text = io.MultiReader(bytes.NewReader(rest), text)
				if raw := rawText[tag] && !(kind == html.SelfClosingTagToken && xhtml); raw {
					z = html.NewTokenizerFragment(text, tag)
				} else {
					z = html.NewTokenizer(text)
				}
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if !each(z, kind, tagName(name), attributes{}) {
				return false, nil
			}
		case html.TextToken:
			if !each(z, kind, "", attributes{}) {
				return false, nil
			}
		}
	}
}

var rawText = setOf("iframe noembed noframes noscript plaintext script style textarea title xmp")

// tagName drops the namespace that XHTML may put before it.
func tagName(name []byte) string {
	name = name[:min(len(name), 64)]
	if i := bytes.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	return string(name)
}

func readAttributes(z *html.Tokenizer, more bool) (a attributes, count int) {
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		count++
		switch string(key) {
		case "hidden", "popover":
			a.hidden = true
		case "open":
			a.open = true
		case "style":
			a.style = string(value)
		case "class":
			a.class = string(value)
		case "id":
			a.id = string(value)
		case "color", "text":
			a.color = string(value)
		case "bgcolor":
			a.background = string(value)
		case "start":
			a.start = string(value)
		case "value":
			a.value = string(value)
		case "rel":
			a.rel = string(value)
		case "href":
			a.link, a.href = true, string(value)
		}
	}
	return a, count
}
