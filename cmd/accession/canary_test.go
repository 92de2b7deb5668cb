package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindingNoCanary(t *testing.T) {
	s, _ := newOffice(t)
	const canary = "accession-canary-rec_01jd3xq4f7v9m2r8t6w0z5k1bn"
	file := filepath.Join(t.TempDir(), "leak.txt")
	if err := os.WriteFile(file, []byte("It said "+canary), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(t.TempDir(), "huge.txt")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, maxCanaryText+1); err != nil {
		t.Fatal(err)
	}
	s.stdin = strings.ToUpper(canary)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"The pump runs."}, exitNotFound, "there is no canary in the text"},
		{[]string{""}, exitNotFound, "there is no canary in the text"},
		{[]string{canary}, exitNotFound, "no serving of this service carries what looks like a canary in the text: " + canary},
		{[]string{"@" + file}, exitNotFound, canary},
		{[]string{"-"}, exitNotFound, canary},
		{[]string{"@" + file + ".gone"}, exitUsage, "cannot be read"},
		{[]string{"@" + huge}, exitUsage, "64 MiB"},
		{[]string{"-", "--admin-token-file", "-"}, exitUsage, "standard input"},
		{nil, exitUsage, "TEXT"},
	} {
		got := s.run(append([]string{"canary", "find"}, c.args...)...)
		if got.want(t, c.code, "", c.says); got.stdout != "" {
			t.Errorf("%v printed %q", c.args, got.stdout)
		}
	}
	s.env[envAdminToken] = "wrong"
	s.run("canary", "find", canary).want(t, exitNotAuthorised, "", "admin")
}
