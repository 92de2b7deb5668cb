package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accession/accession/bench/server"
	"github.com/jackc/pgx/v5"
)

// postgres is a throw-away server as it is installed, but for its address and the module that counts statements.
type postgres struct {
	dir, bin, address string
	account           *syscall.Credential // nil: this process's own
	server            *exec.Cmd
	made              int
}

func startPostgres(ctx context.Context, work string) (*postgres, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, errors.New("PostgreSQL is not installed: scripts/engines.sh --for-tests")
	}
	db := &postgres{dir: filepath.Join(work, "postgres"), bin: filepath.Dir(found[len(found)-1])}
	if err := os.Mkdir(db.dir, 0o700); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 { // as whom it does not run
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid) // numbers on Linux
		gid, _ := strconv.Atoi(u.Gid)
		db.account = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(db.dir, uid, gid); err != nil {
			return nil, err
		}
	}
	if out, err := db.command("initdb", "-D", db.dir+"/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if db.address, err = server.FreeAddress(); err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(db.address, ":")
	db.server = db.command("postgres", "-D", db.dir+"/data", "-p", port, "-k", "", "-h", "127.0.0.1", "-c", "shared_preload_libraries=pg_stat_statements", "-c", "log_min_messages=fatal")
	if err := db.server.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		if err = db.administer(ctx, `SELECT 1`); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err == nil {
		err = db.administer(ctx, `CREATE ROLE scale LOGIN`, `CREATE EXTENSION pg_stat_statements`)
	}
	if err != nil {
		db.stop()
	}
	return db, err
}

func (db *postgres) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(db.bin, name), args...)
	cmd.Dir, cmd.Env = db.dir, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: db.account, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

func (db *postgres) stop() {
	_ = db.server.Process.Signal(syscall.SIGQUIT)
	_ = db.server.Wait() // how it ends is not what is measured
}

func (db *postgres) url(role, name string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", role, db.address, name)
}

// database makes an empty one and returns its URL.
func (db *postgres) database(ctx context.Context) (string, error) {
	db.made++
	name := fmt.Sprint("scale_", db.made)
	return db.url("scale", name), db.administer(ctx, `CREATE DATABASE `+name+` OWNER scale ENCODING 'UTF8' TEMPLATE template0`)
}

func (db *postgres) administer(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, db.url("postgres", "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// counted is what the server did since it began, all databases together.
type counted struct {
	statements, commits, rows, wal int64
	seconds                        float64 // of the processor
}

func (c counted) less(before counted) counted {
	return counted{c.statements - before.statements, c.commits - before.commits, c.rows - before.rows, c.wal - before.wal, c.seconds - before.seconds}
}

func (db *postgres) counted(ctx context.Context) (c counted, err error) {
	time.Sleep(1500 * time.Millisecond) // after which sessions that are idle have told their counts
	conn, err := pgx.Connect(ctx, db.url("postgres", "postgres"))
	if err != nil {
		return c, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, `SELECT (SELECT COALESCE(SUM(calls), 0)::BIGINT FROM pg_stat_statements WHERE query NOT ILIKE 'BEGIN%' AND query NOT ILIKE 'COMMIT%' AND query NOT ILIKE '%set_config(%'),
		(SELECT SUM(xact_commit)::BIGINT FROM pg_stat_database), (SELECT SUM(tup_inserted + tup_updated + tup_deleted)::BIGINT FROM pg_stat_database),
		pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::BIGINT`).Scan(&c.statements, &c.commits, &c.rows, &c.wal)
	c.seconds = family(db.server.Process.Pid)
	return c, err
}

// size of a database in bytes.
func (db *postgres) size(ctx context.Context, url string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, strings.Replace(url, "//scale@", "//postgres@", 1))
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&n)
	return n, err
}

// family is the processor time of a process, of its children, and of those of them that ended.
func family(pid int) (seconds float64) {
	seconds = server.Processor(pid, 4)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		id, _, _ := strings.Cut(string(raw), " (")
		_, rest, _ := strings.Cut(string(raw), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(id) // the kernel wrote it
			seconds += server.Processor(child, 4)
		}
	}
	return seconds
}
