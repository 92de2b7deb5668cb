// Package move takes an installation from one machine's stores to shared ones: rows to PostgreSQL, sealed objects to other storage.
// Nothing counts as moved that was not read back from the target and compared with the source by digest. It only ever adds to an
// empty target; the source is not changed before Finish. (Issue "scale out", docs/operations.md.)
package move

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver named "sqlite"

	"github.com/accession/accession/internal/crashpoint"
	"github.com/accession/accession/internal/custody"
)

const (
	mostParameters = 60_000 // of one statement; PostgreSQL takes 65,535
	mostRows       = 500    // of one statement
)

var (
	// ErrOccupied: the target holds rows that are not those of the source.
	ErrOccupied = errors.New("the target is in use: it holds other rows than the source")
	// ErrLayout: source and target have not the same tables and columns.
	ErrLayout = errors.New("source and target have different tables")
	// ErrDiffers: what was read back is not what was written.
	ErrDiffers = errors.New("what was read back from the target is not what the source holds")
)

// Table is one table as both sides hold it: its rows, and a digest over all of them in the order of their primary key.
type Table struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// OpenSQLite opens the file at path to read it; whoever may change it must be stopped.
func OpenSQLite(path string) (*sql.DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(10000)&_pragma=query_only(1)")
}

// OpenPostgres opens one schema for statements that may take hours, and that see the rows of all organizations.
func OpenPostgres(ctx context.Context, url, schema string) (*sql.DB, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("it is no URL of a PostgreSQL database")
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = schema
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	cfg.ConnConfig.RuntimeParams["accession.organization"] = custody.OrganizationScope(custody.AcrossOrganizations(ctx))
	return stdlib.OpenDB(*cfg.ConnConfig), nil
}

// Database moves every row of the SQLite database from into schema of the PostgreSQL database to, in one transaction: after a death
// the target holds all of them or none. Where it holds all already, nothing is written (moved is false). Errors: ErrOccupied, ErrLayout,
// ErrDiffers.
func Database(ctx context.Context, from, to *sql.DB, schema string) (tables []Table, moved bool, err error) {
	source, err := from.BeginTx(ctx, nil) // one moment of it
	if err != nil {
		return nil, false, err
	}
	defer source.Rollback()
	target, err := to.BeginTx(ctx, nil)
	if err != nil {
		return nil, false, err
	}
	defer target.Rollback()
	layouts, err := readLayout(ctx, source, target, schema)
	if err != nil {
		return nil, false, err
	}
	occupied := false
	for _, l := range layouts { // a service that is started on the target meanwhile waits
		if _, err := target.ExecContext(ctx, `LOCK TABLE `+l.name+` IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return nil, false, err
		}
	}
	for _, l := range layouts {
		var there bool
		if err := target.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM `+l.name+`)`).Scan(&there); err != nil {
			return nil, false, err
		}
		occupied = occupied || there
	}
	for _, l := range layouts {
		var want Table
		if occupied {
			want, err = l.each(ctx, source, l.sourceOrder(), func([]any) error { return nil })
		} else {
			want, err = l.copy(ctx, source, target)
		}
		if err != nil {
			return nil, false, fmt.Errorf("table %s: %w", l.name, err)
		}
		got, err := l.each(ctx, target, l.targetOrder(), func([]any) error { return nil })
		if err != nil {
			return nil, false, fmt.Errorf("table %s: %w", l.name, err)
		}
		if got != want {
			if occupied {
				return nil, false, fmt.Errorf("table %s: %w (%d rows, the source has %d)", l.name, ErrOccupied, got.Rows, want.Rows)
			}
			return nil, false, fmt.Errorf("table %s: %w", l.name, ErrDiffers)
		}
		tables = append(tables, got)
	}
	if occupied {
		return tables, false, nil
	}
	crashpoint.Hit("move: before commit")
	err = target.Commit()
	crashpoint.Hit("move: after commit")
	return tables, err == nil, err
}

// Empty tells whether schema holds no row of an installation.
func Empty(ctx context.Context, to *sql.DB, schema string) (bool, error) {
	tx, err := to.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	layouts, err := targetLayout(ctx, tx, schema)
	for _, l := range layouts {
		var there bool
		if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM `+l.name+`)`).Scan(&there); err != nil || there {
			return false, err
		}
	}
	return err == nil, err
}

// layout is a table of both sides. Names come from our own migrations.
type layout struct {
	name    string
	columns []column // in the order of their names
	key     []string
}

type column struct{ name, kind string } // kind: text, bigint, bytea

// readLayout gives the tables in an order in which each comes after those that it refers to.
func readLayout(ctx context.Context, source, target *sql.Tx, schema string) ([]layout, error) {
	layouts, err := targetLayout(ctx, target, schema)
	if err != nil {
		return nil, err
	}
	here := map[string][]string{}
	if err := rows(ctx, source, `SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND m.name <> 'goose_db_version' ORDER BY m.name, c.name`, nil, func(scan func(...any) error) error {
		var table, column string
		err := scan(&table, &column)
		here[table] = append(here[table], column)
		return err
	}); err != nil {
		return nil, err
	}
	for _, l := range layouts {
		var names []string
		for _, c := range l.columns {
			names = append(names, c.name)
		}
		if !slices.Equal(names, here[l.name]) || len(l.key) == 0 {
			return nil, fmt.Errorf("%w: %s", ErrLayout, l.name)
		}
		delete(here, l.name)
	}
	for table := range here {
		return nil, fmt.Errorf("%w: %s", ErrLayout, table)
	}
	return ordered(ctx, target, schema, layouts)
}

// targetLayout leaves out what PostgreSQL alone has and loses at a crash: the counters of rate limits, which are unlogged.
func targetLayout(ctx context.Context, target *sql.Tx, schema string) (layouts []layout, err error) {
	err = rows(ctx, target, `SELECT t.relname::TEXT, a.attname::TEXT, format_type(a.atttypid, NULL),
			COALESCE(array_position(p.indkey::SMALLINT[], a.attnum), -1)
		FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index p ON p.indrelid = t.oid AND p.indisprimary
		WHERE n.nspname = $1 AND t.relkind = 'r' AND t.relpersistence = 'p' AND t.relname <> 'goose_db_version'
		ORDER BY t.relname::TEXT COLLATE "C", a.attname::TEXT COLLATE "C"`, []any{schema}, func(scan func(...any) error) error {
		var table, kind string
		var c column
		var position int // of the column in the primary key, from 0; -1: none
		if err := scan(&table, &c.name, &kind, &position); err != nil {
			return err
		}
		c.kind = kind
		if kind != "text" && kind != "bigint" && kind != "bytea" {
			return fmt.Errorf("%w: %s.%s is of a type that SQLite does not have", ErrLayout, table, c.name)
		}
		if len(layouts) == 0 || layouts[len(layouts)-1].name != table {
			layouts = append(layouts, layout{name: table})
		}
		l := &layouts[len(layouts)-1]
		l.columns = append(l.columns, c)
		if position >= 0 {
			for len(l.key) <= position {
				l.key = append(l.key, "")
			}
			l.key[position] = c.name
		}
		return nil
	})
	return layouts, err
}

func ordered(ctx context.Context, target *sql.Tx, schema string, layouts []layout) (sorted []layout, err error) {
	refers := map[string][]string{}
	if err := rows(ctx, target, `SELECT t.relname::TEXT, r.relname::TEXT FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class r ON r.oid = c.confrelid
		JOIN pg_namespace n ON n.oid = t.relnamespace WHERE c.contype = 'f' AND n.nspname = $1`, []any{schema}, func(scan func(...any) error) error {
		var table, other string
		err := scan(&table, &other)
		refers[table] = append(refers[table], other)
		return err
	}); err != nil {
		return nil, err
	}
	placed := map[string]bool{}
	for len(sorted) < len(layouts) {
		before := len(sorted)
		for _, l := range layouts {
			ready := !placed[l.name]
			for _, other := range refers[l.name] {
				ready = ready && (placed[other] || other == l.name)
			}
			if ready {
				placed[l.name] = true
				sorted = append(sorted, l)
			}
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("%w: they refer to each other in a circle", ErrLayout)
		}
	}
	return sorted, nil
}

func (l layout) names() string {
	var names []string
	for _, c := range l.columns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// SQLite compares byte by byte, PostgreSQL only where it is told to.
func (l layout) sourceOrder() string { return strings.Join(l.key, ", ") }

func (l layout) targetOrder() string {
	order := slices.Clone(l.key)
	for i, name := range order {
		for _, c := range l.columns {
			if c.name == name && c.kind == "text" {
				order[i] += ` COLLATE "C"`
			}
		}
	}
	return strings.Join(order, ", ")
}

// each reads all rows in the order of their key into the digest of the table.
func (l layout) each(ctx context.Context, tx *sql.Tx, order string, fn func(row []any) error) (Table, error) {
	t, sum := Table{Name: l.name}, sha256.New()
	err := rows(ctx, tx, `SELECT `+l.names()+` FROM `+l.name+` ORDER BY `+order, nil, func(scan func(...any) error) error {
		row, into := make([]any, len(l.columns)), make([]any, len(l.columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := scan(into...); err != nil {
			return err
		}
		for i, c := range l.columns {
			var err error
			if row[i], err = c.value(row[i]); err != nil {
				return err
			}
			digest(sum, row[i])
		}
		t.Rows++
		return fn(row)
	})
	t.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return t, err
}

// value is what stands in a column, in the one Go type of its kind: SQLite keeps what it is given.
func (c column) value(v any) (any, error) {
	switch v := v.(type) {
	case int64:
		if c.kind == "bigint" {
			return v, nil
		}
	case string:
		if c.kind == "text" {
			return v, nil
		}
		if c.kind == "bytea" {
			return []byte(v), nil
		}
	case []byte:
		if c.kind == "bytea" {
			return append([]byte{}, v...), nil // never nil, which would be NULL: drivers give nothing for none
		}
		if c.kind == "text" {
			return string(v), nil
		}
	}
	return nil, fmt.Errorf("column %s holds a %T where %s belongs", c.name, v, c.kind)
}

// digest takes one value with its kind and length, so that no two rows look alike.
func digest(sum hash.Hash, v any) {
	switch v := v.(type) {
	case int64:
		sum.Write(binary.BigEndian.AppendUint64([]byte{'i'}, uint64(v)))
	case string:
		sum.Write(append(binary.BigEndian.AppendUint64([]byte{'t'}, uint64(len(v))), v...))
	case []byte:
		sum.Write(append(binary.BigEndian.AppendUint64([]byte{'b'}, uint64(len(v))), v...))
	}
}

func (l layout) copy(ctx context.Context, source, target *sql.Tx) (Table, error) {
	most := min(mostRows, mostParameters/len(l.columns))
	var waiting []any
	flush := func() error {
		if len(waiting) == 0 {
			return nil
		}
		var places strings.Builder
		for i := range waiting {
			switch {
			case i%len(l.columns) > 0:
				places.WriteString(", ")
			case i > 0:
				places.WriteString("), (")
			}
			places.WriteString("$" + strconv.Itoa(i+1))
		}
		_, err := target.ExecContext(ctx, `INSERT INTO `+l.name+` (`+l.names()+`) VALUES (`+places.String()+`)`, waiting...)
		waiting = waiting[:0]
		return err
	}
	t, err := l.each(ctx, source, l.sourceOrder(), func(row []any) error {
		waiting = append(waiting, row...)
		if len(waiting) < most*len(l.columns) {
			return nil
		}
		return flush()
	})
	if err != nil {
		return t, err
	}
	return t, flush()
}

// reader is a database or a transaction.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func rows(ctx context.Context, from reader, query string, args []any, fn func(scan func(...any) error) error) error {
	found, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := fn(found.Scan); err != nil {
			return err
		}
	}
	return found.Err()
}
