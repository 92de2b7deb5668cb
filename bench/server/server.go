// Package server starts programs under measurement, stops them, and reads what the kernel accounts for them. Linux only.
package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Start runs cmd, which ends with its context and with this program, until it prints its first line: it is ready then. said is what
// it prints after that. Its standard error goes to the file log, and into the error where it does not start; "" leaves it where
// cmd sends it.
func Start(cmd *exec.Cmd, log string) (line string, said *bufio.Reader, err error) {
	tie(cmd)
	if log != "" {
		f, err := os.Create(log)
		if err != nil {
			return "", nil, err
		}
		defer f.Close()
		cmd.Stderr = f
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	said = bufio.NewReader(out)
	if line, err = said.ReadString('\n'); err == nil {
		return line, said, nil
	}
	Stop(cmd)
	err = fmt.Errorf("%s did not start: %w", cmd.Path, err)
	if log != "" {
		text, _ := os.ReadFile(log)
		err = fmt.Errorf("%w: %s", err, text)
	}
	return "", nil, err
}

// Launch runs cmd, which prints nothing when it is ready, until ready returns no error, a minute at most. cmd ends with ctx, which is
// its own, and with this program.
func Launch(ctx context.Context, cmd *exec.Cmd, ready func() error) error {
	tie(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := ready()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			Stop(cmd)
			return fmt.Errorf("%s did not start: %w", cmd.Path, err)
		}
	}
}

// FreeAddress is HOST:PORT of the loopback interface, for a program that cannot choose one itself.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// tie has cmd end with this program, and asks it to end when its context does, so that it removes what is its own.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
}

// URL is the address in a line that ends with it.
func URL(line string) string { return strings.TrimSpace(line[strings.Index(line, "http"):]) }

// Stop asks a program to end and waits until it has.
func Stop(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait() // how it ends is not what is measured
}

// Memory is a figure of a process alone, in bytes: VmRSS is what is resident now, VmHWM the highest that was.
func Memory(pid int, figure string) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, figure+":"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no %s", figure) // it has ended
}

// settling is how long a program does nothing before it counts as idle.
const settling = 5 * time.Second

// Idle is what is resident of a process that nobody asks anything, in bytes. It takes some seconds.
func Idle(pid int) (int64, error) {
	time.Sleep(settling)
	return Memory(pid, "VmRSS")
}

// ForgetPeak makes VmHWM start again from what is resident now.
func ForgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// ticks of a second, in /proc/PID/stat.
const ticks = 100

// Processor sums the first n of user, system, ended children's user and ended children's system time, in seconds.
func Processor(pid, n int) (seconds float64) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	for _, field := range strings.Fields(rest)[11 : 11+n] {
		v, _ := strconv.ParseFloat(field, 64) // the kernel wrote it
		seconds += v / ticks
	}
	return seconds
}
