package tenant_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

func TestScopesOnlyNarrow(t *testing.T) {
	o := open(t)
	for _, c := range []struct {
		role      custody.Role
		ask, want []custody.Scope
		path      string
	}{
		{"ai_reader", nil, custody.RoleScopes["ai_reader"], ""},
		{"ai_reader", []custody.Scope{"ai_context"}, []custody.Scope{"ai_context"}, ""},
		{"ai_reader", []custody.Scope{"mcp", "ai_context", "mcp"}, []custody.Scope{"ai_context", "mcp"}, ""},
		{"ai_reader", []custody.Scope{"ai_context", "customer_upload"}, nil, "/scope"},
		{"ai_reader", []custody.Scope{""}, nil, "/scope"},
		{"ai_reader", []custody.Scope{"*"}, nil, "/scope"},
		{"solution_company_upload", []custody.Scope{"customer_upload", "metadata_read"}, []custody.Scope{"customer_upload", "metadata_read"}, ""},
		{"solution_company_upload", []custody.Scope{"ai_context"}, nil, "/scope"},
		{"admin", nil, nil, "/role"},
		{"", nil, nil, "/role"},
	} {
		_, token, err := o.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: c.role, Scopes: c.ask}, idempotency("", ""))
		if c.path != "" {
			wantField(t, err, c.path)
			if token != "" {
				t.Errorf("%s %v: refused, with a token", c.role, c.ask)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if caller, err := o.Authenticate(t.Context(), token); err != nil || !slices.Equal(caller.Scopes, c.want) {
			t.Errorf("%s %v: scopes %v, %v; want %v", c.role, c.ask, caller.Scopes, err, c.want)
		}
	}
	if len(custody.RoleScopes["ai_reader"]) != 4 || custody.RoleScopes["ai_reader"][1] != "metadata_read" {
		t.Errorf("narrowing one credential changed its role: %v", custody.RoleScopes["ai_reader"])
	}
}

func wantField(t *testing.T, err error, path string) {
	t.Helper()
	if e := wantCode(t, path, err, custody.CodeInvalidRequest); e != nil {
		fields, ok := e.Details["fields"].([]map[string]string)
		if !ok || len(fields) != 1 || fields[0]["path"] != path || fields[0]["reason"] == "" {
			t.Errorf("%s: details are %v", path, e.Details)
		}
	}
}

func TestCredentialLifetime(t *testing.T) {
	o := open(t)
	for _, c := range []struct {
		ask, want time.Duration
		refused   bool
	}{{0, 180 * 24 * time.Hour, false}, {time.Hour, time.Hour, false}, {-time.Second, 0, true}, {-200 * 24 * time.Hour, 0, true}} {
		now := custody.Now()
		r := custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}
		if c.ask != 0 {
			r.ExpiresAt = now.Add(c.ask).In(time.FixedZone("CET", 3600))
		}
		a, _, err := o.Issue(t.Context(), admin, r, idempotency("", ""))
		if c.refused {
			wantField(t, err, "/expires_at")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		kept, err := o.in.Store.Credential(t.Context(), issuedID(t, a))
		if err != nil {
			t.Fatal(err)
		}
		if lifetime := kept.ExpiresAt.Sub(kept.CreatedAt); lifetime > c.want || lifetime < c.want-time.Minute || kept.ExpiresAt.Location() != time.UTC {
			t.Errorf("asked for %s: it lives %s", c.ask, lifetime)
		}
	}
}

func TestOnlyTheAdminIssues(t *testing.T) {
	o := open(t)
	_, token := o.issue(t, "acme", custody.RoleSolutionCompanyUpload)
	c, err := o.Authenticate(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	r := custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}
	_, token, err = o.Issue(t.Context(), c, r, idempotency("", ""))
	if wantCode(t, "a tenant", err, custody.CodeCredentialInvalid); token != "" {
		t.Error("a tenant got a token")
	}
	_, token, err = o.Issue(t.Context(), custody.Caller{}, r, idempotency("", ""))
	if wantCode(t, "nobody", err, custody.CodeAuthenticationRequired); token != "" {
		t.Error("nobody got a token")
	}
	lines := o.in.AuditLines(t, "acme")
	if len(lines) != 1 || lines[0].Action != "credential_issued" || lines[0].CredentialID != custody.AdminCredentialID || lines[0].RequestID != "req_1" || lines[0].Detail != c.CredentialID {
		t.Errorf("the audit log is %+v, want one line about the issue", lines)
	}
}

func TestReplayedIssueGivesTheSameToken(t *testing.T) {
	o := open(t)
	r := custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}
	type issued struct {
		id, token string
		replayed  bool
	}
	got := make([]issued, 8)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			a, token, err := o.Issue(t.Context(), admin, r, idempotency("k-12345678", "hash"))
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = issued{issuedID(t, a), token, a.Replayed}
		})
	}
	group.Wait()
	fresh := 0
	for _, g := range got {
		if g.id != got[0].id || g.token != got[0].token || g.token == "" {
			t.Errorf("one key, two credentials: %s and %s", g.id, got[0].id)
		}
		if !g.replayed {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d of 8 answers are not marked as replayed, want 1", fresh)
	}
	if _, err := o.Authenticate(t.Context(), got[0].token); err != nil {
		t.Errorf("the replayed token: %v", err)
	}
	if lines := o.in.AuditLines(t, "acme"); len(lines) != 1 {
		t.Errorf("%d credentials were issued, want 1", len(lines))
	}
	_, token, err := o.Issue(t.Context(), admin, r, idempotency("k-12345678", "another hash"))
	if wantCode(t, "another request under the key", err, custody.CodeIdempotencyConflict); token != "" {
		t.Error("a conflict came with a token")
	}
	_, token, err = o.with(t, newKey("key_2")).Issue(t.Context(), admin, r, idempotency("k-12345678", "hash"))
	if wantCode(t, "replayed after its key was retired", err, custody.CodeCredentialInvalid); token != "" {
		t.Error("a token under a retired key")
	}
	// A request that was refused does not burn its key.
	bad := r
	bad.Scopes = []custody.Scope{"customer_upload"}
	_, _, err = o.Issue(t.Context(), admin, bad, idempotency("k-refused1", "bad"))
	wantField(t, err, "/scope")
	if _, _, err := o.Issue(t.Context(), admin, r, idempotency("k-refused1", "good")); err != nil {
		t.Errorf("the key of a refused request: %v", err)
	}
}

func TestTokensAreNeverStored(t *testing.T) {
	o := open(t)
	a, token, err := o.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}, idempotency("k-12345678", "hash"))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(o.in.Path + "*")
	if err != nil || len(paths) < 2 {
		t.Fatalf("%v, %v: want the database and its log", paths, err)
	}
	var files []byte
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b...)
	}
	if !bytes.Contains(files, []byte(issuedID(t, a))) {
		t.Fatal("the credential's id cannot be found: the search proves nothing")
	}
	for what, secret := range map[string]string{"the token": token, "its signature": token[len(token)-43:], "the admin token": adminToken, "the signing key": string(o.keys[0].Key)} {
		if bytes.Contains(files, []byte(secret)) {
			t.Errorf("%s lies in the database", what)
		}
	}
	if bytes.Contains(a.Data, []byte(token)) {
		t.Error("the kept answer holds the token")
	}
}

func TestWeakConfigurationIsRefused(t *testing.T) {
	for what, cfg := range map[string]tenant.Config{
		"31 characters": {AdminToken: strings.Repeat("x", 31), Keys: newKeyring(), Issuer: issuer},
		"no token":      {Keys: newKeyring(), Issuer: issuer},
		"no key store":  {AdminToken: adminToken, Issuer: issuer},
		"no issuer":     {AdminToken: adminToken, Keys: newKeyring()},
	} {
		if _, err := tenant.New(t.Context(), &store{}, cfg); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
