package office

import (
	"archive/zip"
	"errors"
	"io"
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

const (
	maxEntries     = 20_000  // members of one container; a deck of a thousand slides has some thousands
	directoryBytes = 8 << 20 // bytes that a directory of that many members takes
)

// container is an office file's zip.
type container struct {
	source *source
	files  map[string]*zip.File
	names  []string // in the directory's order
	left   int64    // bytes that the members may still grow by

	textBytes int // of one stretch of text: a little more than may come out
}

// openContainer reads the directory. A name that stands twice is refused: two readers would see two documents.
func openContainer(content io.ReaderAt, size int64, limits page.Limits) (*container, error) {
	c := &container{
		source: &source{content: content, size: size, room: directoryBytes, bounded: true},
		files:  map[string]*zip.File{},
		left:   limits.ExpandedBytes,

		textBytes: int(min(max(limits.TextBytes, 1<<20), 64<<20)) + 4096,
	}
	r, err := zip.NewReader(c.source, size)
	if err != nil {
		if c.source.err == nil && EncryptedOLE(content, size) {
			return nil, page.ErrEncrypted
		}
		return nil, c.fault(err)
	}
	c.source.bounded = false
	if len(r.File) > maxEntries {
		return nil, page.ErrTooLarge
	}
	for _, f := range r.File {
		if f.Flags&1 != 0 || f.Method == 99 {
			return nil, page.ErrEncrypted
		}
		name := strings.TrimPrefix(strings.ReplaceAll(f.Name, `\`, "/"), "/")
		if strings.HasSuffix(name, "/") {
			continue
		}
		if c.files[name] != nil {
			return nil, page.ErrBroken
		}
		c.files[name] = f
		c.names = append(c.names, name)
	}
	return c, nil
}

func (c *container) has(name string) bool { return c.files[name] != nil }

// open streams a member. Reading it to its end checks its length and its checksum.
func (c *container) open(name string) (io.ReadCloser, error) {
	f := c.files[name]
	switch {
	case f == nil:
		return nil, page.ErrBroken
	case f.UncompressedSize64 > uint64(c.left): // what it says itself; what it turns out to be is counted
		return nil, page.ErrTooLarge
	}
	r, err := f.Open()
	if err != nil {
		return nil, c.fault(err)
	}
	return &member{r, c}, nil
}

// fault says which error of page's it is. A fault of the content's store comes out as it is, all else is damage. The words
// of the zip and XML readers are dropped: they cite the document.
func (c *container) fault(err error) error {
	if c.source.err != nil {
		return c.source.err
	}
	for _, known := range []error{page.ErrEncrypted, page.ErrTooLarge, page.ErrUnsupported} {
		if errors.Is(err, known) {
			return known
		}
	}
	if errors.Is(err, zip.ErrAlgorithm) {
		return page.ErrUnsupported
	}
	return page.ErrBroken
}

// member counts what a member grows to. Its errors are page's, or the store's.
type member struct {
	io.ReadCloser
	c *container
}

func (m *member) Read(p []byte) (int, error) {
	if int64(len(p)) > m.c.left+1 {
		p = p[:m.c.left+1]
	}
	n, err := m.ReadCloser.Read(p)
	if int64(n) > m.c.left {
		return 0, page.ErrTooLarge
	}
	m.c.left -= int64(n)
	if err != nil && err != io.EOF {
		err = m.c.fault(err)
	}
	return n, err
}

// source remembers the store's errors, and bounds what the directory takes: archive/zip holds all of it in memory.
type source struct {
	content io.ReaderAt
	size    int64
	err     error
	room    int
	bounded bool
}

func (s *source) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at > s.size { // a damaged directory points anywhere; that is no error of the store
		return 0, io.EOF
	}
	if s.bounded {
		if s.room -= len(p); s.room < 0 {
			return 0, page.ErrTooLarge
		}
	}
	n, err := s.content.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		s.err = err
	}
	return n, err
}
