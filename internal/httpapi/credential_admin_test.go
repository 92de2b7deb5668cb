package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func TestRevokedCredentialIsDeadAtTheNextRequest(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "ai_reader")
	token := b.accessToken(id, secret)
	for _, as := range []string{"X-Api-Key: " + secret, bearer(secret), bearer(token)} {
		b.call("GET", base+"/quota", nil, as).succeeds(t, 200)
	}
	path := credentialsPath + "/" + id + "/revoke"
	data := b.call("POST", path, nil, admin).succeeds(t, 200)
	if data["credential_id"] != id || data["state"] != "revoked" || data["revoked_at"] == nil || data["token"] != nil {
		t.Errorf("data %v", data)
	}
	for _, as := range []string{"X-Api-Key: " + secret, bearer(secret), bearer(token)} {
		b.call("GET", base+"/quota", nil, as).wants(t, 401, custody.CodeCredentialInvalid)
	}
	b.call("GET", "/oauth/identity", nil, bearer(token)).wants(t, 401, custody.CodeCredentialInvalid)
	b.form("/oauth/token", []string{"grant_type", "client_credentials"}, basic(id, secret)).wantsOAuth(t, "a token from a revoked credential", 401, "invalid_client")
	again := b.post(path, `{}`, admin).succeeds(t, 200)
	if again["revoked_at"] != data["revoked_at"] {
		t.Errorf("revoked again at %v, first at %v", again["revoked_at"], data["revoked_at"])
	}
	b.post(path, `{"why":"x"}`, admin).wants(t, 400, custody.CodeInvalidRequest, "")
	b.call("POST", credentialsPath+"/cred_none/revoke", nil, admin).wants(t, 404, custody.CodeCredentialNotFound)
	b.post(credentialsPath+"/"+id+"/rotate", `{}`, admin, "X-Request: 2").wants(t, 409, custody.CodeCredentialNotActive)
}

func TestRotate(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "ai_reader")
	path := credentialsPath + "/" + id + "/rotate"
	r := b.post(path, `{"overlap_seconds":3600,"expires_at":"2999-01-01T00:00:00Z"}`, admin)
	data := r.succeeds(t, 201)
	fresh, replaces := data["token"].(string), data["replaces"].(map[string]any)
	ends, err := time.Parse(time.RFC3339, replaces["expires_at"].(string))
	if left := time.Until(ends); err != nil || left < 59*time.Minute || left > time.Hour || replaces["credential_id"] != id ||
		data["credential_id"] == id || data["org_id"] != "org_1" || data["role"] != "ai_reader" || data["expires_at"] != "2999-01-01T00:00:00.000Z" {
		t.Errorf("data %v", data)
	}
	again := b.post(path, `{"overlap_seconds":3600,"expires_at":"2999-01-01T00:00:00Z"}`, admin)
	if again.succeeds(t, 201)["token"] != fresh || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("repeated: %s %v", again.raw, again.Header)
	}
	b.post(path, `{}`, admin).wants(t, 409, custody.CodeIdempotencyConflict)
	for _, s := range []string{secret, fresh} {
		b.call("GET", base+"/quota", nil, bearer(s)).succeeds(t, 200)
	}
	b.call("POST", path, strings.NewReader(`{"overlap_seconds":0}`), asJ, admin).succeeds(t, 201)
	b.call("GET", base+"/quota", nil, bearer(secret)).wants(t, 401, custody.CodeCredentialInvalid)
	b.call("GET", base+"/quota", nil, bearer(fresh)).succeeds(t, 200)
	for body, field := range map[string]string{`{"overlap_seconds":-1}`: "/overlap_seconds", `{"overlap_seconds":2592001}`: "/overlap_seconds",
		`{"overlap_seconds":1.5}`: "/overlap_seconds", `{"expires_at":"soon"}`: "/expires_at", `{"expires_at":"2020-01-01T00:00:00Z"}`: "/expires_at", `{"token":"acc_mine"}`: ""} {
		id, _ := b.issued("org_1", "ai_reader")
		b.call("POST", credentialsPath+"/"+id+"/rotate", strings.NewReader(body), asJ, admin).wants(t, 400, custody.CodeInvalidRequest, field)
	}
}

func TestListCredentials(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	var secrets []string
	for range 3 {
		_, secret := b.issued("org_1", "ai_reader")
		secrets = append(secrets, secret)
	}
	gone, _ := b.issued("org_1", "ai_reader")
	b.issued("org_2", "ai_reader")
	b.call("POST", credentialsPath+"/"+gone+"/revoke", nil, admin).succeeds(t, 200)
	seen, cursor := 0, ""
	for {
		r := b.call("GET", credentialsPath+"?org_id=org_1&include_ended=true&limit=3"+cursor, nil, admin)
		data := r.succeeds(t, 200)
		for _, c := range data["credentials"].([]any) {
			if c := c.(map[string]any); c["org_id"] != "org_1" || (c["state"] == "revoked") != (c["credential_id"] == gone) {
				t.Errorf("listed: %v", c)
			}
			seen++
		}
		for _, s := range secrets {
			if strings.Contains(string(r.raw), s) || strings.Contains(string(r.raw), s[len(s)-43:]) {
				t.Error("the list holds a secret")
			}
		}
		if data["next_cursor"] == "" {
			break
		}
		cursor = "&cursor=" + data["next_cursor"].(string)
	}
	if seen != 4 {
		t.Errorf("%d credentials of the organization are listed, want 4", seen)
	}
	if n := len(b.call("GET", credentialsPath, nil, admin).succeeds(t, 200)["credentials"].([]any)); n != 4 {
		t.Errorf("%d active ones are listed, want 4", n)
	}
	b.call("GET", credentialsPath+"?limit=101", nil, admin).wants(t, 400, custody.CodeInvalidRequest, "/query/limit")
}

func TestSigningKeysRotateOverTheDoor(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "ai_reader")
	token := b.accessToken(id, secret)
	data := b.call("POST", signingKeysPath+"/rotate", strings.NewReader(`{"purpose":"oauth"}`), asJ, admin).succeeds(t, 201)
	if data["purpose"] != "oauth" || data["state"] != "announced" || data["key_id"] == "key_oauth" {
		t.Errorf("data %v", data)
	}
	if raw := string(b.call("GET", "/oauth/jwks", nil).raw); !strings.Contains(raw, data["key_id"].(string)) || !strings.Contains(raw, "key_oauth") {
		t.Errorf("the key set is %s", raw)
	}
	list := b.call("GET", signingKeysPath, nil, admin)
	if keys := list.succeeds(t, 200)["signing_keys"].([]any); len(keys) != 4 || strings.Contains(string(list.raw), `"key":`) {
		t.Errorf("listed: %s", list.raw)
	}
	b.call("POST", signingKeysPath+"/key_oauth/retire", nil, admin).wants(t, 409, custody.CodeSigningKeyInUse)
	b.call("GET", base+"/quota", nil, bearer(token)).succeeds(t, 200)
	if data := b.call("POST", signingKeysPath+"/key_oauth/retire", strings.NewReader(`{"force":true}`), asJ, admin).succeeds(t, 200); data["state"] != "retired" {
		t.Errorf("data %v", data)
	}
	b.call("GET", base+"/quota", nil, bearer(token)).wants(t, 401, custody.CodeCredentialInvalid)
	b.call("GET", base+"/quota", nil, bearer(b.accessToken(id, secret))).succeeds(t, 200)
	b.call("POST", signingKeysPath+"/key_none/retire", nil, admin).wants(t, 404, custody.CodeSigningKeyNotFound)
	b.call("POST", signingKeysPath+"/rotate", strings.NewReader(`{"purpose":"sandbox"}`), asJ, admin).wants(t, 400, custody.CodeInvalidRequest, "/purpose")
	b.call("POST", signingKeysPath+"/rotate", nil, admin).wants(t, 400, custody.CodeInvalidRequest, "")
}

func TestOnlyTheAdminReachesTheAdministration(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "solution_company_upload")
	for _, c := range [][2]string{{"GET", credentialsPath}, {"POST", credentialsPath + "/" + id + "/revoke"}, {"POST", credentialsPath + "/cred_none/rotate"},
		{"GET", signingKeysPath}, {"POST", signingKeysPath + "/rotate"}, {"POST", signingKeysPath + "/key_none/retire"}} {
		b.call(c[0], c[1], strings.NewReader("no JSON")).wants(t, 401, custody.CodeAuthenticationRequired)
		for _, as := range []string{bearer(secret), "X-Api-Key: " + secret, "X-Api-Key: " + adminToken, bearer(b.accessToken(id, secret))} {
			b.call(c[0], c[1], strings.NewReader("no JSON"), as).wants(t, 401, custody.CodeCredentialInvalid)
		}
	}
	b.call("GET", base+"/quota", nil, bearer(secret)).succeeds(t, 200)
}
