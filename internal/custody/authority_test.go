package custody_test

import (
	"errors"
	"testing"

	"github.com/accession/accession/internal/custody"
)

const ok = custody.Code("")

// Each row is a row of the contract decisions, "Authentication per operation"; the scope rule is section 5, rule 8.
func TestAuthorize(t *testing.T) {
	rows := []struct {
		op       custody.Operation
		role     custody.Role // that may do it
		scope    custody.Scope
		stranger custody.Code // a credential of another organization
		other    custody.Code // the other role of this organization, with every scope there is
		admin    custody.Code
	}{
		{custody.OpIssueCredential, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpFindCanary, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpEvidence, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpHeads, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpSearchAudit, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpOrganizations, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpAllowance, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpSetAllowance, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpState, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpSetWebhook, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpListWebhooks, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpRotateWebhookSecret, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpDeleteWebhook, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpTestWebhook, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpListWebhookDeliveries, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpReplayWebhook, "", "", "credential_invalid", "credential_invalid", ok},
		{custody.OpInitiateUpload, "solution_company_upload", "customer_upload", "credential_not_bound", "credential_not_bound", "credential_not_bound"},
		{custody.OpPutPart, "solution_company_upload", "customer_upload", "credential_not_bound", "credential_not_bound", "credential_not_bound"},
		{custody.OpCompleteUpload, "solution_company_upload", "customer_upload", "credential_not_bound", "credential_not_bound", "credential_not_bound"},
		{custody.OpUploadStatus, "solution_company_upload", "metadata_read", "upload_not_found", ok, "upload_not_found"},
		{custody.OpWithdrawUpload, "solution_company_upload", "customer_upload", "access_denied", "access_denied", ok},
		{custody.OpQuota, "ai_reader", "metadata_read", "access_denied", ok, "access_denied"},
		{custody.OpAIContext, "ai_reader", "ai_context", "access_denied", "access_denied", "access_denied"},
		{custody.OpRequestRecords, "ai_reader", "ai_context", "access_denied", "access_denied", "access_denied"},
	}
	var everything []custody.Scope
	for _, scopes := range custody.RoleScopes {
		everything = append(everything, scopes...)
	}
	for _, r := range rows {
		t.Run(string(r.op), func(t *testing.T) {
			mine := custody.Caller{CredentialID: "cred_1", OrgID: "acme", Role: r.role, Scopes: custody.RoleScopes[r.role]}
			stranger, other, scopeless := mine, mine, mine
			stranger.OrgID = "acme2"
			other.Role, other.Scopes = "ai_reader", everything
			if r.role == "ai_reader" {
				other.Role = "solution_company_upload"
			}
			scopeless.Scopes = nil
			for _, s := range mine.Scopes {
				if s != r.scope {
					scopeless.Scopes = append(scopeless.Scopes, s)
				}
			}
			refuse(t, "nobody", r.op, custody.Caller{}, "authentication_required")
			refuse(t, "another organization", r.op, stranger, r.stranger)
			refuse(t, "the other role", r.op, other, r.other)
			refuse(t, "the admin", r.op, custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true}, r.admin)
			if r.role != "" {
				refuse(t, "its credential", r.op, mine, ok)
				refuse(t, "its credential without the scope", r.op, scopeless, "insufficient_scope")
			}
		})
	}
	// Of two reasons the one about the organization is told: a refusal says nothing about what exists there.
	refuse(t, "another organization without any scope", custody.OpUploadStatus,
		custody.Caller{CredentialID: "cred_1", OrgID: "acme2", Role: "ai_reader"}, "upload_not_found")
	refuse(t, "an operation that the table does not have", "dropEverything",
		custody.Caller{CredentialID: "cred_1", OrgID: "acme", Role: "ai_reader", Scopes: everything}, "access_denied")
	refuse(t, "the admin, an operation that the table does not have", "dropEverything",
		custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true}, "access_denied")
}

func refuse(t *testing.T, who string, op custody.Operation, c custody.Caller, want custody.Code) {
	t.Helper()
	err := custody.Authorize(op, c, "acme")
	var e *custody.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%s, %s: %v is no custody.Error", op, who, err)
	}
	got := ok
	if e != nil {
		got = e.Code
	}
	if got != want {
		t.Errorf("%s, %s: got %q, want %q", op, who, got, want)
	}
	if want == "insufficient_scope" && e != nil && e.Details["required_scope"] == nil {
		t.Errorf("%s, %s: the refusal does not name the scope", op, who)
	}
}

// The statuses that the contract's table names.
func TestRefusalsHaveTheContractsStatus(t *testing.T) {
	for code, status := range map[custody.Code]int{
		"authentication_required": 401, "credential_invalid": 401, "credential_not_bound": 401,
		"access_denied": 403, "insufficient_scope": 403, "upload_not_found": 404,
	} {
		if got := code.HTTPStatus(); got != status {
			t.Errorf("%s is %d, want %d", code, got, status)
		}
	}
}

func TestRoleScopesAreTheContracts(t *testing.T) {
	want := map[custody.Role]map[custody.Scope]bool{
		"solution_company_upload": {"customer_upload": true, "metadata_read": true, "ai_readiness": true, "correction": true, "external_reference": true},
		"ai_reader":               {"ai_context": true, "metadata_read": true, "ai_readiness": true, "mcp": true},
	}
	if len(custody.RoleScopes) != len(want) {
		t.Errorf("%d roles, want %d", len(custody.RoleScopes), len(want))
	}
	for role, scopes := range want {
		got := custody.RoleScopes[role]
		if len(got) != len(scopes) {
			t.Errorf("%s has %v, want %v", role, got, scopes)
		}
		for _, s := range got {
			if !scopes[s] {
				t.Errorf("%s has scope %s", role, s)
			}
		}
	}
}
