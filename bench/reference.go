package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reference is what an upload is measured beside. send takes the same bytes in the same parts and tells how long that took.
type reference struct {
	name string
	send func(ctx context.Context, size, part int64) (time.Duration, error)
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

// startTusd starts tusd v2, which hashes, seals and syncs nothing, over a folder of its own.
func startTusd(ctx context.Context, program, work string) (*process, string, error) {
	dir := filepath.Join(work, "tusd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	host, port, _ := strings.Cut(address, ":")
	cmd := exec.CommandContext(ctx, program, "-host", host, "-port", port, "-upload-dir", dir, "-behind-proxy=false", "-show-greeting=false")
	p, err := launch(ctx, cmd, "http://"+address)
	return p, dir, err
}

// tus sends one upload, a PATCH for each part. With digest the time until sha256sum has read the stored file counts as well.
func (p *process) tus(ctx context.Context, dir string, size, part int64, digest bool) (took time.Duration, err error) {
	began := time.Now()
	resp, err := p.tusCall(ctx, "POST", p.url+"/files/", nil, 0, "Upload-Length", strconv.FormatInt(size, 10))
	if err != nil {
		return 0, err
	}
	at := resp.Header.Get("Location")
	for sent := int64(0); sent < size; sent += part {
		length := min(part, size-sent)
		if _, err := p.tusCall(ctx, "PATCH", at, body(length), length, "Upload-Offset", strconv.FormatInt(sent, 10)); err != nil {
			return 0, err
		}
	}
	path := filepath.Join(dir, filepath.Base(at))
	if digest {
		if err := exec.CommandContext(ctx, "sha256sum", path).Run(); err != nil {
			return 0, fmt.Errorf("sha256sum: %w", err)
		}
	}
	took = time.Since(began)
	return took, errors.Join(os.Remove(path), os.Remove(path+".info"))
}

func (p *process) tusCall(ctx context.Context, method, url string, content io.Reader, length int64, header, value string) (*http.Response, error) {
	if content == nil {
		content = bytes.NewReader(nil)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return nil, err
	}
	req.ContentLength = length
	req.Header.Set("Tus-Resumable", "1.0.0")
	req.Header.Set(header, value)
	if method == "PATCH" {
		req.Header.Set("Content-Type", "application/offset+octet-stream")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("tusd: %s: %s: %s", method, resp.Status, answer)
	}
	return resp, nil
}
