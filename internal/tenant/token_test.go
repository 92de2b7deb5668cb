package tenant_test

import (
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

func TestCredentialsAreRecognised(t *testing.T) {
	o := open(t)
	shape := regexp.MustCompile(`^acc_[A-Za-z0-9_-]+$`)
	for role, scopes := range custody.RoleScopes {
		for _, org := range []string{"acme", "Größe & Söhne\n", "a\x00b", strings.Repeat("ö", 128)} {
			id, token := o.issue(t, org, role)
			if !shape.MatchString(token) || strings.Contains(token, org) {
				t.Errorf("token %q is not of [A-Za-z0-9_-]", token)
			}
			c, err := o.Authenticate(t.Context(), token)
			if want := (custody.Caller{CredentialID: id, OrgID: org, Role: role, Scopes: scopes}); err != nil || !reflect.DeepEqual(c, want) {
				t.Errorf("%q: %+v, %v; want %+v", org, c, err, want)
			}
		}
	}
	if c, err := o.Authenticate(t.Context(), adminToken); err != nil || !c.Admin || c.CredentialID != custody.AdminCredentialID || c.OrgID != "" || len(c.Scopes) != 0 {
		t.Errorf("the admin is %+v, %v", c, err)
	}
	q, err := o.in.Store.Quota(t.Context(), "acme")
	if err != nil || q.AllowanceBytes != 1000 {
		t.Errorf("the new organization has %+v, %v", q, err)
	}
}

// Whatever is wrong with a token, the answer is the same.
func TestEverythingElseIsRefusedAlike(t *testing.T) {
	o := open(t)
	id, token := o.issue(t, "acme", custody.RoleAIReader)
	_, rival := o.issue(t, "rival", custody.RoleAIReader)
	other := open(t)
	_, foreign := other.issue(t, "acme", custody.RoleAIReader)

	mac := len(token) - 43
	bad := map[string]string{
		"nothing": "", "prefix alone": "acc_", "no prefix": strings.TrimPrefix(token, "acc_"), "another prefix": "key_" + token[4:],
		"no mac": token[:mac], "no payload": "acc_" + token[mac:], "cut by one": token[:len(token)-1], "one more": token + "A", "one more before": "acc_A" + token[4:],
		"another's mac": token[:mac] + rival[len(rival)-43:], "another's payload": rival[:len(rival)-43] + token[mac:],
		"of another installation": foreign, "space before": " " + token, "line feed after": token + "\n", "line feed within": token[:mac] + "\n" + token[mac:],
		"padding": token + "=", "twice": token + token, "too long": "acc_" + strings.Repeat("A", 5000), "not base64": "acc_" + strings.Repeat("!", 80),
		"not ASCII": "acc_" + strings.Repeat("ö", 80), "admin cut": adminToken[:len(adminToken)-1], "admin longer": adminToken + "x", "admin in capitals": strings.ToUpper(adminToken),
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	for i := range token { // any one character changed, the last ones to all others: no two tokens may say the same
		changes := alphabet[(strings.IndexByte(alphabet, token[i])+1)%64:][:1]
		if i == len(token)-1 || i == mac-1 {
			changes = strings.ReplaceAll(alphabet, token[i:i+1], "")
		}
		for _, c := range changes {
			bad["character "+token[:i]+"→"+string(c)] = token[:i] + string(c) + token[i+1:]
		}
	}
	var said *custody.Error
	for what, b := range bad {
		c, err := o.Authenticate(t.Context(), b)
		e := wantCode(t, what, err, custody.CodeCredentialInvalid)
		if !reflect.DeepEqual(c, custody.Caller{}) {
			t.Errorf("%s: refused, but the caller is %+v", what, c)
		}
		if said == nil {
			said = e
		} else if e != nil && !reflect.DeepEqual(e, said) {
			t.Errorf("%s: the answer differs: %v, %v", what, e, said)
		}
	}
	for what, statement := range map[string]string{
		"of an organization it was not issued for": `UPDATE credentials SET org_id = 'rival' WHERE credential_id = $1`,
		"revoked": `UPDATE credentials SET revoked_at = 1 WHERE credential_id = $1`,
		"expired": `UPDATE credentials SET expires_at = 1 WHERE credential_id = $1`,
		"issued under a key that is no longer there": `UPDATE credentials SET key_id = 'key_0' WHERE credential_id = $1`,
	} {
		id, token := o.issue(t, "acme", custody.RoleAIReader)
		if _, err := o.Authenticate(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if err := o.in.Exec(t.Context(), statement, id); err != nil {
			t.Fatal(err)
		}
		_, err := o.Authenticate(t.Context(), token)
		if e := wantCode(t, what, err, custody.CodeCredentialInvalid); e != nil && !reflect.DeepEqual(e, said) {
			t.Errorf("%s: the answer differs: %v", what, e)
		}
	}
	if err := o.in.Exec(t.Context(), `DELETE FROM credentials WHERE credential_id = $1`, id); err != nil {
		t.Fatal(err)
	}
	_, err := o.Authenticate(t.Context(), token)
	wantCode(t, "unknown to the store", err, custody.CodeCredentialInvalid)
}

// A store that does not answer is no refusal of the credential, and no pass.
func TestSilentStoreIsNoVerdict(t *testing.T) {
	o := open(t)
	_, token := o.issue(t, "acme", custody.RoleAIReader)
	o.store.fail = errors.New("database is away")
	c, err := o.Authenticate(t.Context(), token)
	var e *custody.Error
	if !errors.Is(err, o.store.fail) || errors.As(err, &e) || c.CredentialID != "" {
		t.Errorf("got %+v, %v; want the store's own error", c, err)
	}
	_, err = o.with(t, newKey("key_1")).Authenticate(t.Context(), token)
	wantCode(t, "a forged token, refused before the store is asked", err, custody.CodeCredentialInvalid)
	a, token, err := o.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}, idempotency("", ""))
	if !errors.Is(err, o.store.fail) || token != "" || a.Data != nil {
		t.Errorf("an issue that was not kept gave %q, %s, %v", token, a.Data, err)
	}
}

func TestOldKeysVerifyUntilTheyAreRetired(t *testing.T) {
	o := open(t)
	_, old := o.issue(t, "acme", custody.RoleAIReader)
	fresh := newKey("key_2")
	both := o.with(t, fresh, o.keys[0])
	if _, err := both.Authenticate(t.Context(), old); err != nil {
		t.Errorf("during the overlap: %v", err)
	}
	_, token, err := both.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}, idempotency("", ""))
	if err != nil {
		t.Fatal(err)
	}
	after := o.with(t, fresh)
	if _, err := after.Authenticate(t.Context(), token); err != nil {
		t.Errorf("signed with the newest key: %v", err)
	}
	_, err = after.Authenticate(t.Context(), old)
	wantCode(t, "signed with a retired key", err, custody.CodeCredentialInvalid)
	// Another key under the name of the old one does not verify what the old one signed.
	_, err = o.with(t, newKey("key_1")).Authenticate(t.Context(), old)
	wantCode(t, "signed with another key of that name", err, custody.CodeCredentialInvalid)
}
