package httpapi

import (
	"bytes"
	"strconv"
	"strings"
)

// net/http mends what two readers of a connection can take for different requests: it drops a Content-Length beside chunked, takes a
// repeated one, continued lines and lines without CR. A proxy in front may read these the other way round, and take what follows
// for another caller's request. So they are refused, which takes a look at the bytes. (RFC 9112, sections 2.2, 5.2, 6.3 and 11.2.)

// framing follows where each request on a connection begins and ends.
type framing struct {
	in   part
	line []byte // of a head or of chunks, as far as it matters
	tail []byte // its last bytes
	size int    // of the whole line
	left int64  // bytes of a body or a chunk

	lines   int // of this head so far
	lengths int // Content-Length headers of this head
	length  int64
	codings int  // Transfer-Encoding headers
	old     bool // HTTP/1.0

	requests int // that came to their end so far
}

type part int

const (
	inHead part = iota
	inBody
	inChunkSize
	inChunk // and the CRLF after it
	inTrailer
	astray // what follows can no longer be told: net/http refuses it, or has ended
)

const (
	keptLine = 128           // bytes of a line that are kept: the headers that matter are shorter, or refused
	oldTail  = " HTTP/1.0\r" // what a request line of HTTP/1.0 ends with
)

// follow reads p, the next bytes of the connection. offence says what is wrong with the request that they belong to, if anything;
// before is how many bytes of p belong to requests before it.
func (f *framing) follow(p []byte) (before int, offence string) {
	for at := 0; at < len(p); {
		switch f.in {
		case astray:
			return 0, ""
		case inBody, inChunk:
			n := min(int64(len(p)-at), f.left)
			at += int(n)
			if f.left -= n; f.left > 0 {
				break
			}
			if f.in == inBody {
				before, f.in = at, inHead
				f.requests++
			} else {
				f.in = inChunkSize
			}
		default:
			if f.in == inHead && f.lines == 0 && f.size == 0 && (p[at] == '\r' || p[at] == '\n') { // between two requests
				at++
				before = at
				break
			}
			end := bytes.IndexByte(p[at:], '\n')
			if end < 0 {
				f.keep(p[at:])
				return before, ""
			}
			f.keep(p[at : at+end])
			at += end + 1
			if offence = f.endLine(); offence != "" {
				return before, offence
			}
			if f.in == inHead && f.lines == 0 {
				before = at
				f.requests++
			}
		}
	}
	return before, ""
}

func (f *framing) keep(p []byte) {
	f.size += len(p)
	f.line = append(f.line, p[:min(len(p), keptLine-len(f.line))]...)
	f.tail = append(f.tail, p[max(0, len(p)-len(oldTail)):]...)
	f.tail = append(f.tail[:0], f.tail[max(0, len(f.tail)-len(oldTail)):]...)
}

func (f *framing) endLine() (offence string) {
	line, long := bytes.TrimSuffix(f.line, []byte("\r")), f.size > keptLine
	defer func() { f.line, f.tail, f.size = f.line[:0], f.tail[:0], 0 }()
	if !bytes.HasSuffix(f.tail, []byte("\r")) {
		return "a line ends without CR"
	}
	switch f.in {
	case inHead:
		return f.headLine(string(line), long)
	case inChunkSize:
		digits, _, _ := strings.Cut(string(line), ";")
		size, err := strconv.ParseInt(strings.TrimRight(digits, " \t"), 16, 62)
		switch {
		case err != nil || size < 0:
			f.in = astray
		case size == 0:
			f.in = inTrailer
		default:
			f.in, f.left = inChunk, size+2
		}
	case inTrailer:
		if len(line) == 0 {
			f.in = inHead
		}
	}
	return ""
}

func (f *framing) headLine(line string, long bool) (offence string) {
	f.lines++
	if f.lines == 1 {
		f.old = string(f.tail) == oldTail
		return ""
	}
	if line == "" && !long {
		return f.endHead()
	}
	if line[0] == ' ' || line[0] == '\t' {
		return "a header goes on in the next line"
	}
	name, value, _ := strings.Cut(line, ":")
	switch {
	case strings.EqualFold(name, "Content-Length"):
		f.lengths++
		var err error
		if f.length, err = strconv.ParseInt(strings.Trim(value, " \t"), 10, 64); err != nil || f.length < 0 || long {
			return "its Content-Length is not a plain number"
		}
	case strings.EqualFold(name, "Transfer-Encoding"):
		if f.codings++; long {
			return "its Transfer-Encoding is longer than any that is understood"
		}
	}
	return ""
}

// endHead knows how long the body is.
func (f *framing) endHead() (offence string) {
	switch {
	case f.codings > 0 && f.lengths > 0:
		return "it has a Content-Length and a Transfer-Encoding"
	case f.codings > 1 || f.lengths > 1:
		return "it says its length more than once"
	case f.codings > 0 && f.old:
		return "HTTP/1.0 has no Transfer-Encoding"
	case f.codings > 0:
		f.in = inChunkSize
	case f.length > 0:
		f.in, f.left = inBody, f.length
	}
	f.lines, f.lengths, f.length, f.codings = 0, 0, 0, 0
	return ""
}
