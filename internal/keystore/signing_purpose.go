package keystore

import (
	"context"
	"fmt"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

// ReadSigningSecrets returns the keys of a purpose that still verify, newest first; none is made where there is none.
func (s *Store) ReadSigningSecrets(ctx context.Context, purpose string) ([]custody.SigningKey, error) {
	s.using.RLock()
	defer s.using.RUnlock()
	return s.signingSecrets(ctx, purpose)
}

// RetireSigningPurpose destroys every key of a purpose, the newest too: what it signed for is gone.
func (s *Store) RetireSigningPurpose(ctx context.Context, purpose string) error {
	if err := s.db.InTx(ctx, func(q sqldb.Querier) error {
		_, err := q.Exec(ctx, `UPDATE signing_keys SET retired_at = $1, wrapped = $2 WHERE purpose = $3 AND retired_at = 0`, custody.Now().UnixMilli(), []byte{}, purpose)
		return err
	}); err != nil {
		return err
	}
	if db, ok := s.db.(scrubber); ok {
		if err := db.Scrub(ctx); err != nil {
			return fmt.Errorf("overwrite retired keys: %w", err)
		}
	}
	return nil
}
