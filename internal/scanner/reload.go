package scanner

import (
	"context"
	"io"
	"strings"
	"time"
)

// reloadPatience is how long clamd may take to load signatures again; a full database takes some 20 s.
const reloadPatience = 10 * time.Minute

// reloadEnded tells whether a line of clamd's log ends a reload, and how. Between the command and that line clamd goes on
// with the signatures it had. Source: ClamAV, clamd/server-th.c.
func reloadEnded(line string) (ok, ended bool) {
	switch {
	case strings.HasPrefix(line, "Activating the newly loaded database"):
		return true, true
	case strings.HasPrefix(line, "Database reload failed"):
		return false, true
	}
	return false, false
}

// Refresh lets clamd load signatures that changed, and returns once they are in use. It returns at once where none changed,
// where clamd is not ready (it loads the newest when it starts), and where clamd refused exactly these before. When ctx ends
// first the error wraps ErrUnavailable; the load goes on.
func (m *Managed) Refresh(ctx context.Context) error {
	now := InspectDatabase(m.config.Database)
	settled := func() bool {
		return !m.ready || !now.Usable || m.engine.Loaded == now.Fingerprint || m.refused == now.Fingerprint
	}
	m.mu.Lock()
	nothing := settled()
	m.mu.Unlock()
	if nothing {
		return nil
	}
	select {
	case m.look <- struct{}{}:
	default: // somebody else asked already
	}
	return m.await(ctx, settled)
}

// reload makes a clamd that answers load signatures that changed. What is loaded is what was in the folder before the command, or
// newer: then the next look finds that out.
func (m *Managed) reload(ctx context.Context, ended <-chan bool) {
	found := InspectDatabase(m.config.Database)
	m.mu.Lock()
	due := found.Usable && found.Fingerprint != m.database.Fingerprint && found.Fingerprint != m.refused
	m.mu.Unlock()
	if !due {
		return
	}
	select {
	case <-ended: // of a command that was given up
	default:
	}
	if err := m.clamd.order(ctx, "RELOAD", "RELOADING"); err != nil {
		m.config.Log.Warn("clamd does not take the order to load signatures", "error", err)
		return
	}
	late := time.NewTimer(reloadPatience)
	defer late.Stop()
	select {
	case ok := <-ended:
		if ok {
			m.set(func() { m.database, m.refused = found, "" })
			return
		}
		m.config.Log.Error("clamd refuses the changed signatures and goes on with those it had: run freshclam, and see its lines above")
		m.set(func() { m.refused = found.Fingerprint })
	case <-late.C:
		m.config.Log.Error("clamd does not say that it loaded the changed signatures", "after", reloadPatience)
	case <-ctx.Done():
	}
}

// order gives clamd a command that it answers with one word.
func (c *Clamd) order(ctx context.Context, command, want string) error {
	conn, release, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := conn.SetDeadline(time.Now().Add(c.patience())); err != nil {
		return noAnswer(ctx, "give an order", err)
	}
	if _, err := io.WriteString(conn, "z"+command+"\x00"); err != nil {
		return noAnswer(ctx, "give an order", err)
	}
	r := readReply(conn)
	if r.err != nil {
		return noAnswer(ctx, "read the answer to an order", r.err)
	}
	if r.text != want {
		return unavailable("clamd answered %q to %s", clip(r.text), command)
	}
	return nil
}

// Signatures asks which engine and signatures answer; it scans nothing. The error wraps ErrUnavailable.
func (c *Clamd) Signatures(ctx context.Context) (Engine, error) { return c.version(ctx) }

// Signatures is the engine as it was at the last check or reload. The error wraps ErrUnavailable.
func (m *Managed) Signatures(context.Context) (Engine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		return Engine{}, unavailable("%s", m.reason)
	}
	return m.engine, nil
}
