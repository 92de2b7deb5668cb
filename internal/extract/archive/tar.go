package archive

import (
	"archive/tar"
	"bufio"
	"io"
	"strings"
)

const tarBlock = 512

// walkTar visits every entry that has content, whatever its type flag says. What other readers of tar see differently is refused:
// bytes behind the end that are not zero (tar -i reads on), links and directories with a size, sizes given twice in pax records.
func walkTar(src *Source, b *Budget, visit Visitor) error {
	outside := zipEnds(src) // a zip that lies within one member is seen when that member is opened
	in := &counter{Reader: bufio.NewReaderSize(src.Section(0, src.Size()), readBuffer)}
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if err == io.EOF && src.Err() == nil {
			break
		}
		if err != nil {
			return src.Fault(err, "a tar header is wrong")
		}
		if err := sameToAll(h); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeLink, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeDir, tar.TypeFifo, tar.TypeXGlobalHeader:
			if h.Size != 0 {
				return broken("a tar entry that is no file has a size")
			}
			if err := b.Count(); err != nil {
				return err
			}
			continue
		}
		start := in.n
		err = b.Visit(Member{Name: CleanName(h.Name), Size: h.Size}, &faultReader{r, src, "a tar member ends too early"}, visit)
		if err != nil {
			return err
		}
		for i := 0; i < len(outside); i++ {
			if outside[i].start >= start && outside[i].end <= in.n {
				outside = append(outside[:i], outside[i+1:]...)
				i--
			}
		}
	}
	zero, err := src.zeroFrom(in.n)
	if err == nil && !zero {
		err = broken("bytes follow the end of a tar archive")
	}
	if err == nil && len(outside) > 0 {
		err = broken("it is a zip archive at the same time")
	}
	return err
}

// sameToAll refuses pax records that some readers obey and others do not. Honest writers give a size there only from 8 GiB on.
func sameToAll(h *tar.Header) error {
	for key := range h.PAXRecords {
		if key == "size" && h.Size < 8<<30 || h.Typeflag == tar.TypeXGlobalHeader && (key == "size" || strings.HasPrefix(key, "GNU.sparse.")) {
			return broken("a tar member has two sizes")
		}
	}
	return nil
}

// counter counts what was read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}
