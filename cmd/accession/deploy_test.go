package main

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const deployFolder = "../../deploy"

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(deployFolder, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Every setting that something under deploy/ gives is one that the service reads.
func TestDeployNamesSettings(t *testing.T) {
	var s settings
	s.flags(pflag.NewFlagSet("serve", pflag.ContinueOnError), func(string) string { return "" })
	known := map[string]bool{environment(configFlag): true}
	for _, one := range s.all {
		known[environment(one.name)] = true
		if one.secret != "" {
			known[environment(one.name+fileSuffix)] = true
		}
	}
	found := 0
	err := filepath.WalkDir(deployFolder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, name := range regexp.MustCompile(`\bACCESSION_[A-Z0-9_]*[A-Z0-9]\b`).FindAllString(string(text), -1) {
			found++
			if !known[name] {
				t.Errorf("%s has %s, which nobody reads", path, name)
			}
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Errorf("%d settings found, %v", found, err)
	}
	var values struct{ Settings map[string]string }
	readYAML(t, "helm/accession/values.yaml", &values)
	env := map[string]string{}
	for name, value := range values.Settings {
		if env["ACCESSION_"+name] = value; !known["ACCESSION_"+name] {
			t.Errorf("values.yaml has %s, which nobody reads", name)
		}
	}
	env["ACCESSION_BASE_URL"], env["ACCESSION_BLOBS"], env["ACCESSION_QUARANTINE"] = "https://custody.example", "s3://custody/staging", "s3://custody-quarantine/copies"
	if _, err := checked(t, env); err != nil {
		t.Errorf("values.yaml: %v", err)
	}
}

func TestConfigurationOfTheUnit(t *testing.T) {
	s, err := checked(t, nil, "--config", filepath.Join(deployFolder, "systemd", "accession.yaml"))
	if err != nil || s.BaseURL != "https://custody.example" || s.MetricsListen == "" {
		t.Errorf("%v, %v", err, s.shown())
	}
}

// The Compose file has two replicas with settings that work, on the services, volumes and secrets that it defines.
func TestComposeFile(t *testing.T) {
	type service struct {
		Environment map[string]string
		Secrets     []string
		Volumes     []string
		DependsOn   map[string]any `yaml:"depends_on"`
		Entrypoint  any
	}
	var file struct {
		Services map[string]service
		Secrets  map[string]struct{ File string }
		Volumes  map[string]any
	}
	readYAML(t, "compose/compose.yaml", &file)
	prepare, err := os.ReadFile(filepath.Join(deployFolder, "compose/prepare.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		for other := range s.DependsOn {
			if _, there := file.Services[other]; !there {
				t.Errorf("%s depends on %s", name, other)
			}
		}
		for _, secret := range s.Secrets {
			if !strings.Contains(string(prepare), strings.TrimPrefix(file.Secrets[secret].File, "./")) || file.Secrets[secret].File == "" {
				t.Errorf("%s has the secret %s, which prepare.sh does not make", name, secret)
			}
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if _, there := file.Volumes[from]; !there {
				if _, err := os.Stat(filepath.Join(deployFolder, "compose", from)); err != nil || !strings.HasPrefix(from, "./") {
					t.Errorf("%s has the volume %s", name, from)
				}
			}
		}
	}
	secrets := t.TempDir()
	for name, content := range map[string]string{
		"admin_token": strings.Repeat("a", 64), "database_url": "postgres://accession:pw@postgres/accession?sslmode=disable",
		"key_encryption_key": base64.StdEncoding.EncodeToString(make([]byte, 32)),
	} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"replica-1", "replica-2"} {
		env := map[string]string{}
		for key, value := range file.Services[name].Environment {
			env[key] = strings.Replace(value, "/run/secrets", secrets, 1)
		}
		if env["ACCESSION_BLOBS"] == env["ACCESSION_QUARANTINE"] || !strings.HasPrefix(env["ACCESSION_BLOBS"], "s3://") {
			t.Errorf("%s: storage %v", name, env)
		}
		s, err := checked(t, env)
		if err != nil || s.AdminToken == "" || !strings.HasPrefix(s.Database, "postgres://") || !s.has(roleAPI) || !s.has(roleWorker) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
