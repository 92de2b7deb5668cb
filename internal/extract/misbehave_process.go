//go:build misbehaving

package extract

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// MisbehaveEnvironment names the variable with a folder that says which worker goes wrong. The file "plan" in it holds "ID KIND N FAULT":
// the N-th worker of that KIND that is started since that ID stands there, counted from 1. A KIND is a purpose, ocr or convert. Every
// start is written to ID.calls, as "KIND N FAULT", with - for no fault. Without a plan nothing goes wrong and nothing is written.
// "refuse" has no worker started at all; the other faults are below. (The documents' own misbehaviours are in misbehave_on.go.)
const MisbehaveEnvironment = "ACCESSION_WORKER_FAULTS"

// disturbances are scripts for a shell that stands in the worker's place; "$0" "$@" is the worker.
var disturbances = map[string]string{
	"exit":    `exit 1`,
	"killed":  `kill -9 $$`,
	"mute":    `exit 0`,
	"silent":  `exec sleep 100000`,
	"garbage": `printf 'no worker has ever said anything like this'`,
	"half":    `printf 'D\000\000'`,
	"nothing": `printf 'E\000\000\000\002{}'`, // it is done, and there was nothing
	"cut":     `"$0" "$@" | dd bs=1 count=40 2>/dev/null; kill -9 0`,
	"lost":    `"$0" "$@"; exit 1`,
	"lingers": `"$0" "$@"; exec sleep 100000`,
}

var starts = struct {
	sync.Mutex
	folder, id string
	counted    map[string]int
}{folder: os.Getenv(MisbehaveEnvironment)}

// disturb puts something else in the place of a worker that is about to be started, where the plan says so.
func (p *process) disturb() error {
	kind := p.cmd.Args[2] // after the program and "worker"
	for _, arg := range p.cmd.Args {
		if purpose, ok := strings.CutPrefix(arg, "-purpose="); ok {
			kind = purpose
		}
	}
	fault := plannedFor(kind)
	script, known := disturbances[fault]
	switch {
	case fault == "refuse":
		return fmt.Errorf("start %s: %w", p.name, errors.New("injected fault"))
	case !known:
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd.Args = append([]string{"sh", "-c", script, program}, p.cmd.Args[1:]...)
	p.cmd.Path = "/bin/sh"
	return nil
}

// plannedFor counts a start and tells what is to go wrong with it, - for nothing.
func plannedFor(kind string) string {
	starts.Lock()
	defer starts.Unlock()
	if starts.folder == "" {
		return "-"
	}
	text, err := os.ReadFile(filepath.Join(starts.folder, "plan"))
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	words := strings.Fields(string(text))
	if err != nil || len(words) != 4 || words[3] != "-" && words[3] != "refuse" && disturbances[words[3]] == "" {
		panic("the plan of faults says: " + string(text)) // a test that goes wrong nowhere proves nothing
	}
	if starts.id != words[0] {
		starts.id, starts.counted = words[0], map[string]int{}
	}
	starts.counted[kind]++
	fault := "-"
	if words[1] == kind && words[2] == fmt.Sprint(starts.counted[kind]) {
		fault = words[3]
	}
	calls, err := os.OpenFile(filepath.Join(starts.folder, starts.id+".calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(calls, kind, starts.counted[kind], fault)
		err = errors.Join(err, calls.Close())
	}
	if err != nil {
		panic(err)
	}
	return fault
}
