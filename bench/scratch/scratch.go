// Package scratch is the folder that a bench writes into: there is room in it, and it is gone in the end, after Ctrl-C too.
package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run calls do with a new folder in dir, of whose disk it needs so many bytes at most, and removes the folder. ctx ends when this
// program is asked to end: do returns soon after, and its programs have ended then.
func Run(dir, name string, need int64, do func(ctx context.Context, folder string) error) (err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("-dir %s: %w", dir, err)
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < need {
		return fmt.Errorf("%d MiB are free in %s, and %d MiB are needed: choose a folder of another disk with -dir, smaller sizes, or other rows", free>>20, dir, need>>20)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	folder, err := os.MkdirTemp(dir, "accession-"+name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err = do(ctx, folder); ctx.Err() != nil {
		return errors.New("asked to end; what was written is removed")
	}
	return err
}
