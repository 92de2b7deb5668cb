package httpapi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

type bodyKind int

const (
	bodyNone bodyKind = iota
	bodyJSON
	bodyPart
)

// operation is one row of the contract.
type operation struct {
	id        custody.Operation // decides access, and is the scope of Idempotency-Keys
	name      string            // operationId; default: id
	method    string
	path      string
	tag       string
	summary   string
	doc       string
	public    bool            // needs no credential
	sandboxed bool            // needs a sandbox credential, and nothing else will do
	ownPages  bool            // is for the service's own pages, about the session of a browser
	class     ratelimit.Class // whose rate its requests count in; default: by method and body
	unlimited bool            // counts in none
	retires   *retirement     // when it is deprecated
	body      bodyKind
	answers   map[int]reflect.Type // success status to what its answer is
	failures  []int                // beside those that any request can meet

	announced *retirement // what its answers say is deprecated
}

// says names the type of an answer's data.
func says[T any]() reflect.Type { return reflect.TypeFor[envelope[T]]() }

// written is huma's view of an answer: the door writes it itself.
type written struct{ Body func(huma.Context) }

// mount registers op: what huma validates goes to act, and what act returns is answered.
func mount[In any](d *door, op operation, act func(context.Context, *exchange, *In) (answer, error)) {
	if op.name == "" {
		op.name = string(op.id)
	}
	gone, err := op.retired(reflect.TypeFor[In]())
	d.mistakes = errors.Join(d.mistakes, err)
	op.announced = gone.first
	defer func() { gone.document(d.api.OpenAPI(), op) }()
	huma.Register(d.api, d.document(op), func(ctx context.Context, in *In) (*written, error) {
		x := exchangeOf(ctx)
		if op.body == bodyJSON { // it is in, or there is none: the deadline of its arrival would now look like a hang-up
			_ = x.control.SetReadDeadline(time.Time{})
		}
		var a answer
		err := d.enter(x, op)
		if err == nil {
			a, err = act(custody.InScopeOf(ctx, x.caller), x, in)
		}
		return &written{func(hc huma.Context) {
			r, w := humago.Unwrap(hc)
			if err != nil {
				d.fail(w, r, err)
				return
			}
			a.write(w, x)
		}}, nil
	})
}

// document describes op to huma.
func (d *door) document(op operation) huma.Operation {
	if op.name == "" {
		op.name = string(op.id)
	}
	h := huma.Operation{
		OperationID: op.name, Method: op.method, Path: op.path, Tags: []string{op.tag},
		Summary: op.summary, Description: op.doc, Security: op.security(),
		Middlewares: huma.Middlewares{d.admit(op)}, Errors: op.statuses(), Responses: map[string]*huma.Response{},
	}
	for _, status := range slices.Sorted(maps.Keys(op.answers)) {
		if h.DefaultStatus == 0 {
			h.DefaultStatus = status
		}
		r := &huma.Response{Description: http.StatusText(status)}
		if t := op.answers[status]; t != nil {
			r.Content = map[string]*huma.MediaType{"application/json": {Schema: d.api.OpenAPI().Components.Schemas.Schema(t, true, "")}}
		}
		h.Responses[strconv.Itoa(status)] = r
	}
	switch op.body {
	case bodyJSON:
		h.MaxBodyBytes = op.maxJSON() + 1 // huma refuses a body of exactly the limit
		h.BodyReadTimeout = d.cfg.BodyTimeout
	case bodyPart:
		h.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}}
	}
	return h
}

// maxJSON is how long a JSON body of op may be, in bytes.
func (op operation) maxJSON() int64 {
	if op.ownPages {
		return maxFormBytes // one credential, from anybody
	}
	return maxJSONBytes
}

// statuses are all the errors op can answer.
func (op operation) statuses() []int {
	s := append([]int{400, 431, 500}, op.failures...)
	if !op.unlimited {
		s = append(s, 429, 503)
	}
	if !op.public {
		s = append(s, 401, 503)
	}
	switch op.body {
	case bodyJSON:
		s = append(s, 408, 413, 415)
	case bodyPart:
		s = append(s, 408, 411, 413, 415)
	}
	slices.Sort(s)
	return slices.Compact(s)
}

func (op operation) security() []map[string][]string {
	none := []string{}
	either := []map[string][]string{{"apiKey": none}, {"bearer": none}}
	switch {
	case op.ownPages && op.method != http.MethodPost:
		return []map[string][]string{{"portalSession": none}}
	case op.public:
		return []map[string][]string{{}} // none is enough
	case op.sandboxed:
		return either
	case op.id == custody.OpIdentity:
		return []map[string][]string{{"oauth2": none}}
	case custody.AdminOnly(op.id):
		return []map[string][]string{{"adminToken": none}}
	}
	if scope := custody.ScopeOf(op.id); scope != "" {
		either = append(either, map[string][]string{"oauth2": {string(scope)}})
	}
	if op.id == custody.OpWithdrawUpload {
		either = append(either, map[string][]string{"adminToken": none})
	}
	return either
}
