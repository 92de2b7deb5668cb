package custody_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// ledger is a store of one answer; its transactions undo nothing, and taken makes another request the faster one.
type ledger struct {
	kept  *custody.Answer
	taken bool
}

func (l *ledger) Answered(_ context.Context, i custody.Idempotency) (string, custody.Answer, error) {
	if l.kept == nil {
		return "", custody.Answer{}, custody.ErrNotFound
	}
	return i.RequestHash, custody.Answer{Status: l.kept.Status, Data: l.kept.Data, Replayed: true}, nil
}

func (l *ledger) InTx(_ context.Context, fn func(*ledger) error) error { return fn(l) }

func (l *ledger) KeepAnswer(_ context.Context, _ custody.Idempotency, a custody.Answer) error {
	if l.taken {
		l.kept = &custody.Answer{Status: 200, Data: json.RawMessage(`"theirs"`)}
		return custody.ErrTaken
	}
	l.kept = &a
	return nil
}

func TestAnswerIsKeptWithItsEffectOnce(t *testing.T) {
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		taken   bool
		failure error
		data    string
		replay  bool
	}{
		"first":                             {data: `"ours"`},
		"the same request was faster":       {taken: true, data: `"theirs"`, replay: true},
		"a change that fails keeps nothing": {failure: refused},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{taken: test.taken}
			i := custody.Idempotency{Key: "key-0001", RequestHash: "h", Render: func(result any) (custody.Answer, error) {
				data, err := json.Marshal(result)
				return custody.Answer{Status: 200, Data: data}, err
			}}
			a, err := custody.Once(t.Context(), l, i, func(*ledger) (any, error) { return "ours", test.failure })
			if !errors.Is(err, test.failure) || string(a.Data) != test.data || a.Replayed != test.replay {
				t.Errorf("%s, replayed %v, %v", a.Data, a.Replayed, err)
			}
			if (l.kept == nil) != (test.failure != nil) {
				t.Errorf("kept %v", l.kept)
			}
		})
	}
}
