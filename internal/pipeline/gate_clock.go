package pipeline

import (
	"sync"
	"time"

	"github.com/accession/accession/internal/custody"
)

// gateClocks measure how long gates run. A clock that is put forward must not take a gate's time away: what this process has seen of a
// gate it measures by the clock that nobody sets. Only what was before, in another process, is told by the times in the rows, and leaves
// a gate that is older than this process the time of one attempt: nobody tried it while no process ran, or the clock is wrong.
type gateClocks struct {
	began  time.Time // this process, by the clock of the rows
	mu     sync.Mutex
	scanAt int                  // how many there must be to look for old ones
	seen   map[string]gateStart // by upload id: one gate of an upload runs at a time
}

type gateStart struct {
	gate      custody.GateName
	startedAt time.Time     // as the row says
	met       time.Time     // with its monotonic part
	before    time.Duration // that it had run when it was met
}

const (
	manyStarts = 4096           // more than are under way in one process: some have moved to another
	oldStart   = 24 * time.Hour // longer than the deadline of a gate

	// mostUntold is how many attempts in a row may have ended without a word, each with its process, for the gate to get another past its
	// deadline: a document that ends every process must come to an end itself.
	mostUntold = 3
)

// ran is how long the gate of result has been running since its first start, as far as that counts.
func (c *gateClocks) ran(claim custody.Claim, gate custody.Gate, result *custody.GateResult) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.seen[claim.Upload.ID]
	if !ok || s.gate != gate.Name || !s.startedAt.Equal(result.StartedAt) {
		if len(c.seen) >= max(manyStarts, c.scanAt) {
			for id, old := range c.seen {
				if time.Since(old.met) > oldStart {
					delete(c.seen, id)
				}
			}
			c.scanAt = 2 * len(c.seen)
		}
		s = gateStart{gate.Name, result.StartedAt, time.Now(), max(0, custody.Now().Sub(result.StartedAt))}
		if result.StartedAt.Before(c.began) && untold(claim, result) <= mostUntold {
			s.before = min(s.before, max(0, gate.Deadline-gate.Attempt))
		}
		c.seen[claim.Upload.ID] = s
	}
	return s.before + time.Since(s.met)
}

// untold is how many attempts before this one have left nothing in the row.
func untold(claim custody.Claim, result *custody.GateResult) int {
	told, _ := result.Detail["attempts"].(float64) // as JSON has it
	return claim.Attempt - int(told) - 1
}

// forget an upload that leaves the gates, or goes on elsewhere.
func (c *gateClocks) forget(uploadID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, uploadID)
}
