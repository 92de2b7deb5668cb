package pipeline

import (
	"context"

	"github.com/accession/accession/internal/custody"
)

// The names of the lanes, as metrics and traces have them.
const (
	laneGates     = "gates"
	laneDeletions = "deletions"
	laneRescans   = "rescans"
)

// Watch hears of work as it begins, and by what it returns, of its end. Work goes on under the context that it gives. Many
// goroutines call it at once.
type Watch interface {
	// Job is one claim of an upload, in the lane of that name.
	Job(ctx context.Context, lane string, c custody.Claim) (_ context.Context, ended func())
	// Gate is one attempt of a gate, also in a request that waits or in a re-scan. err is what the gate said: nil is a pass, a
	// *custody.Refusal a verdict, anything else no answer.
	Gate(ctx context.Context, gate custody.GateName) (_ context.Context, ended func(err error))
}

type nobody struct{}

func (nobody) Job(ctx context.Context, _ string, _ custody.Claim) (context.Context, func()) {
	return ctx, func() {}
}

func (nobody) Gate(ctx context.Context, _ custody.GateName) (context.Context, func(error)) {
	return ctx, func(error) {}
}
