package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
)

// Inspection reads the file of a database beside the service that owns it, or of one that is stopped. It changes nothing and does
// not hold the owner up. An owner that starts meanwhile may make what it reads inconsistent: open it again then.
type Inspection struct {
	sqlQuerier
	db *sql.DB
}

// InspectSQLite opens the file at path to read it as it is.
func InspectSQLite(path string) (*Inspection, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	options := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(10000)", "query_only(1)"}}
	// Without a write-ahead log the file is all there is, and nobody has it open. SQLite would make the log's files to read it.
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		options.Set("immutable", "1")
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := db.Ping(); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), db.Close())
	}
	return &Inspection{sqlQuerier{db, &damage{}}, db}, nil
}

// Close the file.
func (i *Inspection) Close() error { return i.db.Close() }
