package extract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// insideEngine runs a shell script in tesseract's cage and returns what it prints.
func insideEngine(t *testing.T, script string) (string, error) {
	t.Helper()
	picture := asPNG(t, blank(400, 200))
	doc, err := extractor(t, standIn(t, script)).Extract(within(t), bytes.NewReader(picture), int64(len(picture)), "image/png", nil)
	if err != nil {
		return "", err
	}
	return doc.Pages[0].Text, nil
}

// What tesseract gets is a picture that the service has written itself, whatever the document's picture looked like. One as small
// as this is enlarged.
func TestOCRGetsOwnPicture(t *testing.T) {
	t.Parallel()
	said, err := insideEngine(t, "exec sha256sum\n")
	want := sha256.Sum256(append(tiffHead(800, 400), bytes.Repeat([]byte{255}, 800*400)...))
	if err != nil || !strings.HasPrefix(said, hex.EncodeToString(want[:])) {
		t.Errorf("got %q, error %v, want %x", said, err, want)
	}
}

// TestPrivilegesAreDropped matters where the service runs as root.
func TestPrivilegesAreDropped(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(within(t), "/proc/self/exe", "drop privileges").Output()
	if err != nil || string(out) != "capabilities 0 0 0, dumpable 0" {
		t.Errorf("%s, %v", out, err)
	}
}

func init() {
	if len(os.Args) != 2 || os.Args[1] != "drop privileges" {
		return
	}
	header, have := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := errors.Join(dropPrivileges(), unix.Capget(&header, &have[0])); err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	fmt.Printf("capabilities %x %x %x, dumpable %d", have[0].Effective|have[1].Effective, have[0].Permitted|have[1].Permitted,
		have[0].Inheritable|have[1].Inheritable, dumpable)
	os.Exit(0)
}

func TestEngineHasNoPrivileges(t *testing.T) {
	t.Parallel()
	fd, err := unix.FcntlInt(0, unix.F_DUPFD, 40) // would survive an exec
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	for name, c := range map[string]struct{ script, want string }{
		"files":       {"for n in {3..9} {11..62}; do { true <&$n; } 2>&- && echo through $n; done; echo none", "none"}, // 10 and 63: the shell's own
		"limits":      {"ulimit -Ht; ulimit -Hf; ulimit -Hn", "120\n0\n64"},
		"core dump":   {"ulimit -Hc", "0"},                                    // one byte, which is no block
		"environment": {"compgen -e", "LC_ALL\nOMP_THREAD_LIMIT\nPWD\nSHLVL"}, // the last two: the shell's own
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, err := insideEngine(t, swallow+c.script+"\n")
			if err != nil || said != c.want {
				t.Errorf("got %q, error %v, want %q", said, err, c.want)
			}
		})
	}
}

// A program may lie in somebody's home, or be called /bin/tesseract, whose prefix is the whole machine.
func TestEngineReadsNoNeighbours(t *testing.T) {
	t.Parallel()
	program := standIn(t, swallow+"if true < \"${0%/*}/../neighbour\"; then echo through; else echo refused; fi\n")
	e := extractor(t, program)
	if err := os.WriteFile(filepath.Join(filepath.Dir(filepath.Dir(e.config.Tesseract)), "neighbour"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if doc := extract(t, e, asPNG(t, blank(400, 200)), "image/png"); doc.Pages[0].Text != "refused" {
		t.Errorf("%q", doc.Pages[0].Text)
	}
}

// A processor that also speaks its older instruction set has a second table of system calls, with sockets of its own.
func TestEngineCageHasNoSecondDoor(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		return // arm64 needs a program of the other kind for that, which systemFiles has no loader for
	}
	path := filepath.Join(t.TempDir(), "bin", "door")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, secondDoor(), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(within(t), path).Output(); err != nil || string(out) != "through" {
		t.Logf("this kernel has no second door: %q, %v", out, err)
	}
	program := standIn(t, swallow+"exec \"${0%/*}/door\"\n")
	picture := asPNG(t, blank(400, 200))
	e := extractor(t, program)
	if err := os.Link(path, filepath.Join(filepath.Dir(e.config.Tesseract), "door")); err != nil {
		t.Fatal(err)
	}
	doc, err := e.Extract(within(t), bytes.NewReader(picture), int64(len(picture)), "image/png", nil)
	if err == nil && doc.Pages[0].Text != "refused" || err != nil && !strings.Contains(err.Error(), "was killed") {
		t.Errorf("document %+v, error %v", doc, err)
	}
}

// secondDoor is a program that asks for a socket by the 32-bit call (int 0x80) and prints "through" or "refused" by the 64-bit one.
func secondDoor() []byte {
	code := []byte{
		0xb8, 0x67, 0x01, 0, 0, // mov eax, 359: socket
		0xbb, 2, 0, 0, 0, // mov ebx, AF_INET
		0xb9, 1, 0, 0, 0, // mov ecx, SOCK_STREAM
		0x31, 0xd2, // xor edx, edx
		0xcd, 0x80, // int 0x80
		0x48, 0x8d, 0x35, 0x1c, 0, 0, 0, // lea rsi, [rip+28]: through
		0x85, 0xc0, // test eax, eax
		0x79, 0x04, // jns +4
		0x48, 0x83, 0xc6, 0x07, // add rsi, 7: refused
		0xba, 7, 0, 0, 0, // mov edx, 7
		0xbf, 1, 0, 0, 0, // mov edi, 1
		0x89, 0xf8, // mov eax, edi: write
		0x0f, 0x05, // syscall
		0xb0, 60, // mov al, 60: exit
		0x31, 0xff, // xor edi, edi
		0x0f, 0x05, // syscall
	}
	// lea counts from its own end.
	const lea = 26
	code[22] = byte(len(code) - lea)
	code = append(code, "throughrefused"...)
	var out bytes.Buffer
	word := func(size int, value uint64) {
		for range size {
			out.WriteByte(byte(value))
			value >>= 8
		}
	}
	const base, head = 0x400000, 64 + 56
	out.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	word(2, 2)         // executable
	word(2, 62)        // x86-64
	word(4, 1)         // version
	word(8, base+head) // entry
	word(8, 64)        // program headers
	word(8, 0)         // section headers
	word(4, 0)         // flags
	word(2, 64)        // size of this header
	word(2, 56)        // and of a program header
	word(2, 1)         // one of those
	word(6, 0)
	word(4, 1) // load
	word(4, 5) // read, execute
	word(8, 0)
	word(8, base)
	word(8, base)
	word(8, uint64(head+len(code)))
	word(8, uint64(head+len(code)))
	word(8, 4096)
	out.Write(code)
	return out.Bytes()
}
