package mail

import (
	"bytes"
	"io"
	"strings"

	"github.com/accession/accession/internal/extract/archive"
)

// split finds the parts of a multipart, and the text before and behind them. Only what all readers take for a delimiter is one: a line
// of its own, ended by a line feed. A line that begins as one and goes on, one behind a lone carriage return, and one after the
// last are understood in two ways, and refused. A last delimiter that is missing is not missed.
func split(src *archive.Source, b *archive.Budget, at stretch, boundary string) (parts, aside []stretch, err error) {
	piece := stretch{at.start, at.end} // what began at the last delimiter
	delimiters, closed := 0, false
	mark, buf := []byte("--"+boundary), make([]byte, min(window, at.end-at.start))
	for {
		d, err := next(src, stretch{piece.start, at.end}, at.start, mark, buf)
		if err != nil {
			return nil, nil, err
		}
		end := at.end
		if d != nil {
			end = max(d.before, piece.start)
		}
		switch {
		case d != nil && closed:
			return nil, nil, broken("a multipart goes on after its end")
		case d == nil && delimiters == 0:
			return nil, nil, broken("a multipart has no parts")
		case delimiters == 0 || closed:
			aside = append(aside, stretch{piece.start, end})
		default:
			parts = append(parts, stretch{piece.start, end})
			if err := b.FitsMembers(uint64(len(parts))); err != nil {
				return nil, nil, err
			}
		}
		if d == nil {
			return parts, aside, nil
		}
		delimiters++
		piece.start, closed = d.after, d.last
	}
}

// delimiter is a line between parts.
type delimiter struct {
	before, after int64 // where the part before it ends, its line end excluded; where the part behind it begins
	last          bool
}

const window = 64 << 10

// next finds the first delimiter in a stretch, or nil. From where the whole multipart begins a delimiter needs no line end before it.
func next(src *archive.Source, at stretch, begin int64, mark, buf []byte) (*delimiter, error) {
	for pos := at.start; at.end-pos >= int64(len(mark)); {
		n := int(min(int64(len(buf)), at.end-pos))
		if got, err := src.ReadAt(buf[:n], pos); got < n {
			return nil, src.Fault(err, "it ends too early")
		}
		for from := 0; ; {
			i := bytes.Index(buf[from:n], mark)
			if i < 0 {
				break
			}
			i += from
			from = i + 1
			if i > 0 && buf[i-1] != '\n' && buf[i-1] != '\r' {
				continue
			}
			if d, err := delimiterAt(src, pos+int64(i), at.end, begin, len(mark)); d != nil || err != nil {
				return d, err
			}
		}
		pos += int64(max(n-len(mark)+1, 1))
	}
	return nil, nil
}

// delimiterAt looks at what is around a mark. nil: it is in the middle of a line.
func delimiterAt(src *archive.Source, at, end, begin int64, mark int) (*delimiter, error) {
	d := &delimiter{before: at}
	if at > begin {
		before := make([]byte, min(2, at-begin))
		if n, err := src.ReadAt(before, at-int64(len(before))); n < len(before) {
			return nil, src.Fault(err, "it ends too early")
		}
		switch {
		case string(before) == "\r\n":
			d.before -= 2
		case before[len(before)-1] == '\n':
			d.before--
		case before[len(before)-1] == '\r':
			return nil, broken("a line of a multipart ends with a carriage return alone")
		default:
			return nil, nil
		}
	}
	tail := make([]byte, min(256, end-at-int64(mark)))
	if n, err := src.ReadAt(tail, at+int64(mark)); n < len(tail) && (err != io.EOF || src.Err() != nil) {
		return nil, src.Fault(err, "it ends too early")
	}
	line, _, ended := strings.Cut(string(tail), "\n")
	rest := line
	if strings.HasPrefix(rest, "--") {
		d.last, rest = true, rest[2:]
	}
	if strings.Trim(strings.TrimSuffix(rest, "\r"), " \t") != "" || !ended && int64(len(tail)) < end-at-int64(mark) {
		return nil, broken("a line begins as a delimiter of a multipart and goes on")
	}
	d.after = at + int64(mark) + int64(len(line))
	if ended {
		d.after++
	}
	return d, nil
}
