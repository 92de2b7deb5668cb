package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/accession/accession/internal/custody"
)

// Transition moves u one row along the lifecycle table and writes the event and, for a change of status, the audit line.
// ErrConflict where the upload is no longer as u says, or is completed after its reservation has lapsed by the database's clock. u is
// brought up to date.
func (tx *Tx) Transition(ctx context.Context, u *custody.Upload, c custody.Change) error {
	to, ok := custody.Next(u.Status, c.Trigger)
	if !ok {
		return fmt.Errorf("lifecycle has no %q from %s", c.Trigger, u.Status)
	}
	now := custody.Now()
	// Who acts next decides what the row waits for. A gate's change keeps the worker's hold; a withdrawal waits for it to end.
	work, unless := `due_at = 0, lease = '', lease_until = 0, attempt = 0`, ``
	switch c.Trigger {
	case custody.TriggerPartAccepted:
		work = `due_at = expires_at`
	case custody.TriggerGateChanged:
		work = `due_at = ` + tx.d.Now
	case custody.TriggerCompleted, custody.TriggerResumed:
		work = `due_at = ` + tx.d.Now + `, lease = '', lease_until = 0, attempt = 0`
		if c.Trigger == custody.TriggerCompleted { // a worker deletes what has lapsed by this clock, whatever the caller's says
			unless = ` AND expires_at > ` + tx.d.Now
		}
	case custody.TriggerWithdrawal:
		work = `due_at = ` + tx.d.Now + `, attempt = 0`
	case custody.TriggerRescanRefused:
		work += `, rescanned_at = ` + tx.d.Now
	}
	var f custody.Failure
	if c.Failure != nil {
		f = *c.Failure
	} else if u.Failure != nil && c.Trigger != custody.TriggerResumed {
		f = *u.Failure
	}
	if err := one(tx.q.Exec(ctx, `UPDATE uploads SET status = $1, sequence = sequence + 1, updated_at = $2,
		failure_gate = $3, failure_code = $4, failure_message = $5, `+work+`
		WHERE upload_id = $6 AND status = $7 AND sequence = $8`+unless,
		to, millis(now), f.Gate, f.Code, f.Message, u.ID, u.Status, u.Sequence)); err != nil {
		return err
	}
	from := u.Status
	u.Status, u.Sequence, u.UpdatedAt = to, u.Sequence+1, now
	if c.Failure != nil || c.Trigger == custody.TriggerResumed {
		u.Failure = c.Failure
	}
	return tx.appendEvent(ctx, *u, from, c)
}

func (tx *Tx) appendEvent(ctx context.Context, u custody.Upload, from custody.Status, c custody.Change) error {
	eventID := custody.NewID("evt")
	if _, err := tx.q.Exec(ctx, `INSERT INTO status_events (event_id, upload_id, org_id, sequence, from_status, cause, status, stage, gate_state, occurred_at, credential_id, request_id, trace_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		eventID, u.ID, u.OrgID, u.Sequence, from, c.Trigger, u.Status, c.Stage, c.GateState,
		millis(u.UpdatedAt), c.Cause.CredentialID, c.Cause.RequestID, c.Cause.TraceID); err != nil {
		return err
	}
	if err := tx.queueEvent(ctx, u, eventID, c); err != nil {
		return err
	}
	if c.Trigger == custody.TriggerGateChanged {
		return nil // the event says it all; the audit log is about who decided what
	}
	return tx.AppendAudit(ctx, custody.AuditLine{
		OrgID: u.OrgID, At: u.UpdatedAt, Action: string(c.Trigger), UploadID: u.ID, Status: u.Status,
		CredentialID: c.Cause.CredentialID, RequestID: c.Cause.RequestID, TraceID: c.Cause.TraceID,
	})
}

// Events reads an upload's status events after sequence, in order.
func (s queries) Events(ctx context.Context, uploadID string, after int64) (events []custody.Event, err error) {
	err = s.q.Each(ctx, `SELECT e.event_id, e.upload_id, e.org_id, u.pipeline_id, e.sequence, e.from_status, e.cause, e.status, e.stage, e.gate_state,
		e.occurred_at, e.credential_id, e.request_id, e.trace_id
		FROM status_events e JOIN uploads u ON u.upload_id = e.upload_id WHERE e.upload_id = $1 AND e.sequence > $2 ORDER BY e.sequence`,
		[]any{uploadID, after}, func(scan func(...any) error) error {
			var e custody.Event
			var at int64
			err := scan(&e.ID, &e.UploadID, &e.OrgID, &e.PipelineID, &e.Sequence, &e.From, &e.Trigger, &e.Status, &e.Stage, &e.GateState,
				&at, &e.Cause.CredentialID, &e.Cause.RequestID, &e.Cause.TraceID)
			e.OccurredAt = moment(at)
			events = append(events, e)
			return err
		})
	return events, err
}

// Gates reads the six gates of an upload in order.
func (s queries) Gates(ctx context.Context, uploadID string) (gates []custody.GateResult, err error) {
	shown, err := s.GatesShown(ctx, uploadID)
	if err != nil {
		return nil, err
	}
	for _, g := range shown {
		result := custody.GateResult{Name: g.Name, State: g.State, StartedAt: g.StartedAt, FinishedAt: g.FinishedAt}
		if err := json.Unmarshal(g.Detail, &result.Detail); err != nil {
			return nil, err
		}
		gates = append(gates, result)
	}
	return gates, nil
}

// SetGate writes one gate's row, and what passed the content where the gate says so.
func (tx *Tx) SetGate(ctx context.Context, uploadID string, g custody.GateResult) error {
	if g.Detail == nil {
		g.Detail = map[string]any{}
	}
	var detail strings.Builder
	answered := json.NewEncoder(&detail)
	answered.SetEscapeHTML(false) // it goes out as it is kept
	if err := answered.Encode(g.Detail); err != nil {
		return err
	}
	if err := one(tx.q.Exec(ctx, `UPDATE gates SET state = $1, started_at = $2, finished_at = $3, detail = $4 WHERE upload_id = $5 AND name = $6`,
		g.State, millis(g.StartedAt), millis(g.FinishedAt), strings.TrimSuffix(detail.String(), "\n"), uploadID, g.Name)); err != nil || g.ScannedWith == "" {
		return err
	}
	return one(tx.q.Exec(ctx, `UPDATE uploads SET scanned_with = $1 WHERE upload_id = $2`, g.ScannedWith, uploadID))
}
