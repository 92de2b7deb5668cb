package tenant_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

// allowing is the key of a request for another allowance; the answer is its bytes.
func allowing(key, requestHash string) custody.Idempotency {
	return custody.Idempotency{
		CredentialID: custody.AdminCredentialID, Operation: custody.OpSetAllowance, Key: key, RequestHash: requestHash,
		Render: func(result any) (custody.Answer, error) {
			b, err := json.Marshal(result.(custody.Allowance).AllowanceBytes)
			return custody.Answer{Status: 200, Data: b}, err
		},
	}
}

func (o *office) allow(t *testing.T, orgID string, bytes *int64, want string) {
	t.Helper()
	a, err := o.SetAllowance(t.Context(), admin, custody.AllowanceChange{OrgID: orgID, Bytes: bytes}, allowing("", ""))
	if err != nil || string(a.Data) != want {
		t.Errorf("set: %s, %v; want %s", a.Data, err, want)
	}
}

func TestAllowance(t *testing.T) {
	o := open(t)
	o.issue(t, "acme", custody.RoleAIReader)
	o.issue(t, "rival", custody.RoleAIReader)
	small, none := int64(7), int64(0)
	o.allow(t, "acme", &small, "7")
	if a, err := o.Allowance(t.Context(), admin, "acme"); err != nil || a.AllowanceBytes != 7 || a.DefaultBytes != 1000 || a.OrgID != "acme" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := o.Allowance(t.Context(), admin, "rival"); err != nil || a.AllowanceBytes != 1000 {
		t.Errorf("the other's: %+v, %v", a, err)
	}
	o.allow(t, "acme", &none, "0")
	o.issue(t, "acme", custody.RoleAIReader) // changes nothing of it
	if a, err := o.Allowance(t.Context(), admin, "acme"); err != nil || a.AllowanceBytes != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	o.allow(t, "acme", nil, "1000")

	i := allowing("set-it-to-seven", "seven")
	for range 2 { // repeated, it is answered and changes nothing
		if a, err := o.SetAllowance(t.Context(), admin, custody.AllowanceChange{OrgID: "acme", Bytes: &small}, i); err != nil || string(a.Data) != "7" {
			t.Errorf("%s, %v", a.Data, err)
		}
		o.allow(t, "acme", nil, "1000")
	}
	_, err := o.SetAllowance(t.Context(), admin, custody.AllowanceChange{OrgID: "acme"}, allowing("set-it-to-seven", "eight"))
	wantCode(t, "another request under the key", err, custody.CodeIdempotencyConflict)

	_, err = o.SetAllowance(t.Context(), admin, custody.AllowanceChange{OrgID: "nobody", Bytes: &small}, allowing("", ""))
	wantCode(t, "set for nobody", err, custody.CodeOrganizationNotFound)
	_, err = o.Allowance(t.Context(), admin, "nobody")
	wantCode(t, "nobody's", err, custody.CodeOrganizationNotFound)

	lines, _, err := o.in.Store.AuditLines(t.Context(), custody.AuditQuery{Action: "quota_set", Limit: 100})
	if err != nil || len(lines) != 6 || lines[5].Audit.Detail != "allowance_bytes=7" || lines[0].Audit.Detail != "allowance_bytes=1000" {
		t.Errorf("%d audit lines, %v", len(lines), err)
	}
	for _, l := range lines {
		if l.Audit.OrgID != "acme" || l.Audit.CredentialID != custody.AdminCredentialID || l.Audit.RequestID != "req_1" || l.Audit.TraceID != "trc_1" {
			t.Errorf("an audit line is %+v", l.Audit)
		}
	}
}

func TestOrganizationsCountActiveCredentials(t *testing.T) {
	o := open(t)
	for range 3 {
		o.issue(t, "acme", custody.RoleAIReader)
	}
	revoked, _ := o.issue(t, "acme", custody.RoleSolutionCompanyUpload)
	expired, _ := o.issue(t, "rival", custody.RoleAIReader)
	for _, statement := range []string{
		`UPDATE credentials SET revoked_at = 1 WHERE credential_id = '` + revoked + `'`, `UPDATE credentials SET expires_at = 1 WHERE credential_id = '` + expired + `'`,
	} {
		if err := o.in.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	first, next, err := o.Organizations(t.Context(), admin, custody.OrganizationQuery{Limit: 1})
	if err != nil || len(first) != 1 || first[0].OrgID != "acme" || first[0].ActiveCredentials != 3 || first[0].AllowanceBytes != 1000 || next != "acme" ||
		time.Since(first[0].CreatedAt) > time.Hour {
		t.Errorf("%+v %q, %v", first, next, err)
	}
	second, next, err := o.Organizations(t.Context(), admin, custody.OrganizationQuery{After: next, Limit: 1})
	if err != nil || len(second) != 1 || second[0].OrgID != "rival" || second[0].ActiveCredentials != 0 || next != "" {
		t.Errorf("%+v %q, %v", second, next, err)
	}
}

func TestOrganizationsAreTheAdministrators(t *testing.T) {
	o := open(t)
	o.issue(t, "acme", custody.RoleAIReader)
	for _, role := range []custody.Role{custody.RoleAIReader, custody.RoleSolutionCompanyUpload} {
		own := custody.Caller{CredentialID: "cred_1", OrgID: "acme", Role: role, Scopes: custody.RoleScopes[role]}
		_, _, err := o.Organizations(t.Context(), own, custody.OrganizationQuery{Limit: 1})
		wantCode(t, "list", err, custody.CodeCredentialInvalid)
		_, err = o.Allowance(t.Context(), own, "acme")
		wantCode(t, "read", err, custody.CodeCredentialInvalid)
		_, err = o.SetAllowance(t.Context(), own, custody.AllowanceChange{OrgID: "acme"}, allowing("", ""))
		wantCode(t, "set", err, custody.CodeCredentialInvalid)
	}
}
