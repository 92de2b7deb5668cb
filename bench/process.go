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
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accession/accession/bench/server"
)

const adminToken = "bench-admin-token-that-is-long-enough"

// process is a server under measurement.
type process struct {
	cmd   *exec.Cmd
	url   string
	token string
	part  int64 // bytes
}

func build(ctx context.Context, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/accession")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

func startService(ctx context.Context, binary, work string, part int64) (*process, error) {
	data := filepath.Join(work, "data-"+strconv.FormatInt(part, 10))
	cmd := exec.CommandContext(ctx, binary, "serve", "--data", data, "--listen", "127.0.0.1:0", "--part-size-bytes", strconv.FormatInt(part, 10))
	cmd.Env = append(os.Environ(), "ACCESSION_ADMIN_TOKEN="+adminToken, "ACCESSION_CLAMD_ADDRESS=unix:"+filepath.Join(work, "no-clamd"))
	p, err := start(cmd)
	if err != nil {
		return nil, err
	}
	p.part = part
	var issued struct{ Token string }
	err = p.call(ctx, "POST", "/admin/tenant-keys/issue", adminToken, map[string]any{"org_id": "bench", "role": "solution_company_upload"}, &issued)
	p.token = issued.Token
	return p, err
}

func startBare(ctx context.Context, work string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(work, "bare")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return start(exec.CommandContext(ctx, self, "bare", dir, "127.0.0.1:0"))
}

// start runs cmd and reads the address it prints when it is ready.
func start(cmd *exec.Cmd) (*process, error) {
	line, _, err := server.Start(cmd, "")
	if err != nil {
		return nil, err
	}
	return &process{cmd: cmd, url: server.URL(line)}, nil
}

// launch runs cmd, which does not print its address, until it answers there. ctx bounds the wait.
func launch(ctx context.Context, cmd *exec.Cmd, url string) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, url: url}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get(url)
		if err == nil {
			return p, resp.Body.Close()
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			p.stop()
			return nil, fmt.Errorf("%s did not start: %w", cmd.Path, err)
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (p *process) stop() {
	server.Stop(p.cmd)
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

// sent is one upload, all parts accepted.
type sent struct {
	id    string
	size  int64
	parts int
	took  time.Duration // from the first part's first byte to the last part's answer
}

func (p *process) upload(ctx context.Context, size, part int64) (sent, error) {
	u := sent{size: size}
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
	began := time.Now()
	for at := int64(0); at < size; at += part {
		u.parts++
		path := fmt.Sprintf("/api/v1/organizations/bench/partner-uploads/%s/parts/%d", u.id, u.parts)
		length := min(part, size-at)
		if err := p.send(ctx, path, length); err != nil {
			return u, err
		}
	}
	u.took = time.Since(began)
	return u, nil
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

func (p *process) complete(ctx context.Context, u sent) (time.Duration, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, body(u.size)); err != nil { // parts are multiples of the block, so the content repeats as one
		return 0, err
	}
	parts := make([]map[string]any, u.parts)
	for i := range parts {
		parts[i] = map[string]any{"part_number": i + 1}
	}
	began := time.Now()
	err := p.call(ctx, "POST", "/api/v1/organizations/bench/partner-uploads/complete", p.token, map[string]any{
		"upload_id": u.id, "parts": parts, "client_file_sha256": hex.EncodeToString(sum.Sum(nil)),
	}, nil)
	return time.Since(began), err
}

func (p *process) withdraw(ctx context.Context, id string) error {
	return p.call(ctx, "POST", "/api/v1/organizations/bench/partner-uploads/"+id+"/withdraw", p.token, map[string]any{"reason": "bench"}, nil)
}

// put sends the same bytes in the same parts to the bare handler, whose work folder chooses: "hash", or "direct".
func (p *process) put(ctx context.Context, folder string, size, part int64) (time.Duration, error) {
	began := time.Now()
	for at := int64(0); at < size; at += part {
		if err := p.send(ctx, fmt.Sprintf("/%s/part-%d", folder, at/part), min(part, size-at)); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
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

// resident is the memory of the process in bytes, workers not included.
func (p *process) resident() (int64, error) {
	return server.Memory(p.cmd.Process.Pid, "VmRSS")
}

// watch samples resident until the returned function is called; that returns the highest.
func (p *process) watch() func() int64 {
	stop, result := make(chan struct{}), make(chan int64)
	go func() {
		var high int64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			if now, err := p.resident(); err == nil {
				high = max(high, now)
			}
			select {
			case <-tick.C:
			case <-stop:
				result <- high
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-result
	}
}

// serveBare is the reference: read, SHA-256, buffered write, fsync, answer. It keeps nothing between rounds.
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
