package httpapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// Slots bound how many requests are under way at once.
type Slots interface {
	Enter(class ratelimit.Class, who string) (leave func(), ok bool)
}

// enter takes a slot for a request of op, which finish gives back, unless it has one. Probes take none.
func (d *door) enter(x *exchange, op operation) error {
	x.arrive()
	if d.cfg.Slots == nil || op.unlimited || x.leave != nil {
		return nil
	}
	class, who := op.slotClass(x.caller), "address "+x.address
	switch {
	case x.caller.OrgID != "":
		who = "organization " + x.caller.OrgID
	case x.caller.CredentialID != "":
		who = "credential " + x.caller.CredentialID
	}
	leave, ok := d.cfg.Slots.Enter(class, who)
	if !ok {
		return crowded(class)
	}
	x.leave = leave
	return nil
}

func crowded(class ratelimit.Class) error {
	e := custody.Errorf(custody.CodeUnavailable, "too many requests are under way; repeat this one after Retry-After").With("class", class)
	e.RetryAfter = time.Second
	return e
}

// slotClass is the class that a request of op by c has its slot in. Strangers read in one of their own: what they hold is refused to
// nobody who has a credential.
func (op operation) slotClass(c custody.Caller) ratelimit.Class {
	class := op.rateClass()
	switch {
	case c.CredentialID != "" || class == ratelimit.Token || class == ratelimit.Sandbox:
		return class
	case op.ownPages:
		return ratelimit.Token // with signing in
	}
	return ratelimit.Stranger
}

// entersLate tells whether anybody may send op a body. Such requests get their slot when it is in: whoever lets a body trickle would
// hold the slot for as long.
func (op operation) entersLate() bool {
	return op.public && op.class != ratelimit.Sandbox && op.method == http.MethodPost
}

// mostArriving is how many bodies of strangers may be on their way from one address.
const mostArriving = 32

// arrivals counts them. Together they are bounded by the connections alone: a bound that strangers share is one that they can use up.
type arrivals struct {
	mu sync.Mutex
	of map[string]int // by address
}

// await counts a body that is awaited from a stranger, until x.arrive.
func (a *arrivals) await(x *exchange) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[x.address] >= mostArriving {
		return crowded(ratelimit.Stranger)
	}
	a.of[x.address]++
	x.arrived = func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.of[x.address]--; a.of[x.address] == 0 {
			delete(a.of, x.address)
		}
	}
	return nil
}

// arrive notes that the body is in, or will not be read.
func (x *exchange) arrive() {
	if x.arrived != nil {
		x.arrived()
		x.arrived = nil
	}
}
