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

	"github.com/accession/accession/bench/server"
)

// startTusd starts tusd v2, which hashes, seals and syncs nothing, over a folder of its own.
func startTusd(ctx context.Context, work string) (*process, string, error) {
	program, err := server.Reference(ctx, "scripts/tusd.sh")
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(work, "tusd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", err
	}
	address, err := server.FreeAddress()
	if err != nil {
		return nil, "", err
	}
	host, port, _ := strings.Cut(address, ":")
	p := &process{url: "http://" + address}
	p.cmd = exec.CommandContext(ctx, program, "-host", host, "-port", port, "-upload-dir", dir, "-behind-proxy=false", "-show-greeting=false")
	return p, dir, server.Launch(ctx, p.cmd, func() error {
		resp, err := http.Get(p.url)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

// tusReference is an upload to tusd, a PATCH for each part, and the same until sha256sum has read the stored file.
func (p *process) tusReference(dir, reach string) reference {
	rows := []comparison{{"tusd, which neither hashes nor seals nor syncs", reach}, {"tusd, until sha256sum knows the digest", "≥ 1.5"}}
	return reference{rows, func(ctx context.Context, size, part int64) ([]lap, error) {
		var at string
		stored, err := p.timed(func() error {
			resp, err := p.tus(ctx, "POST", p.url+"/files/", nil, 0, "Upload-Length", strconv.FormatInt(size, 10))
			if err != nil {
				return err
			}
			at = resp.Header.Get("Location")
			return inParts(size, part, func(n int, length int64) error {
				_, err := p.tus(ctx, "PATCH", at, body(length), length, "Upload-Offset", strconv.FormatInt(int64(n-1)*part, 10))
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, filepath.Base(at))
		sum, began := exec.CommandContext(ctx, "sha256sum", path), time.Now()
		if err := sum.Run(); err != nil {
			return nil, fmt.Errorf("sha256sum: %w", err)
		}
		digested := lap{stored.took + time.Since(began), stored.cpu + (sum.ProcessState.UserTime() + sum.ProcessState.SystemTime()).Seconds()}
		return []lap{stored, digested}, errors.Join(os.Remove(path), os.Remove(path+".info"))
	}}
}

func (p *process) tus(ctx context.Context, method, url string, content io.Reader, length int64, header, value string) (*http.Response, error) {
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
