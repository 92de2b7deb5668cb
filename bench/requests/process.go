package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// ticks of a second, in /proc/PID/stat.
const ticks = 100

// process is a server under measurement.
type process struct{ cmd *exec.Cmd }

// begin starts cmd and reads the first line that it prints, when it is ready.
func (p *process) begin(cmd *exec.Cmd) (line string, out *bufio.Reader, err error) {
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	p.cmd, out = cmd, bufio.NewReader(pipe)
	if line, err = out.ReadString('\n'); err != nil {
		err = fmt.Errorf("%s did not start: %w", cmd.Path, err)
	}
	return line, out, err
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait() // how it ends is not what is measured
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// spent is the processor time of the process in seconds, user and system; of its children, those that ended.
func (p *process) spent() (seconds float64) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	for _, field := range strings.Fields(rest)[11:15] {
		v, _ := strconv.ParseFloat(field, 64) // the kernel wrote it
		seconds += v / ticks
	}
	return seconds
}

// forgetPeak has the kernel count the peak of memory from now on.
func (p *process) forgetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid()), []byte("5"), 0) // else it is the peak since the start
}

// peak is the highest resident memory in MiB, without children.
func (p *process) peak() float64 { return p.memory("VmHWM:") }

func (p *process) memory(line string) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), line)
	kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64) // the kernel wrote it
	return kib / 1024
}
