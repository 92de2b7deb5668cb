package sqlstore

import (
	"context"
	"encoding/json"

	"github.com/accession/accession/internal/custody"
)

// Running is how many uploads of the lane a worker has.
func (s queries) Running(ctx context.Context, lane custody.Lane) (n int, err error) {
	err = s.q.Row(ctx, `SELECT COUNT(*) FROM uploads WHERE `+due(s.d, lane)+` AND lease_until > `+s.d.Now, nil, &n)
	return n, err
}

// held is the condition on uploads u and gates g for an upload whose gate has had no answer yet: the gate's detail says why.
const held = `u.status = 'PROCESSING' AND u.due_at > 0 AND g.upload_id = u.upload_id AND g.state = 'running' AND g.detail LIKE '%"last_error"%'`

// StuckUploads counts the uploads that somebody should look at and lists up to limit of each kind: held ones, the longest first, then
// FAILED ones, the newest first.
func (s queries) StuckUploads(ctx context.Context, limit int) (stuck custody.StuckUploads, err error) {
	if err = s.q.Row(ctx, `SELECT COUNT(*) FROM uploads u JOIN gates g ON `+held, nil, &stuck.Held); err != nil {
		return stuck, err
	}
	if err = s.q.Row(ctx, `SELECT COUNT(*) FROM uploads WHERE status = 'FAILED'`, nil, &stuck.Failed); err != nil {
		return stuck, err
	}
	err = s.q.Each(ctx, `SELECT u.org_id, u.upload_id, g.name, g.detail, g.started_at FROM uploads u JOIN gates g ON `+held+`
		ORDER BY g.started_at, u.upload_id LIMIT $1`, []any{limit}, func(scan func(...any) error) error {
		u := custody.StuckUpload{Status: custody.StatusProcessing}
		var detail string
		var since int64
		if err := scan(&u.OrgID, &u.UploadID, &u.Gate, &detail, &since); err != nil {
			return err
		}
		var why struct {
			Code    string `json:"last_error"`
			Message string `json:"last_message"`
		}
		_ = json.Unmarshal([]byte(detail), &why) // a detail that cannot be read hides no upload
		u.Code, u.Message, u.Since = why.Code, why.Message, moment(since)
		stuck.Listed = append(stuck.Listed, u)
		return nil
	})
	if err != nil {
		return stuck, err
	}
	err = s.q.Each(ctx, `SELECT org_id, upload_id, failure_gate, failure_code, failure_message, updated_at FROM uploads WHERE status = 'FAILED'
		ORDER BY updated_at DESC, upload_id DESC LIMIT $1`, []any{limit}, func(scan func(...any) error) error {
		u := custody.StuckUpload{Status: custody.StatusFailed}
		var since int64
		err := scan(&u.OrgID, &u.UploadID, &u.Gate, &u.Code, &u.Message, &since)
		u.Since = moment(since)
		stuck.Listed = append(stuck.Listed, u)
		return err
	})
	return stuck, err
}
