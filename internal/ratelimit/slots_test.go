package ratelimit_test

import (
	"fmt"
	"testing"

	"github.com/accession/accession/internal/ratelimit"
)

func TestSlotsOfAGate(t *testing.T) {
	g := ratelimit.NewGate(ratelimit.Slots{ratelimit.Upload: 3})
	enter := func(who string) (func(), bool) { return g.Enter(ratelimit.Upload, who) }
	leave, ok := enter("a")
	_, again := enter("a")
	_, over := enter("a") // half of 3, rounded up, is 2
	if !ok || !again || over {
		t.Fatal(ok, again, over)
	}
	last, ok := enter("b")
	_, over = enter("c")
	if !ok || over {
		t.Fatal(ok, over)
	}
	last()
	leave()
	for _, who := range []string{"c", "a"} {
		if _, ok := enter(who); !ok {
			t.Errorf("%s: a slot did not come back", who)
		}
	}
	for range 100 { // no row, no bound
		if _, ok := g.Enter(ratelimit.Read, "a"); !ok {
			t.Fatal("refused")
		}
	}
}

func TestParseSlots(t *testing.T) {
	slots, err := ratelimit.ParseSlots(" upload=2, read=off ")
	if got := fmt.Sprint(slots[ratelimit.Upload], slots[ratelimit.Read], slots[ratelimit.Write], err); got != "2 0 512 <nil>" {
		t.Error(got)
	}
	if off, err := ratelimit.ParseSlots("off"); err != nil || len(off) != 0 {
		t.Error(off, err)
	}
	for _, bad := range []string{"uploads=2", "upload", "upload=0", "upload=-1", "upload=2,upload=3", "address=5", "upload=2000000"} {
		if _, err := ratelimit.ParseSlots(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
