//go:build misbehaving

package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/accession/accession/internal/custody"
)

// MisbehaveEnvironment names the variable with a folder that says which call to a database goes wrong. The file "plan" in it holds
// "ID DATABASE CALL N FAULT WHAT": the N-th call of that kind about WHAT since that ID stands there, counted from 1. WHAT is the statement;
// of begin, commit and scrub, which have none, the function that asked. Every call is written to ID.calls, as
// "DATABASE CALL N FAULT WHAT", with - for no fault. Without a plan nothing goes wrong and nothing is written.
//
//	error    every call   it does nothing and fails
//	slow     every call   it does nothing, and fails when its caller's time or the longest that a database takes is over
//	cut      each         it fails after the first row
//	lost     commit       nothing is done, and whether it is nobody knows
//	doubt    commit       it is done, and whether it is nobody knows
const MisbehaveEnvironment = "ACCESSION_DATABASE_FAULTS"

// slowest is as long as PostgreSQL lets a statement run.
const slowest = 10 * time.Second

var errMisbehaved = errors.New("injected fault")

var plan = struct {
	sync.Mutex
	folder string
	id     string
	calls  map[string]int
}{folder: os.Getenv(MisbehaveEnvironment)}

var faultsOf = map[string]string{
	"begin": "error slow", "exec": "error slow", "row": "error slow", "each": "error slow cut", "commit": "error slow lost doubt", "scrub": "error slow",
}

// Misbehave has db fail as the plan says; without a folder for plans it returns db.
func Misbehave(name string, db DB) DB {
	if plan.folder == "" {
		return db
	}
	return misbehaving{db, name}
}

type misbehaving struct {
	DB
	name string
}

// fault counts a call and tells what is to go wrong with it, if anything.
func (m misbehaving) fault(call, what string) string {
	plan.Lock()
	defer plan.Unlock()
	text, err := os.ReadFile(filepath.Join(plan.folder, "plan"))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	words := strings.SplitN(strings.TrimSpace(string(text)), " ", 6)
	if err != nil || len(words) != 6 || words[4] != "-" && !strings.Contains(" "+faultsOf[words[2]]+" ", " "+words[4]+" ") {
		panic("the plan of faults says: " + string(text)) // a test that goes wrong nowhere proves nothing
	}
	if plan.id != words[0] {
		plan.id, plan.calls = words[0], map[string]int{}
	}
	what = strings.Join(strings.Fields(what), " ")
	kind := m.name + " " + call
	plan.calls[kind+what]++
	n, fault := plan.calls[kind+what], "-"
	if words[1]+" "+words[2] == kind && words[3] == fmt.Sprint(n) && words[5] == what {
		fault = words[4]
	}
	calls, err := os.OpenFile(filepath.Join(plan.folder, plan.id+".calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(calls, kind, n, fault, what)
		err = errors.Join(err, calls.Close())
	}
	if err != nil {
		panic(err)
	}
	return fault
}

// fail is nil where the call is to be made.
func (m misbehaving) fail(ctx context.Context, call, what string) (fault string, err error) {
	switch fault = m.fault(call, what); fault {
	case "error":
		return fault, custody.Unavailable(errMisbehaved)
	case "lost":
		return fault, custody.Unavailable(fmt.Errorf("commit: %w", errors.Join(custody.ErrInDoubt, errMisbehaved)))
	case "slow":
		over, cancel := context.WithTimeout(ctx, slowest)
		defer cancel()
		<-over.Done()
		if errors.Is(ctx.Err(), context.Canceled) {
			return fault, ctx.Err()
		}
		return fault, custody.Unavailable(errors.Join(context.DeadlineExceeded, errMisbehaved))
	}
	return fault, nil
}

// asker is the function that wants something of a database, whatever passes it on.
func asker() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		name := frame.Function[strings.LastIndex(frame.Function, "/")+1:]
		if room, _, _ := strings.Cut(name, "."); !more || room != "sqldb" && room != "sqlstore" && room != "main" {
			return name
		}
	}
}

func (m misbehaving) InTx(ctx context.Context, fn func(Querier) error) error {
	what, doubt := asker(), false
	if _, err := m.fail(ctx, "begin", what); err != nil {
		return err
	}
	err := m.DB.InTx(ctx, func(q Querier) error {
		if err := fn(misbehavingQuerier{q, m}); err != nil {
			return err
		}
		fault, err := m.fail(ctx, "commit", what)
		doubt = fault == "doubt"
		return err
	})
	if err == nil && doubt {
		err = custody.Unavailable(fmt.Errorf("commit: %w", errors.Join(custody.ErrInDoubt, errMisbehaved)))
	}
	return err
}

func (m misbehaving) Row(ctx context.Context, sql string, args []any, dst ...any) error {
	return misbehavingQuerier{m.DB, m}.Row(ctx, sql, args, dst...)
}

func (m misbehaving) Each(ctx context.Context, sql string, args []any, fn func(func(...any) error) error) error {
	return misbehavingQuerier{m.DB, m}.Each(ctx, sql, args, fn)
}

func (m misbehaving) Scrub(ctx context.Context) error {
	if _, err := m.fail(ctx, "scrub", asker()); err != nil {
		return err
	}
	return m.DB.(interface{ Scrub(context.Context) error }).Scrub(ctx)
}

func (m misbehaving) Sound(ctx context.Context) error {
	if file, ok := m.DB.(interface{ Sound(context.Context) error }); ok {
		return file.Sound(ctx)
	}
	return m.DB.Row(ctx, `SELECT 1`, nil, new(int))
}

func (m misbehaving) Connections() (open, inUse, limit int) {
	return m.DB.(interface {
		Connections() (open, inUse, limit int)
	}).Connections()
}

type misbehavingQuerier struct {
	Querier
	m misbehaving
}

func (q misbehavingQuerier) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	if _, err := q.m.fail(ctx, "exec", sql); err != nil {
		return 0, err
	}
	return q.Querier.Exec(ctx, sql, args...)
}

func (q misbehavingQuerier) Row(ctx context.Context, sql string, args []any, dst ...any) error {
	if _, err := q.m.fail(ctx, "row", sql); err != nil {
		return err
	}
	return q.Querier.Row(ctx, sql, args, dst...)
}

func (q misbehavingQuerier) Each(ctx context.Context, sql string, args []any, fn func(func(...any) error) error) error {
	fault, err := q.m.fail(ctx, "each", sql)
	if err != nil {
		return err
	}
	err = q.Querier.Each(ctx, sql, args, func(scan func(...any) error) error {
		if err := fn(scan); err != nil || fault != "cut" {
			return err
		}
		return custody.Unavailable(errMisbehaved)
	})
	if err == nil && fault == "cut" { // there was no row
		err = custody.Unavailable(errMisbehaved)
	}
	return err
}

// sqliteNow is SQLite's clock in Unix milliseconds: that of the service, which a test can put forward and back.
const sqliteNow = `(CAST(unixepoch('subsec') * 1000 AS INTEGER) + clock_is_ahead())`

func init() {
	sqlite.MustRegisterScalarFunction("clock_is_ahead", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return custody.ClockIsAhead().Milliseconds(), nil
	})
}
