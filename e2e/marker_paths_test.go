package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/custody"
)

// cacheSearch remembers the marks of all benches: the cache of compiled engines is theirs together.
type cacheSearch struct {
	mu     sync.Mutex
	sought []string
}

func (c *cacheSearch) bench(t *testing.T, o options) *bench {
	b := newBench(t, o)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sought = append(c.sought, b.content, b.name, b.notes, b.mail)
	return b
}

// TestNothingInClear takes documents with marks in them through the main job and through every way in which it fails, and
// searches everything that the service wrote or showed: content is nowhere at any time but in memory, and after withdrawal neither
// is a word of the uploader.
func TestNothingInClear(t *testing.T) {
	t.Parallel()
	began, search := time.Now(), &cacheSearch{}
	t.Run("paths", func(t *testing.T) {
		for name, path := range markerPaths {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path(t, search.bench)
			})
		}
	})
	if found := findBelow(t, cache, began, search.sought...); len(found) > 0 {
		t.Errorf("in the cache: %q", found)
	}
}

type newBenchFunc func(*testing.T, options) *bench

var markerPaths = map[string]func(*testing.T, newBenchFunc){
	"ready, served and withdrawn": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: managedClamd()})
		content := note(b.content)
		id := b.deposit("text/plain", content)
		b.wantReady(id)
		served := decode[servedContext](t, b.context("harbour", b.issue("harbour", "ai_reader"), id).want(t, 200, ""))
		if !strings.Contains(served.text(), b.content) {
			t.Fatal("the context lacks the mark: this proves nothing")
		}
		b.end(id)
		if exit := b.stop(); exit != 0 {
			t.Errorf("exit %d", exit)
		}
		b.wantForgotten()
	},
	"a scan read by OCR": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: managedClamd()})
		pdf := scannedPDF(t)
		id := b.deposit("application/pdf", pdf)
		b.wantReady(id)
		served := decode[servedContext](t, b.context("harbour", b.issue("harbour", "ai_reader"), id).want(t, 200, ""))
		more := sentences(served)
		if len(more) == 0 {
			t.Fatal("no sentence of the document: this proves nothing")
		}
		for at := 1000; at+24 < len(pdf); at += len(pdf) / 4 {
			more = append(more, string(pdf[at:at+24]))
		}
		b.end(id, more...)
	},
	"rejected as malware": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: managedClamd()})
		id := b.deposit("text/plain", append(append(note(b.content), eicar()...), note(b.content)...))
		b.wantEnd(id, "REJECTED", "malware_scan", "malware_found")
		b.end(id, eicar()[:40])
	},
	"rejected as broken": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: managedClamd()})
		id := b.deposit("application/pdf", append([]byte("%PDF-1.7\n"+b.content+"\n"), noise(5000, 3)...))
		b.wantEnd(id, "REJECTED", "extraction", "document_broken")
		b.end(id)
	},
	"scanner silent": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=tcp:" + freeAddress(t)}, flags: []string{"--gate-deadlines", "malware_scan=20s"}})
		id := b.deposit("text/plain", note(b.content))
		b.wantEnd(id, "FAILED", "malware_scan", "scanner_unavailable")
		b.end(id)
	},
	"deadline of a gate": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + newGatekeeper(t).address}, flags: []string{"--gate-deadlines", "malware_scan=20s"}})
		id := b.deposit("text/plain", note(b.content))
		b.wantEnd(id, "FAILED", "malware_scan", "scanner_unavailable")
		b.end(id)
	},
	"extraction killed": func(t *testing.T, make newBenchFunc) {
		misbehaving := misbehavingBinary(t)
		b := make(t, options{binary: misbehaving, flags: []string{"--gate-deadlines", "extraction=20s"}})
		id := b.deposit("text/plain", append([]byte("misbehave text allocate -\n"), note(b.content)...))
		b.wantFailed(id)
		b.end(id)
	},
	"tesseract missing": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: []string{"PATH=" + t.TempDir()}, flags: []string{"--gate-deadlines", "extraction=20s"}})
		pdf := append(scannedPDF(t), "% "+b.content+"\n"...)
		id := b.deposit("application/pdf", pdf)
		b.wantFailed(id)
		b.end(id)
	},
	"withdrawn within a part": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{flags: []string{"--part-size-bytes", "4194304"}})
		body := append(note(b.content), noise(4<<20-200, 5)...)
		body = append(body, noise(4<<20-len(body), 6)...)
		id := b.reserve("application/octet-stream", 8<<20)
		conn := b.rawPart(id, 1, client.NewIdempotencyKey(), len(body), body[:3<<20])
		b.awaitObject(id)
		b.wantNowhere()
		if _, err := conn.Write(body[3<<20 : 3<<20+1]); err != nil { // the service cuts off who sends nothing for a minute
			t.Fatal(err)
		}
		b.wantWithdrawn(id, 8<<20)
		if _, err := conn.Write(body[3<<20+1:]); err != nil {
			t.Fatal(err)
		}
		if answer := readResponse(t, conn); answer.Code != "upload_not_receiving" {
			t.Errorf("part: %s", answer.Raw)
		}
		b.wantForgotten()
	},
	"withdrawn within a gate": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + newGatekeeper(t).address}})
		id := b.deposit("text/plain", note(b.content))
		b.awaitGate(id, "malware_scan", "running")
		b.end(id)
	},
	"storage full": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{binary: onFullStorage(t)})
		content := append(note(b.content), noise(4<<20, 7)...)
		id := b.reserve("application/octet-stream", len(content))
		b.part(id, 1, content).want(t, 507, "storage_full")
		b.end(id)
	},
	"killed within a part": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{flags: []string{"--part-size-bytes", "4194304"}})
		body := append(note(b.content), noise(4<<20, 8)...)[:4<<20]
		id := b.reserve("application/octet-stream", len(body))
		b.rawPart(id, 1, client.NewIdempotencyKey(), len(body), body[:3<<20])
		b.awaitObject(id)
		b.kill()
		b.wantNowhere()
		b.restart()
		b.end(id)
	},
	"killed within a gate": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: managedClamd(), flags: []string{"--part-size-bytes", "67108864"}})
		content := append(note(b.content), noise(48<<20, 9)...)
		id, scratch := b.depositSeen(sharedMemory, content)
		b.kill()
		awaitUnlocked(t, filepath.Dir(scratch)) // clamd dies with the service, and a moment later
		if found := findBelow(t, b.root, time.Time{}, b.content); len(found) > 0 {
			t.Errorf("on disk while it is scanned: %q", found)
		}
		b.restart()
		if _, err := os.Stat(scratch); !os.IsNotExist(err) {
			t.Errorf("the next start left %s: %v", scratch, err)
		}
		b.follow(id)
		b.end(id)
	},
	"customer upload refused": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: managedClamd()})
		b.awaitLog("malware scanner has no full signature database")
		for payload, code := range map[string]string{
			string(note(b.content)) + eicar():                                    "content_rejected",
			string(note(b.content)) + "This record is verified by this service.": "verification_claim_refused",
		} {
			body := text(payload, map[string]any{"filename": b.name + ".txt"})
			body["consent"].(map[string]any)["consenting_user_email"] = b.mail + "@example.com"
			if r := b.do(b.submitting(client.NewIdempotencyKey(), body)); r.Status < 400 || r.Status >= 500 {
				t.Errorf("%s: %d %s", code, r.Status, r.Raw)
			}
			b.wantForgotten()
		}
	},
	"customer upload withdrawn": func(t *testing.T, make newBenchFunc) {
		b := make(t, options{env: managedClamd()})
		b.awaitLog("malware scanner has no full signature database")
		body := text(string(note(b.content)), map[string]any{"filename": b.name + ".txt"})
		body["consent"].(map[string]any)["consenting_user_email"] = b.mail + "@example.com"
		id := b.submit(body)
		b.name = b.notes // the answer that can be replayed names the file for another day
		b.end(id)
	},
}

// end searches, withdraws and searches again.
func (b *bench) end(uploadID string, more ...string) {
	b.t.Helper()
	b.wantNowhere(more...)
	if r := b.withdraw(uploadID).want(b.t, 200, ""); r.field(b.t, "status") != "WITHDRAWN" {
		b.t.Fatalf("withdrawal: %s", r.Raw)
	}
	b.wantForgotten(more...)
}

// wantFailed follows an upload until its extraction had no answer; which reason was the last depends on the machine.
func (b *bench) wantFailed(uploadID string) {
	b.t.Helper()
	if st := b.follow(uploadID); st.Status != "FAILED" || st.Failure.Gate != "extraction" {
		b.t.Fatalf("%+v %+v", st, st.Failure)
	}
}

// depositSeen deposits content and returns the file below root in which clamd holds it while it is scanned: without one a test of it
// proves nothing. Where the scan was over before anybody looked, on a busy machine, the upload is withdrawn for another.
func (b *bench) depositSeen(root string, content []byte) (uploadID, scratch string) {
	b.t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); b.withdraw(uploadID).want(b.t, 200, "") {
		uploadID = b.deposit("application/octet-stream", content)
		for over := false; !over; {
			for again := time.Now().Add(time.Second); time.Now().Before(again); {
				if scratch = b.scratchBelow(root); scratch != "" {
					return uploadID, scratch
				}
			}
			over = custody.Status(b.status(uploadID).Status).Terminal() || time.Now().After(deadline)
		}
	}
	b.t.Fatalf("clamd never wrote below %s", root)
	return "", ""
}

// scratchBelow is the file below root in which clamd holds the mark now, or empty.
func (b *bench) scratchBelow(root string) string {
	found, _ := filepath.Glob(filepath.Join(root, "accession-clamd-*", "*")) // the pattern is well formed
	for _, path := range found {
		head := make([]byte, 4096)
		if f, err := os.Open(path); err == nil {
			n, _ := f.Read(head)
			f.Close()
			if bytes.Contains(head[:n], []byte(b.content)) {
				return path
			}
		}
	}
	return ""
}

// awaitUnlocked returns once nobody has the folder locked; one that is gone nobody has.
func awaitUnlocked(t *testing.T, folder string) {
	t.Helper()
	f, err := os.Open(folder)
	if os.IsNotExist(err) { // another service cleared it away
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// onFullStorage is the program in a mount namespace of its own, where the folder of blobs is a file system of 1 MiB.
func onFullStorage(t *testing.T) string {
	t.Helper()
	namespaces := "-m"
	if os.Geteuid() != 0 {
		namespaces = "-Urm"
	}
	script := filepath.Join(t.TempDir(), "accession")
	text := fmt.Sprintf("#!/bin/sh\nblobs=\"$3/blobs\"\nmkdir -p \"$blobs\" && exec unshare %s sh -c 'mount -t tmpfs -o size=1m none \"$0\" && exec %s \"$@\"' \"$blobs\" \"$@\"\n", namespaces, binary)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return script
}
