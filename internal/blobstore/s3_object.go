package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// s3Head is what Open fetches along with the size: all of a small object, header and first segment of any.
const s3Head = segmentSize

// s3Object reads one object by ranges. A reader that goes on where it left off is served from one request to the object's end.
type s3Object struct {
	store *S3
	ctx   context.Context // of Open: governs the reads
	key   string
	etag  string
	size  int64
	head  []byte

	mu     sync.Mutex
	stream io.ReadCloser // nil: none
	at     int64         // offset in the object of the stream's next byte; without one, where the last read ended
	closed bool
}

// Open implements Store.
func (s *S3) Open(ctx context.Context, key string) (Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.fault(ctx, "open", err)
	}
	if err := checkKey(key); err != nil {
		return nil, s.fault(ctx, "open", err)
	}
	o := &s3Object{store: s, ctx: ctx, key: s.folder + key, at: -1}
	err := o.retry(func() error {
		body, info, size, err := o.get(0, s3Head)
		if isCode(err, "InvalidRange") { // an object without bytes has no range
			info, err = s.client.StatObject(ctx, s.address.Bucket, o.key, minio.StatObjectOptions{})
			if err == nil && info.Size != 0 {
				err = errors.New("the service refuses ranges")
			}
			return err
		}
		if err != nil {
			return err
		}
		defer body.Close()
		o.etag, o.size, o.head = info.ETag, size, make([]byte, min(size, s3Head))
		_, err = io.ReadFull(body, o.head)
		return cutShort(err)
	})
	if err != nil {
		return nil, s.fault(ctx, "open", err)
	}
	return o, nil
}

func (o *s3Object) Size() int64 { return o.size }

func (o *s3Object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.drop()
	return nil
}

func (o *s3Object) drop() {
	if o.stream != nil {
		_ = o.stream.Close() // read only: nothing to lose
		o.stream = nil
	}
}

func (o *s3Object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: read: offset %d is negative", o.store.name, off)
	}
	if off >= o.size {
		return 0, io.EOF
	}
	var end error
	if int64(len(p)) > o.size-off {
		p, end = p[:o.size-off], io.EOF
	}
	if off+int64(len(p)) <= int64(len(o.head)) {
		return copy(p, o.head[off:]), end
	}
	n := 0
	err := o.retry(func() error {
		m, err := o.read(p[n:], off+int64(n))
		n += m
		return err
	})
	if err != nil {
		return n, o.store.fault(o.ctx, "read", err)
	}
	return n, end
}

// read fills p with one request, or from the stream of an earlier one. Reads at the same time have requests of their own.
func (o *s3Object) read(p []byte, off int64) (n int, err error) {
	if !o.mu.TryLock() {
		return o.readRange(p, off)
	}
	defer o.mu.Unlock()
	if o.closed {
		return 0, os.ErrClosed
	}
	if o.at != off {
		o.drop()
		n, err = o.readRange(p, off)
		o.at = off + int64(n)
		return n, err
	}
	if o.stream == nil {
		if o.stream, _, _, err = o.get(off, o.size-off); err != nil {
			o.stream = nil
			return 0, err
		}
	}
	n, err = io.ReadFull(o.stream, p)
	o.at += int64(n)
	if err != nil {
		o.drop()
		return n, cutShort(err)
	}
	if o.at == o.size {
		o.drop()
	}
	return n, nil
}

func (o *s3Object) readRange(p []byte, off int64) (int, error) {
	body, _, _, err := o.get(off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	defer body.Close()
	n, err := io.ReadFull(body, p)
	return n, cutShort(err)
}

// get asks for n bytes at off, fewer where the object ends. size is the whole object's. An answer that is not that range, or another
// object's, is an error.
func (o *s3Object) get(off, n int64) (body io.ReadCloser, info minio.ObjectInfo, size int64, err error) {
	var opts minio.GetObjectOptions
	if err := opts.SetRange(off, off+n-1); err != nil {
		return nil, info, 0, err
	}
	if o.etag != "" {
		if err := opts.SetMatchETag(o.etag); err != nil {
			return nil, info, 0, err
		}
	}
	body, info, header, err := o.store.core.GetObject(o.ctx, o.store.address.Bucket, o.key, opts)
	if err != nil {
		return nil, info, 0, err
	}
	given, total, _ := strings.Cut(strings.TrimPrefix(header.Get("Content-Range"), "bytes "), "/")
	size, err = strconv.ParseInt(total, 10, 64)
	if err != nil || !strings.HasPrefix(given, strconv.FormatInt(off, 10)+"-") {
		return nil, info, 0, errors.Join(errors.New("the answer is not the range that was asked for"), body.Close())
	}
	return body, info, size, nil
}

// cutShort is what became of a body that must have had more bytes.
func cutShort(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (%s)", errCut, networkFault(err))
}

// retry goes on where an answer broke off; do remembers how far it came. Requests without an answer are repeated by the library.
func (o *s3Object) retry(do func() error) (err error) {
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		err = do()
		if !errors.Is(err, errCut) || try == s3Tries || o.ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-o.ctx.Done():
			return err
		}
		pause *= 4
	}
}
