package markup

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"github.com/accession/accession/internal/extract/page"
)

// Bounds of an RTF document. Programs write a few dozen groups into one another.
const (
	maxGroups  = 1000
	maxFonts   = 10_000
	maxColours = 10_000
	maxColumns = 1000     // of a table
	maxRun     = 64 << 10 // bytes of one code page decoded together
)

// ReadRTF reads Rich Text Format: a page per page break, paragraphs as lines, rows of tables with tabs between their cells.
// Headers, footers, notes and comments stand at the end of the page they begin on, text boxes where they are anchored.
// Pictures, embedded objects, field instructions and deleted text are left out.
//
// Hidden runs: \v is invisible, letters below two points are tiny, letters in the colour of their ground (highlight, else
// shading of the paragraph or cell, else white) are white. Content that does not begin with {\rtf, ends inside of inner
// groups or nests more than 1,000 is ErrBroken. Truncated: more than limits.TextBytes or limits.Pages.
func ReadRTF(content io.ReaderAt, size int64, limits page.Limits, emit func(page.Page) error) (truncated bool, err error) {
	r := &rtf{
		in:    bufio.NewReaderSize(io.NewSectionReader(content, 0, size), 64<<10),
		pages: limits.Pages, room: limits.TextBytes, emit: emit,
		state: group{unicodeSkip: 1, size: defaultRTFSize},
		ansi:  charmap.Windows1252, fonts: map[int]encoding.Encoding{},
	}
	r.turn()
	if head, err := r.in.Peek(5); err != nil && err != io.EOF {
		return false, err
	} else if string(head) != `{\rtf` {
		return false, page.ErrBroken
	}
	if err := r.read(); err != nil {
		return false, err
	}
	if r.text.w.Len() > 0 || r.asides.w.Len() > 0 || !r.emitted {
		if err := r.endPage(); err != nil {
			return false, err
		}
	}
	return r.truncated, nil
}

const defaultRTFSize = 24 // half points

// Where the text of a group goes.
type destination int

const (
	toText destination = iota
	toAside
	toFonts
	toColours
	toNothing
	toShape   // nothing, but for text boxes inside
	toUnicode // nothing, but for the Unicode text beside it
)

// group is what a closing brace brings back.
type group struct {
	to                 destination
	invisible, deleted bool
	ink, highlight     int // indices of colours; 0 is automatic
	shade              int // of the paragraph
	size               int // half points
	font, unicodeSkip  int
	inTable            bool
}

type rtf struct {
	in        *bufio.Reader
	emit      func(page.Page) error
	pages     int   // still to be emitted
	room      int64 // bytes of text for this page and what follows
	emitted   bool  // a page was
	truncated bool
	stop      bool
	err       error // emit's

	text    flow
	asides  flow // headers, footers, notes
	section bool // one has ended; the next begins a page unless it says otherwise

	state   group
	groups  []group
	begun   bool // the last thing read was an opening brace
	starred bool // and \* after it

	raw     []byte // text that is not yet decoded
	high    rune   // first half of a surrogate pair
	passing int    // characters to pass over after \u

	ansi        encoding.Encoding
	fonts       map[int]encoding.Encoding
	defining    int // font
	standard    int // font
	colours     []colour
	mixing      colour
	cells       []int // colours behind the row's cells
	cell, shade int
}

func (r *rtf) read() error {
	for !r.stop {
		c, err := r.in.ReadByte()
		if err == io.EOF {
			r.flush()
			// A missing last brace loses nothing.
			if len(r.groups) > 1 {
				return page.ErrBroken
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch c {
		case '{':
			r.flush()
			if len(r.groups) == maxGroups {
				return page.ErrBroken
			}
			r.groups = append(r.groups, r.state)
			r.begun, r.starred, r.passing = true, false, 0
			continue
		case '}':
			r.flush()
			r.passing = 0
			if err := r.close(); err != nil || len(r.groups) == 0 {
				return err
			}
		case '\\':
			if err := r.control(); err != nil {
				return err
			}
			continue
		case '\r', '\n':
			continue
		case '\t':
			r.special("\t")
		default:
			if c >= ' ' {
				r.literalByte(c)
			}
		}
		r.begun, r.starred = false, false
	}
	return r.err
}

func (r *rtf) close() error {
	if len(r.groups) == 0 {
		return page.ErrBroken
	}
	was := r.state.to
	r.state = r.groups[len(r.groups)-1]
	r.groups = r.groups[:len(r.groups)-1]
	if was == toText && r.state.to == toShape {
		r.text.paragraph()
	}
	return nil
}

// control reads what follows a backslash.
func (r *rtf) control() error {
	c, err := r.in.ReadByte()
	if err != nil {
		return ignoreEnd(err)
	}
	if !letter(c) {
		return r.symbol(c)
	}
	word := make([]byte, 0, 32)
	for err == nil && letter(c) {
		if len(word) < 32 {
			word = append(word, c)
		}
		c, err = r.in.ReadByte()
	}
	var digits []byte
	for err == nil && (c >= '0' && c <= '9' || c == '-' && len(digits) == 0) {
		if len(digits) < 11 {
			digits = append(digits, c)
		}
		c, err = r.in.ReadByte()
	}
	if err == nil && c != ' ' {
		err = r.in.UnreadByte()
	}
	if ignoreEnd(err) != nil {
		return err
	}
	n, bad := strconv.Atoi(string(digits))
	err = r.word(string(word), n, bad == nil)
	r.begun, r.starred = false, false
	return err
}

func ignoreEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func (r *rtf) symbol(c byte) error {
	begun := r.begun
	r.begun, r.starred = false, false
	switch c {
	case '*':
		r.begun, r.starred = begun, begun
	case '\'':
		var hex [2]byte
		for i := range hex {
			b, err := r.in.ReadByte()
			if err != nil {
				return ignoreEnd(err)
			}
			if hex[i] = b; b == '\\' || b == '{' || b == '}' {
				return r.in.UnreadByte()
			}
		}
		if v, err := strconv.ParseUint(string(hex[:]), 16, 8); err == nil {
			r.literalByte(byte(v))
		}
	case '\\', '{', '}':
		r.literalByte(c)
	case '~':
		r.special("\u00a0")
	case '_':
		r.special("-")
	case '\r', '\n':
		return r.word("par", 0, false)
	case '\t':
		return r.word("tab", 0, false)
	}
	return nil
}

// literalByte takes one byte of the current code page.
func (r *rtf) literalByte(c byte) {
	if r.passing > 0 {
		r.passing--
		return
	}
	switch r.state.to {
	case toText, toAside:
		r.raw = append(r.raw, c)
		// A space is never the second half of a character.
		if len(r.raw) >= maxRun && (c == ' ' || len(r.raw) >= 2*maxRun) {
			r.flush()
		}
	case toColours:
		if c == ';' && len(r.colours) < maxColours {
			r.colours = append(r.colours, r.mixing)
			r.mixing = colour{}
		}
	}
}

// flush writes the bytes that have come so far.
func (r *rtf) flush() {
	if len(r.raw) == 0 {
		return
	}
	from, ok := r.fonts[r.state.font]
	if !ok || from == nil {
		from = r.ansi
	}
	text := decodeBytes(r.raw, from)
	r.raw = r.raw[:0]
	r.put(text)
}

// special writes a character that has a word of its own.
func (r *rtf) special(s string) {
	if r.passing > 0 {
		r.passing--
		return
	}
	r.flush()
	r.put(s)
}

func (r *rtf) put(s string) {
	r.high = 0
	if s == "" || r.state.deleted {
		return
	}
	switch r.state.to {
	case toAside:
		r.asides.literal(unindented(&r.asides, s), r.class())
	case toText:
		if r.section && r.text.w.Len() > 0 {
			r.err = r.endPage()
		}
		r.section = false
		if r.pages > 0 {
			r.text.literal(unindented(&r.text, s), r.class())
		}
		if r.pages == 0 || r.text.w.Full() {
			r.truncated, r.stop = true, true
		}
		r.stop = r.stop || r.err != nil
	}
}

// unindented leaves out what only moves the beginning of a line.
func unindented(f *flow, s string) string {
	if f.tabs == 0 && (f.breaks > 0 || f.w.Len() == 0) {
		return strings.TrimLeft(s, " \t")
	}
	return s
}

// out is where line ends go.
func (r *rtf) out() *flow {
	switch r.state.to {
	case toText:
		return &r.text
	case toAside:
		return &r.asides
	}
	return &flow{} // nobody reads it
}

func (r *rtf) endPage() error {
	if r.pages == 0 {
		r.truncated = r.truncated || r.asides.w.Len() > 0
		return nil
	}
	beside := r.asides.w.Page()
	if beside.Text != "" {
		r.text.paragraph()
		at := 0
		for _, h := range beside.Hidden {
			r.text.literal(beside.Text[at:h.Start], "")
			r.text.literal(beside.Text[h.Start:h.End], h.Class)
			at = h.End
		}
		r.text.literal(beside.Text[at:], "")
	}
	r.truncated = r.truncated || r.text.w.Full() || r.asides.w.Full()
	p := r.text.w.Page()
	r.room -= int64(len(p.Text))
	r.pages--
	r.emitted = true
	r.turn()
	return r.emit(p)
}

// turn begins a page.
func (r *rtf) turn() {
	r.text = flow{w: page.NewWriter(r.room), rows: []row{{}}}
	r.asides = flow{w: page.NewWriter(r.room)}
	r.section = false
}

func (r *rtf) class() string {
	ink, ok := r.colour(r.state.ink)
	ground, shaded := r.colour(r.state.highlight)
	if !shaded {
		ground, shaded = r.colour(r.state.shade)
	}
	if !shaded && r.state.inTable && r.cell < len(r.cells) {
		ground, shaded = r.colour(r.cells[r.cell])
	}
	if !shaded {
		ground = white
	}
	switch {
	case r.state.invisible:
		return page.HiddenInvisible
	case ok && ink.near(ground):
		return page.HiddenColour
	case r.state.size < 4:
		return page.HiddenTiny
	}
	return ""
}

// colour is one of the document's; ok is false for the automatic one.
func (r *rtf) colour(i int) (c colour, ok bool) {
	if i <= 0 || i >= len(r.colours) {
		return colour{}, false
	}
	return r.colours[i], r.colours[i].alpha > 0
}
