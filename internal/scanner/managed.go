package scanner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	defaultCheckEvery = time.Minute
	readyPoll         = 50 * time.Millisecond
	firstRestart      = 250 * time.Millisecond
	lastRestart       = 15 * time.Second
	steady            = time.Minute // after so long the next death counts as the first
)

// ManagedConfig says how to run a clamd.
type ManagedConfig struct {
	// Dir is a folder for this clamd alone: configuration and socket. Scratch files, which hold content in clear while it is
	// scanned, lie in memory, and in Dir where InspectScratch finds none. It is made when missing, set to 0700, and given to
	// the account clamav when this process is root.
	Dir        string
	Database   string        // folder of signatures; DefaultDatabase when empty
	Binary     string        // name or path of clamd; "clamd" when empty
	MaxThreads int           // scans at once; twice the processors when 0
	CheckEvery time.Duration // how often health and signatures are looked at, at least 1 s; 1 minute when 0
	Log        *slog.Logger  // required
}

// Managed is a clamd that runs as a child of this process, as the account clamav when this process is root. It is
// started again, after growing delays up to 15 s, when it dies, and when clamd or its signatures are installed
// later. It is safe for concurrent use.
type Managed struct {
	config    ManagedConfig
	folder    *os.File
	scratches scratches
	clamd     *Clamd
	cancel    context.CancelFunc
	done      chan struct{}
	look      chan struct{} // wakes the watch

	mu       sync.Mutex
	ready    bool
	reason   string        // why it is not ready
	engine   Engine        // while ready
	database Database      // as it was before clamd loaded it
	refused  string        // fingerprint of signatures that clamd refused to load
	pid      int           // 0 while no child runs
	changed  chan struct{} // closed and replaced when any of the above changes
}

// StartManaged starts to manage a clamd and returns at once: loading a full database takes some 20 s. Until then, and
// whenever clamd is down, Scan answers ErrUnavailable with the reason. That clamd or its signatures are missing is such a
// reason, not an error here; the error is about Dir or a missing Log. The caller must Close it.
func StartManaged(ctx context.Context, config ManagedConfig) (*Managed, error) {
	if config.Dir == "" || config.Log == nil {
		return nil, errors.New("managed clamd: give it a folder and a logger")
	}
	config.Database = cmp.Or(config.Database, DefaultDatabase)
	config.MaxThreads = cmp.Or(config.MaxThreads, 2*runtime.NumCPU())
	config.CheckEvery = max(time.Second, cmp.Or(config.CheckEvery, defaultCheckEvery))
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of clamd: %w", err)
	}
	if err := os.Chmod(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of clamd private: %w", err)
	}
	if err := clearFolder(config.Dir); err != nil {
		return nil, err
	}
	folder, err := os.Open(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("open folder of clamd: %w", err)
	}
	scratch, err := scratchesOf(config.Dir, folder)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	if !scratch.memory.Memory {
		config.Log.Warn("content is in clear on disk while it is scanned", "advice", scratch.memory.Advice)
	}
	as, _ := account() // run tells what is wrong with it
	if err := scratch.clear(as); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &Managed{
		config: config, folder: folder, scratches: scratch, cancel: cancel, done: make(chan struct{}), look: make(chan struct{}, 1),
		clamd: &Clamd{network: "unix", zone: time.UTC,
			address: fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName)},
		reason: "clamd is starting", changed: make(chan struct{}),
	}
	go m.supervise(ctx)
	return m, nil
}

// Close stops clamd: SIGTERM, and SIGKILL after 3 s. It removes the scratch files and returns when the process is gone.
// Ending the context of StartManaged stops clamd in the same way.
func (m *Managed) Close() error {
	m.cancel()
	<-m.done
	return m.folder.Close()
}

// Scan is Clamd.Scan on the managed clamd. While clamd is not ready the error wraps ErrUnavailable and says why.
func (m *Managed) Scan(ctx context.Context, content io.ReaderAt, size int64) (Report, error) {
	if _, err := m.Engine(); err != nil {
		return Report{}, err
	}
	loaded := m.loaded() // a reload meanwhile must not make the report say more than was looked with
	report, err := m.clamd.Scan(ctx, content, size)
	if err != nil {
		return Report{}, err
	}
	report.Engine = describe(report.Engine, loaded)
	return report, nil
}

// ScanStream is Clamd.ScanStream on the managed clamd.
func (m *Managed) ScanStream(ctx context.Context, content io.Reader) (Report, error) {
	if _, err := m.Engine(); err != nil {
		return Report{}, err
	}
	return m.clamd.ScanStream(ctx, content)
}

// Health is Clamd.Health on the managed clamd.
func (m *Managed) Health(ctx context.Context) (Engine, error) {
	if _, err := m.Engine(); err != nil {
		return Engine{}, err
	}
	loaded := m.loaded()
	engine, err := m.clamd.Health(ctx)
	if err != nil {
		return Engine{}, err
	}
	return describe(engine, loaded), nil
}

// Engine returns the engine as it was at the last check, or ErrUnavailable with the reason. It does not ask clamd.
func (m *Managed) Engine() (Engine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		return Engine{}, unavailable("%s", m.reason)
	}
	return m.engine, nil
}

// WaitReady returns when clamd is ready, or when ctx ends or m is closed: then the error wraps ErrUnavailable and says
// what clamd was waiting for.
func (m *Managed) WaitReady(ctx context.Context) error {
	return m.await(ctx, func() bool { return m.ready })
}

// await returns when condition holds; it is called with the lock held.
func (m *Managed) await(ctx context.Context, condition func() bool) error {
	for {
		m.mu.Lock()
		ok, reason, changed := condition(), m.reason, m.changed
		m.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return unavailable("%s: %w", reason, context.Cause(ctx))
		case <-m.done:
			return unavailable("clamd is stopped")
		}
	}
}

func (m *Managed) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

// down notes why clamd cannot scan now, and logs it once.
func (m *Managed) down(reason string) {
	news := false
	m.set(func() {
		news = m.ready || m.reason != reason
		m.ready, m.reason, m.engine = false, reason, Engine{}
	})
	if news {
		m.config.Log.Warn("malware scanner is not ready", "reason", reason)
	}
}

func (m *Managed) loaded() Database {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.database
}

// describe adds what the folder of signatures tells and clamd does not: the date of test signatures, main, and which files.
func describe(engine Engine, loaded Database) Engine {
	engine.FullDatabase = engine.FullDatabase && loaded.Full
	if engine.SignatureDate.IsZero() {
		engine.SignatureDate = loaded.Date
	}
	engine.Loaded = loaded.Fingerprint
	return engine
}

// supervise runs one clamd after the other until ctx ends.
func (m *Managed) supervise(ctx context.Context) {
	defer close(m.done)
	// The kernel kills the child when the thread that started it ends: keep this one, or a clamd dies for no reason.
	runtime.LockOSThread()
	delay := firstRestart
	for ctx.Err() == nil {
		started := time.Now()
		reason := m.run(ctx)
		if ctx.Err() != nil {
			break
		}
		m.down(reason)
		if time.Since(started) > steady {
			delay = firstRestart
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, lastRestart)
	}
	m.down("clamd is stopped")
	if err := clearFolder(m.config.Dir); err != nil {
		m.config.Log.Error("clear folder of clamd", "error", err)
	}
}

// run runs one clamd until it ends or ctx does, and returns the reason why it is down.
func (m *Managed) run(ctx context.Context) string {
	binary, err := findBinary(m.config.Binary)
	if err != nil {
		return adviceInstall
	}
	database := InspectDatabase(m.config.Database)
	if !database.Usable {
		return database.Advice
	}
	as, err := account()
	if err != nil {
		m.config.Log.Warn("clamd runs as root", "error", err)
	}
	if advice := readable(m.config.Database, as); advice != "" {
		return advice
	}
	signatures, err := os.Open(m.config.Database)
	if err != nil {
		return adviceReadable(m.config.Database)
	}
	defer signatures.Close()
	conf := managedConf(m.config.MaxThreads)
	if err := prepareFolder(m.config.Dir, as, conf); err != nil {
		m.config.Log.Error("prepare folder of clamd", "error", err)
		return "the folder of clamd cannot be prepared: see the log"
	}
	scratch, err := m.scratches.open(as)
	if err != nil {
		m.config.Log.Error("prepare scratch folder of clamd", "error", err)
		return "the scratch folder of clamd cannot be prepared: see the log"
	}
	defer func() { // clamd is gone
		if err := errors.Join(scratch.Close(), m.scratches.clear(as)); err != nil {
			m.config.Log.Error("clear scratch folder of clamd", "error", err)
		}
	}()

	ended := make(chan bool, 1)
	out := &logLines{log: m.config.Log, reloaded: func(ok bool) {
		select {
		case ended <- ok:
		default: // nobody waits for it
		}
	}}
	cmd := command(ctx, binary, m.folder, signatures, scratch, as, out)
	if err := cmd.Start(); err != nil {
		m.config.Log.Error("start clamd", "error", err)
		return "clamd does not start: see the log"
	}
	m.set(func() { m.pid, m.database, m.refused = cmd.Process.Pid, database, "" })
	m.down("the signature database is loading")

	alive, dead := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { m.watch(alive, ended) })
	err = cmd.Wait()
	dead()
	watch.Wait()
	m.set(func() { m.pid = 0 })
	if complaint := out.lastComplaint(); complaint != "" {
		return fmt.Sprintf("clamd stopped (%s) and is started again", complaint)
	}
	m.config.Log.Warn("clamd stopped", "error", err)
	return "clamd stopped and is started again"
}

// watch makes a running clamd ready when it is healthy, and looks again from time to time, at its signatures too.
func (m *Managed) watch(ctx context.Context, reloads <-chan bool) {
	for answers := false; ; { // once it does, it has loaded what was there when it started, good or not
		if answers {
			m.reload(ctx, reloads)
		}
		engine, err := m.clamd.Health(ctx)
		wait := m.config.CheckEvery
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			answers = true
			m.up(engine)
		case errors.Is(err, errUnhealthy):
			answers = true
			m.down(strings.TrimPrefix(err.Error(), ErrUnavailable.Error()+": "))
		default:
			// No answer: still loading, or busy with long scans. A scan finds out for itself.
			if _, notReady := m.Engine(); notReady != nil {
				wait = readyPoll
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-m.look:
		}
	}
}

func (m *Managed) up(engine Engine) {
	engine = describe(engine, m.loaded())
	news := false
	m.set(func() {
		news = !m.ready || engine != m.engine
		m.ready, m.reason, m.engine = true, "", engine
	})
	if !news {
		return
	}
	level := slog.LevelInfo
	message := "malware scanner is ready"
	if !engine.FullDatabase {
		level, message = slog.LevelWarn, "malware scanner has no full signature database: it protects from next to nothing"
	}
	m.config.Log.Log(context.Background(), level, message, "engine", engine.Name, "version", engine.Version,
		"signatures", engine.SignatureVersion, "signatures_date", engine.SignatureDate)
}
