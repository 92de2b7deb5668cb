package extract

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/landlock-lsm/go-landlock/landlock"
	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// cage is what a worker may still do once it is locked in.
type cage struct {
	readable []string // files and folders it may read; Landlock refuses every other
	calls    func() ([]seccomp.Filter, error)
	files    uint64 // open files
}

// readerCage holds the extraction worker: it computes, reads and writes the pipes it has, and nothing more.
var readerCage = cage{calls: readerCalls, files: 32}

// engineCage holds tesseract: it also reads its program, libraries and language data.
func engineCage(program string) cage {
	return cage{
		readable: []string{
			"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/dev/null", "/dev/urandom",
			filepath.Dir(filepath.Dir(program)), // a prefix outside /usr
		},
		calls: engineCalls,
		files: 64,
	}
}

// close locks this process in, for good: no new privileges, resource limits, files (Landlock), system calls (seccomp).
// A wall that cannot be raised is an error, unless missing ones are allowed and the kernel does not have it.
func (w walls) close(c cage) error {
	if err := kernel.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	limits := []struct{ resource, value uint64 }{
		{unix.RLIMIT_CPU, uint64((w.cpu + time.Second - 1) / time.Second)},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_CORE, 0},
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
	if err := w.closeFiles(c.readable); err != nil {
		return err
	}
	return w.closeCalls(c.calls)
}

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
func (w walls) closeFiles(readable []string) error {
	abi := landlockABI()
	if abi < 1 {
		if w.allowMissing {
			return nil
		}
		return errors.New("this kernel has no Landlock (Linux 5.13 or newer with landlock in the lsm= list is needed)")
	}
	var rules []landlock.Rule
	for _, path := range readable {
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
	if err := landlockLevels[min(abi, len(landlockLevels))-1].Restrict(rules...); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

func (w walls) closeCalls(calls func() ([]seccomp.Filter, error)) error {
	if !seccomp.Supported() {
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

const (
	cloneThread = unix.CLONE_THREAD
	protExec    = unix.PROT_EXEC
)

// noClone3 comes first and alone: clone3 hides its flags behind a pointer, "not there" makes every C library fall back to
// clone, whose flags a filter can read. One filter per group, because a group answers for every call that it is asked.
func noClone3() seccomp.Filter {
	return filter(seccomp.ActionAllow, seccomp.SyscallGroup{
		Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"},
	})
}

// readerCalls allows what a Go program needs to compute: memory, threads, time, its open files. New threads, no new
// processes; no memory that becomes code.
func readerCalls() ([]seccomp.Filter, error) {
	names, err := known(
		"read", "write", "pread64", "readv", "writev", "close", "fstat", "newfstatat", "lseek", "munmap", "madvise", "brk", "mincore",
		"mremap", "futex", "nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday", "sched_yield", "sched_getaffinity", "getpid",
		"gettid", "tgkill", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "clone3", "exit", "exit_group",
		"getrandom", "restart_syscall", "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "fcntl", "getrusage", "rseq",
		"set_robust_list", "timer_create", "timer_settime", "timer_delete", "uname", "membarrier",
	)
	if err != nil {
		return nil, err
	}
	noCode := seccomp.ArgumentConditions{{Argument: 2, Operation: seccomp.BitsNotSet, Value: protExec}}
	return []seccomp.Filter{noClone3(), filter(seccomp.ActionErrno, seccomp.SyscallGroup{
		Action: seccomp.ActionAllow,
		Names:  names,
		NamesWithCondtions: []seccomp.NameWithConditions{
			{Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: cloneThread}}},
			{Name: "mmap", Conditions: noCode},
			{Name: "mprotect", Conditions: noCode},
		},
	})}, nil
}

// engineCalls refuses tesseract what an image needs no system call for. It is a list of refusals, not of permissions: what its
// libraries call differs between distributions, and Landlock keeps its files apart.
func engineCalls() ([]seccomp.Filter, error) {
	names, err := known(
		"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg",
		"fork", "vfork", "kill", "tkill", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "ptrace", "process_vm_readv",
		"process_vm_writev", "process_madvise", "bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register",
		"unshare", "setns", "mount", "umount2", "move_mount", "open_tree", "fsopen", "fsmount", "fspick", "mount_setattr", "pivot_root",
		"chroot", "keyctl", "add_key", "request_key", "userfaultfd", "kexec_load", "kexec_file_load", "init_module", "finit_module",
		"delete_module", "open_by_handle_at", "name_to_handle_at", "truncate", "ftruncate", "memfd_create", "memfd_secret", "setsid",
		"setpgid", "shmget", "msgget", "semget", "mq_open", "personality", "reboot", "swapon", "swapoff", "acct", "syslog", "quotactl",
		"setrlimit", "inotify_init1", "fanotify_init",
	)
	if err != nil {
		return nil, err
	}
	return []seccomp.Filter{noClone3(), filter(seccomp.ActionAllow, seccomp.SyscallGroup{
		Action: seccomp.ActionErrno,
		Names:  names,
		NamesWithCondtions: []seccomp.NameWithConditions{
			{Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsNotSet, Value: cloneThread}}},
		},
	})}, nil
}

func filter(otherwise seccomp.Action, group seccomp.SyscallGroup) seccomp.Filter {
	return seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy:     seccomp.Policy{DefaultAction: otherwise, Syscalls: []seccomp.SyscallGroup{group}},
	}
}

// known leaves out the calls that this processor's Linux does not have (arm64 has no fork).
func known(names ...string) ([]string, error) {
	info, err := arch.GetInfo(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, found := info.SyscallNames[name]
		return !found
	}), nil
}
