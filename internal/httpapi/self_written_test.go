package httpapi

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

// What writes itself is what encoding/json would write, byte for byte, whichever members are there.
func TestSelfWritten(t *testing.T) {
	texts := []string{"", "note.txt", `"quoted" \ and/or`, "größer <&> 日本", "line\nfeed\x00\x7f\u2028\u2029", "broken \xff\xfe", "\U0001F4C4"}
	moments := []time.Time{{}, time.Date(2026, 11, 20, 9, 30, 0, 120e6, time.UTC), time.Date(2026, 11, 20, 23, 59, 59, 999_999_999, time.FixedZone("", 7200))}
	kept := []json.RawMessage{nil, json.RawMessage(`{}`), json.RawMessage(`{"a":{"b":[1,2.5,null]},"c":"größer <&> \" "}`)}
	same := func(v selfWritten) {
		t.Helper()
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got, err := marshal(v); err != nil || string(got)+"\n" != want.String() {
			t.Errorf("got  %s\nwant %s, %v", got, want.Bytes(), err)
		}
	}
	for i, s := range texts {
		for there := range 1 << 6 { // members that may be left out
			at := moments[(i+there)%len(moments)]
			u := custody.UploadState{Upload: custody.Upload{
				ID: s, PipelineID: s + "1", Status: custody.StatusReady, Sequence: int64(there), Filename: s, SizeBytes: 8 << 30, ReceivedBytes: -1, PartSizeBytes: 64, NextPart: there, CreatedAt: at, UpdatedAt: at,
			}}
			if there&1 != 0 {
				u.Status, u.ExpiresAt = custody.StatusReceiving, moments[1]
			}
			if there&2 != 0 {
				u.Failure = &custody.Failure{Gate: custody.GateName(s), Code: s, Message: s}
			}
			if there&4 != 0 {
				u.RetainedUntil = moments[2]
			}
			if there&8 != 0 {
				u.Withdrawal = &custody.Withdrawing{RequestedAt: at, Attempts: 2, Unconfirmed: []string{s}[:there>>4&1]}
			}
			for n, detail := range kept[:there>>4] {
				u.Gates = append(u.Gates, custody.GateShown{Name: custody.GateName(s), State: custody.GateRunning, StartedAt: moments[n], FinishedAt: moments[(n+i)%len(moments)], Detail: detail})
			}
			same(statusView(u, true))
			same(statusView(u, false))
		}
		same(servedContext{s, s, s, s, contextData(`{"text":"größer <&>"}`)})
	}
}
