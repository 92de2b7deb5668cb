package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A configuration file sets what stands in it, by names that there are; else it is refused with the name of the file, and without
// the value that somebody may have put there by mistake: it could be a secret.
func FuzzConfigFile(f *testing.F) {
	for _, content := range []string{
		"listen: 127.0.0.1:8080\n", "# nothing\n", "", "quota_bytes: 1_000_000\nrate_limits: {read: 50/200}\n", "trusted_proxies: [10.0.0.0/8, 192.0.2.1]\n", "a: &a [*a]\n", "listen: *nobody\n", "---\nlisten: x\n---\nlisten: y\n",
		"listen: x\nlisten: y\n", "lisen: x\n", "admin_token: zqzqzqzq\n", "quota_bytes: zqzqzqzq\n", "drain_time: 0\n", "- listen\n", "null\n", "? [a]\n: b\n", "listen: !!binary zqzqzqzq\n", "<<: {listen: x}\n", "%YAML 9.9\n---\n", "\t", "\xff\xfe", "\"\\ud800\": 1\n", "&a\n", "!!map\n", "a: zqzqzqzq: b\n",
	} {
		f.Add(content)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content string) {
		path := filepath.Join(dir, "accession.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var s settings
		s.flags(pflag.NewFlagSet("serve", pflag.ContinueOnError), func(string) string { return "" })
		found, err := s.readConfig(path)
		if err != nil {
			if !strings.HasPrefix(err.Error(), path) || found != nil {
				t.Errorf("%q: %v, with %v", content, err, found)
			}
			if strings.Contains(content, ": zqzqzqzq\n") && strings.Contains(err.Error(), "zqzqzqzq") {
				t.Errorf("the value is in %v", err)
			}
			return
		}
		for name := range found {
			if !slices.ContainsFunc(s.all, func(one *setting) bool {
				return key(one.name) == name && one.secret != "yes" || one.secret != "" && key(one.name+fileSuffix) == name
			}) || !strings.Contains(content, name) {
				t.Errorf("%q sets %q", content, name)
			}
		}
	})
}
