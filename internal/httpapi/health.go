package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/sync/singleflight"

	"github.com/accession/accession/internal/custody"
)

// health answers whoever keeps the service running. Neither operation is rate limited: a probe that is refused looks like a
// dead service.
type health struct {
	log    *slog.Logger
	checks []Check
	once   *singleflight.Group // however many ask at once, the parts are asked once
}

const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// isProbe tells whether r asks how the service is, by whatever method.
func isProbe(r *http.Request) bool { return r.URL.Path == healthPath || r.URL.Path == readyPath }

// How long a check may take; one that only informs must not hold up a probe.
const (
	checkTimeout  = 2 * time.Second
	informTimeout = 500 * time.Millisecond
)

// NewProbes makes the handler of a process that works and takes no requests but those of whoever keeps it running: /healthz and
// /readyz alone.
func NewProbes(cfg Config, checks ...Check) http.Handler {
	d := &door{cfg: cfg.withDefaults(), mux: http.NewServeMux()}
	d.api = humago.New(d.mux, contract(d.cfg.BaseURL))
	health{d.cfg.Log, checks, &singleflight.Group{}}.mount(d)
	return http.HandlerFunc(d.serve)
}

// ask waits no longer than it may, whatever the check does. One that hangs is not asked again before it has come back: probes
// that come every few seconds would pile up behind it.
func (s health) ask(ctx context.Context, c Check) error {
	timeout := checkTimeout
	if c.Informs {
		timeout = informTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answered := s.once.DoChan("check "+c.Name, func() (any, error) { return nil, c.Ready(ctx) })
	select {
	case a := <-answered:
		return a.Err
	case <-ctx.Done():
		return errors.New("no answer in time")
	}
}

type healthState struct {
	Status string `json:"status" enum:"ok"`
}

type readyState struct {
	Status string            `json:"status" enum:"ready"`
	Checks map[string]string `json:"checks" doc:"ok or failing, per check. One that only informs may fail while the service is ready."`
}

const (
	checkOK      = "ok"
	checkFailing = "failing"
)

func (s health) mount(d *door) {
	mount(d, operation{
		name: "getHealth", method: http.MethodGet, path: healthPath, tag: "discovery", public: true, unlimited: true,
		summary: "Whether the process answers", answers: map[int]reflect.Type{200: says[healthState]()},
	}, func(context.Context, *exchange, *struct{}) (answer, error) { return respond(healthState{"ok"}) })
	mount(d, operation{
		name: "getReadiness", method: http.MethodGet, path: readyPath, tag: "discovery", public: true, unlimited: true,
		summary:  "Whether the service can work",
		doc:      "Ready while store, blobs and keys answer, the local disk has room and takes writes (`disk`), and the process does not stop (`accepting`). The scanner's state is shown and decides nothing: uploads are taken while it loads its signatures, and the malware gate holds them until it answers.",
		failures: []int{503}, answers: map[int]reflect.Type{200: says[readyState]()},
	}, s.ready)
}

func (s health) ready(ctx context.Context, _ *exchange, _ *struct{}) (answer, error) {
	type found struct {
		states map[string]string
		failed bool
	}
	v, _, _ := s.once.Do("", func() (any, error) {
		ctx := context.WithoutCancel(ctx) // others may wait for this answer: it does not end with the request that came first
		errs := make([]error, len(s.checks))
		var asking sync.WaitGroup
		for i, c := range s.checks {
			asking.Go(func() { errs[i] = s.ask(ctx, c) })
		}
		asking.Wait()
		f := found{states: map[string]string{}}
		for i, c := range s.checks {
			f.states[c.Name] = checkOK
			if errs[i] != nil {
				f.states[c.Name] = checkFailing
				f.failed = f.failed || !c.Informs
				s.log.WarnContext(ctx, "not ready", "check", c.Name, "error", errs[i])
			}
		}
		return f, nil
	})
	f := v.(found)
	if f.failed {
		return answer{}, custody.Errorf(custody.CodeUnavailable, "a part of the service does not answer").With("checks", f.states)
	}
	return respond(readyState{"ready", f.states})
}
