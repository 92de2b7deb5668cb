package rescan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/storetest"
)

// reads are what this room reads of the real store; its transactions are of a type that this package does not know.
type reads interface {
	RescanState(context.Context, custody.RescanScope, time.Time) (custody.RescanState, error)
	Answered(context.Context, custody.Idempotency) (string, custody.Answer, error)
}

type realStore struct {
	reads
	inTx func(context.Context, func(Tx) error) error
}

func (s realStore) InTx(ctx context.Context, fn func(Tx) error) error { return s.inTx(ctx, fn) }

func joined[T Tx](inTx func(context.Context, func(T) error) error) func(context.Context, func(Tx) error) error {
	return func(ctx context.Context, fn func(Tx) error) error {
		return inTx(ctx, func(tx T) error { return fn(tx) })
	}
}

// engine is one that the test tells what to say.
type engine struct {
	scannedWith string
	date        time.Time
	err         error
	refreshed   int
}

func (e *engine) Signatures(context.Context) (string, time.Time, error) {
	return e.scannedWith, e.date, e.err
}

func (e *engine) Refresh(context.Context) error {
	e.refreshed++
	return e.err
}

type installation struct {
	*testing.T
	*storetest.Installation
	engine  *engine
	log     *bytes.Buffer
	service *Service
}

func install(t *testing.T) installation {
	t.Helper()
	in, e, log := storetest.OpenSQLite(t), &engine{scannedWith: "new", date: time.Now()}, &bytes.Buffer{}
	return installation{t, in, e, log, New(realStore{in.Store, joined(in.Store.InTx)}, e, 0, slog.New(slog.NewTextHandler(log, nil)))}
}

// copies makes n more uploads like the only one.
func (in installation) copies(n int) {
	in.Helper()
	for _, statement := range []string{
		`CREATE TABLE copies AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ` + strconv.Itoa(n) + `) SELECT u.*, n.i FROM uploads u, n`,
		`UPDATE copies SET upload_id = 'upl_copy' || i`, `ALTER TABLE copies DROP COLUMN i`,
		`INSERT INTO uploads SELECT * FROM copies`, `DROP TABLE copies`,
	} {
		if err := in.Exec(in.Context(), statement); err != nil {
			in.Fatal(err)
		}
	}
}

func (in installation) look() {
	in.Helper()
	if err := in.service.Look(in.Context()); err != nil {
		in.Fatal(err)
	}
}

func (in installation) waiting() int {
	in.Helper()
	state, err := in.service.State(in.Context(), admin, custody.RescanScope{}, time.Time{})
	if err != nil {
		in.Fatal(err)
	}
	return state.Waiting
}

var admin = custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true, RequestID: "req_1", TraceID: "trc_1"}

func idempotency(key string) custody.Idempotency {
	return custody.Idempotency{CredentialID: admin.CredentialID, Operation: custody.OpQueueRescans, Key: key, RequestHash: "h",
		Render: func(v any) (custody.Answer, error) {
			b, err := json.Marshal(v)
			return custody.Answer{Status: 202, Data: b}, err
		}}
}

func TestLookQueuesWhatOtherSignaturesPassed(t *testing.T) {
	in := install(t)
	in.Ready(t, "acme", "old")
	in.copies(2*batch + 1)
	in.Ready(t, "acme", "new")
	in.engine.err = errors.New("away")
	in.look()
	if n := in.waiting(); n != 0 {
		t.Errorf("%d uploads wait though the engine does not answer", n)
	}
	in.engine.err = nil
	in.look()
	if n := in.waiting(); n != 2*batch+2 {
		t.Errorf("%d uploads wait, want %d", n, 2*batch+2)
	}
	in.engine.scannedWith = "newer"
	in.look()
	if n := in.waiting(); n != 2*batch+3 {
		t.Errorf("%d uploads wait once the signatures changed, want %d", n, 2*batch+3)
	}
}

func TestOldSignaturesAreCalledOldOnce(t *testing.T) {
	in := install(t)
	for _, date := range []time.Time{{}, time.Now().Add(-6 * 24 * time.Hour)} {
		in.engine.date = date
		in.look()
	}
	if in.log.Len() != 0 {
		t.Errorf("logged %s", in.log)
	}
	in.engine.date = time.Now().Add(-8 * 24 * time.Hour)
	in.look()
	in.look()
	if n := strings.Count(in.log.String(), "older than 7 days: run freshclam"); n != 1 {
		t.Errorf("%d warnings: %s", n, in.log)
	}
	in.engine.scannedWith = "others, as old"
	in.look()
	if n := strings.Count(in.log.String(), "older than 7 days: run freshclam"); n != 2 {
		t.Errorf("%d warnings: %s", n, in.log)
	}
}

func TestQueue(t *testing.T) {
	in := install(t)
	u := in.Ready(t, "acme", "new")
	in.copies(batch + 5)
	in.Ready(t, "island", "new")
	a, err := in.service.Queue(t.Context(), admin, custody.RescanScope{OrgID: "acme"}, idempotency("key-0001"))
	var said custody.QueuedRescans
	if err = errors.Join(err, json.Unmarshal(a.Data, &said)); err != nil || said.Queued != batch+6 || said.Waiting != batch+6 || said.RequestedAt.IsZero() || in.engine.refreshed != 1 {
		t.Fatalf("%+v, %v; %d refreshes", said, err, in.engine.refreshed)
	}
	again, err := in.service.Queue(t.Context(), admin, custody.RescanScope{OrgID: "acme"}, idempotency("key-0001"))
	if err != nil || string(again.Data) != string(a.Data) || !again.Replayed || in.engine.refreshed != 1 {
		t.Errorf("the same request again: %+v, %v", again, err)
	}
	var lines int
	if err := in.DB.Row(t.Context(), `SELECT COUNT(*) FROM audit_lines WHERE org_id = '' AND action = 'rescan_requested' AND credential_id = 'admin' AND request_id = 'req_1' AND detail LIKE '%acme%206%'`, nil, &lines); err != nil || lines != 1 {
		t.Errorf("%d audit lines, %v", lines, err)
	}
	in.engine.err = errors.New("away") // the scanner cannot stop an operator's request
	if a, err = in.service.Queue(t.Context(), admin, custody.RescanScope{UploadID: u.ID}, idempotency("")); err != nil || !strings.Contains(string(a.Data), `"Queued":1`) {
		t.Errorf("%s, %v", a.Data, err)
	}
}

func TestOnlyTheAdministratorRescans(t *testing.T) {
	in := install(t)
	in.Ready(t, "acme", "old")
	for _, c := range []custody.Caller{{}, {CredentialID: "cred_1", OrgID: "acme", Role: custody.RoleSolutionCompanyUpload, Scopes: custody.RoleScopes[custody.RoleSolutionCompanyUpload]}} {
		var refused *custody.Error
		if _, err := in.service.Queue(t.Context(), c, custody.RescanScope{}, idempotency("key-0001")); !errors.As(err, &refused) || refused.Code.HTTPStatus() != 401 {
			t.Errorf("queue as %q: %v", c.CredentialID, err)
		}
		if _, err := in.service.State(t.Context(), c, custody.RescanScope{}, time.Time{}); !errors.As(err, &refused) || refused.Code.HTTPStatus() != 401 {
			t.Errorf("state as %q: %v", c.CredentialID, err)
		}
	}
	if n := in.waiting(); n != 0 || in.engine.refreshed != 0 {
		t.Errorf("%d uploads wait, %d refreshes", n, in.engine.refreshed)
	}
}
