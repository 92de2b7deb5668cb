package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	leastFreeBytes = 1 << 30  // below, uploads fail soon
	roomyBytes     = 32 << 30 // staging and quarantine of two uploads of the largest size
	leastFiles     = 4096     // open at once: connections, parts, engines
)

// examineDisk looks at the room below the data folder, or where it would be made.
func examineDisk(data string) finding {
	f := finding{Name: "disk", Why: "an upload that does not fit is refused; it takes its size twice, in staging and quarantine"}
	var at unix.Statfs_t
	where := data
	for unix.Statfs(where, &at) != nil && where != filepath.Dir(where) {
		where = filepath.Dir(where)
	}
	free := int64(at.Bavail) * at.Bsize
	f.OK, f.Detail = free >= leastFreeBytes, bytesText(free)+" free at "+where
	switch {
	case at.Files > 0 && at.Ffree < 1000:
		f.OK, f.Detail = false, fmt.Sprintf("%d inodes free at %s", at.Ffree, where)
		f.Remedy, f.Command = "make room for more files there", "df -i "+where
	case free < leastFreeBytes:
		f.Remedy, f.Command = "make room, or name a folder on a larger disk with --data", "df -h "+where
	case free < roomyBytes:
		f.Remedy = "less than two uploads of the largest size need: give it " + bytesText(roomyBytes)
	}
	return f
}

// examineMachine looks at what every service needs of its machine.
func examineMachine(ctx context.Context, listen string) []finding {
	return []finding{examinePort(ctx, listen), examineClock(), examineLimits()}
}

func examinePort(ctx context.Context, listen string) finding {
	f := finding{Name: "port", OK: true, Detail: listen + " is free", Why: "the service cannot start where it cannot listen"}
	l, err := net.Listen("tcp", listen)
	if err == nil {
		_ = l.Close()
		return f
	}
	_, port, _ := net.SplitHostPort(listen) // checked with the settings
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && accessionAnswers(ctx, listen):
		f.Detail = listen + ": accession answers there"
	case errors.Is(err, syscall.EADDRINUSE):
		f.OK, f.Detail = false, listen+" is in use"
		f.Remedy, f.Command = "end what listens there, or choose another address with --listen", "sudo ss -ltnp 'sport = :"+port+"'"
	case errors.Is(err, syscall.EACCES):
		f.OK, f.Detail = false, listen+" may not be listened on by this user"
		f.Remedy = "choose a port from 1024 on with --listen, or give the unit AmbientCapabilities=CAP_NET_BIND_SERVICE"
	default:
		f.OK, f.Detail = false, err.Error()
		f.Remedy, f.Command = "choose an address of this machine with --listen", "ip -brief address"
	}
	return f
}

// accessionAnswers asks whoever listens there whether it is this service.
func accessionAnswers(ctx context.Context, listen string) bool {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(body), `"request_id"`)
}

// examineClock asks the kernel whether somebody keeps its clock right. In a container the machine outside does.
func examineClock() finding {
	f := finding{Name: "clock", OK: true, Detail: "synchronised", Why: "evidence, expiry and signatures carry its time"}
	var state unix.Timex
	switch status, err := unix.Adjtimex(&state); {
	case err != nil:
		f.Detail = "the kernel does not tell whether it is synchronised"
	case status == unix.TIME_ERROR || state.Status&unix.STA_UNSYNC != 0:
		f.Detail = "nobody synchronises it, as far as the kernel knows"
		f.Remedy, f.Command = "synchronise it by NTP", "sudo timedatectl set-ntp true"
	}
	return f
}

func examineLimits() finding {
	f := finding{Name: "limits", OK: true, Why: "each connection, part and engine takes a file descriptor"}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		f.Detail = "unknown"
		return f
	}
	f.Detail = fmt.Sprintf("%d files open at most", files.Max)
	if files.Max < leastFiles {
		f.OK = false
		f.Remedy, f.Command = fmt.Sprintf("allow %d at least, in a unit by LimitNOFILE=", leastFiles), "ulimit -n 65536"
	}
	return f
}
