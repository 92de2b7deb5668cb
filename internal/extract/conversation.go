package extract

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// conversation is the parent's side of the wire. It hands out the content that the worker asks for, and every other frame to
// its caller. It holds the worker to the content's bounds.
type conversation struct {
	ctx     context.Context
	in      *bufio.Reader // what the worker says
	out     io.Writer     // the worker's input
	content io.ReaderAt
	size    int64
	buffer  []byte

	unpacking bool // the worker's last frame was frameUnpack
}

func newConversation(ctx context.Context, in io.Reader, out io.Writer, content io.ReaderAt, size int64) *conversation {
	return &conversation{ctx: ctx, in: bufio.NewReaderSize(in, 64<<10), out: out, content: content, size: size}
}

// errContent marks an error of the content's own store.
var errContent = errors.New("read content")

// next is the next frame that is not about reading the content. Its errors: errFrame for a worker that breaks the rules,
// errEnded for one that ends too soon, errContent.
func (c *conversation) next(limit int64) (kind byte, payload []byte, err error) {
	for {
		kind, payload, err := takeFrame(c.in, limit)
		switch {
		case errors.Is(err, errFrame):
			return 0, nil, err
		case err != nil:
			return 0, nil, fmt.Errorf("%w: %w", errEnded, err)
		case kind == frameUnpack:
			c.unpacking = true
			continue
		}
		c.unpacking = false
		if kind != frameRead {
			return kind, payload, nil
		}
		if err := c.hand(payload); err != nil {
			return 0, nil, err
		}
	}
}

func (c *conversation) hand(payload []byte) error {
	var f readFrame
	if json.Unmarshal(payload, &f) != nil || f.N < 1 || f.N > readLimit || f.At < 0 || f.At > c.size-int64(f.N) {
		return errFrame
	}
	if c.ctx.Err() != nil {
		return stopped(c.ctx)
	}
	if len(c.buffer) < f.N {
		c.buffer = make([]byte, max(f.N, min(readLimit, int(c.size))))
	}
	if err := readAt(c.content, c.buffer[:f.N], f.At); err != nil {
		return err
	}
	if _, err := c.out.Write(c.buffer[:f.N]); err != nil {
		return fmt.Errorf("%w: %w", errEnded, err)
	}
	return nil
}

// readAt fills p: content that ends before its size says so is an error of the store.
func readAt(content io.ReaderAt, p []byte, at int64) error {
	n, err := content.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case err == nil, errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", errContent, err)
}
