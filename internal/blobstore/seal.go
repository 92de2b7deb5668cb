package blobstore

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"sync/atomic"
)

// One Seal holds at most three blocks of plaintext, so that reading, digests and
// cipher need not wait for each other, and two of ciphertext: one sealed while the
// other is written.
const (
	plainBlocks  = 3
	sealedBlocks = 2
)

// Seal streams exactly size bytes of plaintext from r into a new object of s, sealed
// with the 32-byte dataKey under aad, and into every digest on the way (architecture,
// "Bytes"). The object is durable on return.
//
// Each box is a goroutine, reading is the caller's; five blocks of 1 MiB travel, fewer and shorter ones for less:
//
//	        ┌→ digest … ┐
//	read ───┼→ digest … ┼→ back to read
//	        └→ seal ────┘
//	             └→ write → back to seal      then commit, while the digests catch up
//
// ErrShortBody and ErrLongBody when r has not exactly size bytes (one more is asked for
// to know), ErrExists and ErrNoSpace from s; an error of r is wrapped. After any error
// nothing stays in the store, and digests, which must be distinct, are to be thrown
// away. ctx is heeded before each read: a reader that blocks must end by its own means.
// r is never read after the return.
func Seal(ctx context.Context, s Store, key string, dataKey, aad []byte, r io.Reader, size int64, digests ...hash.Hash) (err error) {
	if size < 0 || size > maxSealed {
		return fmt.Errorf("%s: seal: size %d is not within 0 and %d", s.Name(), size, int64(maxSealed))
	}
	c, err := newSegmentCipher(dataKey, aad, newHeader())
	if err != nil {
		return fmt.Errorf("%s: seal: %w", s.Name(), err)
	}
	w, err := s.Create(ctx, key, SealedSize(size))
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	committed := false
	defer func() { // also when r panics
		if !committed {
			err = errors.Join(err, w.Abort())
		}
	}()
	p := startPipeline(w, c, size, digests)
	defer p.end()
	if err = p.run(ctx, r, size); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: seal: %w", s.Name(), err)
	}
	if err = w.Commit(); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	committed = true
	return nil
}

// pipeline is the goroutines of one Seal and the blocks between them.
type pipeline struct {
	free      chan *block   // plaintext blocks to fill again
	users     []chan *block // one for each digest and the cipher; every block goes to all
	digesting sync.WaitGroup
	writing   sync.WaitGroup // cipher and writer
	failed    atomic.Bool    // writing did
	writeErr  error
}

func startPipeline(w Writer, c *segmentCipher, size int64, digests []hash.Hash) *pipeline {
	p := &pipeline{free: make(chan *block, plainBlocks)}
	for _, digest := range digests {
		in := p.user()
		p.digesting.Go(func() {
			for b := range in {
				digest.Write(b.used) // never fails (hash.Hash)
				p.done(b)
			}
		})
	}
	lastBlock, sealedSize := (segments(size)-1)/segmentsPerBlock, SealedSize(size)
	in, toWrite, written := p.user(), make(chan *block, sealedBlocks), make(chan *block, sealedBlocks)
	p.writing.Go(func() {
		defer close(toWrite)
		for b := range in {
			var sealed *block
			if b.index < sealedBlocks {
				sealed = newBlock(min(BlockSize, sealedSize-b.index*BlockSize)) // a shorter one is the last
			} else {
				sealed = <-written
			}
			c.sealBlock(sealed, b, b.index == lastBlock)
			p.done(b)
			toWrite <- sealed
		}
	})
	p.writing.Go(func() {
		for sealed := range toWrite {
			if !p.failed.Load() {
				p.writeErr = w.WriteBlock(sealed.used)
				p.failed.Store(p.writeErr != nil)
			}
			written <- sealed
		}
		for len(written) > 0 {
			(<-written).release()
		}
	})
	return p
}

func (p *pipeline) user() <-chan *block {
	in := make(chan *block, plainBlocks)
	p.users = append(p.users, in)
	return in
}

// done gives up a plaintext block; the last to do so frees it.
func (p *pipeline) done(b *block) {
	if b.users.Add(-1) == 0 {
		p.free <- b
	}
}

// run reads r through the pipeline and returns when all is written; digests may go on.
func (p *pipeline) run(ctx context.Context, r io.Reader, size int64) error {
	readErr := func() error {
		defer p.writing.Wait()
		defer func() { // also when r panics
			for _, user := range p.users {
				close(user)
			}
		}()
		return p.read(&body{ctx: ctx, r: r, stop: &p.failed}, size)
	}()
	if p.writeErr != nil {
		return p.writeErr
	}
	return readErr
}

// end waits for the digests and gives the blocks back.
func (p *pipeline) end() {
	p.digesting.Wait()
	for len(p.free) > 0 {
		(<-p.free).release()
	}
}

// read fills blocks and hands each to every user.
func (p *pipeline) read(r *body, size int64) error {
	left := size
	for index := int64(0); index == 0 || left > 0; index++ {
		var b *block
		length := min(left, room(index))
		if index < plainBlocks {
			b = newBlock(length) // a shorter one is the last
		} else {
			b = <-p.free
		}
		b.index, b.used = index, b.buf[:length]
		if _, err := io.ReadFull(r, b.used); err != nil {
			b.release()
			return err
		}
		left -= int64(len(b.used))
		b.users.Store(int32(len(p.users)))
		for _, user := range p.users {
			user <- b
		}
	}
	return r.end()
}

var errStopped = errors.New("writing failed")

// body reads the caller's reader and sorts its errors.
type body struct {
	ctx  context.Context
	r    io.Reader
	stop *atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.stop.Load() {
		return 0, errStopped
	}
	n, err := b.r.Read(p)
	switch {
	case err == io.EOF:
		err = ErrShortBody // unless what was asked for came along: io.ReadFull drops it then
	case err != nil:
		err = fmt.Errorf("read body: %w", err)
	}
	return n, err
}

// end asks for one byte past the end.
func (b *body) end() error {
	var beyond [1]byte
	_, err := io.ReadFull(b, beyond[:])
	switch {
	case err == nil:
		return ErrLongBody
	case err == ErrShortBody:
		return nil
	}
	return err
}
