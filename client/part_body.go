package client

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"sync/atomic"
)

// Three blocks in flight: one is hashed while another is sent.
const (
	blockBytes  = 256 << 10
	blocksAhead = 3
)

// partBody reads one part of the file ahead of the connection and hashes it on the way, so that hashing and sending
// overlap and the file is read once.
//
//	file ─► read ─► part hash ∥ whole hash ─► blocks ─► Read (the connection)
//	          ▲                                           │
//	          └───────────────── free ◄───────────────────┘
type partBody struct {
	blocks, free chan []byte
	closed       chan struct{} // the connection wants no more
	done         chan struct{} // hashing has ended
	closeOnce    sync.Once
	abandoned    atomic.Bool

	part, whole hash.Hash
	err         error // of the file; valid after done

	block, rest []byte // owned by Read
	sent        int64

	mu     sync.Mutex // a connection may still read after its answer; onRead must then stay silent
	onRead func(sent int64)
}

// newPartBody starts reading. whole is the digest up to this part; it is cloned, so that a failed attempt leaves it as it was.
func newPartBody(src io.ReaderAt, offset, length int64, whole hash.Cloner, onRead func(int64)) (*partBody, error) {
	clone, err := whole.Clone()
	if err != nil {
		return nil, fmt.Errorf("clone digest: %w", err)
	}
	body := &partBody{
		blocks: make(chan []byte, blocksAhead), free: make(chan []byte, blocksAhead),
		closed: make(chan struct{}), done: make(chan struct{}),
		part: sha256.New(), whole: clone, onRead: onRead,
	}
	for range blocksAhead {
		body.free <- make([]byte, min(blockBytes, length))
	}
	go body.fill(io.NewSectionReader(src, offset, length), length)
	return body, nil
}

func (b *partBody) fill(file io.Reader, left int64) {
	defer close(b.done)
	defer close(b.blocks)
	var spare []byte // once closed, blocks no longer come back
	for left > 0 && !b.abandoned.Load() {
		block := spare
		if block == nil {
			select {
			case block = <-b.free:
			case <-b.closed:
				block = make([]byte, min(blockBytes, left))
				spare = block
			}
		}
		block = block[:min(left, int64(cap(block)))]
		if _, err := io.ReadFull(file, block); err != nil {
			b.err = readError(err)
			return
		}
		left -= int64(len(block))
		b.part.Write(block)
		b.whole.Write(block)
		if spare != nil {
			continue
		}
		select {
		case b.blocks <- block:
		case <-b.closed:
			spare = block
		}
	}
}

// Read gives the next bytes to the connection.
func (b *partBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.block != nil {
			b.free <- b.block[:cap(b.block)]
			b.block = nil
		}
		block, more := <-b.blocks
		if !more {
			if b.err != nil {
				return 0, b.err
			}
			return 0, io.EOF
		}
		b.block, b.rest = block, block
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	b.sent += int64(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.onRead != nil {
		b.onRead(b.sent)
	}
	return n, nil
}

// Close is called by the connection when it wants no more: after the last byte, or when the service answered before it.
func (b *partBody) Close() error {
	b.closeOnce.Do(func() { close(b.closed) })
	return nil
}

// abandon stops the reading after a failed attempt and returns what went wrong with the file, if anything.
func (b *partBody) abandon() error {
	b.abandoned.Store(true)
	b.settle()
	return b.err
}

// digests waits until the whole part is hashed, even where the service accepted it without reading it again.
func (b *partBody) digests() (part string, whole hash.Hash, err error) {
	b.settle()
	return hex.EncodeToString(b.part.Sum(nil)), b.whole, b.err
}

func (b *partBody) settle() {
	b.Close()
	<-b.done
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onRead = nil
}

// readError tells a file that became shorter from one that cannot be read.
func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it became shorter", ErrFileChanged)
	}
	return fmt.Errorf("read file: %w", err)
}
