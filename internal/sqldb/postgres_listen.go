package sqldb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// channel is notified by a trigger of the schema at commits that somebody may wait for.
const channel = "accession"

// work is what a notification says where a row has become due; anything else only says that something changed.
const work = "work"

const (
	remindEvery  = time.Second
	quiet        = 10 * time.Second // without a word the connection is asked whether it lives
	relistenWait = 5 * time.Second  // at most between two attempts
)

// Changed is closed at the next commit here, at the next notified one elsewhere, and each second where o.Listen is set: a
// notification that was lost delays nobody for long.
func (db *Postgres) Changed() <-chan struct{} {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.changed
}

// Work is closed at the next notification that says so (triggers of the schema do), from whichever process, and each second where
// o.Listen is set. Most commits make nothing due, and looking costs a statement for each lane of each process.
func (db *Postgres) Work() <-chan struct{} {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.work
}

func (db *Postgres) broadcast() {
	db.mu.Lock()
	defer db.mu.Unlock()
	close(db.changed)
	db.changed = make(chan struct{})
}

func (db *Postgres) announce() {
	db.mu.Lock()
	defer db.mu.Unlock()
	close(db.work)
	db.work = make(chan struct{})
}

func (db *Postgres) remind(ctx context.Context) {
	tick := time.NewTicker(remindEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			db.broadcast()
			db.announce()
		case <-ctx.Done():
			return
		}
	}
}

// listen hears notifications on a connection of its own, and connects again whenever that ends.
func (db *Postgres) listen(ctx context.Context) {
	wait := 100 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := db.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		db.o.Log.WarnContext(ctx, "notifications of the database are interrupted; polling goes on", "error", err)
		if wait *= 2; time.Since(began) > quiet {
			wait = 100 * time.Millisecond
		}
		select {
		case <-time.After(min(wait, relistenWait)):
		case <-ctx.Done():
		}
	}
}

func (db *Postgres) hear(ctx context.Context) error {
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, db.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // broken, or the service stops
	}()
	if _, err := conn.Exec(connecting, `LISTEN `+channel); err != nil {
		return err
	}
	said := work // for what was notified before anybody listened
	for {
		db.broadcast()
		if said == work {
			db.announce()
		}
		if said, err = db.next(ctx, conn); err != nil {
			return err
		}
	}
}

// next returns what the next notification says.
func (db *Postgres) next(ctx context.Context, conn *pgx.Conn) (said string, err error) {
	for {
		waiting, cancel := context.WithTimeout(ctx, quiet)
		heard, err := conn.WaitForNotification(waiting)
		cancel()
		if err == nil {
			return heard.Payload, nil
		}
		if ctx.Err() != nil || !pgconn.Timeout(err) {
			return "", err
		}
		asking, cancel := context.WithTimeout(ctx, connectTimeout)
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return "", err
		}
	}
}
