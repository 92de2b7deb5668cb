package httpapi

import (
	"context"
	"hash/maphash"
	"net/http"

	"github.com/accession/accession/internal/custody"
)

// Turns decide whose request uses processor and database next.
type Turns interface {
	// Take waits for a turn of a credential, which any number tells from others, at an address. It is false where that did not come,
	// or ctx ended.
	Take(ctx context.Context, address string, credential uint64) bool
	giver
}

// giver takes back what it gave to one request.
type giver interface{ Give() }

// mostProbes is how many probes are answered at once without a turn; more of them wait for theirs, as anybody. Nobody has so many
// balancers, and what is not bounded is a way to flood.
const mostProbes = 16

// probes has a place for each probe without a turn.
type probes chan struct{}

func (p probes) enter() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

// Give gives the place back.
func (p probes) Give() { <-p }

// takeTurn waits for the turn of a request. It comes first: what is read of the database to find out who asks is what the first of a
// flood would have everybody wait for.
func (d *door) takeTurn(x *exchange, r *http.Request) error {
	if d.cfg.Turns == nil {
		return nil
	}
	if isProbe(r) && d.probes.enter() {
		x.turns = d.probes
		return nil
	}
	if d.cfg.Turns.Take(r.Context(), x.address, presented(r.Header)) {
		x.turns = d.cfg.Turns
		return nil
	}
	if err := r.Context().Err(); err != nil {
		return err
	}
	return custody.Errorf(custody.CodeUnavailable, "too many requests are waiting for their turn; repeat this one after Retry-After")
}

// giveTurn gives the turn back, if x has it: before anything that neither processor nor database does, such as a body that arrives,
// and, as finish and the first byte of an answer do, at the end.
func (x *exchange) giveTurn() {
	if x.turns != nil {
		x.turns.Give()
		x.turns = nil
	}
}

// keepsTurn tells whether op is answered within the turn of its request. What writes waits for the disk, and is the faster the more
// write together; its slots bound it. So does a context, for its record; and the service's state waits for its scanner.
func (op operation) keepsTurn() bool {
	return op.method == http.MethodGet && op.id != custody.OpAIContext && op.id != custody.OpState
}

var presentedSeed = maphash.MakeSeed()

// presented tells the credentials of requests apart before anybody knows whether they are any good; it is none that could be kept or
// be made to be another's.
func presented(h http.Header) uint64 {
	var sum maphash.Hash
	sum.SetSeed(presentedSeed)
	for _, name := range []string{"X-Api-Key", "Authorization", "Cookie"} {
		for _, value := range h[name] {
			_, _ = sum.WriteString(value) // it never fails
		}
	}
	return sum.Sum64()
}
