package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/internal/extract/page"
)

// probes try to get out of a cage. Each takes the argument that the test chose, and has no error when it got through.
var probes = map[string]func(argument string) error{
	"tcp": func(address string) error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	},
	"unix socket": func(path string) error {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
		}
		return err
	},
	"udp": func(address string) error {
		c, err := net.Dial("udp", address)
		if err == nil {
			c.Close()
		}
		return err
	},
	"read":    func(path string) error { _, err := os.ReadFile(path); return err },
	"list":    func(path string) error { _, err := os.ReadDir(path); return err },
	"write":   func(path string) error { return os.WriteFile(path, []byte("out"), 0o600) },
	"execute": func(path string) error { return exec.Command(path).Run() },
	"fork": func(string) error {
		pid, _, failure := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if failure != 0 {
			return failure
		}
		if pid == 0 {
			for {
				syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
		syscall.Wait4(int(pid), nil, 0, nil) // refused in the cage, which says nothing about the fork
		return nil
	},
	"signal a thread": func(pid string) error { n, _ := strconv.Atoi(pid); return unix.Tgkill(n, n, 0) },
	"signal by a file": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		_, err := unix.FcntlInt(0, unix.F_SETOWN, n)
		return err
	},
	"limits": func(string) error {
		var l unix.Rlimit
		return errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &l), unix.Setrlimit(unix.RLIMIT_NOFILE, &l))
	},
	"memory of a process": func(string) error {
		var from, to [1]byte
		_, err := unix.ProcessVMReadv(os.Getpid(), []unix.Iovec{{Base: &to[0], Len: 1}}, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&from)), Len: 1}}, 0)
		return err
	},
	"memory file": func(string) error {
		fd, err := unix.MemfdCreate("probe", 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	},
	"signal": func(pid string) error { n, _ := strconv.Atoi(pid); return syscall.Kill(n, 0) },
	"code": func(string) error {
		m, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err == nil {
			unix.Munmap(m)
		}
		return err
	},
}

// Misbehaving workers, which only this binary has.
func init() {
	for name, probe := range probes {
		purposes["probe "+name] = func(w *worker) error {
			report := "through"
			if err := probe(w.job.Declared); err != nil {
				report = "refused: " + err.Error()
			}
			if err := w.to.send(frameType, typeFrame{Media: "text/plain"}); err != nil {
				return err
			}
			return w.to.emit(page.Page{Text: report})
		}
	}
	begin := func(w *worker, pages int) {
		w.to.send(frameType, typeFrame{Media: "text/plain"})
		w.to.count(pages, false)
	}
	purposes["allocate"] = func(*worker) error {
		var kept [][]byte
		for {
			kept = append(kept, bytes.Repeat([]byte{byte(len(kept))}, 16<<20))
		}
	}
	purposes["loop"] = func(w *worker) error {
		for {
			w.job.Size++
		}
	}
	purposes["hang"] = func(w *worker) error {
		begin(w, 2)
		w.to.page(page.Page{})
		select {}
	}
	purposes["print"] = func(w *worker) error {
		for {
			if _, err := w.to.out.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
				return err
			}
		}
	}
	purposes["print pages"] = func(w *worker) error {
		begin(w, 1)
		for number := 1; ; number++ {
			if err := w.to.send(framePage, pageFrame{Number: number}); err != nil {
				return err
			}
		}
	}
	purposes["read beyond the end"] = func(w *worker) error {
		return w.to.send(frameRead, readFrame{At: w.job.Size - 1, N: 2})
	}
	purposes["say which files are open"] = func(w *worker) error {
		var open []string
		for fd := range 32 {
			var info unix.Stat_t
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				kinds := map[uint32]string{unix.S_IFREG: "file", unix.S_IFDIR: "folder", unix.S_IFSOCK: "socket", unix.S_IFIFO: "pipe", unix.S_IFCHR: "device"}
				if err := unix.Fstat(fd, &info); err != nil {
					return err
				}
				open = append(open, fmt.Sprintf("%d %s", fd, kinds[info.Mode&unix.S_IFMT])) // nothing of these: the runtime's own
			}
		}
		w.to.send(frameType, typeFrame{Media: "text/plain"})
		return w.to.emit(page.Page{Text: strings.Join(open, ", ")})
	}
	purposes["write to standard error"] = func(*worker) error {
		fmt.Fprintln(os.Stderr, "words of the document")
		os.Exit(exitSetup)
		return nil
	}
	purposes["panic"] = func(*worker) error { panic("decoder") }
	purposes["fail"] = func(*worker) error { return errors.New("fail") }
	purposes["refuse in its own words"] = func(*worker) error { return &Refusal{Code: "buy_now"} }
	purposes["ask for the engine forever"] = func(*worker) error { return errNeedPDF }
	purposes["close early"] = func(w *worker) error {
		begin(w, 1)
		os.Stdout.Close()
		select {}
	}
}

func misbehaving(t *testing.T, e *Extractor, purpose, argument string) (*Document, error) {
	t.Helper()
	content := strings.NewReader("content")
	return e.extract(within(t), purpose, argument, content, content.Size(), nil)
}

func TestCageWalls(t *testing.T) {
	t.Parallel()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	dir := t.TempDir()
	unixSocket := filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", unixSocket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	arguments := map[string]string{
		"tcp": tcp.Addr().String(), "udp": "127.0.0.1:9", "unix socket": unixSocket,
		"read": "/etc/passwd", "list": "/", "write": filepath.Join(dir, "out"), "execute": "/bin/true", "signal": strconv.Itoa(os.Getpid()),
		"signal a thread": strconv.Itoa(os.Getpid()), "signal by a file": strconv.Itoa(os.Getpid()),
	}
	for name, probe := range probes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := probe(arguments[name]); err != nil {
				t.Fatalf("the probe does not even work outside the cage: %v", err)
			}
			doc, err := misbehaving(t, extractor(t), "probe "+name, arguments[name])
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(doc.Pages[0].Text, "refused: ") {
				t.Errorf("%s: %s", name, doc.Pages[0].Text)
			}
		})
	}
}

func TestMisbehavingWorkers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		limits     Limits
	}{
		{"allocate", "more memory than it may have", Limits{WorkerMemory: 2 << 30}},
		{"loop", "used more than it may", Limits{WorkerCPU: time.Second}},
		{"print", errFrame.Error(), Limits{}},
		{"print pages", errFrame.Error(), Limits{}},
		{"read beyond the end", errFrame.Error(), Limits{}},
		{"ask for the engine forever", errFrame.Error(), Limits{}},
		{"fail", "could not finish its work", Limits{}},
		{"refuse in its own words", errFrame.Error(), Limits{}},
		{"no such purpose", `could not start: unknown purpose "no such purpose"`, Limits{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc, err := misbehaving(t, extractor(t, func(config *Config) { config.Limits = c.limits }), c.name, "")
			var refusal *Refusal
			if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q and no refusal, got document %v, error %v", c.want, doc, err)
			}
		})
	}
	t.Run("close early", func(t *testing.T) {
		t.Parallel()
		e := extractor(t)
		e.linger = time.Millisecond
		if doc, err := misbehaving(t, e, "close early", ""); err == nil || !strings.Contains(err.Error(), "extraction worker was killed") {
			t.Errorf("want a killed worker, got document %v, error %v", doc, err)
		}
	})
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		_, err := misbehaving(t, extractor(t), "panic", "")
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Code != CodeBroken {
			t.Errorf("want refusal %s, got %v", CodeBroken, err)
		}
	})
}

// TestWorkerFiles starts a worker from a process that has files which would survive an exec.
func TestWorkerFiles(t *testing.T) {
	t.Parallel()
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	for range 3 {
		fd, err := unix.Dup(int(folder.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
	}
	doc, err := misbehaving(t, extractor(t), "say which files are open", "")
	if err != nil {
		t.Fatal(err)
	}
	open := doc.Pages[0].Text
	if !strings.HasPrefix(open, "0 pipe, 1 pipe, 2 device") || regexp.MustCompile(`file|folder|socket|pipe|device`).MatchString(open[len("0 pipe, 1 pipe, 2 device"):]) {
		t.Errorf("open: %s", open)
	}
}

func TestCagedWorkerHasNoSayInTheLog(t *testing.T) {
	t.Parallel()
	_, err := misbehaving(t, extractor(t), "write to standard error", "")
	if err == nil || strings.Contains(err.Error(), "words") {
		t.Errorf("error %v", err)
	}
}

// TestCageMustClose runs a worker whose cage cannot be closed: it must end before it reads its input.
func TestCageMustClose(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(within(t), workerBinary, "worker", "extract", "-purpose=text", "-cpu=1s")
	input, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); output.Close() })
	fmt.Fprint(output, "untouched")
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitCage {
		t.Errorf("want exit status %d, got %v", exitCage, err)
	}
	if stdout.Len() > 0 || !strings.Contains(stderr.String(), "memory and CPU limits must be given") {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
	left := make([]byte, 64)
	if n, _ := input.Read(left); string(left[:n]) != "untouched" {
		t.Errorf("the worker read its input: %q is left", left[:n])
	}
}

// Not parallel: it looks at all processes that this one has started.
func TestCancelEndsEveryProcess(t *testing.T) {
	t.Run("worker", func(t *testing.T) {
		ctx, cancel := context.WithCancel(within(t))
		content := strings.NewReader("content")
		_, err := extractor(t).extract(ctx, "hang", "", content, content.Size(), func(int, int) { cancel() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("want %v, got %v", context.Canceled, err)
		}
		if left := children(t); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("tesseract", func(t *testing.T) {
		ctx, cancel := context.WithCancel(within(t))
		content := asPNG(t, noise(3000, 3000)) // keeps tesseract busy for long
		ended := make(chan error, 1)
		go func() {
			_, err := extractor(t).Extract(ctx, bytes.NewReader(content), int64(len(content)), "image/png", nil)
			ended <- err
		}()
		for running := false; !running && ctx.Err() == nil; {
			for _, name := range children(t) {
				running = running || name == "tesseract"
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("want %v, got %v", context.Canceled, err)
		}
		if left := children(t); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// children are the names of this process's living children.
func children(t *testing.T) (names []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		name, rest, _ := strings.Cut(string(stat), ") ")
		_, name, _ = strings.Cut(name, "(")
		if fields := strings.Fields(rest); fields[1] == strconv.Itoa(os.Getpid()) {
			names = append(names, name)
		}
	}
	return names
}
