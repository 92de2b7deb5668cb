// Command load offers the service more than it can take, and looks whether it turns the rest away well. `go run ./bench/load`, on
// Linux, with clamd. docs/reliability.md is made of it.
//
//	flood   ten times what it can take of each kind of request, without and with the default rate limits
//	slow    hundreds of senders whose bodies trickle, and hundreds of readers that read nothing, beside an ordinary client
//	fair    one organization floods, another asks as always
//	memory  floods in a control group with -memory MiB (only where that is given): what the kernel ends, and what goes on
//
// `go run ./bench/load fair` does one of them alone. The service with its clamd has one half of the processors, the clients the
// other, so that they compete for nothing else than the service. It ends with 1 where anything but a time is wrong.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "clients" {
		fail(serveFlood())
		return
	}
	b := bench{}
	flag.DurationVar(&b.length, "time", time.Minute, "length of each flood")
	flag.IntVar(&b.connections, "connections", 2000, "connections of a flood")
	flag.Float64Var(&b.factor, "factor", 10, "how many times what the service can take is offered")
	flag.IntVar(&b.slow, "slow", 300, "slow senders, and as many slow readers")
	flag.Int64Var(&b.memory, "memory", 0, "MiB that service and clamd may have together in a flood of their own; 0: none")
	dir := flag.String("dir", os.TempDir(), "where to write")
	flag.Parse()
	b.pin()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work, err := os.MkdirTemp(*dir, "accession-load-")
	fail(err)
	b.work, b.binary = work, filepath.Join(work, "accession")
	err = b.run(ctx, flag.Args())
	fail(errors.Join(err, os.RemoveAll(work)))
	b.report()
	if len(b.wrong) > 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	work, binary      string
	serverSide        []string // a command that keeps the service to its processors
	length            time.Duration
	connections, slow int
	factor            float64
	memory            int64

	can   map[string]float64 // rounds a second that the service takes, by kind
	rows  [][]string
	wrong []string
}

// pin leaves one half of the processors to the service. This process runs itself again on the other.
func (b *bench) pin() {
	const mark = "ACCESSION_LOAD_SERVER_SIDE"
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return
	}
	if side := os.Getenv(mark); side != "" {
		b.serverSide = []string{taskset, "-c", side}
		return
	}
	n := runtime.NumCPU()
	if n < 2 {
		return
	}
	env := append(os.Environ(), fmt.Sprintf("%s=0-%d", mark, n/2-1))
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(taskset, append([]string{taskset, "-c", fmt.Sprintf("%d-%d", n/2, n-1), self}, os.Args[1:]...), env)
	}
	fail(err)
}

func (b *bench) run(ctx context.Context, which []string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", b.binary, "./cmd/accession")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	wants := func(part string) bool { return len(which) == 0 || slices.Contains(which, part) }
	for _, limits := range []string{"off", ""} { // "": the defaults
		if b.can != nil && !wants("flood") && !wants("fair") && !wants("slow") {
			break // it is known what the service can take
		}
		s, err := b.start(ctx, "limits-"+name(limits), "", "--rate-limits", limits)
		if err != nil {
			return err
		}
		err = b.against(ctx, s, limits, wants)
		if !s.alive() {
			b.blame("the service ended: %s", s.cmd.ProcessState)
		}
		s.stop()
		if err != nil {
			return err
		}
	}
	if b.memory > 0 && wants("memory") {
		return b.inCage(ctx)
	}
	return nil
}

func name(limits string) string {
	if limits == "" {
		return "default limits"
	}
	return "limits " + limits
}

// against does what is measured of one service.
func (b *bench) against(ctx context.Context, s *service, limits string, wants func(string) bool) error {
	var parties []party
	for n := range 8 {
		p, err := s.party(ctx, fmt.Sprintf("127.0.1.%d", n+1))
		if err != nil {
			return err
		}
		parties = append(parties, p)
	}
	ordinary, err := s.party(ctx, "127.0.0.9")
	if err != nil {
		return err
	}
	if b.can == nil {
		b.can = map[string]float64{}
		for _, kind := range kinds {
			o, err := b.clients(ctx, flood{s.address(), kind, parties, 16, 0, 5 * time.Second})
			if err != nil {
				return err
			}
			b.can[kind] = o.rate()
			fmt.Printf("%s: takes %.0f a second from 16 clients, p50 %.1f ms, p99 %.1f ms\n", kind, o.rate(), o.P50, o.P99)
			b.look("16 clients, "+kind, o)
		}
	}
	if wants("flood") {
		for _, kind := range kinds {
			if err := b.flooded(ctx, s, name(limits)+", "+kind, kind, parties, ordinary, false); err != nil {
				return err
			}
		}
	}
	if wants("fair") {
		one := parties[:1]
		for n := range 3 {
			p, err := s.also(ctx, parties[0], fmt.Sprintf("127.0.2.%d", n+1))
			if err != nil {
				return err
			}
			one = append(one[:len(one):len(one)], p)
		}
		for _, kind := range []string{"status", "upload", "text"} {
			if err := b.flooded(ctx, s, name(limits)+", one organization, "+kind, kind, one, ordinary, true); err != nil {
				return err
			}
		}
	}
	if wants("slow") {
		return b.crept(ctx, s, name(limits), parties[0], ordinary)
	}
	return nil
}

// clients runs a flood in a process that has less of the processor than this one's ordinary client.
func (b *bench) clients(ctx context.Context, f flood) (o outcome, err error) {
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	told, err := json.Marshal(f)
	if err != nil {
		return o, err
	}
	cmd := exec.CommandContext(ctx, "nice", "-n", "10", self, "clients")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(told), os.Stderr
	said, err := cmd.Output()
	if err != nil {
		return o, fmt.Errorf("the clients: %w", err)
	}
	return o, json.Unmarshal(said, &o)
}

// flooded offers b.factor times what the service takes, and notes what became of it and of an ordinary client beside it. Where the
// flood is one organization's, nothing that the client asks may be refused.
func (b *bench) flooded(ctx context.Context, s *service, what, kind string, parties []party, ordinary party, alone bool) error {
	p := s.probe(ordinary)
	before, err := p.during(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	peak := s.watch()
	began := time.Now()
	o, err := b.clients(ctx, flood{s.address(), kind, parties, b.connections, b.factor * b.can[kind], b.length})
	ended := time.Now()
	memory, files := peak()
	if err != nil {
		return err
	}
	beside := p.between(began.Add(time.Second), ended)
	again, recovered := p.recovered(ctx, ended, before)
	t := p.end()
	b.look(what, o)
	b.look(what+", the ordinary client", outcome{Wrong: t.wrong})
	refused := t.shed[429] + t.shed[503]
	if alone && refused > 0 {
		b.blame("%s: %d requests of another organization were refused", what, refused)
	}
	if !recovered {
		b.blame("%s: the service did not recover in a minute", what)
	}
	if more := memory - s.idleMemory; more > 1<<30 {
		b.blame("%s: %d MiB more memory", what, more>>20)
	}
	if left := s.files() - s.idleFiles; left > 64 {
		b.blame("%s: %d file descriptors are left", what, left)
	}
	b.row(what, fmt.Sprintf("%.0f of %.0f", float64(o.Sent)/o.Took, b.factor*b.can[kind]), fmt.Sprintf("%.0f", o.rate()), fmt.Sprintf("%.0f / %.0f", o.P50, o.P99),
		fmt.Sprint(o.Shed[429]), fmt.Sprint(o.Shed[503]), fmt.Sprint(sum(o.Wrong)), fmt.Sprintf("+%d MiB", (memory-s.idleMemory)>>20), fmt.Sprint(files),
		ratio(before, beside), fmt.Sprint(refused), fmt.Sprintf("%.1f s", again.Seconds()))
	return nil
}

func ratio(before, beside times) string {
	return fmt.Sprintf("%.1f / %.1f to %.1f / %.1f, × %.1f / %.1f", before.p50, before.p99, beside.p50, beside.p99, beside.p50/before.p50, beside.p99/before.p99)
}

func sum(counts map[string]int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

// look blames what is neither an answer nor a refusal.
func (b *bench) look(what string, o outcome) {
	for wrong, n := range o.Wrong {
		b.blame("%s: %d × %s", what, n, wrong)
	}
}

func (b *bench) blame(format string, a ...any) {
	b.wrong = append(b.wrong, fmt.Sprintf(format, a...))
	fmt.Println("WRONG:", b.wrong[len(b.wrong)-1])
}

var columns = []string{"load", "sent/s", "accepted/s", "p50 / p99 ms", "429", "503", "other", "memory", "files", "ordinary client's p50 / p99 ms", "refused", "normal after"}

func (b *bench) row(cells ...string) {
	b.rows = append(b.rows, cells)
	fmt.Println(strings.Join(cells, " | "))
}

func (b *bench) report() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\n"+strings.Join(columns, "\t"))
	for _, r := range b.rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	_ = w.Flush() // to standard output
	if len(b.wrong) == 0 {
		fmt.Println("\nevery answer was accepted or turned away with Retry-After; memory and descriptors stayed bounded; the service recovered")
	}
	for _, wrong := range b.wrong {
		fmt.Println("WRONG:", wrong)
	}
}
