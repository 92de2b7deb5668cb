package archive

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"io"
)

const readBuffer = 64 << 10

// walkGzip hands out one member: what all streams in the file expand to, one behind the other, as gunzip writes it. Zeros behind the
// last stream are padding, as for gunzip; anything else there is not.
func walkGzip(src *Source, b *Budget, visit Visitor) error {
	if err := alone(src); err != nil {
		return err
	}
	r := &gzipReader{src: src, in: bufio.NewReaderSize(src.Section(0, src.Size()), readBuffer)}
	if err := r.next(); err != nil {
		return err
	}
	return b.Visit(Member{Name: CleanName(r.stream.Name), Size: -1}, r, visit)
}

type gzipReader struct {
	src    *Source
	in     *bufio.Reader
	stream *gzip.Reader
}

func (r *gzipReader) next() error {
	head, err := r.in.Peek(4)
	if err != nil {
		return r.src.Fault(err, "a gzip header ends too early")
	}
	switch flags := head[3]; { // compress/gzip ignores these flags
	case head[0] != 0x1F || head[1] != 0x8B:
		return broken("bytes follow the last gzip stream")
	case flags&0x20 != 0:
		return ErrEncrypted
	case flags&0xC0 != 0:
		return ErrUnsupported
	}
	if r.stream == nil {
		r.stream, err = gzip.NewReader(r.in)
	} else {
		err = r.stream.Reset(r.in)
	}
	if err != nil {
		return r.src.Fault(err, "a gzip header is wrong")
	}
	r.stream.Multistream(false)
	return nil
}

func (r *gzipReader) Read(p []byte) (int, error) {
	for {
		n, err := r.stream.Read(p)
		if n > 0 || err == nil {
			return n, nil // an error comes again
		}
		if err != io.EOF {
			return 0, r.src.Fault(err, "gzip data cannot be expanded")
		}
		first, err := r.in.Peek(1)
		if err == io.EOF && r.src.Err() == nil {
			return 0, io.EOF
		}
		if err != nil {
			return 0, r.src.Fault(err, "it ends too early")
		}
		if first[0] == 0 {
			zero, err := onlyZero(r.in, r.src)
			if err == nil && !zero {
				err = broken("bytes follow the last gzip stream")
			}
			if err == nil {
				err = io.EOF
			}
			return 0, err
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
}

// walkBzip2 hands out one member: what all streams in the file expand to. Bytes behind the last are refused.
func walkBzip2(src *Source, b *Budget, visit Visitor) error {
	if err := alone(src); err != nil {
		return err
	}
	in := bufio.NewReaderSize(src.Section(0, src.Size()), readBuffer)
	return b.Visit(Member{Size: -1}, &faultReader{bzip2.NewReader(in), src, "bzip2 data cannot be expanded"}, visit)
}

// alone refuses content that a reader of zip would open too.
func alone(src *Source) error {
	if len(zipEnds(src)) > 0 {
		return broken("it is a zip archive at the same time")
	}
	return nil
}

// faultReader says in this package's words what went wrong.
type faultReader struct {
	io.Reader
	src  *Source
	what string
}

func (r *faultReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = r.src.Fault(err, r.what)
	}
	return n, err
}
