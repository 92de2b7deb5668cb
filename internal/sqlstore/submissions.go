package sqlstore

import (
	"context"
	"encoding/json"

	"github.com/accession/accession/internal/custody"
)

// NameUpload gives a nameless reservation its filename and consent; ErrConflict where it is no longer one.
func (tx *Tx) NameUpload(ctx context.Context, u custody.Upload) error {
	consent, err := json.Marshal(u.Consent)
	if err != nil {
		return err
	}
	return one(tx.q.Exec(ctx, `UPDATE uploads SET filename = $1, consent = $2 WHERE upload_id = $3 AND status = 'INITIATED' AND filename = ''`,
		u.Filename, string(consent), u.ID))
}
