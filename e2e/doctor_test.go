package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// doctor runs `accession doctor` with an environment of its own.
func doctor(t *testing.T, env []string, args ...string) (exit int, said string) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"doctor"}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ACCESSION_CACHE=" + cache, "ACCESSION_LISTEN=127.0.0.1:0"}, env...)
	out, _ := cmd.Output() // the exit code says how it ended
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestDoctorFindsEverythingItNeeds(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"a clamd of its own": {"ACCESSION_CLAMAV_DATABASE=" + signatures()},
		"a clamd by address": {"ACCESSION_CLAMD_ADDRESS=" + clamd},
	} {
		t.Run(name, func(t *testing.T) {
			exit, said := doctor(t, env)
			if exit != 0 || strings.Contains(said, "✗") || !strings.Contains(said, "clamd") || !strings.Contains(said, "tesseract") {
				t.Errorf("exit %d: %s", exit, said)
			}
			if strings.HasPrefix(name, "a clamd of") && !strings.Contains(said, "test or private signatures only") {
				t.Errorf("test signatures pass for full ones: %s", said)
			}
		})
	}
}

func TestDoctorTellsWhatToInstall(t *testing.T) {
	t.Parallel()
	// clamd itself is looked for outside PATH too, and is installed here: its signatures and Tesseract are what can be missing.
	bare := []string{"PATH=" + t.TempDir(), "ACCESSION_CLAMAV_DATABASE=" + t.TempDir()}
	exit, said := doctor(t, bare)
	if exit == 0 {
		t.Errorf("exit 0: %s", said)
	}
	for _, advice := range []string{"✗ signatures", "freshclam", "✗ tesseract", "apt-get install tesseract-ocr"} {
		if !strings.Contains(said, advice) {
			t.Errorf("nothing of %q in:\n%s", advice, said)
		}
	}
	exit, said = doctor(t, bare, "--json")
	var found []struct {
		Name, Remedy, Why, Command string
		OK                         bool
	}
	if err := json.Unmarshal([]byte(said), &found); err != nil || exit == 0 {
		t.Fatalf("exit %d, %v: %s", exit, err, said)
	}
	missing := []string{}
	for _, f := range found {
		if !f.OK && (f.Remedy == "" || f.Why == "" || f.Command == "") {
			t.Errorf("a fault without what mends it: %+v", f)
		}
		if !f.OK {
			missing = append(missing, f.Name)
		}
	}
	if want := []string{"signatures", "tesseract", "tesseract languages"}; !slices.Equal(missing, want) {
		t.Errorf("missing %v, want %v", missing, want)
	}
	if exit, said := doctor(t, []string{"ACCESSION_CLAMD_ADDRESS=tcp:" + freeAddress(t)}); exit == 0 || !strings.Contains(said, "✗ clamd") {
		t.Errorf("no clamd at the address: exit %d: %s", exit, said)
	}
}

func TestDoctorLooksAtTheMachine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	go func() { // something, and no accession
		_ = http.Serve(taken, http.NotFoundHandler())
	}()
	data := filepath.Join(t.TempDir(), "data")
	env := []string{"ACCESSION_CLAMD_ADDRESS=" + clamd}
	exit, said := doctor(t, env, "--data", data, "--listen", address)
	var disk unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(data), &disk); err != nil {
		t.Fatal(err)
	}
	room := "✓ disk"
	if int64(disk.Bavail)*disk.Bsize < 40<<30 && !strings.Contains(said, room) { // what other tests write lies on it, too
		room = "less than two uploads of the largest size need: give it 32 GiB"
	}
	for _, advice := range []string{"✗ port", address + " is in use", "$ sudo ss -ltnp 'sport = :", "! data folder", "$ install -d -m 700 ", room, "✓ limits", "clock"} {
		if exit != 1 || !strings.Contains(said, advice) {
			t.Errorf("exit %d, nothing of %q in:\n%s", exit, advice, said)
		}
	}
	// The port of a running service is no fault.
	s := start(t, options{})
	if exit, said := doctor(t, env, "--listen", strings.TrimPrefix(s.url, "http://")); exit != 0 || !strings.Contains(said, "accession answers there") {
		t.Errorf("exit %d: %s", exit, said)
	}
}

// --fix touches nothing but a folder that is a service's, and the caller's own; and says that it is mended only if it is.
func TestDoctorMendsOnlyWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	env := []string{"ACCESSION_CLAMD_ADDRESS=" + clamd}
	data := filepath.Join(t.TempDir(), "data")
	exit, said := doctor(t, env, "--data", data, "--fix")
	_, err := os.Stat(data)
	if os.Geteuid() == 0 { // the service's user could not use what root makes
		if err == nil || strings.Contains(said, "mended") || !strings.Contains(said, "$ install -d -m 700 -o accession -g accession "+data) {
			t.Errorf("made by root: exit %d, %v: %s", exit, err, said)
		}
	} else if exit != 0 || err != nil || !strings.Contains(said, "mended: install -d -m 700 "+data) {
		t.Errorf("exit %d, %v: %s", exit, err, said)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	chmod := func(mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(data, mode); err != nil {
			t.Fatal(err)
		}
	}
	wantMode := func(mode os.FileMode) {
		t.Helper()
		if info, err := os.Stat(data); err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode %v, want %v; %v: %s", info.Mode(), mode, err, said)
		}
	}

	chmod(0o755) // holds nothing of a service, as /var/lib does
	if exit, said = doctor(t, env, "--data", data, "--fix"); exit != 1 || strings.Contains(said, "mended") || strings.Contains(said, "$ chmod") || !strings.Contains(said, "no service's files are there") {
		t.Errorf("exit %d: %s", exit, said)
	}
	wantMode(0o755)

	if err := os.WriteFile(filepath.Join(data, "metadata.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, said = doctor(t, env, "--data", data); exit != 1 || !strings.Contains(said, "$ chmod 700 "+data) {
		t.Errorf("exit %d: %s", exit, said)
	}
	wantMode(0o755)
	if exit, said = doctor(t, env, "--data", data, "--fix"); exit != 0 || !strings.Contains(said, "mended: chmod 700 "+data) {
		t.Errorf("exit %d: %s", exit, said)
	}
	wantMode(0o700)

	if os.Geteuid() != 0 {
		return // only root can give a folder away
	}
	chmod(0o755)
	if err := os.Chown(data, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if exit, said = doctor(t, env, "--data", data, "--fix"); exit != 1 || strings.Contains(said, "mended") || !strings.Contains(said, "$ chmod 700 "+data) {
		t.Errorf("another user's folder: exit %d: %s", exit, said)
	}
	wantMode(0o755)
}
