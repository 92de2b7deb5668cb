package extract

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// Every filter refuses what is not on its list: a call that a newer kernel brings, and the calls of the processor's other
// instruction set (32 bits), are on none.

// noClone3 comes first and alone: clone3 hides its flags behind a pointer, "not there" makes every C library fall back to
// clone, whose flags a filter can read. One filter per group, because a group answers for every call that it is asked.
func noClone3() seccomp.Filter {
	return filter(seccomp.ActionAllow, seccomp.SyscallGroup{
		Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"},
	})
}

func when(name string, argument uint32, operation seccomp.Operation, value uint64) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{{Argument: argument, Operation: operation, Value: value}}}
}

// ownOnly are calls that could reach other processes: threads but no processes, signals to itself. It keeps its id for life.
func ownOnly() []seccomp.NameWithConditions {
	return []seccomp.NameWithConditions{
		when("clone", 0, seccomp.BitsSet, unix.CLONE_THREAD),
		when("tgkill", 0, seccomp.Equal, uint64(os.Getpid())),
	}
}

// readerCalls allows what a Go program needs to compute: memory, threads, time, its open files. No memory becomes code. Of
// fcntl only what reads and sets flags: it could have the kernel send signals to others.
func readerCalls() ([]seccomp.Filter, error) {
	table, err := callTable()
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc([]string{
		"read", "write", "pread64", "readv", "writev", "close", "fstat", "newfstatat", "lseek", "munmap", "madvise", "brk", "mincore",
		"mremap", "futex", "nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday", "sched_yield", "sched_getaffinity", "getpid",
		"gettid", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "clone3", "exit", "exit_group", "getrandom",
		"restart_syscall", "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "getrusage", "rseq", "set_robust_list",
		"timer_create", "timer_settime", "timer_delete", "uname", "membarrier",
	}, func(name string) bool { return !table[name] })
	conditions := append(ownOnly(),
		when("mmap", 2, seccomp.BitsNotSet, unix.PROT_EXEC),
		when("mprotect", 2, seccomp.BitsNotSet, unix.PROT_EXEC),
	)
	conditions = append(conditions, commandsOf("fcntl", unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL)...)
	return []seccomp.Filter{noClone3(), allow(names, conditions)}, nil
}

// networkCalls reach what a cage has no door to. A socket of one's own is not among them: officeCalls needs one.
var networkCalls = []string{"connect", "sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg", "setsockopt"}

// refusedCalls are no part of reading a picture or a document, for whatever program does it.
var refusedCalls = []string{
	"fork", "vfork", "kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "ptrace",
	"process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "bpf", "perf_event_open", "io_uring_setup",
	"io_uring_enter", "io_uring_register", "unshare", "setns", "mount", "umount2", "move_mount", "open_tree", "fsopen", "fsconfig",
	"fsmount", "fspick", "mount_setattr", "pivot_root", "chroot", "keyctl", "add_key", "request_key", "userfaultfd", "kexec_load",
	"kexec_file_load", "init_module", "finit_module", "delete_module", "open_by_handle_at", "name_to_handle_at", "memfd_create",
	"memfd_secret", "setsid", "setpgid", "shmget", "shmat", "shmctl", "msgget", "msgsnd", "semget", "semop", "semtimedop", "mq_open",
	"mq_unlink", "personality", "reboot", "swapon", "swapoff", "acct", "syslog", "quotactl", "quotactl_fd", "setrlimit",
	"inotify_init", "inotify_init1", "fanotify_init", "setpriority", "sched_setaffinity", "ioprio_set", "mbind", "migrate_pages",
	"move_pages", "capset", "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid",
	"sethostname", "setdomainname", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "iopl", "ioperm", "modify_ldt",
	"lookup_dcookie", "vhangup", "uselib", "nfsservctl", "_sysctl", "mknod", "mknodat", "link", "linkat",
}

// engineCalls allows tesseract everything but what no picture needs: what its libraries call differs between distributions, and
// Landlock keeps its files apart.
func engineCalls() ([]seccomp.Filter, error) {
	return allBut(nil, refusedCalls, networkCalls, []string{
		"socket", "socketpair", "bind", "listen", "accept", "accept4", "truncate", "ftruncate",
	})
}

// allBut allows every call that is known, but for the refused ones and those that reach other processes.
func allBut(conditions []seccomp.NameWithConditions, refused ...[]string) ([]seccomp.Filter, error) {
	table, err := callTable()
	if err != nil {
		return nil, err
	}
	conditions = append(conditions, ownOnly()...)
	// Its own limits it may ask for: the first argument is the process, the third the new limit.
	conditions = append(conditions, when("prlimit64", 2, seccomp.Equal, 0))
	conditions = append(conditions, commandsOf("fcntl", unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
		unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW)...)
	for _, names := range refused {
		for _, name := range names {
			delete(table, name)
		}
	}
	for _, c := range conditions {
		delete(table, c.Name)
	}
	return []seccomp.Filter{noClone3(), allow(slices.Sorted(maps.Keys(table)), conditions)}, nil
}

// commandsOf allows a call whose second argument says what it does, for these commands.
func commandsOf(name string, commands ...int) (conditions []seccomp.NameWithConditions) {
	for _, command := range commands {
		conditions = append(conditions, when(name, 1, seccomp.Equal, uint64(command)))
	}
	return conditions
}

func allow(names []string, conditions []seccomp.NameWithConditions) seccomp.Filter {
	return filter(seccomp.ActionErrno, seccomp.SyscallGroup{Action: seccomp.ActionAllow, Names: names, NamesWithCondtions: conditions})
}

func filter(otherwise seccomp.Action, group seccomp.SyscallGroup) seccomp.Filter {
	return seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy:     seccomp.Policy{DefaultAction: otherwise, Syscalls: []seccomp.SyscallGroup{group}},
	}
}

// callTable names the system calls of this processor's Linux (arm64 has no fork).
func callTable() (map[string]bool, error) {
	info, err := arch.GetInfo(runtime.GOARCH)
	if err != nil {
		return nil, fmt.Errorf("system calls: %w", err)
	}
	table := make(map[string]bool, len(info.SyscallNames))
	for name := range info.SyscallNames {
		table[name] = true
	}
	return table, nil
}
