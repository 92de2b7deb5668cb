// Package cluster runs real PostgreSQL servers for tests: throw-away, on 127.0.0.1, as another user than root.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/accession/accession/internal/storetest/port"
)

// FolderPrefix begins the name of each cluster's folder in the memory file system.
const FolderPrefix = "accession-postgres-"

// Role owns the databases of tests; it is no superuser, as in production.
const Role = "accession_test"

// Cluster is one PostgreSQL server with databases of its own.
type Cluster struct {
	dir, bin string
	address  string              // where the server listens, HOST:PORT; "" before its first start
	free     func()              // gives the port back
	account  *syscall.Credential // nil: this process's own
	server   *exec.Cmd
	exited   chan struct{} // closed when server is gone
	log      *os.File
	made     atomic.Int64

	preparing sync.Once
}

// shared is the server of a test process, started by whoever asks first.
var shared struct {
	sync.Mutex
	cluster *Cluster
}

// Run runs the tests of a package and then ends the server that Database may have started. Call it from TestMain.
func Run(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil {
		if err := shared.cluster.end(); err != nil {
			fmt.Fprintln(os.Stderr, "postgres:", err)
			code = max(code, 1)
		}
	}
	return code
}

// Database makes an empty database of Role on the server of this process and returns its URL. It is dropped when the test ends.
func Database(t testing.TB) (url string) {
	t.Helper()
	return server(t).Database(t)
}

// Prepared is Database with what prepare put into the first of them; all others of the process are copies.
func Prepared(t testing.TB, prepare func(url string)) (url string) {
	t.Helper()
	c := server(t)
	c.preparing.Do(func() {
		c.Administer(t, `CREATE DATABASE prepared OWNER `+Role+` TEMPLATE template0 ENCODING 'UTF8'`)
		prepare(c.url(Role, "prepared"))
	})
	return c.copy(t, "prepared")
}

// server is the one of this process.
func server(t testing.TB) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		c, err := start()
		if err != nil {
			t.Fatal("PostgreSQL is needed for this test (scripts/engines.sh --for-tests installs it):", err)
		}
		shared.cluster = c
	}
	return shared.cluster
}

// Start runs a server for one test alone, which may stop and start it again.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c, err := start()
	if err != nil {
		t.Fatal("PostgreSQL is needed for this test (scripts/engines.sh --for-tests installs it):", err)
	}
	t.Cleanup(func() {
		if err := c.end(); err != nil {
			t.Error("postgres:", err)
		}
	})
	return c
}

// Database makes an empty database of Role and returns its URL. It is dropped when the test ends.
func (c *Cluster) Database(t testing.TB) (url string) {
	t.Helper()
	return c.copy(t, "template0")
}

func (c *Cluster) copy(t testing.TB, template string) (url string) {
	t.Helper()
	name := fmt.Sprint("test_", c.made.Add(1))
	c.Administer(t, `CREATE DATABASE `+name+` OWNER `+Role+` TEMPLATE `+template+` ENCODING 'UTF8'`)
	t.Cleanup(func() { c.Administer(t, `DROP DATABASE `+name+` WITH (FORCE)`) })
	return c.url(Role, name)
}

// Administer runs one statement as the superuser.
func (c *Cluster) Administer(t testing.TB, statement string) {
	t.Helper()
	if err := c.administer(statement); err != nil {
		t.Fatal(err)
	}
}

// Superuser returns url for a role that row-level security does not hold.
func Superuser(url string) string { return strings.Replace(url, "//"+Role+"@", "//postgres@", 1) }

// Command is a client program of the server's version, such as pg_dump, on the database at url.
func Command(ctx context.Context, url, name string, args ...string) (*exec.Cmd, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, filepath.Join(bin, name), append(args, url)...), nil
}

// Address is where the server listens, HOST:PORT.
func (c *Cluster) Address() string { return c.address }

func (c *Cluster) url(role, database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", role, c.Address(), database)
}

func (c *Cluster) administer(statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.url("postgres", "postgres"))
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, failed := conn.Exec(ctx, s); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, conn.Close(ctx))
}

// binaries is the folder of the newest installed server.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		path, err := exec.LookPath("initdb")
		return filepath.Dir(path), err
	}
	slices.SortFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(found[len(found)-1]), nil
}

func version(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return n
}

func start() (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin}
	if os.Getuid() == 0 {
		if c.account, err = unprivileged(); err != nil {
			return nil, err
		}
	}
	// A memory file system where there is one: what tests prove here is not what a disk keeps.
	root := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		root = "/dev/shm"
	}
	if c.dir, err = os.MkdirTemp(root, FolderPrefix); err != nil {
		return nil, err
	}
	if c.account != nil {
		err = os.Chown(c.dir, int(c.account.Uid), int(c.account.Gid))
	}
	if err == nil {
		err = c.command("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N").Run()
	}
	if err == nil {
		c.log, err = os.Create(filepath.Join(c.dir, "log"))
	}
	if err == nil {
		err = c.Up()
	}
	if err == nil {
		err = c.administer(`CREATE ROLE ` + Role + ` LOGIN`)
	}
	if err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// unprivileged is somebody as whom PostgreSQL runs; as root it does not.
func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
	}
	return nil, errors.New("there is no user postgres or nobody")
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.account, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

// patience is for a machine that is busy with much else.
const patience = 2 * time.Minute

// Up starts the server and returns once it answers; after Down on the same port, which nobody else gets in between.
func (c *Cluster) Up() error {
	if c.address == "" {
		var err error
		if c.address, c.free, err = port.Keep(); err != nil {
			return err
		}
	}
	host, number, err := net.SplitHostPort(c.address)
	if err != nil {
		return err
	}
	cmd := c.command("postgres", "-D", c.data(), "-p", number, "-k", "", "-h", host,
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=64MB", "-c", "max_connections=200",
		"-c", "autovacuum_naptime=1d", "-c", "deadlock_timeout=100ms", "-c", "log_min_messages=fatal", "-c", "log_min_error_statement=fatal")
	cmd.Stdout, cmd.Stderr = c.log, c.log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	c.server, c.exited = cmd, exited
	go func() {
		_ = cmd.Wait() // its exit code says how it was told to end
		close(exited)
	}()
	for began := time.Now(); time.Since(began) < patience; {
		if err = c.command("pg_isready", "-q", "-h", host, "-p", number).Run(); err == nil {
			return nil
		}
		select {
		case <-exited:
			return c.notStarted(err)
		case <-time.After(25 * time.Millisecond): // pg_isready is how PostgreSQL says it
		}
	}
	return c.notStarted(err)
}

func (c *Cluster) notStarted(err error) error {
	said, _ := os.ReadFile(filepath.Join(c.dir, "log"))
	return fmt.Errorf("the server does not start: %w: %s", err, said)
}

// Down ends the server at once, as a crash of it would: connections break, and what was committed stays.
func (c *Cluster) Down() error {
	if c.server == nil {
		return nil
	}
	err := c.server.Process.Signal(syscall.SIGQUIT)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil // it could not start
	}
	<-c.exited
	c.server = nil
	return err
}

func (c *Cluster) end() error {
	err := c.Down()
	if c.free != nil {
		c.free()
	}
	if c.log != nil {
		err = errors.Join(err, c.log.Close())
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
