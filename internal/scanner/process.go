package scanner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// managedSettings make clamd say when it did not look. With ClamAV's defaults malware after 100 MiB of zeros, or in an
// encrypted archive, is OK. CommandReadTimeout lets content come from a slow store. There is no
// SelfCheck: Managed says when to load signatures again, so that it knows which are loaded.
// Source: architecture, "Engines".
const managedSettings = `Foreground yes
StreamMaxLength 2047M
MaxFileSize 2047M
MaxScanSize 4000M
MaxScanTime 600000
AlertExceedsMax yes
AlertEncrypted yes
ConcurrentDatabaseReload yes
CommandReadTimeout 300
ReadTimeout 300
LocalSocketMode 600
SelfCheck 0
`

// The folders clamd works in are handed to it as open files, which it names through /proc: the path of
// a socket ends at 108 bytes however long the data folder's is, and an account without rights to the folders above still
// gets in.
const (
	folderInChild   = "/proc/self/fd/3"
	databaseInChild = "/proc/self/fd/4"
	scratchInChild  = "/proc/self/fd/5"

	socketName  = "clamd.sock"
	confName    = "clamd.conf"
	scratchName = "scratch"

	// unprivileged is the account Debian makes for clamd.
	unprivileged = "clamav"
	stopGrace    = 3 * time.Second
)

func managedConf(maxThreads int) string {
	return managedSettings +
		"LocalSocket " + folderInChild + "/" + socketName + "\n" +
		"TemporaryDirectory " + scratchInChild + "\n" +
		"DatabaseDirectory " + databaseInChild + "\n" +
		"MaxThreads " + strconv.Itoa(maxThreads) + "\n"
}

// account returns the account to run clamd as when this process is root: what parses hostile content needs no rights.
// nil means the account of this process.
func account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(unprivileged)
	if err != nil {
		return nil, fmt.Errorf("look up account %s: %w", unprivileged, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user id of %s: %w", unprivileged, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("group id of %s: %w", unprivileged, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// prepareFolder makes the folder ready for a new clamd: private, of the right account, with nothing in it from the last
// run.
func prepareFolder(folder string, as *syscall.Credential, conf string) error {
	// While root works in the folder it owns it, and no link that the last clamd planted is followed.
	if as != nil {
		if err := os.Lchown(folder, os.Geteuid(), os.Getegid()); err != nil {
			return fmt.Errorf("take folder of clamd back: %w", err)
		}
	}
	if err := clearFolder(folder); err != nil {
		return err
	}
	if err := writeNew(filepath.Join(folder, confName), conf); err != nil {
		return fmt.Errorf("write configuration of clamd: %w", err)
	}
	if as == nil {
		return nil
	}
	if err := os.Lchown(folder, int(as.Uid), int(as.Gid)); err != nil {
		return fmt.Errorf("give folder of clamd to %s: %w", unprivileged, err)
	}
	return nil
}

// writeNew writes a file that must not exist yet. All may read it: the folder around it is private.
func writeNew(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Chmod(0o644), f.Close()) // whatever the umask
}

// clearFolder removes what clamd and prepareFolder put there, and nothing else.
func clearFolder(folder string) error {
	for _, name := range []string{scratchName, socketName, confName} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("clear folder of clamd: %w", err)
		}
	}
	return nil
}

// readable returns what to do when clamd could not read the signatures, "" when it can.
func readable(database string, as *syscall.Credential) string {
	entries, err := os.ReadDir(database)
	if err != nil || !mayRead(database, 5, as) {
		return adviceReadable(database)
	}
	for _, entry := range entries {
		if signatureFile[filepath.Ext(entry.Name())] && !mayRead(filepath.Join(database, entry.Name()), 4, as) {
			return adviceReadable(database)
		}
	}
	return ""
}

func adviceReadable(database string) string {
	return fmt.Sprintf("the signatures in %s cannot be read: chmod -R o+rX %[1]s", database)
}

// mayRead tells whether the account, or this process when nil, has the rights (4 read, 1 enter) on a path. The kernel only
// answers that for this process.
func mayRead(path string, rights uint32, as *syscall.Credential) bool {
	if as == nil {
		return syscall.Access(path, rights) == nil
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		return errors.Is(err, syscall.ENOENT) // freshclam replaced it meanwhile
	}
	shift := 0
	switch {
	case stat.Uid == as.Uid:
		shift = 6
	case stat.Gid == as.Gid:
		shift = 3
	}
	return stat.Mode>>shift&rights == rights
}

// command builds the child. It dies with the thread that starts it: the caller keeps that thread. When ctx ends it gets
// SIGTERM, and SIGKILL after stopGrace.
func command(ctx context.Context, binary string, folder, database, scratch *os.File, as *syscall.Credential, out *logLines) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, "--config-file="+folderInChild+"/"+confName)
	cmd.ExtraFiles = []*os.File{folder, database, scratch}
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"} // no keys of ours; the zone for dates in VERSION
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
	cmd.Cancel = func() error {
		err := cmd.Process.Signal(syscall.SIGTERM)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.WaitDelay = stopGrace
	return cmd
}

// logLines passes what clamd prints to slog, line by line, and keeps its last complaint.
type logLines struct {
	log *slog.Logger

	reloaded func(ok bool) // hears how each reload ended; nil: nobody

	mu        sync.Mutex
	rest      []byte
	complaint string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			if len(l.rest) > replyLimit { // never keep an endless line
				l.rest = nil
			}
			return len(p), nil
		}
		l.rest = rest
		if text := strings.TrimSpace(string(line)); text != "" {
			l.line(text)
		}
	}
}

func (l *logLines) line(text string) {
	level := slog.LevelDebug
	for prefix, is := range map[string]slog.Level{"ERROR: ": slog.LevelError, "LibClamAV Error: ": slog.LevelError,
		"WARNING: ": slog.LevelWarn, "LibClamAV Warning: ": slog.LevelWarn} {
		if message, ok := strings.CutPrefix(text, prefix); ok {
			text, level = message, is
			if is == slog.LevelError {
				l.complaint = clip(message)
			}
		}
	}
	l.log.Log(context.Background(), level, "clamd says", "line", text)
	if ok, ended := reloadEnded(text); ended && l.reloaded != nil {
		l.reloaded(ok)
	}
}

func (l *logLines) lastComplaint() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.complaint
}
