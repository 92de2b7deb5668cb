package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

func TestConfigCheckSaysWhatServeWould(t *testing.T) {
	s := newStation(t)
	s.run("config", "check").want(t, exitUsage, "", "no data folder")
	s.run("config", "check", "--data", t.TempDir()).want(t, exitOK, "the settings are right", "")
	path := written(t, "data: "+t.TempDir()+"\nlisten: 127.0.0.1:8080\n")
	s.run("config", "check", "--config", path).want(t, exitOK, "the settings are right", "")
	s.run("config", "check", "--config", path, "--listen", "8080").want(t, exitUsage, "", "--listen must be HOST:PORT")
	s.run("config", "check", "--config", written(t, "listn: x\n")).want(t, exitUsage, "", "line 1: listn is no setting; did you mean listen?")
	s.run("config", "check", "now").want(t, exitUsage, "", "write:")
	s.run("config", "chekc").want(t, exitUsage, "", "did you mean check?")
}

func TestConfigShowMasksSecrets(t *testing.T) {
	s := newStation(t)
	s.env["ACCESSION_ADMIN_TOKEN"] = "hunter2-hunter2-hunter2-hunter2-hunter2"
	s.env["ACCESSION_DATABASE"] = "postgres://custody:hunter2@db.example/custody?sslpassword=hunter2&sslmode=require"
	s.env["ACCESSION_MIRRORS"] = "s3://AKIA:hunter2@bucket/a,s3://other/b?secret_access_key=hunter2"
	s.env["ACCESSION_OTLP_ENDPOINT"] = "http://u:%zz-hunter2@collector"
	s.env["ACCESSION_DATA"] = t.TempDir()
	got := s.run("config", "show", "--listen", "127.0.0.1:9999")
	if strings.Contains(got.stdout+got.stderr, "hunter2") {
		t.Errorf("a secret is shown: %s%s", got.stdout, got.stderr)
	}
	for _, row := range []string{
		"admin-token (set, not shown) ACCESSION_ADMIN_TOKEN",
		"database postgres://custody:xxxxx@db.example/custody?sslmode=require&sslpassword=xxxxx ACCESSION_DATABASE",
		"mirrors s3://AKIA:xxxxx@bucket/a,s3://other/b?secret_access_key=xxxxx ACCESSION_MIRRORS",
		"otlp-endpoint (set, not shown) ACCESSION_OTLP_ENDPOINT",
		"listen 127.0.0.1:9999 --listen",
		"roles all default",
	} {
		found := false
		for line := range strings.Lines(got.stdout) {
			found = found || strings.Join(strings.Fields(line), " ") == row
		}
		if !found {
			t.Errorf("no row %q in\n%s", row, got.stdout)
		}
	}
	got.want(t, exitUsage, "", "error: ACCESSION_") // shown, and said to be wrong

	for _, database := range []string{ // not as it should be written, with the password somewhere
		"host=db user=custody password=hunter2", "postgres://u:hunter2,hunter2@db/custody", "postgres://u:123/hunter2@db/custody", "postgres:/u:hunter2@db/custody",
		"postgres://u:123?hunter2@db/custody", "postgres://u:123#hunter2@db/custody", "u:hunter2@db/custody",
	} {
		s.env["ACCESSION_DATABASE"], s.env["ACCESSION_MIRRORS"] = database, "s3://bucket/a?endpoint=https://AKIA:hunter2@s3.example"
		if got := s.run("config", "show"); strings.Contains(got.stdout+got.stderr, "hunter2") || !strings.Contains(got.stdout, "ACCESSION_DATABASE") {
			t.Errorf("%s: %s%s", database, got.stdout, got.stderr)
		}
	}

	delete(s.env, "ACCESSION_DATABASE")
	delete(s.env, "ACCESSION_MIRRORS")
	delete(s.env, "ACCESSION_OTLP_ENDPOINT")
	got = s.run("config", "show", "--json")
	var shown []shownSetting
	if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil || got.code != exitOK || len(shown) < 30 || strings.Contains(got.stdout, "hunter2") {
		t.Errorf("%v, %+v", err, got)
	}
	for _, line := range shown {
		if line.Name == "data" && (line.Source != "environment" || line.At != "ACCESSION_DATA" || line.Value != s.env["ACCESSION_DATA"]) ||
			line.Name == "keys" && line.Source != "default" {
			t.Errorf("shown %+v", line)
		}
	}
}

// A process that would do one half of the work, with nobody there for the other half.
func TestRolesApartNeedSomethingShared(t *testing.T) {
	for _, roles := range []string{"api", "worker"} {
		if _, err := checked(t, map[string]string{"ACCESSION_ROLES": roles}); err == nil || !strings.Contains(err.Error(), "ACCESSION_ROLES must be all with SQLite") {
			t.Errorf("%s: %v", roles, err)
		}
	}
	for _, roles := range []string{"all", "api,worker", "worker, api"} {
		if s, err := checked(t, nil, "--roles", roles); err != nil || !s.has(roleAPI) || !s.has(roleWorker) {
			t.Errorf("%s: %v", roles, err)
		}
	}
}

func TestSharedInstallationSaysWhatIsHardlyMeant(t *testing.T) {
	env := map[string]string{"ACCESSION_DATABASE": "postgres://accession@db.example/accession", "ACCESSION_ADMIN_TOKEN": officeToken}
	s, err := checked(t, env)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.doubts(nil), "\n"); strings.Count(got, "\n") != 2 || !strings.Contains(got, "base-url is not set") || !strings.Contains(got, "quarantine is in the data folder") {
		t.Errorf("doubts %q", got)
	}
	delete(env, "ACCESSION_ADMIN_TOKEN")
	if _, err := checked(t, env); err == nil || !strings.HasPrefix(err.Error(), "ACCESSION_ADMIN_TOKEN must be given") {
		t.Errorf("%v", err)
	}
	env["ACCESSION_ROLES"], env["ACCESSION_BASE_URL"] = "worker", "https://custody.example"
	env["ACCESSION_BLOBS"], env["ACCESSION_QUARANTINE"], env["ACCESSION_KEYS"] = "/srv/blobs", "/srv/quarantine", "/srv/key"
	if s, err := checked(t, env); err != nil || len(s.doubts(nil)) != 0 { // which nobody asks, and so needs no token
		t.Errorf("%q, %v", s.doubts(nil), err)
	}
}

func TestSecretsThatEverybodyMayReadAreWarnedOf(t *testing.T) {
	token, keyFile := written(t, officeToken), written(t, "key")
	certPEM, keyPEM := pair(t, "custody.example", time.Now().Add(time.Hour))
	certificate, key := written(t, string(certPEM)), written(t, string(keyPEM))
	env := map[string]string{"ACCESSION_ADMIN_TOKEN_FILE": token, "ACCESSION_KEYS": keyFile, "ACCESSION_TLS_CERT": certificate, "ACCESSION_TLS_KEY": key}
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o602: true} {
		for _, path := range []string{token, keyFile, key} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		s, err := checked(t, env)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ACCESSION_ADMIN_TOKEN_FILE", "ACCESSION_KEYS", "ACCESSION_TLS_KEY"} {
			if got := strings.Contains(strings.Join(s.doubts(nil), "\n"), name+" is a secret"); got != want {
				t.Errorf("%o: %s is warned of: %v, want %v", mode, name, got, want)
			}
		}
	}
}
