package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// counted summarizes when it is told to, and knows how many it does at once.
type counted struct {
	inside, most atomic.Int64
	goOn         chan struct{}
}

func (c *counted) Summarize(context.Context, Text) (json.RawMessage, map[string]any, error) {
	now := c.inside.Add(1)
	defer c.inside.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	<-c.goOn
	return json.RawMessage(`{}`), nil, nil
}

// sealed keeps nothing.
type sealed struct{ bytesAway }

func (*sealed) SealArtifact(context.Context, string, string, []byte) (custody.Artifact, error) {
	return custody.Artifact{}, nil
}

// However many requests bring texts: only as many as there are slots have theirs summarized at once, and each has its turn.
func TestTextsAreSummarizedAFewAtOnce(t *testing.T) {
	const texts, slots = 50, 3
	synctest.Test(t, func(t *testing.T) {
		summarizer := &counted{goOn: make(chan struct{})}
		r := New(nil, &sealed{}, Engines{Summarizer: summarizer}, Config{Slots: slots, Gates: []custody.Gate{
			{Name: custody.GateExtraction, Deadline: time.Hour, Attempt: time.Hour}, {Name: custody.GateControlledSummary, Deadline: time.Hour, Attempt: time.Hour},
		}})
		var passed, unanswered atomic.Int64
		submit := func() {
			_, _, err := r.Inline(t.Context(), custody.Upload{ContentType: plainText}, nil)
			var silent *custody.NoAnswer
			switch {
			case err == nil:
				passed.Add(1)
			case errors.As(err, &silent) && silent.Code == "gate_attempt_timeout":
				unanswered.Add(1)
			default:
				t.Error(err)
			}
		}
		for range texts {
			go submit()
		}
		synctest.Wait()
		if n := summarizer.inside.Load(); n != slots {
			t.Errorf("%d are summarized at once, want %d", n, slots)
		}
		close(summarizer.goOn)
		synctest.Wait()
		if summarizer.most.Load() != slots || passed.Load() != texts {
			t.Errorf("%d at once, %d of %d passed", summarizer.most.Load(), passed.Load(), texts)
		}

		summarizer.goOn = make(chan struct{}) // and whose turn does not come in time has no answer
		for range slots + 1 {
			go submit()
		}
		time.Sleep(inlineLimit) // of this bubble
		synctest.Wait()
		if unanswered.Load() != 1 {
			t.Errorf("%d were told that there is no answer", unanswered.Load())
		}
		close(summarizer.goOn)
	})
}
