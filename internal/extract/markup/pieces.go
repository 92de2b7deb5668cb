package markup

import (
	"iter"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark/parser"
)

// The Markdown parser needs quadratic time, and for tables quadratic memory, where a document is made for it: nested
// brackets, quotes in quotes, wide tables. So a long document is parsed in pieces, and what a piece can cost is bounded first.
const (
	pieceBytes    = 64 << 10   // a piece ends at the first good place after this
	maxPieceBytes = 128 << 10  // a longer one is not parsed
	maxNesting    = 24         // quotes and list items that begin on one line
	maxIndent     = 100        // columns in front of a list item
	maxCells      = 50_000     // of the tables of one piece
	maxBlockCost  = 40_000_000 // bytes × marks of one block
	maxCost       = 400_000_000
	maxLinks      = 2000 // link definitions that hold beyond their own piece
)

// pieces cuts where nothing reaches over: at a line that is not indented after a blank one, or at an item of a list, outside
// of code fences and of HTML that goes on over blank lines.
func pieces(source string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, at := 0, 0
		blank := false
		var until, fence string
		for line := range strings.Lines(source) {
			trimmed := strings.TrimLeft(line, " ")
			indented := len(trimmed) != len(line) || strings.HasPrefix(line, "\t")
			if at-start >= pieceBytes && (blank && !indented || bulleted(line)) && until == "" && fence == "" {
				if !yield(source[start:at]) {
					return
				}
				start = at
			}
			blank = strings.Trim(line, space) == ""
			at += len(line)
			switch {
			case fence != "":
				if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]+space) == "" {
					fence = ""
				}
			case until != "":
				if strings.Contains(asciiLower(line), until) {
					until = ""
				}
			default:
				if f := fenceOf(trimmed); f != "" && len(line)-len(trimmed) < 4 {
					fence = f
				}
				until = openHTML(asciiLower(trimmed))
			}
		}
		if start < len(source) {
			yield(source[start:])
		}
	}
}

func bulleted(line string) bool {
	return len(line) > 2 && strings.IndexByte("-*+", line[0]) >= 0 && line[1] == ' ' && line[2] != ' '
}

func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !(mark == "`" && strings.Contains(rest, mark)) {
			return line[:n]
		}
	}
	return ""
}

// openHTML is what ends the HTML that begins on this line, if it does not end here.
func openHTML(line string) string {
	for _, kind := range [][2]string{{"<!--", "-->"}, {"<script", "</script>"}, {"<style", "</style>"}, {"<pre", "</pre>"},
		{"<textarea", "</textarea>"}, {"<?", "?>"}, {"<![cdata[", "]]>"}} {
		if strings.HasPrefix(line, kind[0]) && !strings.Contains(line[len(kind[0]):], kind[1]) {
			return kind[1]
		}
	}
	return ""
}

// costs bounds from above what the parser has to do: in a block every mark may look through the rest of the block. tame:
// the piece is safe to parse at all.
func costs(piece string) (cost int, tame bool) {
	if len(piece) > maxPieceBytes {
		return 0, false
	}
	bytes, marks, columns, cells := 0, 0, 0, 0
	worst := 0
	end := func() {
		worst = max(worst, bytes*marks)
		cost += bytes * marks
		bytes, marks, columns = 0, 0, 0
	}
	for line := range strings.Lines(piece) {
		nesting, indent, rest := opened(line)
		if nesting > maxNesting || nesting > 0 && indent > maxIndent {
			return 0, false
		}
		// These cannot go on with what stands before them.
		if rest == "" || indent < 4 && (nesting > 0 && strings.ContainsAny(line[:min(indent+1, len(line))], "-*+") || strings.HasPrefix(rest, "#")) {
			end()
		}
		bytes += len(line)
		for i := range len(line) {
			switch line[i] {
			case '[', ']', '!', '*', '_', '~', '<', '`':
				marks++
			}
		}
		if pipes := strings.Count(line, "|"); pipes > columns && strings.Trim(rest, "|:->"+space) == "" && strings.Contains(rest, "-") {
			columns = pipes + 1
		}
		if cells += columns; cells > maxCells {
			return 0, false
		}
	}
	end()
	return cost, worst <= maxBlockCost
}

// opened counts the quotes and list items that may begin on a line, and the columns in front of the first.
func opened(line string) (nesting, indent int, rest string) {
	rest = line
	for {
		trimmed := strings.TrimLeft(rest, space)
		if nesting == 0 {
			for _, c := range rest[:len(rest)-len(trimmed)] {
				if indent++; c == '\t' {
					indent += 3
				}
			}
		}
		rest = trimmed
		mark := 0
		switch {
		case rest == "":
			return nesting, indent, ""
		case rest[0] == '>':
			mark = 1
		case strings.IndexByte("-+*", rest[0]) >= 0 && len(rest) > 1 && strings.IndexByte(space, rest[1]) >= 0:
			mark = 1
		default:
			digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			if digits > 0 && digits < 10 && len(rest) > digits+1 && strings.IndexByte(".)", rest[digits]) >= 0 && strings.IndexByte(space, rest[digits+1]) >= 0 {
				mark = digits + 1
			}
		}
		if mark == 0 {
			return nesting, indent, rest
		}
		nesting, rest = nesting+1, rest[mark:]
	}
}

// linkDefinition costs 0.7 MB and 3 ms to compile: on first use, not at the start of every process.
var linkDefinition = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^ {0,3}\[([^\[\]\n]{1,200})\]:[ \t]*(\S{1,1000})`)
})

// linksIn finds the link definitions, which hold for the whole document.
func linksIn(source string) []parser.Reference {
	var links []parser.Reference
	for _, m := range linkDefinition().FindAllStringSubmatch(source, maxLinks) {
		links = append(links, parser.NewReference([]byte(m[1]), []byte(m[2]), nil))
	}
	return links
}
