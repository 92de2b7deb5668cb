package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// canaries tells an operator which serving a text came from; an addition to section 4.7.
type canaries struct{ room CanaryFinder }

// CanaryFinder finds the serving that carried a canary.
type CanaryFinder interface {
	FindCanary(ctx context.Context, c custody.Caller, canary string) (custody.Record, error)
}

type canary string

func (canary) Schema(huma.Registry) *huma.Schema {
	return text(1, 128, `^[!-~]+$`, "accession-canary-rec_ and 26 characters, in small letters.")
}

type findCanaryInput struct {
	Canary canary `path:"canary"`
}

func (s canaries) mount(d *door) {
	mount(d, operation{
		id: custody.OpFindCanary, method: http.MethodGet, path: "/admin/canaries/{canary}", tag: "AI context",
		summary: "Find the serving of a canary", doc: "The request record of the one serving that carried the canary, of whichever organization; it stays when the upload is withdrawn.",
		failures: []int{404}, answers: map[int]reflect.Type{200: says[requestRecord]()},
	}, s.find)
}

func (s canaries) find(ctx context.Context, x *exchange, in *findCanaryInput) (answer, error) {
	r, err := s.room.FindCanary(ctx, x.caller, string(in.Canary))
	if err != nil {
		return answer{}, err
	}
	return respond(recordView(r))
}
