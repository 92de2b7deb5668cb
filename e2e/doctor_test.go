package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// doctor runs `accession doctor` with an environment of its own.
func doctor(t *testing.T, env []string, args ...string) (exit int, said string) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"doctor"}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ACCESSION_CACHE=" + cache}, env...)
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
		Name, Remedy string
		OK           bool
	}
	if err := json.Unmarshal([]byte(said), &found); err != nil || exit == 0 {
		t.Fatalf("exit %d, %v: %s", exit, err, said)
	}
	missing := []string{}
	for _, f := range found {
		if f.OK != (f.Remedy == "") {
			t.Errorf("%+v", f)
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
