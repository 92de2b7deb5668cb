package mail

import (
	"bufio"
	"encoding/base64"
	"io"
	"mime/quotedprintable"

	"github.com/accession/accession/internal/extract/archive"
)

// decoded reads a part's bytes, strictly: what is not in its encoding is archive.ErrBroken, an encoding that is not known is
// archive.ErrUnsupported. Only an equals sign that begins nothing stays as it is in quoted-printable: all readers leave it so.
func (p *part) decoded(src *archive.Source) io.Reader {
	in := src.Section(p.at.start, p.at.end)
	switch p.encoding {
	case "", "7bit", "8bit", "binary":
		return strict{in, src, "a part cannot be read"}
	case "quoted-printable":
		return strict{quotedprintable.NewReader(in), src, "a part is not the quoted-printable that it is said to be"}
	case "base64":
		return strict{base64.NewDecoder(base64.StdEncoding, &unspaced{in: bufio.NewReaderSize(in, 32<<10)}), src, "a part is not the base64 that it is said to be"}
	}
	return failing{archive.ErrUnsupported}
}

// strict says in archive's words what went wrong.
type strict struct {
	io.Reader
	src  *archive.Source
	what string
}

func (r strict) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = r.src.Fault(err, r.what)
	}
	if err == io.EOF && r.src.Err() != nil {
		err = r.src.Err()
	}
	return n, err
}

// unspaced leaves out white space, which is allowed anywhere in base64, and refuses anything else behind the padding: some readers
// stop there, some go on (encoding/base64 goes on where one of its buffers ends).
type unspaced struct {
	in     io.Reader
	padded bool
}

func (u *unspaced) Read(p []byte) (int, error) {
	for {
		n, err := u.in.Read(p)
		kept := 0
		for _, c := range p[:n] {
			if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
				if u.padded && c != '=' {
					return kept, broken("base64 goes on behind its end")
				}
				u.padded = c == '='
				p[kept] = c
				kept++
			}
		}
		if kept > 0 || err != nil || n == 0 {
			return kept, err
		}
	}
}
