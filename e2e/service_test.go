package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/internal/scanner"
	"github.com/accession/accession/internal/storetest/cluster"
)

const adminToken = "e2e-admin-token-of-forty-characters-long"

var (
	binary string // the service under test, built as a release is
	clamd  string // address of the shared clamd
	cache  string // compiled engines, shared by all services of a run
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "accession-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // clamd gives up root's rights
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if cache, err = os.UserCacheDir(); err == nil {
		cache = filepath.Join(cache, "accession")
	} else {
		cache = filepath.Join(dir, "cache")
	}
	if binary, err = build(dir, "accession", plantedTags()...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	shared, err := scanner.StartManaged(context.Background(), scanner.ManagedConfig{
		Dir: filepath.Join(dir, "clamd"), Database: signatures(), Log: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		defer shared.Close()
		err = shared.WaitReady(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clamd is needed for these tests:", err)
		return 1
	}
	clamd = "unix:" + filepath.Join(dir, "clamd", "clamd.sock")
	return cluster.Run(m)
}

// build makes the binary as the release is made, but for the given build tags.
func build(dir, name string, tags ...string) (string, error) {
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-tags", strings.Join(append(tags, "grpcnotrace"), ","), "-o", path, "../cmd/accession") // as a release is
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
}

// The binaries with a build tag, made at first use, once for all tests: armed dies where crashpoint says, misbehaving has
// workers and stores that do what they must not.
var (
	armedBinary       = tagged("crashpoints")
	misbehavingBinary = tagged("misbehaving")
)

func tagged(tag string) func(t testing.TB) string {
	made := sync.OnceValues(func() (string, error) { return build(filepath.Dir(binary), "accession-"+tag, tag) })
	return func(t testing.TB) string {
		t.Helper()
		path, err := made()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func signatures() string {
	path, err := filepath.Abs("../testdata/clamav")
	if err != nil {
		panic(err)
	}
	return path
}

// service is one running `accession serve`.
type service struct {
	t    testing.TB
	data string
	url  string
	http *http.Client // what calls go through
	cmd  *exec.Cmd
	log  *tail
	said *tail         // every answer to a call, headers and body
	done chan struct{} // closed when the process is gone
	err  error         // how it ended
}

// options of a start. The zero value is a service on the shared clamd in a folder of its own.
type options struct {
	data   string // "" makes one
	binary string
	flags  []string
	env    []string
	within func(func()) // runs what starts the process; nil: here
}

// start runs a service and waits until it says that it is ready. It is stopped when the test ends.
func start(t testing.TB, o options) *service {
	t.Helper()
	s := launch(t, o)
	s.awaitReady()
	return s
}

// launch runs a service and returns at once.
func launch(t testing.TB, o options) *service {
	t.Helper()
	if o.data == "" {
		o.data = filepath.Join(t.TempDir(), "data")
	}
	if o.binary == "" {
		o.binary = binary
	}
	s := &service{t: t, data: o.data, http: http.DefaultClient, log: &tail{}, said: &tail{}, done: make(chan struct{})}
	address := freeAddress(t)
	s.url = "http://" + address
	s.cmd = exec.Command(o.binary, append([]string{"serve", "--data", o.data, "--listen", address}, o.flags...)...)
	s.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ACCESSION_CACHE=" + cache,
		"ACCESSION_ADMIN_TOKEN=" + adminToken, "ACCESSION_CLAMD_ADDRESS=" + clamd,
	}, append(append(plantedSettings(), storeSettings(t, o.data)...), o.env...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if o.within == nil {
		err = s.cmd.Start()
	} else {
		o.within(func() { err = s.cmd.Start() })
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("service log:\n%s", s.log)
		}
	})
	return s
}

// awaitReady returns once /readyz answers 200.
func (s *service) awaitReady() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if !s.log.await(ctx, s.done, "accession is ready at") {
		s.t.Fatalf("service is not ready (%v):\n%s", s.err, s.log)
	}
	for { // a check of it may take too long while extraction is made ready on a busy machine
		resp, err := s.http.Get(s.url + "/readyz")
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("readyz: %s: %s, %v", resp.Status, body, err)
		}
	}
}

// kill ends the process as a power cut would, and returns when it is gone.
func (s *service) kill() {
	_ = s.cmd.Process.Kill() // it may be gone already
	<-s.done
}

// stop asks the process to end and returns its exit code.
func (s *service) stop() int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
	<-s.done
	return s.cmd.ProcessState.ExitCode()
}

// cli runs a client command against the service, as token's owner.
func (s *service) cli(token string, args ...string) (stdout, stderr string, exit int) {
	s.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Env = []string{
		"HOME=" + s.t.TempDir(), "ACCESSION_URL=" + s.url, "ACCESSION_TOKEN=" + token, "ACCESSION_ADMIN_TOKEN=" + adminToken,
	}
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// freeAddress is an address that refuses connections, and is the test's alone until that ends: a socket that does not listen keeps the
// system from giving its port to anybody, and leaves it to whoever asks for that port, as a service does that the test starts.
func freeAddress(t testing.TB) string {
	t.Helper()
	kept, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(kept) })
	err = errors.Join(unix.SetsockoptInt(kept, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(kept, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	if err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(kept)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
}

// tail collects what a process prints, and tells when a text was printed.
type tail struct {
	mu      sync.Mutex
	text    bytes.Buffer
	printed chan struct{}
}

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.printed != nil {
		close(b.printed)
		b.printed = nil
	}
	return b.text.Write(p)
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// lines of the log that hold text.
func (b *tail) lines(text string) (found []string) {
	for lines := bufio.NewScanner(strings.NewReader(b.String())); lines.Scan(); {
		if strings.Contains(lines.Text(), text) {
			found = append(found, lines.Text())
		}
	}
	return found
}

// await returns true once text was printed, false when done closes or ctx ends before.
func (b *tail) await(ctx context.Context, done <-chan struct{}, text string) bool {
	for {
		b.mu.Lock()
		if strings.Contains(b.text.String(), text) {
			b.mu.Unlock()
			return true
		}
		if b.printed == nil {
			b.printed = make(chan struct{})
		}
		printed := b.printed
		b.mu.Unlock()
		select {
		case <-printed:
		case <-done:
			return strings.Contains(b.String(), text)
		case <-ctx.Done():
			return false
		}
	}
}
