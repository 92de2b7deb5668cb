package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// s3Writer is one PUT whose body comes block by block, of which none is kept: memory stays flat, and a PUT that breaks in the middle
// fails. It is begun again only while no byte of the body was taken.
type s3Writer struct {
	store  *S3
	ctx    context.Context
	cancel context.CancelFunc
	key    string
	size   int64 // declared
	off    int64 // written
	body   *s3Body
	put    chan error // gets the PUT's end; nil: not begun
	ended  bool       // put has given putErr
	putErr error
	done   bool // committed, or aborted
}

func newS3Writer(ctx context.Context, s *S3, key string, size int64) *s3Writer {
	w := &s3Writer{store: s, key: key, size: size, body: newS3Body(size)}
	w.ctx, w.cancel = context.WithCancel(ctx)
	context.AfterFunc(w.ctx, w.body.close) // net/http waits for a read of the body even when its context has ended
	return w
}

// WriteBlock implements Writer.
func (w *s3Writer) WriteBlock(p []byte) error {
	if int64(len(p)) > w.size-w.off {
		return fmt.Errorf("%s: write: more than the declared %d bytes", w.store.name, w.size)
	}
	if w.done {
		return fmt.Errorf("%s: write: %w", w.store.name, os.ErrClosed)
	}
	if len(p) == 0 {
		return nil
	}
	w.begin()
	if !w.body.give(p) {
		return w.fault("write", w.end())
	}
	w.off += int64(len(p))
	return nil
}

// Commit implements Writer: the service has the whole object when it answers.
func (w *s3Writer) Commit() error {
	if w.off != w.size {
		return fmt.Errorf("%s: commit: %d of the declared %d bytes were written", w.store.name, w.off, w.size)
	}
	if w.done {
		return fmt.Errorf("%s: commit: %w", w.store.name, os.ErrClosed)
	}
	w.begin()
	if err := w.end(); err != nil {
		return w.fault("commit", err)
	}
	w.cancel()
	w.done = true
	return nil
}

// Abort implements Writer. An object whose last byte was never sent cannot be there; one that another attempt has is not ours.
func (w *s3Writer) Abort() error {
	if w.done {
		return nil
	}
	whole := w.put != nil && w.off == w.size
	if !whole {
		w.cancel() // a whole body is under way, and the object may still come: its answer is waited for
	}
	if w.put != nil {
		err := w.end()
		w.cancel()
		if whole && !isTaken(err) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), s3Cleanup)
			defer cancel()
			if err := w.store.Delete(ctx, w.key); err != nil {
				return fmt.Errorf("abort: %w", err)
			}
		}
	}
	w.done = true
	return nil
}

func (w *s3Writer) fault(op string, err error) error {
	if isTaken(err) {
		err = ErrExists
	}
	return w.store.fault(w.ctx, op, err)
}

// isTaken tells whether another attempt has the name, or is at it.
func isTaken(err error) bool {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && (answer.StatusCode == http.StatusPreconditionFailed || answer.Code == minio.PreconditionFailed || answer.Code == "ConditionalRequestConflict")
}

func (w *s3Writer) begin() {
	if w.put != nil {
		return
	}
	w.put = make(chan error, 1)
	go func() {
		err := w.send()
		w.body.close()
		w.put <- err
	}()
}

// end waits for the PUT.
func (w *s3Writer) end() error {
	if !w.ended {
		w.putErr, w.ended = <-w.put, true
	}
	return w.putErr
}

func (w *s3Writer) send() error {
	o := minio.PutObjectOptions{DisableContentSha256: true, DisableMultipart: true, Checksum: minio.ChecksumCRC32C}
	if !w.store.unconditional.Load() {
		o.SetMatchETagExcept("*")
	}
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		reader := w.body.reader()
		_, err := w.store.client.PutObject(w.ctx, w.store.address.Bucket, w.store.folder+w.key, reader, w.size, o)
		touched := w.body.detach()
		if err == nil || touched || try == s3Tries || w.ctx.Err() != nil || !worthAnotherTry(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-w.ctx.Done():
			return err
		}
		pause *= 4
	}
}

// s3Body hands blocks from the writer to the one reader that is attached. It keeps nothing: give returns when the block was
// taken.
type s3Body struct {
	mu      sync.Mutex
	changed *sync.Cond
	block   []byte
	left    int64         // bytes of the body that were not read yet
	current *s3BodyReader // nil: none
	touched bool          // a byte was read
	closed  bool
}

// s3BodyReader is one attempt's view; after detach it reads nothing any more, whoever still holds it.
type s3BodyReader struct{ body *s3Body }

func newS3Body(size int64) *s3Body {
	b := &s3Body{left: size}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// give returns true when p was read to its end, false when nobody will.
func (b *s3Body) give(p []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.block = p
	b.changed.Broadcast()
	for len(b.block) > 0 && !b.closed {
		b.changed.Wait()
	}
	taken := len(b.block) == 0
	b.block = nil
	return taken
}

func (b *s3Body) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}

func (b *s3Body) reader() io.Reader {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = &s3BodyReader{b}
	return b.current
}

// detach ends the reader and tells whether any reader has got bytes.
func (b *s3Body) detach() (touched bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = nil
	b.changed.Broadcast()
	return b.touched
}

func (r *s3BodyReader) Read(p []byte) (int, error) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.block) == 0 && b.left > 0 && b.current == r && !b.closed {
		b.changed.Wait()
	}
	switch {
	case b.current != r || b.closed:
		return 0, io.ErrClosedPipe
	case b.left == 0:
		return 0, io.EOF
	}
	n := copy(p, b.block)
	b.block = b.block[n:]
	b.left -= int64(n)
	b.touched = true
	if len(b.block) == 0 {
		b.changed.Broadcast()
	}
	return n, nil
}
