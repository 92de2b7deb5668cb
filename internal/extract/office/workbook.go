package office

import "github.com/accession/accession/internal/extract/page"

// book reads an XLSX.
type book struct {
	c        *container
	out      *pages
	sheets   []sheetEntry
	from1904 bool // days count from 1904
	strings  *sharedStrings
	styles   *cellStyles
}

type sheetEntry struct {
	name, id string
	hidden   bool
}

func readWorkbook(c *container, out *pages) error {
	main, err := c.main()
	if err != nil {
		return err
	}
	rels, err := c.relationsOf(main)
	if err != nil {
		return err
	}
	b := &book{c: c, out: out}
	if err := c.walk(main, "workbook", b); err != nil {
		return err
	}
	if b.styles, err = readCellStyles(c, rels); err != nil {
		return err
	}
	if b.strings, err = readSharedStrings(c, rels, b.styles); err != nil {
		return err
	}
	for _, sheet := range b.sheets {
		if err := out.more(); err != nil {
			return err
		}
		if err := b.sheet(sheet, rels.target(sheet.id)); err != nil {
			return err
		}
	}
	return nil
}

func (b *book) start(e *element) error {
	switch e.name {
	case "sheet":
		if len(b.sheets) == maxEntries {
			return page.ErrTooLarge
		}
		state := e.attr("state")
		b.sheets = append(b.sheets, sheetEntry{e.attr("name"), e.relation("id"), state != "" && state != "visible"})
	case "workbookPr":
		b.from1904 = on(e.attr("date1904"))
	}
	return nil
}

func (b *book) end(*element) error          { return nil }
func (b *book) text(string, *element) error { return nil }

// sheet emits one sheet: its name, its rows, what is drawn on it, its comments.
func (b *book) sheet(entry sheetEntry, part string) error {
	f := b.out.flow()
	class := ""
	if entry.hidden {
		class = page.HiddenCell
	}
	f.write(inline(entry.name), class)
	f.line()
	rels, err := b.c.relationsOf(part)
	if err != nil {
		return err
	}
	s := &sheet{book: b, flow: f, class: class}
	if err := b.c.walk(part, "", s); err != nil && err != errFull {
		return err
	}
	if s.lost || b.strings.cut && s.short {
		b.out.truncated = true
	}
	for _, kind := range []string{"drawing", "comments", "threadedComment"} {
		for _, side := range rels.of(b.c, kind) {
			note := &sheetNotes{flow: b.out.flow(), threaded: kind == "threadedComment"}
			if err := optional(b.c, side, "", note); err != nil {
				return err
			}
			b.out.truncated = b.out.truncated || note.flow.w.Full()
			f.apart(class, note.flow.w.Page())
		}
	}
	return b.out.put(f)
}

// sheetNotes reads the text boxes on a sheet, or its comments.
type sheetNotes struct {
	flow     *flow
	threaded bool
}

func (n *sheetNotes) start(e *element) error {
	switch e.name {
	case "p", "comment", "threadedComment":
		n.flow.line()
	case "rPh":
		return errSkip
	}
	return nil
}

func (n *sheetNotes) end(*element) error { return nil }

func (n *sheetNotes) text(s string, e *element) error {
	if e.name != "t" && !(n.threaded && e.name == "text") {
		return nil
	}
	n.flow.write(inline(s), "")
	if n.flow.w.Full() {
		return errFull
	}
	return nil
}
