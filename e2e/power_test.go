package e2e

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	defaultCuts = 10 // unless ACCESSION_POWER_CUTS says otherwise
	mostAnswers = 24 // between two cuts; half the cuts come right behind the last, while what it acknowledged is youngest
)

// TestPowerCuts takes the power from the service's disks again and again while uploaders take documents through the main job: what
// was not made durable is gone, in the databases and in both storage roots. Everything that was acknowledged holds, and nothing else is
// served. The last cut comes when all is withdrawn. ACCESSION_POWER_CUTS asks for more cuts, ACCESSION_POWER_SEED for the same choices again.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	seed := number(t, "ACCESSION_POWER_SEED", uint64(time.Now().UnixNano()))
	cuts := int(number(t, "ACCESSION_POWER_CUTS", defaultCuts))
	t.Logf("ACCESSION_POWER_SEED=%d ACCESSION_POWER_CUTS=%d", seed, cuts)
	random := rand.New(rand.NewPCG(seed, seed))

	m := newMachine(t, "data", "blobs", "quarantine")
	h := newSite(t, binary)
	h.o.within = m.within
	h.o.data = filepath.Join(m.disks[0].at, "data")
	for _, d := range m.disks[1:] {
		h.o.flags = append(h.o.flags, "--"+filepath.Base(d.at), filepath.Join(d.at, "store"))
	}
	deposits := disturbed(t, h, []string{"harbour", "lighthouse", "shipyard", "quay", "pilots", "tugs"}, func(through <-chan struct{}) {
		for range cuts - 1 {
			h.forgetAnswers()
			if h.awaitAnswers(1+random.IntN(mostAnswers), through); random.IntN(2) == 0 {
				h.awaitMoment(random, through)
			}
			h.cutPower(m, random)
		}
	})
	if t.Failed() {
		return
	}
	h.cutPower(m, random)
	left := filepath.Join(t.TempDir(), "left")
	m.must(func() error {
		err := os.CopyFS(left, os.DirFS(h.o.data))
		for _, d := range m.disks[1:] {
			err = errors.Join(err, os.CopyFS(filepath.Join(left, filepath.Base(d.at)), os.DirFS(filepath.Join(d.at, "store"))))
		}
		return err
	})
	h.o.data = left
	inspect(t, h, deposits...)

	canaries := 0
	for _, d := range m.disks {
		canaries += d.lost
	}
	if canaries == 0 {
		t.Error("a cut loses nothing: this proves nothing")
	}
	t.Logf("%d cuts took %d of %d canaries; %d lost answers, %d jobs through; the slowest of all starts took %s",
		cuts, canaries, cuts*len(m.disks), lostAnswers(deposits), len(deposits), h.slowest.Round(time.Millisecond))
	h.wantPromptStarts(cuts > defaultCuts)
}

// forgetAnswers makes those count alone that come from now on.
func (h *site) forgetAnswers() {
	for {
		select {
		case <-h.answered:
		default:
			return
		}
	}
}

// cutPower takes the power from whatever runs now and its disks, and gives it back when all is gone. The service is killed first, without
// waiting for its end: it does and says nothing more, as its processors have no power either, and its calls of the kernel that are under
// way, syncs among them, are cut in the middle.
func (h *site) cutPower(m *machine, random *rand.Rand) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil {
		_ = h.now.cmd.Process.Kill() // it may be gone already
	}
	m.must(func() error { return m.cut(random) })
	if h.now != nil {
		<-h.now.done
	}
	m.must(m.restore)
}
