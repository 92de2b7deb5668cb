package clienttest

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// Fault makes one request of an operation go wrong. Set one of Status, DropAfter, LoseAnswer, Before.
type Fault struct {
	// Status and Code answer with an error object, before anything is carried out. RetryAfter, in seconds, goes with them.
	Status     int
	Code       string
	Details    map[string]any
	RetryAfter int
	// DropAfter breaks the connection once so many bytes of the body were read; -1 breaks it at once.
	DropAfter int64
	// LoseAnswer carries the request out and breaks the connection instead of answering.
	LoseAnswer bool
	// Before runs before the request is carried out; a test holds or interrupts its client here.
	Before func()
}

// Inject queues faults for an operation: issue, initiate, part, complete, status, withdraw, context, quota, records, receipt, token. Each is used up by one
// request; a zero Fault lets one pass.
func (s *Service) Inject(operation string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[operation] = append(s.faults[operation], faults...)
}

func (s *Service) takeFault(operation string) *Fault {
	queue := s.faults[operation]
	if len(queue) == 0 {
		return nil
	}
	s.faults[operation] = queue[1:]
	return &queue[0]
}

// before says whether the request ends here.
func (f *Fault) before(w http.ResponseWriter, r *http.Request, request string) bool {
	if f.Before != nil {
		f.Before()
	}
	switch {
	case f.DropAfter != 0:
		// What arrived is thrown away, as by a service that is killed in the middle of a part.
		_, _ = io.CopyN(io.Discard, r.Body, max(0, f.DropAfter))
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		_, _ = io.Copy(io.Discard, r.Body)
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		writeError(w, request, &refusal{f.Status, f.Code, "refused by the test", f.Details})
		return true
	}
	return false
}

// Slow is a Before that takes d.
func Slow(d time.Duration) func() { return func() { <-time.After(d) } }
