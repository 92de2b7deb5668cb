package archive

import (
	"errors"
	"io"
)

// Source is a container's content. It tells content that cannot be read (the store's fault) from content that is damaged.
type Source struct {
	content io.ReaderAt
	size    int64
	err     error
}

// NewSource wraps content of that many bytes.
func NewSource(content io.ReaderAt, size int64) *Source {
	return &Source{content: content, size: max(size, 0)}
}

// ReadAt is io.ReaderAt, ending at the content's size.
func (s *Source) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 || offset >= s.size {
		return 0, io.EOF
	}
	short := int64(len(p)) > s.size-offset
	if short {
		p = p[:s.size-offset]
	}
	n, err := s.content.ReadAt(p, offset)
	if n == len(p) {
		err = nil
		if short {
			err = io.EOF
		}
	} else if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// Size in bytes.
func (s *Source) Size() int64 { return s.size }

// Section reads from start up to end.
func (s *Source) Section(start, end int64) *io.SectionReader {
	return io.NewSectionReader(s, start, end-start)
}

// Err is the first fault of the content's own ReadAt, if there was one.
func (s *Source) Err() error { return s.err }

// Fault is what went wrong when reading ended with err: the content's own fault, a refusal that err already is, or ErrBroken.
func (s *Source) Fault(err error, what string) error {
	switch {
	case s.err != nil:
		return s.err
	case errors.Is(err, ErrBroken), errors.Is(err, ErrUnsupported), errors.Is(err, ErrEncrypted):
		return err
	}
	return broken(what)
}

// bytesAt reads n bytes at offset. Content that ends before is ErrBroken.
func (s *Source) bytesAt(offset int64, n int) ([]byte, error) {
	if offset < 0 || offset > s.size-int64(n) {
		return nil, broken("it ends too early")
	}
	raw := make([]byte, n)
	if got, err := s.ReadAt(raw, offset); got < n {
		return nil, s.Fault(err, "it ends too early")
	}
	return raw, nil
}

// zeroFrom tells whether everything from offset on is zero.
func (s *Source) zeroFrom(offset int64) (bool, error) {
	return onlyZero(s.Section(min(offset, s.size), s.size), s)
}

func onlyZero(r io.Reader, s *Source) (bool, error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return false, nil
			}
		}
		if err == io.EOF {
			return true, s.err
		}
		if err != nil {
			return false, s.Fault(err, "it ends too early")
		}
	}
}
