package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

const adminToken = "bench-admin-token-that-is-long-enough"

// process is a server under measurement.
type process struct {
	cmd   *exec.Cmd
	url   string
	token string
	part  int64    // bytes
	store *s3Store // where its bytes are; nil: on the disk
}

// service starts the service with parts of so many bytes, its bytes on the disk or in store, for as long as use takes.
func (b *bench) service(ctx context.Context, part int64, store *s3Store, use func(*process) error) (err error) {
	data, err := os.MkdirTemp(b.work, "data-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	cmd := exec.CommandContext(ctx, b.binary, "serve", "--data", data, "--listen", "127.0.0.1:0", "--part-size-bytes", strconv.FormatInt(part, 10), "--rate-limits", "off", "--quota-bytes", strconv.Itoa(1<<40))
	cmd.Env = append(os.Environ(), "ACCESSION_ADMIN_TOKEN="+adminToken, "ACCESSION_CLAMD_ADDRESS=unix:"+filepath.Join(b.work, "no-clamd"))
	if store != nil {
		cmd.Env = append(cmd.Env, store.Env(store.Address)...)
	}
	p, err := start(cmd, data+".log")
	if err != nil {
		return err
	}
	defer p.stop()
	p.part, p.store = part, store
	var issued struct{ Token string }
	if err := p.call(ctx, "POST", "/admin/tenant-keys/issue", adminToken, map[string]any{"org_id": "bench", "role": "solution_company_upload"}, &issued); err != nil {
		return err
	}
	p.token = issued.Token
	return use(p)
}

// start runs cmd, whose errors go to the file log, and reads the address it prints when it is ready.
func start(cmd *exec.Cmd, log string) (*process, error) {
	line, _, err := server.Start(cmd, log)
	if err != nil {
		return nil, err
	}
	return &process{cmd: cmd, url: server.URL(line)}, nil
}

func (p *process) stop() { server.Stop(p.cmd) }

// peak is the highest resident memory of the process alone, in bytes.
func (p *process) peak() (int64, error) { return server.Memory(p.cmd.Process.Pid, "VmHWM") }

// spent is the processor time of the process and of the store below it, in seconds.
func (p *process) spent() float64 {
	seconds := server.Processor(p.cmd.Process.Pid, 4)
	if p.store != nil {
		seconds += server.Processor(p.store.Cmd.Process.Pid, 4)
	}
	return seconds
}

// timed is what the process needs for work.
func (p *process) timed(work func() error) (lap, error) {
	before, began := p.spent(), time.Now()
	err := work()
	return lap{time.Since(began), p.spent() - before}, err
}

// content is an endless repetition of one random block: incompressible, and cheap to make.
type content struct {
	block []byte
	at    int
}

var random = func() []byte {
	b := make([]byte, 1<<20)
	rand.Read(b)
	return b
}()

func (c *content) Read(p []byte) (int, error) {
	n := copy(p, c.block[c.at:])
	c.at = (c.at + n) % len(c.block)
	return n, nil
}

func body(size int64) io.Reader { return io.LimitReader(&content{block: random}, size) }

// digest is that of an upload: its parts are multiples of the block, so the content repeats as one.
func digest(size int64) string {
	sum := sha256.New()
	_, _ = io.Copy(sum, body(size)) // in memory
	return hex.EncodeToString(sum.Sum(nil))
}

// sent is an upload whose parts are all accepted.
type sent struct {
	id    string
	parts int
}

func (p *process) upload(ctx context.Context, size int64) (u sent, err error) {
	var reserved struct {
		UploadID string `json:"upload_id"`
	}
	hash := strings.Repeat("0", 64)
	if err := p.call(ctx, "POST", "/api/v1/organizations/bench/partner-uploads/initiate", p.token, map[string]any{
		"filename": "bench.bin", "content_type": "application/octet-stream", "size_bytes": size,
		"consent": map[string]any{
			"accepted": true, "beta_agreement_version": "1", "ai_readable_use_consent_version": "1", "text_hash_sha256": hash,
			"consenting_user_id": "bench", "consenting_user_email": "bench@example.com", "accepted_at": time.Now().UTC().Format(time.RFC3339),
		},
	}, &reserved); err != nil {
		return u, err
	}
	u.id = reserved.UploadID
	err = inParts(size, p.part, func(n int, length int64) error {
		u.parts = n
		return p.send(ctx, fmt.Sprintf("/api/v1/organizations/bench/partner-uploads/%s/parts/%d", u.id, n), length)
	})
	return u, err
}

// inParts calls send for each part, from 1 on.
func inParts(size, part int64, send func(n int, length int64) error) error {
	for at := int64(0); at < size; at += part {
		if err := send(int(at/part)+1, min(part, size-at)); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) send(ctx context.Context, path string, length int64) error {
	req, err := http.NewRequestWithContext(ctx, "PUT", p.url+path, body(length))
	if err != nil {
		return err
	}
	req.ContentLength = length
	req.Header.Set("Content-Type", "application/octet-stream")
	return p.do(req, p.token, nil)
}

func (p *process) complete(ctx context.Context, u sent, sha256 string) (time.Duration, error) {
	parts := make([]map[string]any, u.parts)
	for i := range parts {
		parts[i] = map[string]any{"part_number": i + 1}
	}
	began := time.Now()
	err := p.call(ctx, "POST", "/api/v1/organizations/bench/partner-uploads/complete", p.token, map[string]any{
		"upload_id": u.id, "parts": parts, "client_file_sha256": sha256,
	}, nil)
	return time.Since(began), err
}

func (p *process) withdraw(ctx context.Context, id string) error {
	return p.call(ctx, "POST", "/api/v1/organizations/bench/partner-uploads/"+id+"/withdraw", p.token, map[string]any{"reason": "bench"}, nil)
}

func (p *process) call(ctx context.Context, method, path, token string, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return p.do(req, token, out)
}

func (p *process) do(req *http.Request, token string, out any) error {
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Idempotency-Key", rand.Text())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", req.Method, req.URL.Path, resp.Status, answer)
	}
	if out == nil {
		return nil
	}
	var envelope struct{ Data json.RawMessage }
	return errors.Join(json.Unmarshal(answer, &envelope), json.Unmarshal(envelope.Data, out))
}
