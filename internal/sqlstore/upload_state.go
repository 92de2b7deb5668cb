package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/accession/accession/internal/custody"
)

// UploadState reads what a status tells of an upload of one organization, but for its gates and its withdrawal; ErrNotFound where
// there is none, or it is somebody else's. It is read more often than anything else, and each column costs: no more are read than
// are told.
func (s queries) UploadState(ctx context.Context, orgID, uploadID string) (u custody.UploadState, err error) {
	u.ID, u.OrgID = uploadID, orgID
	var created, updated, expires int64
	var gate, code, message string
	retention := custody.Retention{OrgID: orgID}
	if err := s.q.Row(ctx, `SELECT u.pipeline_id, u.status, u.sequence, u.filename, u.size_bytes, u.part_size_bytes, u.received_bytes, u.next_part,
		u.created_at, u.updated_at, u.expires_at, u.failure_gate, u.failure_code, u.failure_message, o.retention_days
		FROM uploads u JOIN organizations o ON o.org_id = u.org_id WHERE u.upload_id = $1`+ofOrganization("u.org_id"), []any{uploadID, orgID},
		&u.PipelineID, &u.Status, &u.Sequence, &u.Filename, &u.SizeBytes, &u.PartSizeBytes, &u.ReceivedBytes, &u.NextPart,
		&created, &updated, &expires, &gate, &code, &message, &retention.Days); err != nil {
		return custody.UploadState{}, err
	}
	u.CreatedAt, u.UpdatedAt, u.ExpiresAt = moment(created), moment(updated), moment(expires)
	if code != "" {
		u.Failure = &custody.Failure{Gate: custody.GateName(gate), Code: code, Message: message}
	}
	switch u.Status {
	case custody.StatusWithdrawing, custody.StatusWithdrawn:
	default:
		u.RetainedUntil = retention.Until(u.CreatedAt)
	}
	return u, nil
}

// GatesShown reads the six gates of an upload in order, to be answered as they are kept.
func (s queries) GatesShown(ctx context.Context, uploadID string) ([]custody.GateShown, error) {
	gates := make([]custody.GateShown, 0, len(custody.Gates))
	err := s.q.Each(ctx, `SELECT name, state, started_at, finished_at, detail FROM gates WHERE upload_id = $1 ORDER BY position`, []any{uploadID}, func(scan func(...any) error) error {
		var g custody.GateShown
		var started, finished int64
		var detail string
		err := scan(&g.Name, &g.State, &started, &finished, &detail)
		if err == nil && (!strings.HasPrefix(detail, "{") || !json.Valid([]byte(detail))) {
			err = fmt.Errorf("gate %s of %s: its detail is damaged", g.Name, uploadID)
		}
		g.StartedAt, g.FinishedAt, g.Detail = moment(started), moment(finished), json.RawMessage(detail)
		gates = append(gates, g)
		return err
	})
	return gates, err
}
