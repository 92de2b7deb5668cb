package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a running worker. Its end of life is wait, exactly once.
type process struct {
	name   string // for errors
	ctx    context.Context
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr lines
}

// start runs this binary's worker command in a process group of its own, with next to no environment. The group is killed
// when ctx ends; the worker dies with the service, however that ends.
func (e *Extractor) start(ctx context.Context, name string, args []string) (*process, error) {
	if ctx.Err() != nil {
		return nil, stopped(ctx)
	}
	p := &process{name: name, ctx: ctx, cmd: exec.CommandContext(ctx, e.config.Executable, args...)}
	// GODEBUG: or the runtime keeps files of the control group open.
	p.cmd.Env = []string{"GOTRACEBACK=none", "GOMAXPROCS=2", "GODEBUG=containermaxprocs=0"}
	p.cmd.Dir = "/"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Cancel = p.kill
	p.cmd.WaitDelay = 2 * time.Second
	p.cmd.Stderr = &p.stderr
	if err := p.disturb(); err != nil {
		return nil, err
	}
	// Files of Go never reach a child. Those that the service was started with would.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil && !e.config.AllowMissingWalls {
		return nil, fmt.Errorf("%w: start %s: keep the service's files from it: %w", ErrCageOpen, name, err)
	}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if p.stdout, err = p.cmd.StdoutPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) kill() error {
	err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// source remembers the error of its own side, which io.Copy mixes up with that of the other.
type source struct {
	ctx  context.Context
	r    io.Reader
	left int64
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, s.ctx.Err()
	}
	n, err := s.r.Read(p)
	s.left -= int64(n)
	if err == io.EOF && s.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// end waits for a worker that has nothing more to do, and kills the one that lingers.
func (p *process) end(linger time.Duration) error {
	timer := time.AfterFunc(linger, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	return p.wait()
}

var errBrokeDown = errors.New("broke down, as it does when it needs more memory than it may have")

// wait ends when the process has, and says in its error why it did not end well.
func (p *process) wait() error {
	err := p.cmd.Wait()
	state := p.cmd.ProcessState
	switch {
	case err == nil:
		return nil
	case p.ctx.Err() != nil:
		return stopped(p.ctx)
	case state == nil:
		return fmt.Errorf("%s: %w", p.name, err)
	}
	switch status, _ := state.Sys().(syscall.WaitStatus); {
	case status.Signaled():
		return fmt.Errorf("%w: %s was killed (%s) after %s of CPU time: it used more than it may", ErrStopped, p.name, status.Signal(), state.UserTime()+state.SystemTime())
	case status.ExitStatus() == exitSetup:
		// Written before the worker read anything of the document; later it has no standard error.
		return fmt.Errorf("%s could not start: %s", p.name, p.stderr.last())
	case status.ExitStatus() == exitCage:
		return fmt.Errorf("%w: %s: %s", ErrCageOpen, p.name, p.stderr.last())
	case status.ExitStatus() == exitWork:
		return fmt.Errorf("%s could not finish its work", p.name)
	case status.ExitStatus() == exitCrash:
		return fmt.Errorf("%s %w", p.name, errBrokeDown)
	default:
		return fmt.Errorf("%s ended with exit status %d", p.name, status.ExitStatus())
	}
}

// lines keeps the last KiB of a worker's standard error.
type lines struct{ kept []byte }

func (l *lines) Write(p []byte) (int, error) {
	const keep = 1 << 10
	l.kept = append(l.kept, p[max(0, len(p)-keep):]...)
	l.kept = bytes.Clone(l.kept[max(0, len(l.kept)-keep):])
	return len(p), nil
}

func (l *lines) last() string {
	text := strings.TrimSpace(plain(string(l.kept)))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
