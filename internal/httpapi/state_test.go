package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func (r *rooms) InstallationState(ctx context.Context, c custody.Caller) (s custody.InstallationState, err error) {
	if _, err = r.take(ctx, c, nil, custody.Idempotency{}, nil); err != nil {
		return s, err
	}
	at := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	s = custody.InstallationState{
		At: at, Process: custody.ProcessState{Version: "1.2.3", Roles: []string{"api"}, StartedAt: at.Add(-90 * time.Second)}, RescansWaiting: 4,
		Webhooks: custody.WebhookBacklog{Waiting: 1, Dead: 2, Oldest: 3500 * time.Millisecond},
		Scanner:  custody.ScannerState{Sentence: "It is away."},
		Stuck: custody.StuckUploads{Held: 1, Failed: 7, Listed: []custody.StuckUpload{{
			OrgID: "org_1", UploadID: "up_1", Status: custody.StatusFailed, Since: at,
			Failure: custody.Failure{Gate: custody.GateMalwareScan, Code: "scanner_unavailable", Message: "No answer."},
		}}},
	}
	for i, named := range custody.NamedLanes {
		s.Lanes = append(s.Lanes, custody.LaneState{Name: named.Name, Waiting: i, Running: 2 * i, Oldest: time.Duration(i) * time.Second})
	}
	if r.accepted { // the scanner answers
		s.Scanner = custody.ScannerState{OK: true, Engine: "ClamAV", EngineVersion: "1.4.3", SignatureVersion: "27825", SignatureDate: at.Add(-time.Hour), Sentence: "It works."}
	}
	return s, nil
}

func TestState(t *testing.T) {
	b := newBench(t)
	const before = `{"at":"2026-11-20T09:30:00.000Z","process":{"roles":["api"],"started_at":"2026-11-20T09:28:30.000Z","uptime_seconds":90,"version":"1.2.3"},` +
		`"queues":[{"lane":"gates","oldest_seconds":0,"running":0,"waiting":0},{"lane":"deletions","oldest_seconds":1,"running":2,"waiting":1},{"lane":"rescans","oldest_seconds":2,"running":4,"waiting":2}],` +
		`"rescans_waiting":4,"scanner":`
	const after = `,"uploads":{"failed":7,"held":1,"listed":[{"code":"scanner_unavailable","gate":"malware_scan","message":"No answer.","org_id":"org_1","since":"2026-11-20T09:30:00.000Z","status":"FAILED","upload_id":"up_1"}]},` +
		`"webhooks":{"dead":2,"oldest_seconds":3,"waiting":1}}`
	for _, c := range []struct {
		answers bool
		scanner string
	}{
		{false, `{"ok":false,"sentence":"It is away."}`},
		{true, `{"engine":"ClamAV","engine_version":"1.4.3","ok":true,"sentence":"It works.","signature_age_seconds":3600,"signature_date":"2026-11-20T08:30:00.000Z","signature_version":"27825"}`},
	} {
		b.accepted = c.answers
		said, _ := json.Marshal(b.call("GET", "/admin/state", nil, admin).succeeds(t, 200))
		if want := before + c.scanner + after; string(said) != want {
			t.Errorf("data %s\nwant %s", said, want)
		}
	}
	if !b.caller.Admin {
		t.Error("it came without its caller")
	}
	b.err = errors.New("disk /var/lib on fire")
	b.call("GET", "/admin/state", nil, admin).wants(t, 500, custody.CodeInternal)
}
