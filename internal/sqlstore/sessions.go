package sqlstore

import (
	"context"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Who bears a session is not known before its row is read, so these run across organizations.

// Seats reads the seats of a session that have not expired by at, oldest first; none where there is no such session.
func (s queries) Seats(ctx context.Context, sessionHash string, at time.Time) ([]custody.Seat, error) {
	return s.seats(ctx, sessionHash, at, "")
}

// TakeSeats is the Store's Seats, and ends the session.
func (tx *Tx) TakeSeats(ctx context.Context, sessionHash string, at time.Time) ([]custody.Seat, error) {
	seats, err := tx.seats(ctx, sessionHash, at, tx.d.ForUpdate)
	if err != nil {
		return nil, err
	}
	_, err = tx.q.Exec(ctx, `DELETE FROM portal_sessions WHERE session_hash = $1`, sessionHash)
	return seats, err
}

func (s queries) seats(ctx context.Context, sessionHash string, at time.Time, lock string) (seats []custody.Seat, err error) {
	err = s.q.Each(ctx, `SELECT role, credential_id, org_id, admin_proof, created_at, expires_at FROM portal_sessions
		WHERE session_hash = $1 AND expires_at > $2 ORDER BY created_at, role`+lock, []any{sessionHash, millis(at)}, func(scan func(...any) error) error {
		var seat custody.Seat
		var created, expires int64
		if err := scan(&seat.Role, &seat.CredentialID, &seat.OrgID, &seat.AdminProof, &created, &expires); err != nil {
			return err
		}
		seat.CreatedAt, seat.ExpiresAt = moment(created), moment(expires)
		seats = append(seats, seat)
		return nil
	})
	return seats, err
}

// InsertSeat adds a seat to a session that has none of its role.
func (tx *Tx) InsertSeat(ctx context.Context, sessionHash string, seat custody.Seat) error {
	_, err := tx.q.Exec(ctx, `INSERT INTO portal_sessions (session_hash, role, credential_id, org_id, admin_proof, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		sessionHash, seat.Role, seat.CredentialID, seat.OrgID, seat.AdminProof, millis(seat.CreatedAt), millis(seat.ExpiresAt))
	return err
}

// ForgetSessions deletes what expired by at.
func (tx *Tx) ForgetSessions(ctx context.Context, at time.Time) error {
	_, err := tx.q.Exec(ctx, `DELETE FROM portal_sessions WHERE expires_at <= $1`, millis(at))
	return err
}
