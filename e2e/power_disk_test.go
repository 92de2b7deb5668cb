package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// machine has disks of its own whose power can be cut: ext4 on loop devices, told to shut down without writing anything more, its
// journal included. What was not made durable until then is gone. Its mounts are in a name space of one thread: nobody
// else sees them, and they end with the process, however that ends.
type machine struct {
	t     testing.TB
	tasks chan func() // for that thread
	disks []*disk
}

// disk is one file system. Each has a journal of its own, so that what makes one durable does not hide what was forgotten at another.
type disk struct {
	at   string   // where it is mounted
	loop *os.File // its device, kept for the whole test
	lost int      // canaries that a cut took
}

const (
	diskBytes    = 256 << 20                  // sparse
	diskOptions  = "commit=300,noinit_itable" // the kernel makes nothing durable by itself for 300 s
	shutdownCall = 0x8004587d                 // EXT4_IOC_SHUTDOWN
	shutdownNow  = 2                          // EXT4_GOING_FLAGS_NOLOGFLUSH
	goneIn       = 5 * time.Minute            // for what still holds a disk after its service was killed
)

// newMachine makes a machine with disks of these names. It needs root, loop devices and mkfs.ext4.
func newMachine(t testing.TB, names ...string) *machine {
	t.Helper()
	root := t.TempDir() // removed last
	m := &machine{t: t, tasks: make(chan func())}
	apart := make(chan error)
	go func() {
		// For ever: the thread cannot go back to where the others are. Nor may it end, since whatever it started, for whichever test, would
		// be killed with it.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		apart <- err
		for task := range m.tasks {
			task()
		}
		select {}
	}()
	if err := <-apart; err != nil {
		t.Fatalf("a machine of the test's own needs root: %v", err)
	}
	t.Cleanup(func() { // after its services are gone: those were started later
		m.within(func() {
			for _, d := range m.disks {
				_ = unix.Unmount(d.at, unix.MNT_DETACH) // it may not be mounted
				_ = d.loop.Close()
			}
		})
		close(m.tasks)
	})
	for _, name := range names {
		d, err := makeDisk(filepath.Join(root, name+".img"), filepath.Join(root, name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m.disks = append(m.disks, d)
	}
	m.must(m.mount)
	return m
}

// within runs a function where the disks are seen.
func (m *machine) within(f func()) {
	done := make(chan struct{})
	m.tasks <- func() {
		defer close(done)
		f()
	}
	<-done
}

func (m *machine) must(f func() error) {
	m.t.Helper()
	var err error
	m.within(func() { err = f() })
	if err != nil {
		m.t.Fatal(err)
	}
}

func makeDisk(image, at string) (*disk, error) {
	f, err := os.OpenFile(image, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := errors.Join(f.Truncate(diskBytes), os.Mkdir(at, 0o700)); err != nil {
		return nil, err
	}
	mkfs, err := lookFor("mkfs.ext4")
	if err != nil {
		return nil, err
	}
	if out, err := exec.Command(mkfs, "-q", "-F", image).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	loop, err := attach(f)
	return &disk{at: at, loop: loop}, err
}

// lookFor finds a program of administrators, whose folders are not on everybody's path.
func lookFor(name string) (string, error) {
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}

// attach makes a file a device, until the last who has it open closes it.
func attach(f *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("a free loop device: %w", err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}})
		if err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) { // another was faster
			return nil, fmt.Errorf("%s: %w", device.Name(), err)
		}
	}
}

// mount mounts every disk; ext4 replays the journals.
func (m *machine) mount() error {
	for _, d := range m.disks {
		if err := d.free(); err != nil {
			return err
		}
		if err := unix.Mount(d.loop.Name(), d.at, "ext4", 0, diskOptions); err != nil {
			return fmt.Errorf("mount %s: %w", d.at, err)
		}
	}
	return nil
}

// free waits until nobody holds the file system: a worker may outlive its service by a moment, and mounted again below it the old one,
// which is cut, would come back.
func (d *disk) free() error {
	for deadline := time.Now().Add(goneIn); ; time.Sleep(5 * time.Millisecond) {
		alone, err := os.OpenFile(d.loop.Name(), os.O_RDWR|unix.O_EXCL, 0)
		if err == nil {
			return errors.Join(unix.IoctlSetInt(int(alone.Fd()), unix.BLKFLSBUF, 0), alone.Close())
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("%s: %w", d.at, err)
		}
	}
}

const canary = ".canary" // written just before a cut, never made durable

// cut takes the power from the disks, one right after the other.
func (m *machine) cut(random *rand.Rand) error {
	for _, i := range random.Perm(len(m.disks)) {
		d := m.disks[i]
		root, err := os.Open(d.at)
		if err != nil {
			return err
		}
		err = errors.Join(
			os.WriteFile(filepath.Join(d.at, canary), []byte("it sings"), 0o600),
			unix.IoctlSetPointerInt(int(root.Fd()), shutdownCall, shutdownNow),
			root.Close(),
		)
		if err != nil {
			return fmt.Errorf("cut %s: %w", d.at, err)
		}
	}
	return nil
}

// restore gives the power back to disks that nobody uses.
func (m *machine) restore() error {
	for _, d := range m.disks {
		if err := unix.Unmount(d.at, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", d.at, err)
		}
	}
	if err := m.mount(); err != nil {
		return err
	}
	for _, d := range m.disks {
		path := filepath.Join(d.at, canary)
		if sings, err := os.ReadFile(path); err != nil || len(sings) == 0 {
			d.lost++
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
