package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel stands between a service and its file systems: it hears of every file and folder that the service makes durable, and may
// answer with an I/O error instead, or later. The service is the real binary; seccomp hands its calls of fsync, fdatasync and syncfs
// to the test.
type kernel struct {
	over   chan struct{} // closed when the service is gone
	t      testing.TB
	socket string

	mu     sync.Mutex
	synced []string
	broken func(path string) bool // nil: nothing is
	slow   func(path string) bool // whose syncs wait for release; nil: none
	held   []func()               // let go on what waits
}

// wholeFileSystem stands before the path that a syncfs was made through.
const wholeFileSystem = "file system of "

const (
	kernelSocket = "ACCESSION_TEST_KERNEL" // where the one who is watched sends the descriptor
	kernelBinary = "ACCESSION_TEST_BINARY" // what it becomes then
)

// This test binary, started in place of the service, becomes the service once its calls are watched.
func init() {
	if os.Getenv(kernelSocket) == "" {
		return
	}
	fmt.Fprintln(os.Stderr, becomeWatched())
	os.Exit(1)
}

func becomeWatched() error {
	runtime.LockOSThread() // the filter is the thread's, which takes it with it into the service
	load := unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}
	is := func(call uint32, yes uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, K: call}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{load, is(unix.SYS_FSYNC, 3), is(unix.SYS_FDATASYNC, 2), is(unix.SYS_SYNCFS, 1), answer(unix.SECCOMP_RET_ALLOW), answer(unix.SECCOMP_RET_USER_NOTIF)}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	conn, err := net.Dial("unix", os.Getenv(kernelSocket))
	if err != nil {
		return err
	}
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte{0}, unix.UnixRights(int(fd)), nil); err != nil {
		return err
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the other side listens
		return err
	}
	unix.CloseOnExec(int(fd))
	binary := os.Getenv(kernelBinary)
	for _, name := range []string{kernelSocket, kernelBinary} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	return syscall.Exec(binary, append([]string{binary}, os.Args[1:]...), os.Environ())
}

// watch makes o start a service whose syncs k hears of.
func watch(t testing.TB, o *options) *kernel {
	t.Helper()
	dir, err := os.MkdirTemp("", "kernel") // short: a socket's path has at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	k := &kernel{t: t, socket: filepath.Join(dir, "s"), over: make(chan struct{})}
	l, err := net.Listen("unix", k.socket)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { k.serve(conn.(*net.UnixConn)) })
		}
	})
	t.Cleanup(func() { // after the service is gone: that cleanup was registered later
		_ = l.Close()
		close(k.over)
		serving.Wait()
		_ = os.RemoveAll(dir)
	})
	if o.binary == "" {
		o.binary = binary
	}
	o.env = append(o.env, kernelSocket+"="+k.socket, kernelBinary+"="+o.binary)
	o.binary = os.Args[0]
	return k
}

// The kernel's own words. (seccomp_unotify(2).)
type (
	seccompNotification struct {
		id         uint64
		pid, flags uint32
		call       int32
		arch       uint32
		at         uint64
		args       [6]uint64
	}
	seccompAnswer struct {
		id    uint64
		value int64
		error int32
		flags uint32
	}
)

const (
	seccompReceive  = 0xc0502100
	seccompSend     = 0xc0182101
	seccompContinue = 1
)

func (k *kernel) serve(conn *net.UnixConn) {
	defer conn.Close()
	fd, err := receiveDescriptor(conn)
	if err != nil {
		k.t.Errorf("the watched service: %v", err)
		return
	}
	defer unix.Close(fd)
	if _, err := conn.Write([]byte{0}); err != nil {
		k.t.Errorf("the watched service: %v", err)
		return
	}
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, 200)
		if err == unix.EINTR {
			continue
		}
		if n == 0 { // silence; a process that outlives the service must not outlive the test
			select {
			case <-k.over:
				return
			default:
				continue
			}
		}
		if ready[0].Revents&unix.POLLIN == 0 { // nobody is left who could ask
			return
		}
		var asked seccompNotification
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), seccompReceive, uintptr(unsafe.Pointer(&asked))); e != 0 {
			continue // it was killed, or interrupted
		}
		answer := seccompAnswer{id: asked.id, flags: seccompContinue}
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", asked.pid, asked.args[0]))
		if asked.call == unix.SYS_SYNCFS {
			path = wholeFileSystem + path
		}
		if err == nil && k.fails(path) {
			answer.error, answer.flags = -int32(unix.EIO), 0
		}
		send := func() {
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), seccompSend, uintptr(unsafe.Pointer(&answer))) // it may be gone
		}
		if !k.holds(path, send) {
			send()
		}
	}
}

func receiveDescriptor(conn *net.UnixConn) (int, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(errors.New("it sent no descriptor"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("it sent no descriptor"), err)
	}
	return fds[0], nil
}

// fails notes that path is to be made durable, and tells whether that is to fail.
func (k *kernel) fails(path string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken != nil && k.broken(path) {
		return true
	}
	k.synced = append(k.synced, path)
	return false
}

// breaks has every later sync fail of a path that ends so; "" mends all.
func (k *kernel) breaks(suffix string) {
	k.breaksIf(func(path string) bool { return suffix != "" && strings.HasSuffix(path, suffix) })
}

// breaksIf has every later sync of such a path fail.
func (k *kernel) breaksIf(broken func(path string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken = broken
}

// durable are the paths made durable since it was last asked.
func (k *kernel) durable() map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	paths := map[string]bool{}
	for _, path := range k.synced {
		paths[path] = true
	}
	k.synced = nil
	return paths
}

// holds keeps an answer back if path is slow.
func (k *kernel) holds(path string, send func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.slow == nil || !k.slow(path) {
		return false
	}
	k.held = append(k.held, send)
	return true
}

// slows has every later sync of such a path wait for release.
func (k *kernel) slows(slow func(path string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.slow = slow
}

// holding tells how many syncs wait.
func (k *kernel) holding() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.held)
}

// release lets all go on that waits, and makes nothing wait any more.
func (k *kernel) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, send := range k.held {
		send()
	}
	k.slow, k.held = nil, nil
}
