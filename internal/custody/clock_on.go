//go:build misbehaving

package custody

import (
	"os"
	"strings"
	"time"
)

// ClockEnvironment names the variable with a file that says how far the clock of the service is ahead of the machine's: a duration as
// Go writes it, such as 1h or -90s; no file is no difference. It is read at every look at the clock.
const ClockEnvironment = "ACCESSION_CLOCK"

var clockFile = os.Getenv(ClockEnvironment)

// ClockIsAhead is by how much.
func ClockIsAhead() time.Duration {
	if clockFile == "" {
		return 0
	}
	text, err := os.ReadFile(clockFile)
	if os.IsNotExist(err) {
		return 0
	}
	ahead, bad := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil || bad != nil {
		panic("the file of the clock says: " + string(text)) // a test that changes nothing proves nothing
	}
	return ahead
}

// present is the clock of the machine, put forward or back; like a clock that was set, it goes on without its monotonic part.
func present() time.Time { return time.Now().Round(0).Add(ClockIsAhead()) }
