package extract

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// cage is what a worker may still do once it is locked in.
type cage struct {
	readable  []string // files and folders it may read; Landlock refuses every other
	private   string   // the one folder it may write in; empty: none
	fileBytes uint64   // longest file it may write there
	files     uint64   // open files
	calls     func() ([]seccomp.Filter, error)
}

// readerCage holds the extraction worker: it computes, reads and writes the pipes it has, and nothing more.
var readerCage = cage{calls: readerCalls, files: 32}

// systemFiles are what a program of the distribution needs to run at all. Nothing of the service is in them.
var systemFiles = []string{"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/dev/null", "/dev/urandom"}

// engineCage holds tesseract: it also reads its program, libraries and language data. Of a prefix outside /usr not all is
// readable: it may be somebody's home, or the whole machine.
func engineCage(program string) cage {
	c := cage{readable: systemFiles, calls: engineCalls, files: 64}
	for _, path := range []string{program, resolved(program)} {
		prefix := filepath.Dir(filepath.Dir(path))
		c.readable = append(slices.Clip(c.readable), filepath.Dir(path), filepath.Join(prefix, "lib"), filepath.Join(prefix, "lib64"),
			filepath.Join(prefix, "share", "tessdata"), filepath.Join(prefix, "share", "tesseract-ocr"))
	}
	return c
}

// resolved is where a program really is.
func resolved(program string) string {
	if path, err := filepath.EvalSymlinks(program); err == nil {
		return path
	}
	return program
}

// lockIn closes the cage and takes standard error away, so that whatever becomes of this process has no say in the service's log.
// stderr still leads there; an exec closes it.
func (w walls) lockIn(c cage) (stderr *os.File, err error) {
	if stderr, err = silence(); err == nil {
		if err = w.close(c); err == nil {
			return stderr, nil
		}
		speak(stderr)
	}
	return nil, cageError{err}
}

// close locks this process in, for good: no privileges, resource limits, files (Landlock), system calls (seccomp). A wall that
// cannot be raised is an error, unless missing ones are allowed and the kernel does not have it.
func (w walls) close(c cage) error {
	if err := dropPrivileges(); err != nil {
		return err
	}
	limits := []struct{ resource, value uint64 }{
		{unix.RLIMIT_CPU, uint64((w.cpu + time.Second - 1) / time.Second)},
		{unix.RLIMIT_FSIZE, c.fileBytes},
		{unix.RLIMIT_CORE, 1}, // not 0, which the kernel does not hold against a core dump that goes to a program
		{unix.RLIMIT_NOFILE, c.files},
	}
	if memoryLimited || len(c.readable) > 0 {
		limits = append(limits, struct{ resource, value uint64 }{unix.RLIMIT_AS, uint64(w.memory)})
	}
	for _, l := range limits {
		if l.value == 0 && (l.resource == unix.RLIMIT_CPU || l.resource == unix.RLIMIT_AS) {
			return errors.New("memory and CPU limits must be given")
		}
		if err := unix.Setrlimit(int(l.resource), &unix.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return fmt.Errorf("resource limit %d: %w", l.resource, err)
		}
	}
	if err := w.closeFiles(c); err != nil {
		return err
	}
	return w.closeCalls(c.calls)
}

// dropPrivileges gives up what a service that runs as root could still do in a cage, such as raising its limits again, and
// keeps other processes of the same account out of this one's memory.
func dropPrivileges() error {
	if err := kernel.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	header, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if _, _, err := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); err != 0 {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("memory of its own: %w", err)
	}
	return nil
}

func silence() (*os.File, error) {
	kept, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("keep standard error: %w", err)
	}
	nowhere, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/null: %w", err)
	}
	defer unix.Close(nowhere)
	if err := unix.Dup3(nowhere, 2, 0); err != nil {
		return nil, fmt.Errorf("silence standard error: %w", err)
	}
	return os.NewFile(uintptr(kept), "stderr"), nil
}

// speak gives standard error back to a process that is still this program.
func speak(stderr *os.File) { _ = unix.Dup3(int(stderr.Fd()), 2, 0) } // without it the exit code alone says what happened

// landlockLevels are what each version of the kernel's Landlock can restrict, oldest first.
var landlockLevels = []landlock.Config{
	landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8,
}

// landlockABI is 0 where the kernel has no Landlock.
func landlockABI() int {
	abi, err := kernel.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return abi
}

// closeFiles takes the strictest level the kernel has. From the first one on, every open of a file is restricted; what
// the later ones add (truncate, TCP, signals) the system call filter refuses as well.
func (w walls) closeFiles(c cage) error {
	abi := landlockABI()
	if abi < 1 {
		if w.allowMissing {
			return nil
		}
		return errors.New("this kernel has no Landlock (Linux 5.13 or newer with landlock in the lsm= list is needed)")
	}
	var rules []landlock.Rule
	for _, path := range c.readable {
		var info unix.Stat_t
		if err := unix.Stat(path, &info); errors.Is(err, unix.ENOENT) {
			continue
		} else if err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
		if info.Mode&unix.S_IFMT == unix.S_IFDIR {
			rules = append(rules, landlock.RODirs(path))
		} else {
			rules = append(rules, landlock.ROFiles(path))
		}
	}
	if c.private != "" {
		rules = append(rules, landlock.RWDirs(c.private))
	}
	if err := landlockLevels[min(abi, len(landlockLevels))-1].Restrict(rules...); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

// hasSeccomp asks for a filter without giving one: a kernel that knows filters looks for it at address 0.
func hasSeccomp() bool {
	_, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, 0)
	return err == unix.EFAULT
}

func (w walls) closeCalls(calls func() ([]seccomp.Filter, error)) error {
	if !hasSeccomp() {
		if w.allowMissing {
			return nil
		}
		return errors.New("this kernel has no seccomp filters (CONFIG_SECCOMP_FILTER is needed)")
	}
	filters, err := calls()
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	for _, f := range filters {
		if err := seccomp.LoadFilter(f); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	return nil
}
