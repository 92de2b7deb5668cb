package markup

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

// Documents made to take a reader more than linear time, by about n bytes.
var hostileMarkdown = map[string]func(n int) string{
	"brackets":   func(n int) string { return strings.Repeat("[", n) },
	"bracketsC":  func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"links":      func(n int) string { return strings.Repeat("[a](", n/4) },
	"linksAngle": func(n int) string { return strings.Repeat("[a](<b", n/6) },
	"images":     func(n int) string { return strings.Repeat("![", n/2) },
	"quotes":     func(n int) string { return strings.Repeat(">", n) },
	"quoteslines": func(n int) string {
		s := ""
		for i := 0; i < 200; i++ {
			s += strings.Repeat(">", n/200) + "\n"
		}
		return s
	},
	"emph":       func(n int) string { return strings.Repeat("*a ", n/3) },
	"emph2":      func(n int) string { return strings.Repeat("*a**", n/4) },
	"emph3":      func(n int) string { return strings.Repeat("a**b_", n/5) },
	"stars":      func(n int) string { return strings.Repeat("*", n) + "a" },
	"starsnest":  func(n int) string { return strings.Repeat("*a _b ", n/6) },
	"starsclose": func(n int) string { return strings.Repeat("*a ", n/6) + strings.Repeat("b* ", n/6) },
	"ticks": func(n int) string {
		var b strings.Builder
		for i := 1; b.Len() < n; i++ {
			b.WriteString("e" + strings.Repeat("`", i))
		}
		return b.String()
	},
	"ticks1": func(n int) string { return strings.Repeat("`a``", n/4) },
	"lists":  func(n int) string { return strings.Repeat("- ", n/2) },
	"listsnest": func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(" ", 2*i) + "- a\n")
		}
		return b.String()
	},
	"lt":      func(n int) string { return strings.Repeat("<", n) },
	"lta":     func(n int) string { return strings.Repeat("<a", n/2) },
	"ltq":     func(n int) string { return strings.Repeat("<a b='", n/6) },
	"ltbang":  func(n int) string { return strings.Repeat("<!--", n/4) },
	"ltbang2": func(n int) string { return "a " + strings.Repeat("<!-- ", n/5) },
	"pi":      func(n int) string { return "a" + strings.Repeat("<?", n/2) },
	"cdata":   func(n int) string { return "a" + strings.Repeat("<![CDATA[", n/9) },
	"decl":    func(n int) string { return "a" + strings.Repeat("<!X ", n/4) },
	"refs": func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "[a%d]: x\n", i)
		}
		return b.String()
	},
	"refopen":  func(n int) string { return strings.Repeat("[a]: x \"y\n", n/10) },
	"refopen2": func(n int) string { return strings.Repeat("[a\n", n/3) },
	"table":    func(n int) string { return "a|b\n-|-\n" + strings.Repeat("|", n) },
	"tablerows": func(n int) string {
		c := 300
		return strings.Repeat("a|", c) + "\n" + strings.Repeat("-|", c) + "\n" + strings.Repeat("|\n", n/2)
	},
	"tablewide": func(n int) string { return strings.Repeat("a|", n/4) + "\n" + strings.Repeat("-|", n/4) + "\n" },
	"tablesq": func(n int) string {
		return strings.Repeat("a|", n/8) + "\n" + strings.Repeat("-|", n/8) + "\n" + strings.Repeat("|\n", n/4)
	},
	"lines":     func(n int) string { return strings.Repeat("a\n", n/2) },
	"blanks":    func(n int) string { return strings.Repeat("\n", n) },
	"spaces":    func(n int) string { return "a" + strings.Repeat(" ", n) + "b" },
	"tildes":    func(n int) string { return strings.Repeat("~~a ", n/4) },
	"tildes1":   func(n int) string { return strings.Repeat("~a", n/2) },
	"entities":  func(n int) string { return strings.Repeat("&", n) },
	"entities2": func(n int) string { return strings.Repeat("&#", n/2) },
	"backslash": func(n int) string { return strings.Repeat("\\", n) },
	"setext":    func(n int) string { return strings.Repeat("a\n", n/4) + strings.Repeat("=\n", n/4) },
	"quotelist": func(n int) string { return strings.Repeat("> - ", n/4) },
	"olists":    func(n int) string { return strings.Repeat("1. ", n/3) },
	"hdr":       func(n int) string { return strings.Repeat("# a\n", n/4) },
	"hdrhash":   func(n int) string { return "# a" + strings.Repeat(" #", n/2) },
	"listflat":  func(n int) string { return strings.Repeat("- a\n", n/4) },
	"listblank": func(n int) string { return strings.Repeat("- a\n\n", n/5) },
	"quotecode": func(n int) string { return strings.Repeat(">     x\n", n/8) },
	"fence":     func(n int) string { return strings.Repeat("```\n\n", n/5) },
	"tabs":      func(n int) string { return strings.Repeat("\t", n) + "a" },
	"tabslist":  func(n int) string { return strings.Repeat("-\t", n/2) + "a" },
	"htmlblk":   func(n int) string { return strings.Repeat("<div>\n", n/6) },
	"htmlblk2":  func(n int) string { return strings.Repeat("<div>\n\n", n/7) },
	"autolink":  func(n int) string { return strings.Repeat("<http:", n/6) },
	"autolink2": func(n int) string { return strings.Repeat("<a@", n/3) },
	"linknest":  func(n int) string { return strings.Repeat("[", n/6) + "a" + strings.Repeat("](x)", n/6) },
	"linkref":   func(n int) string { return "[a]: x\n\n" + strings.Repeat("[a]", n/3) },
	"linkrefno": func(n int) string { return "a\n\n" + strings.Repeat("[a]", n/3) },
	"linkbrack": func(n int) string { return strings.Repeat("[a][", n/4) },
	"linktitle": func(n int) string { return strings.Repeat("[a](b \"", n/7) },
	"linkparen": func(n int) string { return strings.Repeat("[a](b(", n/6) },
	"words":     func(n int) string { return strings.Repeat("word and *more* words, [link](http://x) here. \n\n", n/47) },
	"long1line": func(n int) string { return strings.Repeat("word and *more* words, [link](http://x) here. ", n/46) },
	"longpara":  func(n int) string { return strings.Repeat("word and *more* words, [link](http://x) here. \n", n/47) },
}

var hostileHTML = map[string]func(n int) string{
	"nested":           func(n int) string { return strings.Repeat("<div>", n/5) },
	"nested and ended": func(n int) string { return strings.Repeat("<div>", n/11) + strings.Repeat("</div>", n/11) },
	"less than":        func(n int) string { return strings.Repeat("<", n) },
	"ends without":     func(n int) string { return strings.Repeat("<i>", 500) + strings.Repeat("</b>", n/4) },
	"ends over blocks": func(n int) string {
		return "<u><div>" + strings.Repeat("<i>", 500) + strings.Repeat("</u>", n/4)
	},
	"ends over cells": func(n int) string {
		return "<div><table><td>" + strings.Repeat("<i>", 500) + strings.Repeat("</div>", n/6)
	},
	"open tags":     func(n int) string { return strings.Repeat("<a ", n/3) },
	"open comments": func(n int) string { return strings.Repeat("<!-- ", n/5) },
	"comment ends":  func(n int) string { return "<!--" + strings.Repeat("--!", n/3) },
	"paragraphs":    func(n int) string { return strings.Repeat("<p>a", n/4) },
	"lists":         func(n int) string { return strings.Repeat("<ul><li>a", n/9) },
	"tables":        func(n int) string { return strings.Repeat("<table><tr><td>a", n/16) },
	"cells":         func(n int) string { return "<table>" + strings.Repeat("<td>", n/4) + "a" },
	"references":    func(n int) string { return strings.Repeat("&a", n/2) },
	"long reference": func(n int) string {
		return "&" + strings.Repeat("a", n)
	},
	"attributes": func(n int) string {
		var b strings.Builder
		b.WriteString("<p")
		for i := 0; b.Len() < n/2; i++ {
			fmt.Fprintf(&b, " %x", i)
		}
		return b.String() + ">" + strings.Repeat("<p a>", n/10)
	},
	"attributes often": func(n int) string {
		var b strings.Builder
		for i := range 300 {
			fmt.Fprintf(&b, " %x", i)
		}
		return strings.Repeat("<p"+b.String()+">", n/(b.Len()+3))
	},
	"script":    func(n int) string { return "<script>" + strings.Repeat("<!--<script", n/11) },
	"styles":    func(n int) string { return strings.Repeat("<style>p{color:red}</style><p>a", n/31) },
	"selectors": func(n int) string { return "<style>" + strings.Repeat("a,", n/2) + "b{color:red}</style>a" },
	"rules": func(n int) string {
		return "<style>" + strings.Repeat(".a{color:red}", n/26) + "</style>" + strings.Repeat("<p class=a>", n/22)
	},
	"braces":      func(n int) string { return "<style>" + strings.Repeat("a{", n/2) },
	"media":       func(n int) string { return "<style>" + strings.Repeat("@media x{", n/9) },
	"parentheses": func(n int) string { return "<style>a{b:" + strings.Repeat("url(", n/4) },
	"css comment": func(n int) string { return "<p style='" + strings.Repeat("/*", n/2) + "'>a" },
	"classes": func(n int) string {
		return "<style>.a{color:red}</style><p class='" + strings.Repeat("a ", n/2) + "'>a"
	},
	"svg":    func(n int) string { return strings.Repeat("<svg>", n/5) },
	"spaces": func(n int) string { return "a" + strings.Repeat(" ", n) + "b" },
}

var hostileRTF = map[string]func(n int) string{
	"braces":   func(n int) string { return "{\\rtf1" + strings.Repeat("{", n) },
	"pairs":    func(n int) string { return "{\\rtf1" + strings.Repeat("{}", n/2) + "}" },
	"unicode":  func(n int) string { return "{\\rtf1" + strings.Repeat("\\u8364?", n/7) + "}" },
	"asides":   func(n int) string { return "{\\rtf1" + strings.Repeat("{\\footnote a}", n/13) + "}" },
	"one note": func(n int) string { return "{\\rtf1{\\footnote " + strings.Repeat("a\\b ", n/4) + "}}" },
	"pages":    func(n int) string { return "{\\rtf1" + strings.Repeat("\\page", n/5) + "}" },
	"colours":  func(n int) string { return "{\\rtf1{\\colortbl" + strings.Repeat(";", n) + "}}" },
	"fonts":    func(n int) string { return "{\\rtf1{\\fonttbl" + strings.Repeat("\\f1\\fcharset1", n/13) + "}}" },
	"cells":    func(n int) string { return "{\\rtf1" + strings.Repeat("\\cell", n/5) + "a}" },
	"word":     func(n int) string { return "{\\rtf1\\" + strings.Repeat("a", n) + "}" },
	"number":   func(n int) string { return "{\\rtf1\\a" + strings.Repeat("1", n) + "}" },
	"bytes": func(n int) string {
		return "{\\rtf1{\\fonttbl{\\f0\\fcharset128 M;}}\\f0" + strings.Repeat("\\'83", n/4) + "}"
	},
}

// hostile are all of them, by their reader and name. Those of Markdown come whole, and again and again with blank lines
// between, because a long block is not parsed.
func hostile(n, markdown int) map[string]struct {
	read reader
	in   []byte
} {
	all := map[string]struct {
		read reader
		in   []byte
	}{}
	add := func(format, name, in string) {
		all[format+"/"+name] = struct {
			read reader
			in   []byte
		}{readers[format], []byte(in)}
	}
	for name, made := range hostileHTML {
		add("html", name, made(n))
	}
	for name, made := range hostileRTF {
		add("rtf", name, made(n))
	}
	for name, made := range hostileMarkdown {
		add("md", name, made(markdown))
		for _, size := range []int{2 << 10, 10 << 10} {
			add("md", fmt.Sprintf("%s again after %d", name, size), strings.Repeat(made(size)+"\n\n", markdown/size))
		}
	}
	return all
}

var hostileLimits = page.Limits{Pages: 2000, TextBytes: 8 << 20, ExpandedBytes: 64 << 20}

func TestHostileDocumentsEnd(t *testing.T) {
	t.Parallel()
	for name, h := range hostile(128<<10, 48<<10) {
		t.Run(name, func(t *testing.T) {
			_, err := h.read(bytes.NewReader(h.in), int64(len(h.in)), hostileLimits, func(page.Page) error { return nil })
			if err != nil && !errors.Is(err, page.ErrBroken) {
				t.Error(err)
			}
		})
	}
}

func TestMillionsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ format, in string }{
		"elements": {"html", strings.Repeat("<div>", 1e6) + "a"},
		"signs":    {"html", strings.Repeat("<", 1e6)},
		"comment":  {"html", "a<!--" + strings.Repeat("-", 1e6)},
		"groups":   {"rtf", `{\rtf1` + strings.Repeat("{", 1e6)},
		"lists":    {"md", strings.Repeat("- ", 1e6) + "a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readers[c.format](strings.NewReader(c.in), int64(len(c.in)), hostileLimits, func(page.Page) error { return nil })
			if err != nil && !errors.Is(err, page.ErrBroken) {
				t.Error(err)
			}
		})
	}
}

// The two sizes of one document show whether its time grows in proportion.
func BenchmarkHostile(b *testing.B) {
	for _, n := range []int{1 << 20, 2 << 20} {
		all := hostile(n, n)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			h := all[name]
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(h.in)))
				for b.Loop() {
					_, _ = h.read(bytes.NewReader(h.in), int64(len(h.in)), hostileLimits, func(page.Page) error { return nil })
				}
			})
		}
	}
}
