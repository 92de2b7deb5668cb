package extract

import (
	"fmt"
	"io"
)

// Blocks of the content that a worker keeps. Readers of containers and of PDF go back and forth in small steps; a whole
// document is never held for that.
const (
	blockBytes = 256 << 10
	blockCount = 32
)

// remote is the content as a worker sees it: it asks its parent for what it has not read lately. Not for use by several
// goroutines.
type remote struct {
	in     io.Reader
	out    *sink
	size   int64
	blocks map[int64][]byte
	order  []int64 // block numbers, least lately fetched first
}

func newRemote(in io.Reader, out *sink, size int64) *remote {
	return &remote{in: in, out: out, size: size, blocks: map[int64][]byte{}}
}

// ReadAt is io.ReaderAt.
func (r *remote) ReadAt(p []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, fmt.Errorf("read at %d", at)
	}
	for n < len(p) {
		if at >= r.size {
			return n, io.EOF
		}
		if len(p)-n >= blockBytes { // long reads pass the blocks by
			want := int(min(int64(len(p)-n), readLimit, r.size-at))
			if err := r.fetch(p[n:n+want], at); err != nil {
				return n, err
			}
			n, at = n+want, at+int64(want)
			continue
		}
		block, err := r.block(at / blockBytes)
		if err != nil {
			return n, err
		}
		copied := copy(p[n:], block[at%blockBytes:])
		n, at = n+copied, at+int64(copied)
	}
	return n, nil
}

func (r *remote) block(number int64) ([]byte, error) {
	if b, ok := r.blocks[number]; ok {
		return b, nil
	}
	var b []byte
	if len(r.order) == blockCount {
		oldest := r.order[0]
		b = r.blocks[oldest][:0]
		delete(r.blocks, oldest)
		r.order = r.order[1:]
	} else {
		b = make([]byte, 0, blockBytes)
	}
	b = b[:min(blockBytes, r.size-number*blockBytes)]
	if err := r.fetch(b, number*blockBytes); err != nil {
		return nil, err
	}
	r.blocks[number], r.order = b, append(r.order, number)
	return b, nil
}

func (r *remote) fetch(p []byte, at int64) error {
	if err := r.out.send(frameRead, readFrame{At: at, N: len(p)}); err != nil {
		return err
	}
	if _, err := io.ReadFull(r.in, p); err != nil {
		return fmt.Errorf("the parent is gone: %w", err)
	}
	return nil
}
