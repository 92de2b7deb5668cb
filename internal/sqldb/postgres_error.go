package sqldb

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/accession/accession/internal/custody"
)

// PostgreSQL's words for what went wrong are classes of two characters, and three more. (PostgreSQL, appendix A.)
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014" // by statement_timeout
	readOnlyTransaction  = "25006" // a standby, after a failover
	idleInTransaction    = "25P03"
)

func postgresCode(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// conflicts tells that the transaction was rolled back because of another, and may run again.
func conflicts(err error) bool {
	code := postgresCode(err)
	return code == serializationFailure || code == deadlockDetected
}

// refused tells that the server itself took a commit back.
func refused(err error) bool {
	code := postgresCode(err)
	return strings.HasPrefix(code, "40") || strings.HasPrefix(code, "23") || errors.Is(err, pgx.ErrTxCommitRollback)
}

// disconnected tells that the server was not reached, or ended the connection.
func disconnected(err error) bool {
	if err == nil {
		return false
	}
	if code := postgresCode(err); code != "" {
		return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || code == readOnlyTransaction || code == idleInTransaction
	}
	var connecting *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connecting) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgx.ErrTxClosed)
}

// unavailable is what a caller gets to see: service_unavailable where the database did not answer or could not just now, so
// that the request may be repeated; any other error as it is.
func unavailable(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var known *custody.Error
	if errors.As(err, &known) {
		return err
	}
	code := postgresCode(err)
	switch {
	case code == "" && ctx.Err() != nil:
		return err // the caller left
	case disconnected(err), conflicts(err), errors.Is(err, custody.ErrInDoubt), errors.Is(err, context.DeadlineExceeded),
		strings.HasPrefix(code, "53"), code == lockNotAvailable, code == queryCanceled:
		return custody.Unavailable(err)
	}
	return err
}

// reset drops the idle connections after one of them was found dead: after a restart of the server all are.
func (db *Postgres) reset(err error) error {
	if !disconnected(err) {
		return err
	}
	db.mu.Lock()
	recently := time.Since(db.resetAt) < time.Second
	if !recently {
		db.resetAt = time.Now()
	}
	db.mu.Unlock()
	if !recently {
		db.pool.Reset()
	}
	return err
}
