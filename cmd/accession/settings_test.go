package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/accession/accession/internal/custody"
)

// checked are the settings of a command line and an environment, with a data folder.
func checked(t *testing.T, env map[string]string, args ...string) (settings, error) {
	t.Helper()
	var s settings
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	s.flags(f, func(name string) string { return env[name] })
	if err := f.Parse(append([]string{"--data", t.TempDir()}, args...)); err != nil {
		t.Fatal(err)
	}
	return s, s.check(f)
}

// written is a file with that content.
func written(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "accession.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultsAreTheContracts(t *testing.T) {
	s, err := checked(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.QuotaBytes != custody.DefaultAllowanceBytes || s.PartSizeBytes != custody.DefaultPartSizeBytes || s.Reservation != custody.ReservationLifetime ||
		s.KeyBackupHorizon.String() != "720h0m0s" || s.SignaturesCheck != time.Minute || s.Listen != "127.0.0.1:8080" || !s.has(roleAPI) || !s.has(roleWorker) ||
		s.Keys != filepath.Join(s.Data, "key-encryption.key") || s.Quarantine != filepath.Join(s.Data, "quarantine") {
		t.Errorf("defaults %+v", s.shown())
	}
}

func TestSettingsOfTheDoor(t *testing.T) {
	s, err := checked(t, map[string]string{"ACCESSION_RATE_LIMITS": "off", "ACCESSION_TRUSTED_PROXIES": "10.0.0.0/8, 192.0.2.1", "ACCESSION_METRICS_LISTEN": "127.0.0.1:9090"})
	if err != nil {
		t.Fatal(err)
	}
	proxies, err := s.proxies()
	if got := fmt.Sprintln(proxies, s.RateLimits, s.MetricsListen, err); got != "[10.0.0.0/8 192.0.2.1/32] off 127.0.0.1:9090 <nil>\n" {
		t.Errorf("settings %s", got)
	}
	for arg, says := range map[string]string{
		"--rate-limits=fast":              "is no class of requests",
		"--rate-limits=read=1":            "such as 50/200",
		"--request-slots=uploads=3":       "is no class of requests",
		"--request-slots=upload=0":        "such as 64",
		"--client-connections=-1":         "must be 0 or more",
		"--trusted-proxies=localhost":     "such as 10.0.0.0/8",
		"--metrics-listen=9090":           "such as 127.0.0.1:9090",
		"--listen=127.0.0.1:eighty":       "such as 127.0.0.1:8080",
		"--base-url=https://u:p@custody":  "such as https://custody.example",
		"--mcp-url=/mcp":                  "such as https://custody.example/mcp",
		"--roles=master":                  "must be all, api or worker",
		"--drain-time=0":                  "such as 30s",
		"--drain-delay=soon":              "must be a duration",
		"--otlp-endpoint=127.0.0.1":       "such as http://127.0.0.1:4318",
		"--webhook-private-addresses=yes": "must be refuse or allow",
		"--tls-cert=/srv/tls.crt":         "set --tls-key, too",
		"--tls-key=/srv/tls.key":          "set --tls-cert, too",
		"--signatures-check-every=1ms":    "at least 1s",
		"--key-backup-horizon=1ms":        "whole seconds",
		"--missing-walls=maybe":           "must be refuse or allow",
		"--ocr-languages=../eng":          "language of tesseract",
		"--keys=ftp://keys":               "cannot be used",
		"--config=/nowhere/a.yaml":        "no such file",
	} {
		if _, err := checked(t, nil, arg); err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", arg, err, says)
		}
	}
}

func TestFlagWinsOverEnvironmentOverFileOverDefault(t *testing.T) {
	path := written(t, "listen: 127.0.0.1:1\npart_size_bytes: 0x40\nreservation_lifetime: 1h\n")
	env := map[string]string{"ACCESSION_CONFIG": path, "ACCESSION_LISTEN": "127.0.0.1:2", "ACCESSION_PART_SIZE_BYTES": "128", "ACCESSION_QUOTA_BYTES": ""}
	s, err := checked(t, env, "--listen", "127.0.0.1:3")
	if err != nil {
		t.Fatal(err)
	}
	if s.Listen != "127.0.0.1:3" || s.PartSizeBytes != 128 || s.Reservation != time.Hour || s.QuotaBytes != custody.DefaultAllowanceBytes {
		t.Errorf("settings %+v", s.shown())
	}
	came := map[string]shownSetting{}
	for _, line := range s.shown() {
		came[line.Name] = line
	}
	for name, at := range map[string]string{"listen": "--listen", "part-size-bytes": "ACCESSION_PART_SIZE_BYTES", "reservation-lifetime": "reservation_lifetime (" + path + ", line 3)", "quota-bytes": ""} {
		if came[name].At != at {
			t.Errorf("%s came from %q, want %q", name, came[name].At, at)
		}
	}
	other := written(t, "listen: 127.0.0.1:4\n")
	if s, err := checked(t, env, "--config", other); err != nil || s.Listen != "127.0.0.1:2" || s.Reservation != 24*time.Hour {
		t.Errorf("--config did not win over ACCESSION_CONFIG: %+v, %v", s.shown(), err)
	}
	if s, err := checked(t, map[string]string{"ACCESSION_LISTEN": "127.0.0.1:2"}, "--listen="); err == nil {
		t.Errorf("an empty flag counted as none: %s", s.Listen)
	}
}

func TestConfigurationFileTakesListsAndMappings(t *testing.T) {
	s, err := checked(t, nil, "--config", written(t, `# an installation
rate_limits:
  read: 10/20
  upload: off
trusted_proxies: [10.0.0.0/8, 192.0.2.1]
ocr_languages:
  - eng
  - deu
gate_deadlines: {malware_scan: 3m}
signatures_max_age: 0
roles: [api, worker]
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.RateLimits, " ", s.TrustedProxies, " ", s.OCRLanguages, " ", s.GateDeadlines); got != "read=10/20,upload=off 10.0.0.0/8,192.0.2.1 eng,deu malware_scan=3m" {
		t.Errorf("read %s", got)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n"} {
		if _, err := checked(t, nil, "--config", written(t, empty)); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestConfigurationFileIsStrict(t *testing.T) {
	for name, c := range map[string]struct{ content, says string }{
		"unknown":            {"listen: 127.0.0.1:1\npart_size: 64\n", "line 2: part_size is no setting"},
		"mistyped":           {"part_sizebytes: 64\n", "line 1: part_sizebytes is no setting; did you mean part_size_bytes?"},
		"spelled as a flag":  {"part-size-bytes: 64\n", "did you mean part_size_bytes?"},
		"twice":              {"listen: 127.0.0.1:1\ncache: /x\nlisten: 127.0.0.1:2\n", "line 3: listen is there twice"},
		"text for a number":  {"part_size_bytes: \"64\"\n", "line 1: part_size_bytes must be a whole number of bytes"},
		"fraction":           {"quota_bytes: 1.5\n", "must be a whole number of bytes"},
		"too large":          {"quota_bytes: 99999999999999999999\n", "must be a whole number of bytes"},
		"number for text":    {"listen: 8080\n", "line 1: listen must be text"},
		"bool for text":      {"listen: true\n", "listen must be text"},
		"number of seconds":  {"reservation_lifetime: 3600\n", "must be a duration"},
		"no value":           {"listen:\n", "listen has no value"},
		"list for one":       {"listen: [127.0.0.1:1]\n", "listen must have one plain value"},
		"mapping for a list": {"trusted_proxies: {a: b}\n", "trusted_proxies must have one plain value"},
		"list in a list":     {"trusted_proxies: [[10.0.0.0/8]]\n", "list of plain values"},
		"comma in a list":    {"trusted_proxies: [\"10.0.0.0/8,::/0\"]\n", "list of plain values"},
		"pair twice":         {"rate_limits: {read: 1/2, read: 3/4}\n", "has read twice"},
		"alias":              {"cache: &a /x\nblobs: *a\n", "blobs must have one plain value"},
		"merge":              {"<<: {listen: x}\n", "<< is no setting"},
		"no mapping":         {"- listen\n", "line 1: must be lines such as"},
		"two documents":      {"listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n", "more than one YAML document"},
		"no YAML":            {"listen: [\n", "line"},
		"secret":             {"admin_token: 0123456789012345678901234567890123456789\n", "line 1: admin_token does not stand in this file: name a file that holds it with admin_token_file"},
		"config in config":   {"config: other.yaml\n", "config is no setting"},
		"too long":           {strings.Repeat("# a comment\n", 1<<17), "is it the right file?"},
		"wrong value":        {"cache: /x\nlisten: here\n", "line 2) must be HOST:PORT"},
		"wrong type in env":  {"cache: /x\n", "ACCESSION_QUOTA_BYTES must be a whole number"},
	} {
		env := map[string]string{}
		if name == "wrong type in env" {
			env["ACCESSION_QUOTA_BYTES"] = "1GiB"
		}
		_, err := checked(t, env, "--config", written(t, c.content))
		if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
		}
	}
}

func TestSecretsComeFromFiles(t *testing.T) {
	secret := "secret-of-the-office-with-40-characters!"
	file := written(t, secret+"\n")
	for name, env := range map[string]map[string]string{
		"environment":        {"ACCESSION_ADMIN_TOKEN_FILE": file},
		"flag":               {},
		"configuration file": {"ACCESSION_CONFIG": written(t, "admin_token_file: "+file+"\n")},
		"nearer source":      {"ACCESSION_CONFIG": written(t, "admin_token_file: /nowhere\n"), "ACCESSION_ADMIN_TOKEN": secret},
	} {
		args := []string{}
		if name == "flag" {
			args = []string{"--admin-token-file", file}
		}
		if s, err := checked(t, env, args...); err != nil || s.AdminToken != secret {
			t.Errorf("%s: %q, %v", name, s.AdminToken, err)
		}
	}
	for name, c := range map[string]struct {
		env  map[string]string
		says string
	}{
		"both":    {map[string]string{"ACCESSION_ADMIN_TOKEN_FILE": file, "ACCESSION_ADMIN_TOKEN": secret}, "give one of them"},
		"missing": {map[string]string{"ACCESSION_ADMIN_TOKEN_FILE": "/nowhere"}, "ACCESSION_ADMIN_TOKEN_FILE: open /nowhere"},
		"empty":   {map[string]string{"ACCESSION_ADMIN_TOKEN_FILE": written(t, "\n")}, "has to hold the value"},
		"short":   {map[string]string{"ACCESSION_ADMIN_TOKEN_FILE": written(t, "hunter2")}, "must have 32 characters or more"},
	} {
		if _, err := checked(t, c.env); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
		}
	}
}

func TestVariablesThatNobodyReadsAreNamed(t *testing.T) {
	s, err := checked(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := s.unread([]string{
		"ACCESSION_PART_SIZE_BYTE=64", "ACCESSION_RETENSHUN=1", "PATH=/bin", "ACCESSION_DATA=/x", "ACCESSION_ADMIN_TOKEN_FILE=/x", "ACCESSION_URL=x", "ACCESSION_ORG=x",
		"ACCESSION_TOKEN=x", "ACCESSION_CONFIG=x", "ACCESSION_CONSENT_EMAIL=x", "ACCESSION_SERVICE_HOST=10.0.0.1", "ACCESSION_PORT=tcp://10.0.0.1:80",
		"ACCESSION_PORT_8080_TCP_ADDR=10.0.0.1", "ACCESSION_API_SERVICE_PORT_HTTP=80",
	})
	if want := "ACCESSION_PART_SIZE_BYTE is no setting; did you mean ACCESSION_PART_SIZE_BYTES?\nACCESSION_RETENSHUN is no setting"; strings.Join(got, "\n") != want {
		t.Errorf("warned %q", got)
	}
}

// A reader of docs/operations.md finds every setting, by its three names.
func TestEverySettingIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	s, err := checked(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range s.all {
		row := "| `--" + one.name + "` | `" + environment(one.name) + "` |"
		if one.secret == "yes" {
			row = "| – | `" + environment(one.name) + "` |"
		}
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/operations.md has no row %q", row)
		}
		if one.usage == "" || one.kind() == "string" && one.value.Kind().String() != "string" {
			t.Errorf("%s: no usage, or a type that nobody can set", one.name)
		}
	}
}

// Two names of one folder would make a copy that is none.
func TestRootsThatLeadToTheSamePlace(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"disk", "other"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("disk", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(folder, path) }
	for _, c := range []struct {
		blobs, quarantine string
		apart             bool
	}{
		{"disk/a", "other/a", true}, {"disk/a", "link/b", true}, {"disk", "link", false}, {"disk/a", "link/a", false}, {"disk/new/a", "link/new", false}, {"link", "disk/a", false},
	} {
		_, err := checked(t, map[string]string{"ACCESSION_BLOBS": at(c.blobs), "ACCESSION_QUARANTINE": at(c.quarantine)})
		if (err == nil) != c.apart || err != nil && !strings.Contains(err.Error(), "must lie apart from") {
			t.Errorf("%s and %s: %v", c.blobs, c.quarantine, err)
		}
	}
}
