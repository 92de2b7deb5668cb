package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// MCP is another protocol behind this door: it has the door's ids, limits and authentication, and forms of its own.
// (Section 5, rule 6.)
type MCP interface {
	// Answer answers one message, whose body is read. refused says why the credential that was sent is no good; nil where it is,
	// or where none was sent. It returns the code of a refusal.
	Answer(w http.ResponseWriter, r *http.Request, c custody.Caller, refused *custody.Error) custody.Code
	// Card describes the server to those who have not connected yet. (SEP-2127.)
	Card() json.RawMessage
}

// maxMessageBytes of an MCP message: names of tools and documents, and ids.
const maxMessageBytes = 256 << 10

// mcpPath is where the MCP server is mounted: the path of the URL that clients know it by.
func (c Config) mcpPath() string {
	u, err := url.Parse(c.MCPURL)
	if err != nil {
		return ""
	}
	return u.EscapedPath()
}

// agents mounts the MCP server. JSON-RPC is no operation of the contract: the endpoint describes itself, in server/discover and in
// its card.
type agents struct{}

func (agents) mount(d *door) {
	if d.cfg.MCP == nil {
		return
	}
	op := operation{name: "callMCP", method: http.MethodPost, path: d.cfg.mcpPath(), class: ratelimit.Read, public: true}
	d.mux.HandleFunc(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		d.reached(x, op.name)
		var refused *custody.Error
		if err := d.authenticate(x, r); err != nil && (!errors.As(err, &refused) || refused.Code.HTTPStatus() >= 500) {
			d.fail(w, r, err)
			return
		}
		if err := d.allowCaller(w, r, x, op); err != nil {
			d.fail(w, r, err)
			return
		}
		x.giveTurn()
		body, err := d.readMessage(x, r)
		if err == nil {
			err = d.enter(x, op)
		}
		if err != nil {
			d.fail(w, r, err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		x.code = d.cfg.MCP.Answer(w, r, x.caller, refused)
	})
}

// readMessage reads the whole body, within its limits of length and time.
func (d *door) readMessage(x *exchange, r *http.Request) ([]byte, error) {
	if encoded(r) {
		return nil, unsupported("application/json")
	}
	_ = x.control.SetReadDeadline(time.Now().Add(d.cfg.BodyTimeout))
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMessageBytes+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, custody.Errorf(custody.CodeRequestTimeout, "the body did not arrive in time").Because(err)
	case err != nil:
		return nil, invalid(field{"", "the body could not be read to its end"})
	case len(body) > maxMessageBytes:
		return nil, bodyTooLarge(maxMessageBytes)
	}
	_ = x.control.SetReadDeadline(time.Time{}) // the server watches for a hang-up now; a deadline would look like one
	return body, nil
}
