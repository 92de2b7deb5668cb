package e2e

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/client"
)

// partition mounts a file system of its own, in memory, that holds so many bytes. It is unmounted when the test ends.
func partition(t *testing.T, bytes int) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", bytes)); err != nil {
		t.Fatalf("a disk of the test's own needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return at
}

// troubled is a service whose machine gets into trouble and out of it.
type troubled struct {
	partner
	upload string
}

func trouble(t *testing.T, o options) *troubled {
	t.Helper()
	o.flags = append(o.flags, "--rate-limits", "off", "--part-size-bytes", "65536")
	s := start(t, o)
	p := s.partner("harbour")
	return &troubled{p, p.initiate("note.txt", "text/plain", 1)}
}

// wantTrouble asks for every kind of write: each is refused as want says it may be, tells when to come back, and nothing else;
// /readyz names the check. The part is one byte, which has come with its headers: a refusal before the body is there would end the connection.
func (d *troubled) wantTrouble(check string, codes ...string) {
	d.t.Helper()
	content := make([]byte, 1)
	rand.Read(content)
	refused := 0
	for _, c := range []call{
		d.put(byPath, d.upload, 1, client.NewIdempotencyKey(), content),
		d.initiating(),
		d.withdrawing(d.upload, client.NewIdempotencyKey(), "trouble"), // last: it ends the upload
	} {
		r, what := d.do(c), c.method+" "+c.path
		d.t.Logf("%s: %d %s", what, r.Status, r.Code)
		known := false
		for _, code := range codes {
			known = known || r.Code == code
		}
		if r.Status < 300 {
			continue // what had its room already
		}
		refused++
		if !known || r.Header.Get("Retry-After") == "" {
			d.t.Errorf("%s: want one of %v with Retry-After, got %d: %v %s", what, codes, r.Status, r.Header, r.Raw)
		}
		if bytes.Contains(r.Raw, []byte(d.data)) {
			d.t.Errorf("%s tells too much: %s", what, r.Raw)
		}
	}
	if refused == 0 {
		d.t.Error("nothing was refused: the trouble is none")
	}
	r := d.do(call{method: "GET", path: "/readyz"}).want(d.t, 503, "service_unavailable")
	if checks, _ := r.Details["checks"].(map[string]any); checks[check] != "failing" {
		d.t.Errorf("readyz: %s", r.Raw)
	}
}

func (d *troubled) initiating() call {
	return call{
		method: "POST", path: d.path("/partner-uploads/initiate"), token: d.token, key: client.NewIdempotencyKey(),
		json: map[string]any{"filename": "note.txt", "content_type": "text/plain", "size_bytes": 3, "consent": consent()},
	}
}

// ready is the answer of /readyz once it is 200: what broke inside may take a moment to be made anew, and a busy machine longer over a
// check than it may.
func (d *troubled) ready() reply {
	d.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		r := d.do(call{method: "GET", path: "/readyz"})
		if r.Status == 200 {
			return r
		}
		if time.Now().After(end) {
			d.t.Fatalf("not ready: %s", r.Raw)
		}
	}
}

// wantRecovery: without a restart, and with the same credential.
func (d *troubled) wantRecovery() {
	d.t.Helper()
	d.ready()
	id := d.send("note.txt", "text/plain", note("far-safe"))
	d.wantReady(id)
	d.withdraw(d.upload).want(d.t, 200, "")
}

// fill leaves no room on the disk that is mounted at dir, until empty is called.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = filler.Close() }) // where the test ended before
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	return func() {
		t.Helper()
		if err := errors.Join(os.Remove(filler.Name()), filler.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFullDisk(t *testing.T) {
	disk := partition(t, 24<<20)
	d := trouble(t, options{data: filepath.Join(disk, "data")})
	empty := fill(t, disk)
	d.wantTrouble("disk", "storage_full", "service_unavailable", "deletion_not_confirmed")
	empty()
	d.wantRecovery()
}

// A storage root that is full, while the databases have room: nothing more comes in, and withdrawal makes room.
func TestAFullStorageRoot(t *testing.T) {
	disk := partition(t, 24<<20)
	d := trouble(t, options{flags: []string{"--blobs", filepath.Join(disk, "blobs")}})
	kept := d.send("note.txt", "text/plain", note("full-hold"))
	d.wantReady(kept)
	empty := fill(t, disk)
	d.do(d.put(byPath, d.upload, 1, client.NewIdempotencyKey(), make([]byte, 1))).want(t, 507, "storage_full")
	r := d.ready()
	if !bytes.Contains(r.Raw, []byte(`"room":"failing"`)) || !bytes.Contains(r.Raw, []byte(`"disk":"ok"`)) {
		t.Errorf("readyz: %s", r.Raw)
	}
	d.withdraw(kept).want(t, 200, "")
	empty()
	d.wantRecovery()
}

// A storage root that takes no more writes, as a file system does once its device has failed.
func TestADiskThatBecomesReadOnly(t *testing.T) {
	disk := partition(t, 64<<20)
	d := trouble(t, options{flags: []string{"--blobs", filepath.Join(disk, "blobs")}})
	remount := func(flags uintptr) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; { // not while a check of /readyz still has its file open
			err := unix.Mount("", disk, "", unix.MS_REMOUNT|flags, "")
			if err == nil {
				return
			}
			if err != unix.EBUSY || time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
	remount(unix.MS_RDONLY)
	d.wantTrouble("disk", "service_unavailable", "deletion_not_confirmed")
	remount(0)
	d.wantRecovery()
}

// A service that has no file descriptor left.
func TestNoFileDescriptors(t *testing.T) {
	d := trouble(t, options{})
	d.do(d.initiating()).want(t, 200, "") // from here on one connection serves the test
	pid := d.cmd.Process.Pid
	var was unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	// What is open stays open; nothing gets a number of 3 or more any longer.
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	d.wantTrouble("disk", "service_unavailable", "deletion_not_confirmed")
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil); err != nil {
		t.Fatal(err)
	}
	d.wantRecovery()
}
