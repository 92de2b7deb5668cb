package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/accession/accession/client"
)

// oauthClient is a credential as an OAuth client has it.
type oauthClient struct{ id, secret string }

func (s *service) oauthClient(org, role string) oauthClient {
	s.t.Helper()
	r := s.do(issuing(client.NewIdempotencyKey(), org, role)).want(s.t, 201, "")
	return oauthClient{r.field(s.t, "credential_id"), r.field(s.t, "token")}
}

// accessToken exchanges the credential for one.
func (s *service) accessToken(c oauthClient) string {
	s.t.Helper()
	resp, err := http.PostForm(s.url+"/oauth/token", url.Values{"grant_type": {"client_credentials"}, "client_id": {c.id}, "client_secret": {c.secret}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.AccessToken == "" {
		s.t.Fatalf("no access token: %s, %v", resp.Status, err)
	}
	return answer.AccessToken
}

func (s *service) revokeCredential(id string) {
	s.t.Helper()
	s.do(call{method: "POST", path: "/admin/tenant-keys/credentials/" + id + "/revoke", bearer: adminToken, key: client.NewIdempotencyKey()}).want(s.t, 200, "")
}

func TestGoOAuthClient(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	var server struct {
		Issuer        string `json:"issuer"`
		TokenEndpoint string `json:"token_endpoint"`
	}
	r := s.do(call{method: "GET", path: "/.well-known/oauth-authorization-server"}).want(t, 200, "")
	if err := json.Unmarshal(r.Raw, &server); err != nil || server.Issuer != s.url {
		t.Fatalf("metadata: %v: %s", err, r.Raw)
	}
	for name, style := range map[string]oauth2.AuthStyle{
		"client_secret_basic": oauth2.AuthStyleInHeader, "client_secret_post": oauth2.AuthStyleInParams, "found out": oauth2.AuthStyleAutoDetect,
	} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			known := s.oauthClient("harbour", "ai_reader")
			config := clientcredentials.Config{
				ClientID: known.id, ClientSecret: known.secret, TokenURL: server.TokenEndpoint, AuthStyle: style, Scopes: []string{"metadata_read"},
			}
			token, err := config.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if token.Type() != "Bearer" || token.Extra("expires_in") != 600.0 || token.Extra("scope") != "metadata_read" {
				t.Errorf("token: %s, %v s, scope %v", token.Type(), token.Extra("expires_in"), token.Extra("scope"))
			}
			web := config.Client(t.Context())
			get := func(path string) (int, string) {
				resp, err := web.Get(s.url + path)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return resp.StatusCode, string(body)
			}
			if status, body := get("/oauth/identity"); status != 200 || !strings.Contains(body, `"org_id":"harbour"`) || !strings.Contains(body, known.id) {
				t.Errorf("identity: %d %s", status, body)
			}
			if status, body := get("/api/v1/organizations/harbour/quota"); status != 200 || !strings.Contains(body, `"allowance_bytes"`) {
				t.Errorf("quota: %d %s", status, body)
			}
			if status, body := get("/api/v1/organizations/harbour/request-records"); status != 403 || !strings.Contains(body, "insufficient_scope") {
				t.Errorf("a scope the token was not asked for: %d %s", status, body)
			}

			s.revokeCredential(known.id)
			if status, body := get("/oauth/identity"); status != 401 || !strings.Contains(body, "credential_invalid") {
				t.Errorf("identity after the revocation: %d %s", status, body)
			}
			if status, body := get("/api/v1/organizations/harbour/quota"); status != 401 || !strings.Contains(body, "credential_invalid") {
				t.Errorf("quota after the revocation: %d %s", status, body)
			}
			var refused *oauth2.RetrieveError
			if _, err := config.Token(t.Context()); !errors.As(err, &refused) ||
				refused.ErrorCode != "invalid_client" || refused.Response.StatusCode != 401 {
				t.Errorf("token after the revocation: %v", err)
			}
		})
	}
}

// heldClient is one script of testdata/oauth at work.
type heldClient struct {
	t      *testing.T
	stdin  io.Closer
	said   *bufio.Reader
	errors bytes.Buffer
	cmd    *exec.Cmd
}

func startNodeClient(t *testing.T, script string, env ...string) *heldClient {
	t.Helper()
	c := &heldClient{t: t, cmd: exec.CommandContext(t.Context(), "node", script)}
	c.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	c.cmd.Stderr = &c.errors
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it has ended, unless the test failed
		_ = c.cmd.Wait()
	})
	c.stdin, c.said = stdin, bufio.NewReader(stdout)
	return c
}

// next reads the next line that the script printed.
func (c *heldClient) next(into any) {
	c.t.Helper()
	line, err := c.said.ReadBytes('\n')
	if err != nil {
		_ = c.cmd.Wait() // the reason is on stderr
		c.t.Fatalf("the client said nothing: %v\n%s", err, c.errors.String())
	}
	if err := json.Unmarshal(line, into); err != nil {
		c.t.Fatalf("%v: %s", err, line)
	}
}

// refusedClient is how a client understood a refusal.
type refusedClient struct {
	Name, Error, Challenge string
	Status                 int
}

func TestNodeOAuthClients(t *testing.T) {
	t.Parallel()
	dir := npmProject(t, "testdata/oauth")
	s := start(t, options{})
	for _, script := range []string{"openid-client.mjs", "oauth4webapi.mjs"} {
		for _, method := range []string{"client_secret_basic", "client_secret_post"} {
			t.Run(script+" "+method, func(t *testing.T) {
				s := s.in(t)
				known := s.oauthClient("harbour", "solution_company_upload")
				c := startNodeClient(t, filepath.Join(dir, script), "ISSUER="+s.url, "ORG=harbour",
					"CLIENT_ID="+known.id, "CLIENT_SECRET="+known.secret, "AUTH_METHOD="+method)
				var good struct {
					Issuer string
					Token  struct {
						TokenType string `json:"token_type"`
						ExpiresIn int    `json:"expires_in"`
						Scope     string
					}
					Identity struct {
						Status int
						Body   struct {
							Data struct {
								OrgID        string `json:"org_id"`
								CredentialID string `json:"credential_id"`
								Scopes       []string
							}
						}
					}
					Quota struct {
						Status int
						Body   struct {
							Data struct {
								OrgID string `json:"org_id"`
							}
						}
					}
					Introspection struct {
						Active   bool
						ClientID string `json:"client_id"`
						Scope    string
					}
					Afterwards    struct{ Active bool }
					SecondRefused refusedClient
					Claims        *struct {
						Sub      string
						ClientID string `json:"client_id"`
						Scope    string
					}
				}
				c.next(&good)
				if good.Issuer != s.url || !strings.EqualFold(good.Token.TokenType, "Bearer") || good.Token.ExpiresIn != 600 || good.Token.Scope != "metadata_read" {
					t.Errorf("discovery and token: %+v", good)
				}
				if id := good.Identity.Body.Data; good.Identity.Status != 200 || id.OrgID != "harbour" || id.CredentialID != known.id || len(id.Scopes) != 1 {
					t.Errorf("identity: %+v", good.Identity)
				}
				if good.Quota.Status != 200 || good.Quota.Body.Data.OrgID != "harbour" {
					t.Errorf("quota: %+v", good.Quota)
				}
				if i := good.Introspection; !i.Active || i.ClientID != known.id || i.Scope != "metadata_read" || good.Afterwards.Active {
					t.Errorf("introspection: %+v, of a revoked token %+v", i, good.Afterwards)
				}
				wantChallenged(t, "a revoked token", good.SecondRefused)
				if script == "oauth4webapi.mjs" && (good.Claims == nil || good.Claims.Sub != known.id || good.Claims.ClientID != known.id || good.Claims.Scope != "metadata_read") {
					t.Errorf("claims: %+v", good.Claims)
				}

				s.revokeCredential(known.id)
				if err := c.stdin.Close(); err != nil {
					t.Fatal(err)
				}
				var dead struct{ Token, Identity, Quota refusedClient }
				c.next(&dead)
				want := refusedClient{Name: "ResponseBodyError", Error: "invalid_client", Status: 401}
				if method == "client_secret_basic" { // RFC 6749, section 5.2: such a client is challenged
					want = refusedClient{Name: "WWWAuthenticateChallengeError", Challenge: "basic", Status: 401}
				}
				if dead.Token != want {
					t.Errorf("a token for a revoked credential: %+v, want %+v", dead.Token, want)
				}
				wantChallenged(t, "identity by a revoked credential", dead.Identity)
				wantChallenged(t, "quota by a revoked credential", dead.Quota)
				if err := c.cmd.Wait(); err != nil {
					t.Errorf("%v\n%s", err, c.errors.String())
				}
			})
		}
	}
}

// wantChallenged fails the test unless the client saw a 401 with a Bearer challenge that it could read.
func wantChallenged(t *testing.T, what string, r refusedClient) {
	t.Helper()
	if r.Name != "WWWAuthenticateChallengeError" || r.Status != 401 || r.Challenge != "bearer" {
		t.Errorf("%s: %+v", what, r)
	}
}
