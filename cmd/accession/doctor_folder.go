package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// examineFolder looks at the data folder: that it is there, its own user's, and writable.
func examineFolder(data string) finding {
	f := finding{Name: "data folder", Detail: data, Why: "keys, metadata and sealed documents lie there"}
	f.again = func() finding { return examineFolder(data) }
	info, err := os.Stat(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		above := data
		for _, err = os.Stat(above); err != nil && above != filepath.Dir(above); _, err = os.Stat(above) {
			above = filepath.Dir(above)
		}
		f.OK = unix.Access(above, unix.W_OK) == nil // serve makes it at its first start
		f.Detail += ": not there"
		f.Remedy, f.Command = "make it, for the user that runs the service", "install -d -m 700 "+data
		if os.Geteuid() == 0 { // root's folder would keep the service's user out
			f.Command = "install -d -m 700 -o accession -g accession " + data
			return f
		}
		f.fix = func() error { return os.MkdirAll(data, 0o700) }
		return f
	case err != nil:
		f.Detail, f.Remedy = err.Error(), "let the user that runs the service reach it"
		return f
	case !info.IsDir():
		f.Remedy = "it is no folder: name another with --data, or move it away"
		return f
	case info.Mode().Perm()&0o007 != 0:
		f.Detail += fmt.Sprintf(": mode %04o", info.Mode().Perm())
		holds, own := holdsService(data)
		if !holds { // /var/lib by mistake, for example
			f.Remedy = "every user of the machine can get in, and no service's files are there: name a folder with --data that is nothing else's"
			f.Command = "install -d -m 700 " + filepath.Join(data, "accession")
			return f
		}
		f.Remedy, f.Command = "every user of the machine can get in: take their rights", "chmod 700 "+data
		if own {
			f.fix = func() error { return os.Chmod(data, 0o700) }
		}
		return f
	}
	if probe, err := os.CreateTemp(data, ".doctor-*"); err != nil {
		f.Detail += ": not writable"
		f.Remedy, f.Command = "run this as the user of the service, or give that user the folder", fmt.Sprintf("sudo chown -R %d %s", os.Geteuid(), data)
	} else {
		_, err = probe.WriteString("x")
		err = errors.Join(err, probe.Sync(), probe.Close(), os.Remove(probe.Name()))
		if f.OK = err == nil; !f.OK {
			f.Detail, f.Remedy = err.Error(), "what is written there does not stay: look at the disk (dmesg, smartctl)"
		}
	}
	return f
}

// holdsService says whether a service has kept its files in a folder, and whether that and they are the caller's own.
func holdsService(data string) (holds, own bool) {
	folder, err := os.Stat(data)
	if err != nil {
		return false, false
	}
	for _, name := range []string{"metadata.db", "keys.db", "key-encryption.key"} {
		if inside, err := os.Lstat(filepath.Join(data, name)); err == nil && inside.Mode().IsRegular() {
			holds, own = true, own || ours(inside)
		}
	}
	return holds, own && ours(folder)
}

func ours(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}
