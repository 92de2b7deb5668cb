//go:build misbehaving

package extract

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/accession/accession/internal/extract/page"
)

// With the build tag "misbehaving" a document that begins with "misbehave PURPOSE WHAT ARGUMENT" has its worker do what an exploited
// parser would. A test shows with it that each wall holds through the whole service. PURPOSE is text or members.
var misbehaviours = map[string]func(w *worker, argument string) error{
	"socket": func(w *worker, address string) error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			fmt.Fprint(c, "the worker got through")
			err = c.Close()
		}
		return err
	},
	"file": func(w *worker, path string) error {
		content, err := os.ReadFile(path)
		return errors.Join(err, w.to.emit(page.Page{Text: string(content)}))
	},
	"write": func(w *worker, path string) error { return os.WriteFile(path, []byte("out"), 0o600) },
	"fork": func(*worker, string) error {
		pid, _, failure := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if failure != 0 {
			return failure
		}
		for pid == 0 { // the child stays, for the test to find
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		}
		return nil
	},
	"allocate": func(*worker, string) error {
		var kept [][]byte
		for {
			kept = append(kept, bytes.Repeat([]byte{byte(len(kept))}, 16<<20))
		}
	},
	"loop": func(w *worker, _ string) error {
		for {
			w.job.Pages++
		}
	},
	"hang": func(*worker, string) error { select {} },
	"print": func(w *worker, _ string) error {
		for {
			if _, err := w.to.out.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
				return err
			}
		}
	},
	"print-pages": func(w *worker, _ string) error {
		if err := w.to.count(1, false); err != nil {
			return err
		}
		for number := 1; ; number++ {
			if err := w.to.send(framePage, pageFrame{Number: number, Text: strings.Repeat("again and again ", 4<<10)}); err != nil {
				return err
			}
		}
	},
	"print-members": func(w *worker, _ string) error {
		for {
			if err := errors.Join(w.to.send(frameMember, nil), writeRaw(w.to.out, frameBytes, make([]byte, bytesLimit+1))); err != nil {
				return err
			}
		}
	},
}

// misbehave does what the document asks for. What was refused, and what came to its end, is no document.
func (w *worker) misbehave(purpose string) error {
	head := make([]byte, min(w.job.Size, 1024))
	if err := readAt(w.content, head, 0); err != nil {
		return err
	}
	words := strings.Fields(string(head))
	if len(words) < 4 || words[0] != "misbehave" || words[1] != purpose {
		return nil
	}
	if purpose == purposeText {
		if err := w.to.send(frameType, typeFrame{Media: "text/plain"}); err != nil {
			return err
		}
	}
	if err := misbehaviours[words[2]](w, words[3]); err != nil {
		return err
	}
	if err := w.to.emit(page.Page{Text: "the worker got through"}); err != nil {
		return err
	}
	return errEnough // there is nothing else to read
}

// misbehaves tells that a document asks for something of the worker that looks for members.
func misbehaves(content []byte) bool {
	return bytes.HasPrefix(content, []byte("misbehave "+purposeMembers+" "))
}

// shortened gives a test limits that it need not wait for; not where workers go wrong by a plan, and documents are real.
func shortened(l Limits) Limits {
	if starts.folder != "" {
		return l
	}
	l.WorkerMemory, l.WorkerCPU = 1<<30, time.Second
	return l
}
