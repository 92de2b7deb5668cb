package main

import (
	"bufio"
	"os/exec"

	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/bench/table"
)

// process is a server under measurement.
type process struct{ cmd *exec.Cmd }

// begin starts cmd and reads the first line that it prints, when it is ready. log is a file for its errors, or "".
func (p *process) begin(cmd *exec.Cmd, log string) (line string, said *bufio.Reader, err error) {
	p.cmd = cmd
	return server.Start(cmd, log)
}

func (p *process) stop() { server.Stop(p.cmd) }

func (p *process) pid() int { return p.cmd.Process.Pid }

// spent is the processor time of the process in seconds, user and system; of its children, those that ended.
func (p *process) spent() float64 { return server.Processor(p.pid(), 4) }

// forgetPeak has the kernel count the peak of memory from now on.
func (p *process) forgetPeak() { _ = server.ForgetPeak(p.pid()) } // else it is the peak since the start

// peak is the highest resident memory, without children; empty where it cannot be read.
func (p *process) peak() string {
	bytes, err := server.Memory(p.pid(), "VmHWM")
	if err != nil {
		return ""
	}
	return table.MiB(bytes)
}
