package httpapi

import (
	"io"
	"net/http"
	"time"
)

// net/http holds an answer back until the body of its request is in, if that is short, so that the connection can be used again. A
// sender that stalls would hold its refusal for as long as a part may pause. So the door looks for the rest itself, and no longer
// than graceTime: then it answers at once, and the connection ends.
const (
	graceTime  = 250 * time.Millisecond
	graceBytes = 256 << 10 // what net/http would read
)

// settle comes before the first byte of an answer.
func (x *exchange) settle(h http.Header, r *http.Request) {
	body := x.received
	if body == nil || body.whole() || r.ProtoMajor != 1 {
		return
	}
	waits := body.n == 0 && r.Header.Get("Expect") != "" // for our word: reading would ask for the body
	if !waits && r.ContentLength-body.n <= graceBytes {
		_ = x.control.SetReadDeadline(time.Now().Add(graceTime))
		_, _ = io.CopyN(io.Discard, body, graceBytes) // what is wrong with it changes no answer
		if body.whole() {
			_ = x.control.SetReadDeadline(time.Time{})
			return
		}
	}
	h.Set("Connection", "close")
	_ = x.control.SetReadDeadline(time.Now().Add(lingering)) // for what net/http reads after the answer
}
