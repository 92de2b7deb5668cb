package httpapi

import (
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// Slots bound how many requests are under way at once.
type Slots interface {
	Enter(class ratelimit.Class, who string) (leave func(), ok bool)
}

// enter takes a slot for a request of op, which finish gives back. Probes take none.
func (d *door) enter(x *exchange, op operation) error {
	if d.cfg.Slots == nil || op.unlimited || x.leave != nil {
		return nil
	}
	who := "address " + x.address
	switch {
	case x.caller.OrgID != "":
		who = "organization " + x.caller.OrgID
	case x.caller.CredentialID != "":
		who = "credential " + x.caller.CredentialID
	}
	leave, ok := d.cfg.Slots.Enter(op.rateClass(), who)
	if !ok {
		e := custody.Errorf(custody.CodeUnavailable, "too many requests are under way; repeat this one after Retry-After").With("class", op.rateClass())
		e.RetryAfter = time.Second
		return e
	}
	x.leave = leave
	return nil
}
