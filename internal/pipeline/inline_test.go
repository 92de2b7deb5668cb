package pipeline

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

// What a gate says becomes a verdict on the content, or no answer; nothing else is a pass.
func TestOneAttemptForARequestThatWaits(t *testing.T) {
	refuse := func(context.Context, *pass) error { return &custody.Refusal{Code: "c", Message: "m"} }
	fault := errors.New("disk on fire")
	for name, c := range map[string]struct {
		gate     custody.GateName
		run      func(context.Context, *pass) error
		deadline time.Duration // an hour where it is not said
		refused  bool
		silent   string
		err      error
	}{
		"passes":                 {gate: custody.GateMalwareScan, run: func(context.Context, *pass) error { return nil }},
		"refuses":                {gate: custody.GateMalwareScan, run: refuse, refused: true},
		"storage, not the text":  {gate: custody.GateIntegrity, run: refuse, silent: "c"},
		"the copy, not the text": {gate: custody.GateQuarantine, run: refuse, silent: "c"},
		"no answer":              {gate: custody.GateMalwareScan, run: func(context.Context, *pass) error { return &custody.NoAnswer{Code: "n"} }, silent: "n"},
		"fails":                  {gate: custody.GateExtraction, run: func(context.Context, *pass) error { return fault }, err: fault},
		"panics":                 {gate: custody.GateExtraction, run: func(context.Context, *pass) error { panic("boom") }, silent: "internal_error"},
		"never answers":          {gate: custody.GateMalwareScan, deadline: time.Millisecond, run: func(ctx context.Context, _ *pass) error { <-ctx.Done(); return ctx.Err() }, silent: "gate_attempt_timeout"},
		"a verdict too late": {gate: custody.GateMalwareScan, deadline: time.Millisecond, run: func(ctx context.Context, _ *pass) error {
			<-ctx.Done()
			return &custody.Refusal{Code: "c"}
		}, silent: "gate_attempt_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			deadline := cmp.Or(c.deadline, time.Hour)
			err := (&Runner{cfg: Config{Watch: nobody{}}}).once(t.Context(), gate{custody.Gate{Name: c.gate, Deadline: deadline, Attempt: time.Hour}, c.run}, &pass{})
			var refusal *custody.Refusal
			var silent *custody.NoAnswer
			switch {
			case c.refused:
				if !errors.As(err, &refusal) || refusal.Gate != c.gate {
					t.Errorf("said %v", err)
				}
			case c.silent != "":
				if !errors.As(err, &silent) || silent.Code != c.silent || errors.As(err, &refusal) {
					t.Errorf("said %v", err)
				}
			case !errors.Is(err, c.err):
				t.Errorf("said %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (&Runner{cfg: Config{Watch: nobody{}}}).once(ctx, gate{custody.Gate{Name: custody.GateMalwareScan, Deadline: time.Hour, Attempt: time.Hour}, refuse}, &pass{})
	var refusal *custody.Refusal
	if !errors.Is(err, context.Canceled) || errors.As(err, &refusal) {
		t.Errorf("the caller left: %v", err)
	}
}
