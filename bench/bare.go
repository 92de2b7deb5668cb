package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// startBare starts the bare handler, this program again, over a folder of its own.
func startBare(ctx context.Context, work string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(work, "bare")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return start(exec.CommandContext(ctx, self, "bare", dir, "127.0.0.1:0"), dir+".log")
}

// reference is the bare handler, in one of its ways: "hash", or "direct".
func (p *process) reference(way string, row comparison) reference {
	return reference{[]comparison{row}, func(ctx context.Context, size, part int64) ([]lap, error) {
		its, err := p.timed(func() error {
			return inParts(size, part, func(n int, length int64) error { return p.send(ctx, fmt.Sprintf("/%s/part-%d", way, n), length) })
		})
		return []lap{its}, err
	}}
}

// serveBare is that handler. It keeps nothing between rounds but the files of the last.
func serveBare(dir, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, err := filepath.Join(dir, filepath.Base(r.URL.Path)), error(nil)
		if strings.HasPrefix(r.URL.Path, "/direct/") {
			err = keepDirect(path, r.Body, r.ContentLength)
		} else {
			err = keep(path, r.Body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
}

// keep is read, SHA-256, buffered write, fsync.
func keep(path string, body io.Reader) error {
	_ = os.Remove(path) // the last round's
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(f, sum)}, struct{ io.Reader }{body}, make([]byte, 1<<20)); err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// keepDirect is the disk's ceiling: past the page cache and synced, neither hashed nor sealed.
func keepDirect(path string, body io.Reader, size int64) error {
	_ = os.Remove(path) // the last round's
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_DIRECT, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	const block, align = 1 << 20, 4096
	buf := make([]byte, block+align)
	buf = buf[align-int(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))%align):][:block]
	for at := int64(0); at < size; {
		n, err := io.ReadFull(body, buf[:min(block, size-at)])
		if err != nil {
			return err
		}
		if _, err := f.Write(buf[:n]); err != nil { // parts are whole MiB, so every write is aligned
			return err
		}
		at += int64(n)
	}
	return errors.Join(f.Sync(), f.Close())
}
