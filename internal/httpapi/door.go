package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/sync/singleflight"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// Limits of the door. (Contract decisions, "Sizes"; section 8.)
const (
	maxJSONBytes   = 2 << 20  // bytes of a JSON body, inclusive
	maxHeaderBytes = 32 << 10 // bytes of request line and headers, inclusive
	maxTokenBytes  = 4 << 10  // bytes of a presented credential
	maxWait        = 30 * time.Second
)

// Config is what the door needs to know. The zero value of a duration or size stands for its default.
type Config struct {
	BaseURL         string         // absolute; status URLs start with it
	MaxPartBytes    int64          // largest part of any upload, in bytes; default 16 MiB. A body over twice that is 413 unread.
	PartIdleTimeout time.Duration  // a part's sender may pause this long; default 60 s
	BodyTimeout     time.Duration  // a JSON body must arrive within this; default 30 s
	Log             *slog.Logger   // default: slog.Default()
	Sandbox         Sandbox        // needed
	Limits          Limiter        // nil: nothing is limited
	Slots           Slots          // nil: any number of requests at once
	Turns           Turns          // nil: nobody waits for one
	TrustedProxies  []netip.Prefix // whose X-Forwarded-For is believed; default: nobody's
	Requests        Requests       // nil: nobody counts them
	Traces          Traces         // nil: nobody follows them
	MCP             MCP            // nil: there is none
	MCPURL          string         // absolute, as clients know it; default: BaseURL and /mcp
	Webhooks        Webhooks       // nil: there are none
	Pages           http.Handler   // the portal, at /, /portal and /assets; nil: there is none
	Manual          http.Handler   // the documentation, at /docs; nil: there is none
	Agreement       *Agreement     // what people consent to; nil: the portal has no text to show
	SecurityContact string         // mailto: or https:, for security.txt; default: the project's
}

func (c Config) withDefaults() Config {
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.MaxPartBytes <= 0 {
		c.MaxPartBytes = custody.DefaultPartSizeBytes
	}
	if c.PartIdleTimeout <= 0 {
		c.PartIdleTimeout = 60 * time.Second
	}
	if c.BodyTimeout <= 0 {
		c.BodyTimeout = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.MCPURL == "" {
		c.MCPURL = c.BaseURL + "/mcp"
	}
	if c.SecurityContact == "" {
		c.SecurityContact = "https://github.com/accession/accession/security/advisories/new"
	}
	return c
}

// door is what the operations share.
type door struct {
	cfg     Config
	tenants Tenants
	mux     *http.ServeMux
	api     huma.API

	arrivals arrivals
	probes   probes
	mistakes error // in the definitions of operations, met at start
}

// domain is one subject of the contract; it mounts its own operations.
type domain interface{ mount(*door) }

// New makes the handler of the REST contract, /healthz and /readyz, and of what else the door leads to. Error: no sandbox, an MCP
// URL without a path, or a deprecation without its 90 days of notice (section 9, rule 3).
func New(cfg Config, intake Intake, withdrawal Withdrawal, contexts Contexts, tenants Tenants, again Rescans, evidence Evidence, upkeep Upkeep, checks ...Check) (http.Handler, error) {
	if cfg.Sandbox == nil {
		return nil, errors.New("the door needs a sandbox")
	}
	d := &door{cfg: cfg.withDefaults(), tenants: tenants, mux: http.NewServeMux(), arrivals: arrivals{of: map[string]int{}}, probes: make(probes, mostProbes)}
	if at := d.cfg.mcpPath(); at == "" || at == "/" {
		return nil, errors.New("the MCP URL needs a path of its own, such as /mcp")
	}
	d.api = humago.New(d.mux, contract(d.cfg.BaseURL))
	for _, m := range []domain{
		credentials{tenants},
		credentialAdmin{tenants},
		organizations{tenants},
		oauth{tenants, d.cfg.BaseURL, d.cfg.MCPURL},
		uploads{intake, d.cfg.BaseURL},
		submissions{intake},
		reviews{intake},
		withdrawals{withdrawal},
		retentions{withdrawal},
		contextReads{contexts},
		canaries{contexts},
		rescans{again},
		chains{evidence},
		upkeeps{upkeep},
		webhooks{d.cfg.Webhooks},
		metadata{d.cfg.BaseURL, d.cfg.Agreement},
		sandboxes{d.cfg.Sandbox, d.cfg.BaseURL},
		health{d.cfg.Log, checks, &singleflight.Group{}},
		agents{},
		pages{},
		sessions{tenants},
		signposts{},
		&discovery{},
	} {
		m.mount(d)
	}
	if d.mistakes != nil {
		return nil, d.mistakes
	}
	forget(d.api.OpenAPI())
	return http.HandlerFunc(d.serve), nil
}

// Server gives h the settings that fit it: header limits, and no write timeout, which would cut long polls. Bodies have
// deadlines of their own. Its header limit lies above the contract's 32 KiB; within it the door can say which request it was.
// Serve it on a Listener.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    2 * maxHeaderBytes,
		ConnContext:       remember,
		ConnState:         stateChanged,

		DisableGeneralOptionsHandler: true, // of OPTIONS *: the door answers every request, or Listener takes it for one that never came
	}
}

// serve identifies, routes and logs every request.
func (d *door) serve(w http.ResponseWriter, r *http.Request) {
	taken(r.Context())
	x, w, r := d.identify(w, r)
	defer d.finish(x, r)
	w.Header().Set("X-Request-Id", x.requestID)
	w.Header().Set("Traceparent", x.traceparent)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.ContentLength != 0 {
		// Bounds the draining of a body that nobody reads; operations that read one set their own deadline.
		_ = x.control.SetReadDeadline(time.Now().Add(d.cfg.PartIdleTimeout))
	}
	x.address = ratelimit.Whose(d.addressOf(r))
	tooLarge := headerBytes(r) > maxHeaderBytes // which would wait with all of them in memory
	if !tooLarge {
		if err := d.takeTurn(x, r); err != nil {
			d.fail(w, r, err)
			return
		}
	}
	if err := d.allowAddress(w, r, x); err != nil {
		d.fail(w, r, err)
		return
	}
	if tooLarge {
		d.fail(w, r, custody.Errorf(custody.CodeHeadersTooLarge, "the headers are larger than %d bytes", maxHeaderBytes))
		return
	}
	if r.URL.Path == "" || path.Clean(r.URL.Path) != r.URL.Path { // the mux would redirect, in its own shape
		d.fail(w, r, routeNotFound())
		return
	}
	miss, pattern := d.mux.Handler(r)
	if pattern == "" {
		d.refuseRoute(w, r, miss)
		return
	}
	x.route = pattern
	r.Header.Del("Accept") // every answer is JSON; nothing is negotiated
	d.mux.ServeHTTP(w, r)
}

// refuseRoute says in the error shape what the mux would say in plain text.
func (d *door) refuseRoute(w http.ResponseWriter, r *http.Request, miss http.Handler) {
	said := &overheard{header: http.Header{}}
	miss.ServeHTTP(said, r)
	if said.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", said.header.Get("Allow"))
		d.fail(w, r, custody.Errorf(custody.CodeMethodNotAllowed, "this path does not take the method of the request; see the Allow header"))
		return
	}
	d.fail(w, r, routeNotFound())
}

func routeNotFound() *custody.Error {
	return custody.Errorf(custody.CodeRouteNotFound, "there is no such path; see /api/v1/ai/openapi.json")
}

// overheard keeps status and headers of an answer that is not sent.
type overheard struct {
	header http.Header
	status int
}

func (o *overheard) Header() http.Header         { return o.header }
func (o *overheard) Write(b []byte) (int, error) { return len(b), nil }
func (o *overheard) WriteHeader(status int)      { o.status = status }

func headerBytes(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Proto) + len(r.Host) + 16
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + 4 // ": " and CRLF
		}
	}
	return n
}
