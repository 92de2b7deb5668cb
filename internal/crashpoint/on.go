//go:build crashpoints

package crashpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Environment names the variable that says at which hit the process ends.
const Environment = "ACCESSION_CRASH_AT"

var crash = arm()

type trap struct {
	mu   sync.Mutex
	at   int    // 0 counts only
	name string // at counts from its first hit on
	hits int
}

func arm() *trap {
	text, ok := os.LookupEnv(Environment)
	if !ok {
		return nil
	}
	at, err := strconv.Atoi(text)
	switch {
	case err != nil && strings.Contains(text, ": "):
		name, more, _ := strings.Cut(text, "+")
		at, _ := strconv.Atoi(more)
		return &trap{at: at + 1, name: name}
	case err != nil || at < 0:
		fmt.Fprintf(os.Stderr, "%s must be a whole number from 0, or the name of a point\n", Environment)
		os.Exit(2) // a test that crashes nowhere would prove nothing
	}
	return &trap{at: at}
}

// Hit marks a place between two durable writes; name says which, "room: place". Safe for concurrent use: hits have one order.
func Hit(name string) {
	if crash == nil {
		return
	}
	crash.mu.Lock() // held to the end: no other write passes a point once the process is to die
	defer crash.mu.Unlock()
	if crash.name != "" && crash.hits == 0 && name != crash.name {
		return
	}
	crash.hits++
	if crash.at != 0 && crash.hits != crash.at {
		return
	}
	fmt.Fprintf(os.Stderr, "crashpoint %d %s\n", crash.hits, name)
	if crash.at == 0 {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // it cannot fail on oneself
	select {}
}
