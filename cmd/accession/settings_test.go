package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

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
		"--rate-limits=fast":          "is no class of requests",
		"--rate-limits=read=1":        "such as 50/200",
		"--trusted-proxies=localhost": "such as 10.0.0.0/8",
		"--metrics-listen=9090":       "such as 127.0.0.1:9090",
	} {
		if _, err := checked(t, nil, arg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", arg, err, says)
		}
	}
}
