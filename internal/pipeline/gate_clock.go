package pipeline

import (
	"sync"
	"time"

	"github.com/accession/accession/internal/custody"
)

// gateClocks measure how long gates run. A clock that is put forward must not take a gate's time away: what this process has seen of a
// gate it measures by the clock that nobody sets. Only what was before, in another process, is told by the times in the rows.
type gateClocks struct {
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
)

// ran is how long g has been running since its first start.
func (c *gateClocks) ran(uploadID string, g *custody.GateResult) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.seen[uploadID]
	if !ok || s.gate != g.Name || !s.startedAt.Equal(g.StartedAt) {
		if len(c.seen) >= max(manyStarts, c.scanAt) {
			for id, old := range c.seen {
				if time.Since(old.met) > oldStart {
					delete(c.seen, id)
				}
			}
			c.scanAt = 2 * len(c.seen)
		}
		s = gateStart{g.Name, g.StartedAt, time.Now(), max(0, custody.Now().Sub(g.StartedAt))}
		c.seen[uploadID] = s
	}
	return s.before + time.Since(s.met)
}

// forget an upload that leaves the gates, or goes on elsewhere.
func (c *gateClocks) forget(uploadID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, uploadID)
}
