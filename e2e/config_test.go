package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// configured is a configuration file with that content.
func configured(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "accession.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServiceRunsByItsConfigurationFile(t *testing.T) {
	t.Parallel()
	secret := "token-of-the-file-with-40-characters-now"
	kept := filepath.Join(t.TempDir(), "admin-token")
	if err := os.WriteFile(kept, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := configured(t, "part_size_bytes: 4096\nquota_bytes: 8192\nadmin_token_file: "+kept+"\ngate_deadlines:\n  malware_scan: 7m\n")
	s := start(t, options{flags: []string{"--config", file}, env: []string{"ACCESSION_ADMIN_TOKEN=", "ACCESSION_QUOTA_BYTES=12288", "ACCESSION_PART_SIZE=1"}})
	issue := issuing("by-configuration", "harbour", "solution_company_upload")
	issue.bearer = secret
	p := partner{s, "harbour", s.do(issue).want(t, 201, "").field(t, "token")}
	r := p.do(p.reserving("first-of-all", 4097)).want(t, 200, "")
	if size := r.field(t, "part_size_bytes"); size != "4096" {
		t.Errorf("part size %s", size)
	}
	if q := s.quota("harbour", p.token); q.AllowanceBytes != 12288 {
		t.Errorf("the environment did not win over the file: %+v", q)
	}
	s.awaitLog("ACCESSION_PART_SIZE is no setting")
	if strings.Contains(s.log.String(), secret) {
		t.Error("the log has the admin token in it")
	}

	for content, says := range map[string]string{
		"part_size: 64\n":                     "line 1: part_size is no setting",
		"listen: 127.0.0.1:1\nlisten: x:2\n":  "line 2: listen is there twice",
		"admin_token: " + secret + "\n":       "admin_token_file",
		"cache: /tmp\npart_size_bytes: big\n": "line 2: part_size_bytes must be a whole number of bytes",
	} {
		exit, said := refused(t, nil, "--data", t.TempDir(), "--config", configured(t, content))
		if exit != 2 || !strings.Contains(said, says) || strings.Contains(said, secret) {
			t.Errorf("exit %d, said %q, want 2 and %q", exit, said, says)
		}
	}
}

func TestConfigCommandsStartNothing(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	for _, c := range []struct {
		args []string
		exit int
		says string
	}{
		{[]string{"check", "--data", data}, 0, "the settings are right"},
		{[]string{"check", "--data", data, "--roles", "api"}, 2, "--roles must be all with SQLite"},
		{[]string{"show", "--data", data}, 0, "ACCESSION_ADMIN_TOKEN"},
	} {
		var out bytes.Buffer
		cmd := exec.Command(binary, append([]string{"config"}, c.args...)...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "ACCESSION_ADMIN_TOKEN=" + adminToken}
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // the exit code says it
		if exit := cmd.ProcessState.ExitCode(); exit != c.exit || !strings.Contains(out.String(), c.says) || strings.Contains(out.String(), adminToken) {
			t.Errorf("config %v: exit %d, said %s", c.args, exit, out.String())
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data folder was made: %v", err)
	}
}
