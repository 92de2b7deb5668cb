package e2e

import (
	"flag"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// How many random sequences of operations are compared with the model, and from which seed. ACCESSION_MODEL_SEQUENCES and
// ACCESSION_MODEL_SEED change them. The seed that a failure names repeats its sequence as the first.
const (
	modelSequences = 60
	modelSteps     = 25 // of a sequence, on average
	modelSeed      = 20261122
	modelBatch     = 250 // sequences of one service
)

// modelled counts sequences: each has organizations of its own, so that none depends on another.
var modelled atomic.Int64

// Whatever organizations do, in whatever order, the service answers as the model of the contract says, and after every step its
// quotas, statuses, sequences and records are those of the model.
func TestServiceFollowsItsModel(t *testing.T) {
	t.Parallel()
	count, seed := number(t, "ACCESSION_MODEL_SEQUENCES", modelSequences), number(t, "ACCESSION_MODEL_SEED", modelSeed)
	for begun := uint64(0); begun < count && !t.Failed(); begun += modelBatch {
		batch := min(modelBatch, count-begun)
		t.Run(fmt.Sprintf("%d sequences from seed %d", batch, seed), func(t *testing.T) { followModel(t, batch, seed) })
		seed += 1 << 40
	}
}

func followModel(t *testing.T, sequences, seed uint64) {
	for name, value := range map[string]uint64{"rapid.checks": sequences, "rapid.steps": modelSteps, "rapid.seed": seed} {
		if err := flag.Set(name, strconv.FormatUint(value, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		t.Fatal(err)
	}
	t.Logf("ACCESSION_MODEL_SEED=%d ACCESSION_MODEL_SEQUENCES=%d", seed, sequences)
	s := start(t, options{flags: []string{"--rate-limits", "off", "--part-size-bytes", strconv.Itoa(modelPart), "--quota-bytes", strconv.Itoa(modelAllowance)}})
	begun := time.Now()
	steps, requests := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, s)
		t.Repeat(map[string]func(*rapid.T){
			"":           m.compareSome,
			"initiate":   m.initiate,
			"part":       m.part,
			"next part":  m.nextPart,
			"complete":   m.complete,
			"finish":     m.finish,
			"withdraw":   m.withdraw,
			"submit":     m.submit,
			"correct":    m.correct,
			"review":     m.review,
			"context":    m.context,
			"read":       m.read,
			"issue":      m.issue,
			"rotate":     m.rotate,
			"revoke":     m.revoke,
			"allow":      m.allow,
			"repeat":     m.repeat,
			"repeat new": m.repeatAnew,
		})
		m.compareAll(t)
		steps, requests = steps+m.steps, requests+m.requests
	})
	t.Logf("%d steps, %d requests, %.1f sequences a second", steps, requests, float64(sequences)/time.Since(begun).Seconds())
}
