package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/accession/accession/client/clienttest"
)

// keepsProfiles is a station whose credentials are in profiles alone, with harbour in use.
func keepsProfiles(t *testing.T) *station {
	t.Helper()
	s := newStation(t)
	for _, name := range []string{envServer, envOrg, envToken} {
		delete(s.env, name)
	}
	s.stdin = clienttest.UploadToken
	s.run("profile", "add", "harbour", "--url", s.service.URL, "--org", clienttest.Org, "--credential-file", "-").want(t, exitOK, "added harbour, in use", "")
	return s
}

func (s *station) profilesFile() string {
	return filepath.Join(s.env["XDG_CONFIG_HOME"], "accession", "profiles.json")
}

func TestProfileIsUsed(t *testing.T) {
	s := keepsProfiles(t)
	s.run("quota").want(t, exitOK, "allowance", "")
	s.run("upload", s.file("record.bin", 1000), "--accept").want(t, exitOK, "READY", "")
	// Reading takes another role: the profile may hold both, and each command takes the right one.
	s.stdin = clienttest.ReaderToken
	s.run("profile", "add", "harbour", "--update", "--reader-file", "-").want(t, exitOK, "changed harbour", "")
	s.run("context", "up_1").want(t, exitOK, "unverified", "")
	s.run("quota").want(t, exitOK, "allowance", "")
	// And the admin token.
	s.run("credentials", "list").want(t, exitUsage, "", "no admin token")
	s.stdin = clienttest.AdminToken
	s.run("profile", "add", "harbour", "--update", "--admin-token-file", "-").want(t, exitOK, "", "")
	s.run("credentials", "issue", "--role", "ai_reader").want(t, exitOK, clienttest.ReaderToken, "")
}

func TestProfilePrecedence(t *testing.T) {
	s := keepsProfiles(t)
	s.env[envServer], s.env[envToken] = s.service.URL, "acc_other"
	s.run("quota").want(t, exitNotAuthorised, "", "")
	s.run("quota", "--token-file", s.token(clienttest.UploadToken)).want(t, exitOK, "allowance", "")
	s.run("quota", "--profile", "harbour").want(t, exitOK, "allowance", "")
	delete(s.env, envToken)
	s.env[envOrg] = "elsewhere"
	s.run("quota").want(t, exitNotFound, "", "")
	s.run("quota", "--org", clienttest.Org).want(t, exitOK, "allowance", "")
	s.run("quota", "--profile", "harbour").want(t, exitOK, "allowance", "")
	s.run("quota", "--profile", "harbour", "--org", "elsewhere").want(t, exitNotFound, "", "")
	s.env[envServer] = "http://127.0.0.1:9"
	s.run("quota", "--profile", "harbour").want(t, exitOK, "allowance", "")
	delete(s.env, envOrg)
	delete(s.env, envServer)

	s.stdin = "acc_of_another_service"
	s.run("profile", "add", "other", "--url", "http://127.0.0.1:9", "--org", "o", "--credential-file", "-").want(t, exitOK, "added other\n", "")
	s.run("quota").want(t, exitOK, "allowance", "") // harbour is still in use
	s.env[envProfile] = "other"
	s.run("quota", "--profile", "harbour").want(t, exitOK, "allowance", "")
	s.run("quota").want(t, exitUnavailable, "", "127.0.0.1:9")
	delete(s.env, envProfile)
	s.run("profile", "use", "other").want(t, exitOK, "other is in use", "")
	s.run("quota").want(t, exitUnavailable, "", "127.0.0.1:9")
	s.run("quota", "--profile", "nowhere").want(t, exitNotFound, "", "name one of harbour, other")
}

func TestCredentialGoesToItsOwnAddressOnly(t *testing.T) {
	s := keepsProfiles(t)
	before := len(s.service.Calls(""))
	s.run("profile", "add", "far", "--url", "http://127.0.0.1:9", "--org", clienttest.Org, "--credential-file", s.token("acc_far")).want(t, exitOK, "", "")
	s.run("quota", "--profile", "far", "--server", s.service.URL).want(t, exitUsage, "", "is not sent to")
	s.env[envServer], s.env[envProfile] = s.service.URL, "far"
	s.run("quota").want(t, exitUsage, "", "is not sent to")
	if len(s.service.Calls("")) != before {
		t.Error("the credential of another service was sent")
	}
	// A new address does not get the old one's credentials.
	s.run("profile", "add", "far", "--update", "--url", s.service.URL).want(t, exitUsage, "", "belong to http://127.0.0.1:9")
	s.run("profile", "add", "far", "--update", "--url", s.service.URL, "--reader-file", s.token("acc_new")).want(t, exitOK, "", "")
	content, err := os.ReadFile(s.profilesFile())
	if err != nil || strings.Contains(string(content), "acc_far") {
		t.Errorf("the credential of the old address is kept, or %v", err)
	}
}

// A credential of the environment is sent to a profile's address only where the environment says that it belongs there.
func TestCredentialOfTheEnvironmentGoesToNoProfile(t *testing.T) {
	s := keepsProfiles(t)
	bare := "bare" // an address without credentials, to which the environment's could go
	s.stdin = "acc_of_a_reader"
	s.run("profile", "add", bare, "--url", s.service.URL, "--org", clienttest.Org, "--reader-file", "-").want(t, exitOK, "", "")
	content, err := os.ReadFile(s.profilesFile())
	if err == nil {
		err = os.WriteFile(s.profilesFile(), []byte(strings.ReplaceAll(string(content), `"reader": "acc_of_a_reader"`, `"reader": ""`)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := len(s.service.Calls(""))
	s.env[envToken], s.env[envAdminToken] = "acc_of_another_service", "an admin token of another service"
	const quota, admin = envToken + " is set, and nothing says that it belongs to", envAdminToken + " is set, and nothing says that it belongs to"
	for _, how := range []struct {
		env, flag, address string
	}{{flag: bare}, {env: bare}, {flag: bare, address: "http://127.0.0.1:9"}} {
		s.env[envProfile], s.env[envServer] = how.env, how.address
		args := []string{}
		if how.flag != "" {
			args = append(args, "--profile", how.flag)
		}
		s.run(append([]string{"quota"}, args...)...).want(t, exitUsage, "", quota)
		s.run(append([]string{"credentials", "list"}, args...)...).want(t, exitUsage, "", admin)
		s.run(append([]string{"doctor", "client"}, args...)...).want(t, exitFailure, quota, "findings")
		s.run(append([]string{"doctor", "client"}, args...)...).want(t, exitFailure, admin, "findings")
	}
	delete(s.env, envProfile)
	delete(s.env, envServer)
	s.run("quota").want(t, exitUsage, "", quota) // the profile in use
	for _, call := range s.service.Calls("")[before:] {
		t.Errorf("asked for %v", call)
	}
	// What the profile has goes before it, and what belongs to the same address is sent.
	s.run("quota", "--profile", "harbour").want(t, exitOK, "allowance", "")
	s.env[envServer], s.env[envToken], s.env[envAdminToken] = s.service.URL+"/", clienttest.UploadToken, clienttest.AdminToken
	s.run("quota", "--profile", bare).want(t, exitOK, "allowance", "")
	s.run("credentials", "issue", "--role", "ai_reader", "--profile", bare).want(t, exitOK, clienttest.ReaderToken, "")
	s.run("doctor", "client", "--profile", bare).want(t, exitFailure, "accepted for", "")
}

// token is a private file with a token.
func (s *station) token(text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func TestProfilesThatOthersCanReadAreRefused(t *testing.T) {
	s := keepsProfiles(t)
	path := s.profilesFile()
	for _, at := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(at)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", at, info.Mode(), err)
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		s.run("quota").want(t, exitUsage, "", "chmod 600 "+path)
		s.run("profile", "list").want(t, exitUsage, "", "can be read by other users")
		s.run("profile", "use", "harbour").want(t, exitUsage, "", "can be read by other users")
	}
	// The service of these tests has no /readyz, which the doctor tells of; the profiles are mended and used all the same.
	s.run("doctor", "client", "--fix").want(t, exitFailure, "mended: chmod 600 "+path, "1 of 5 findings")
	s.run("quota").want(t, exitOK, "allowance", "")
	if err := os.Chmod(filepath.Dir(path), 0o770); err != nil {
		t.Fatal(err)
	}
	s.run("quota").want(t, exitUsage, "", "chmod 700")
	// What is mended is looked at again: here the folder is left.
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := s.run("doctor", "client", "--fix"); got.code != exitFailure || strings.Contains(got.stdout, "mended") || !strings.Contains(got.stdout, "chmod 700 "+filepath.Dir(path)) {
		t.Errorf("%+v", got)
	}
}

// Credentials are not written to where they would not be read: the folder is looked at before, not only once there is a file.
func TestProfilesAreNotWrittenWhereOthersWrite(t *testing.T) {
	s := keepsProfiles(t)
	folder := filepath.Dir(s.profilesFile())
	if err := errors.Join(os.Remove(s.profilesFile()), os.Chmod(folder, 0o777)); err != nil {
		t.Fatal(err)
	}
	s.stdin = clienttest.UploadToken
	s.run("profile", "add", "harbour", "--url", s.service.URL, "--credential-file", "-").want(t, exitUsage, "", "chmod 700 "+folder)
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("written all the same: %v, %v", left, err)
	}
}

func TestProfilesBehindALink(t *testing.T) {
	s := keepsProfiles(t)
	link, elsewhere := s.profilesFile(), filepath.Join(t.TempDir(), "private")
	real := filepath.Join(elsewhere, "mine.json")
	if err := errors.Join(os.Mkdir(elsewhere, 0o700), os.Rename(link, real), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	s.stdin = clienttest.ReaderToken
	s.run("profile", "add", "harbour", "--update", "--reader-file", "-").want(t, exitOK, "changed harbour", "")
	if to, err := os.Readlink(link); err != nil || to != real {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if content, err := os.ReadFile(real); err != nil || !strings.Contains(string(content), clienttest.ReaderToken) {
		t.Errorf("the file behind the link was not changed: %v", err)
	}
	s.run("quota").want(t, exitOK, "allowance", "")
	// Neither the link's folder nor the file's may be anybody's.
	for _, folder := range []string{filepath.Dir(link), elsewhere} {
		if err := os.Chmod(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		s.run("quota").want(t, exitUsage, "", "chmod 700 "+folder)
		s.run("profile", "use", "harbour").want(t, exitUsage, "", "chmod 700 "+folder)
		if err := os.Chmod(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(real, 0o644); err != nil {
		t.Fatal(err)
	}
	s.run("quota").want(t, exitUsage, "", "chmod 600 "+real)
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	s.run("profile", "add", "harbour", "--url", s.service.URL, "--credential-file", "-").want(t, exitUsage, "", "symbolic link")
	s.run("quota").want(t, exitUsage, "", "symbolic link")
}

func TestProfilesAreShownMasked(t *testing.T) {
	s := keepsProfiles(t)
	s.run("profile", "show").want(t, exitOK, masked, "")
	s.run("profile", "show", "harbour", "--json").want(t, exitOK, `"credential": "`+masked+`"`, "")
	s.run("profile", "list").want(t, exitOK, "* harbour", "")
	s.run("profile", "list", "--json").want(t, exitOK, `"in_use": true`, "")
	s.run("profile", "show", "nowhere").want(t, exitNotFound, "", "name one of harbour")
	s.run("profile", "remove", "harbour").want(t, exitOK, "removed harbour", "")
	s.run("profile", "show").want(t, exitNotFound, "", "accession profile add")
	s.run("quota", "--org", "o").want(t, exitUsage, "", "no credential")
}

func TestProfileCommandLines(t *testing.T) {
	s := keepsProfiles(t)
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"add", "harbour", "--url", s.service.URL, "--credential-file", "-"}, "change it with --update"},
		{[]string{"add", "new", "--update", "--credential-file", "-"}, "leave --update out"},
		{[]string{"add", "../new", "--url", s.service.URL, "--credential-file", "-"}, "is no name of a profile"},
		{[]string{"add", "new", "--credential-file", "-"}, "--url"},
		{[]string{"add", "new", "--url", "custody.example", "--credential-file", "-"}, "https://custody.example"},
		{[]string{"add", "new", "--url", s.service.URL}, "no credential: name a file"},
		{[]string{"add", "new", "--url", s.service.URL, "--credential-file", "-", "--reader-file", "-"}, "one credential"},
		{[]string{"add", "new", "--url", s.service.URL, "--credential-file", s.token("two words")}, "no credential has"},
		{[]string{"add", "new", "--url", s.service.URL, "--credential=" + clienttest.UploadToken}, "--credential"},
	} {
		got := s.run(append([]string{"profile"}, test.args...)...)
		got.want(t, exitUsage, "", test.stderr)
	}
}

func TestProfileCredentialIsAskedFor(t *testing.T) {
	s := newStation(t)
	var asked []string
	s.ask = func(prompt string) (string, error) {
		asked = append(asked, prompt)
		if len(asked) == 2 {
			return clienttest.ReaderToken, nil
		}
		return "", nil
	}
	s.run("profile", "add", "harbour", "--url", s.service.URL, "--org", clienttest.Org).want(t, exitOK, "added harbour", "")
	delete(s.env, envToken)
	s.run("profile", "show").want(t, exitOK, "reader      "+masked, "")
	if len(asked) != 3 || !strings.Contains(asked[0], "not shown") {
		t.Errorf("asked %q", asked)
	}
	s.ask = func(string) (string, error) { return "", errors.New("gone") }
	s.run("profile", "add", "other", "--url", s.service.URL).want(t, exitFailure, "", "no credential was read")
}

func TestDamagedProfilesShowNothing(t *testing.T) {
	s := keepsProfiles(t)
	for _, content := range []string{`{"profiles": {"harbour": "` + clienttest.UploadToken + `"}}`, clienttest.UploadToken} {
		if err := os.WriteFile(s.profilesFile(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s.run("quota").want(t, exitFailure, "", "mend or remove that file") // run fails where a token is shown
	}
}

func TestProfilesAreChangedOneAfterTheOther(t *testing.T) {
	s := keepsProfiles(t)
	var adding sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		file := s.token("acc_" + name)
		adding.Go(func() { s.run("profile", "add", name, "--url", "http://127.0.0.1:9", "--credential-file", file) })
	}
	adding.Wait()
	got := s.run("profile", "list")
	if strings.Count(got.stdout, "\n") != 7 {
		t.Errorf("some were lost:\n%s", got.stdout)
	}
}
