package main

import (
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/accession/accession/client"
)

const officeToken = "office-admin-token-of-forty-characters!!"

// office is a station before the real service: door, rooms and stores, everything but the engines behind the gates.
func newOffice(t *testing.T) (s *station, data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	var set settings
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	set.flags(flags, func(string) string { return "" })
	// Nothing here is scanned, so nobody needs to answer there.
	if err := flags.Parse([]string{"--data", data, "--clamd-address", "unix:" + filepath.Join(t.TempDir(), "clamd"), "--rate-limits", "off"}); err != nil {
		t.Fatal(err)
	}
	if err := set.check(flags); err != nil {
		t.Fatal(err)
	}
	svc, err := openService(t.Context(), set, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler, err := svc.handler(t.Context(), "http://"+listener.Addr().String(), officeToken)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener = listener
	server.Start()
	t.Cleanup(func() {
		server.Close()
		if err := svc.close(); err != nil {
			t.Error(err)
		}
	})
	s = &station{t: t, state: t.TempDir(), env: map[string]string{envServer: server.URL, envOrg: "harbour", envAdminToken: officeToken}}
	return s, data
}

// issued is a fresh credential of the office.
func (s *station) issued() (c client.Credential) {
	s.t.Helper()
	got := s.run("credentials", "issue", "--role", "ai_reader", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &c); err != nil || got.code != exitOK {
		s.t.Fatalf("%+v, %v", got, err)
	}
	return c
}

// quota is the status with which the service answers a bearer.
func (s *station) quota(token string) int {
	s.t.Helper()
	request, err := http.NewRequest("GET", s.env[envServer]+"/api/v1/organizations/harbour/quota", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func (s *station) accessToken(c client.Credential) string {
	s.t.Helper()
	answer, err := http.PostForm(s.env[envServer]+"/oauth/token", url.Values{"grant_type": {"client_credentials"}, "client_id": {c.CredentialID}, "client_secret": {c.Token}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	var said struct {
		AccessToken string `json:"access_token"`
	}
	if err != nil || json.Unmarshal(body, &said) != nil || said.AccessToken == "" {
		s.t.Fatalf("answered %d %s, %v", answer.StatusCode, body, err)
	}
	return said.AccessToken
}

func TestCredentialsFromIssueToRevocation(t *testing.T) {
	s, data := newOffice(t)
	first := s.issued()
	access := s.accessToken(first)
	for what, token := range map[string]string{"the credential": first.Token, "its access token": access} {
		if got := s.quota(token); got != 200 {
			t.Fatalf("%s got %d", what, got)
		}
	}
	got := s.run("credentials", "rotate", first.CredentialID, "--overlap", "1h")
	second := strings.TrimSpace(got.stdout)
	if got.want(t, exitOK, "acc_", "it replaces "+first.CredentialID); strings.Count(got.stdout, "\n") != 1 || strings.Contains(got.stderr, second) || s.quota(second) != 200 || s.quota(first.Token) != 200 {
		t.Errorf("after the rotation: %+v", got)
	}
	list := s.run("credentials", "list")
	if list.want(t, exitOK, first.CredentialID, ""); strings.Count(list.stdout, "active") != 2 {
		t.Errorf("listed: %s", list.stdout)
	}
	s.run("credentials", "revoke", first.CredentialID).want(t, exitOK, "revoked", "")
	for what, token := range map[string]string{"the credential": first.Token, "its access token": access} {
		if got := s.quota(token); got != 401 {
			t.Errorf("once revoked, %s got %d", what, got)
		}
	}
	if got := s.quota(second); got != 200 {
		t.Errorf("the successor got %d", got)
	}
	if list := s.run("credentials", "list"); strings.Contains(list.stdout, first.CredentialID) {
		t.Errorf("listed: %s", list.stdout)
	}
	all := s.run("credentials", "list", "--all", "--json")
	if all.want(t, exitOK, `"state": "revoked"`, ""); strings.Contains(all.stdout, "acc_") {
		t.Errorf("listed: %s", all.stdout)
	}
	var dead client.Credential
	if err := json.Unmarshal([]byte(s.run("credentials", "rotate", first.CredentialID, "--json").stdout), &dead); err == nil {
		t.Errorf("a revoked credential has a successor: %s", dead)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"credentials", "revoke"}, exitUsage, "CREDENTIAL_ID"},
		{[]string{"credentials", "revoke", "cred_none"}, exitNotFound, "credentials list --all"},
		{[]string{"credentials", "rotate", first.CredentialID}, exitConflict, "credential_not_active"},
		{[]string{"credentials", "rotate", first.CredentialID, "--overlap", "1000h"}, exitFailure, "/overlap_seconds"},
		{[]string{"credentials", "rotate", first.CredentialID, "--expires-at", "soon"}, exitUsage, "2027-05-01"},
		{[]string{"credentials", "signing-keys", "rotate", "sandbox"}, exitUsage, "credential, oauth or receipt"},
		{[]string{"credentials", "signing-keys", "retire", "key_none"}, exitNotFound, "signing-keys list"},
	} {
		s.run(c.args...).want(t, c.code, "", c.says)
	}
	s.env[envAdminToken] = "wrong"
	s.run("credentials", "list").want(t, exitNotAuthorised, "", "admin")

	// The data folder holds no secret in the clear; the search finds what it is meant to find.
	secrets := map[string]string{"a credential": first.Token, "its MAC": first.Token[len(first.Token)-43:], "the successor": second, "an access token": access, "the admin token": officeToken}
	found := false
	err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		found = found || strings.Contains(string(b), first.CredentialID)
		for what, secret := range secrets {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s lies in %s", what, filepath.Base(path))
			}
		}
		return err
	})
	if err != nil || !found {
		t.Errorf("the search proves nothing: %v, %v", found, err)
	}
}

// The keys of the real key store rotate while the service runs.
func TestSigningKeysFromRotationToRetirement(t *testing.T) {
	s, _ := newOffice(t)
	first := s.issued()
	access := s.accessToken(first)
	keys := func() (list []client.SigningKey) {
		t.Helper()
		var said client.SigningKeyList
		if err := json.Unmarshal([]byte(s.run("credentials", "signing-keys", "list", "--json").stdout), &said); err != nil {
			t.Fatal(err)
		}
		return said.SigningKeys
	}
	if got := keys(); len(got) != 2 || got[0].Purpose != "credential" || got[1].Purpose != "oauth" || got[0].State != "signing" {
		t.Fatalf("at first: %+v", got)
	}
	old := keys()
	for _, purpose := range []string{"credential", "oauth"} {
		s.run("credentials", "signing-keys", "rotate", purpose).want(t, exitOK, "announced", "")
	}
	s.run("credentials", "signing-keys", "list").want(t, exitOK, "signing", "")
	if got := keys(); len(got) != 4 || got[0].SignsFrom.Sub(got[0].CreatedAt) != 2*time.Minute {
		t.Errorf("after the rotation: %+v", got)
	}
	s.run("credentials", "signing-keys", "rotate", "receipt").want(t, exitOK, "signing", "") // the first: nobody needs to learn of it before
	if s.quota(first.Token) != 200 || s.quota(access) != 200 {
		t.Error("a rotation ended what was there")
	}
	s.run("credentials", "signing-keys", "retire", old[1].KeyID).want(t, exitConflict, "", "signing_key_in_use")
	s.run("credentials", "signing-keys", "retire", old[1].KeyID, "--force").want(t, exitOK, "retired", "")
	if s.quota(access) != 401 || s.quota(first.Token) != 200 || s.quota(s.accessToken(first)) != 200 {
		t.Error("retiring the key of access tokens ends those, and nothing else")
	}
	s.run("credentials", "signing-keys", "retire", old[0].KeyID).want(t, exitConflict, "", "signing_key_in_use")
	s.run("credentials", "signing-keys", "retire", old[0].KeyID, "--force").want(t, exitOK, "retired", "")
	if s.quota(first.Token) != 401 || s.quota(s.issued().Token) != 200 {
		t.Error("retiring the key of credentials ends those, and new ones are good")
	}
}
