package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/accession/accession/internal/custody"
)

// credentials is tenant credential issuance. (Section 4.4.)
type credentials struct{ room Tenants }

// issueInput may come without an Idempotency-Key: row 4.4 of the contract does not ask for one.
type issueInput struct {
	Key  idempotencyKey `header:"Idempotency-Key"`
	Body credentialRequest
}

type credentialRequest struct {
	OrgID     orgID     `json:"org_id"`
	Role      string    `json:"role" enum:"solution_company_upload,ai_reader"`
	Scope     scopeList `json:"scope,omitempty"`
	ExpiresAt givenTime `json:"expires_at,omitzero" doc:"Default: 180 days from now."`
	_         struct{}  `additionalProperties:"false"`
}

type credentialIssued struct {
	CredentialID string    `json:"credential_id" doc:"Also the OAuth client_id."`
	OrgID        string    `json:"org_id"`
	Role         string    `json:"role"`
	Scope        string    `json:"scope" doc:"Separated by spaces."`
	ExpiresAt    timestamp `json:"expires_at"`
	Token        string    `json:"token,omitempty" doc:"The secret, shown to the administrator alone and never stored."`
}

func (s credentials) mount(d *door) {
	mount(d, operation{
		id: custody.OpIssueCredential, method: http.MethodPost, path: "/admin/tenant-keys/issue", tag: "tenant credentials", body: bodyJSON,
		summary: "Issue a tenant credential", doc: "One credential, bound to one organization and one role. `scope` narrows the role's set.",
		failures: []int{409}, answers: map[int]reflect.Type{201: says[credentialIssued]()},
	}, s.issue)
}

func (s credentials) issue(ctx context.Context, x *exchange, in *issueInput) (answer, error) {
	req := custody.CredentialRequest{OrgID: string(in.Body.OrgID), Role: custody.Role(in.Body.Role), ExpiresAt: in.Body.ExpiresAt.kept()}
	for _, scope := range strings.Fields(string(in.Body.Scope)) {
		req.Scopes = append(req.Scopes, custody.Scope(scope))
	}
	a, token, err := s.room.Issue(ctx, x.caller, req, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpIssueCredential, Key: string(in.Key),
		RequestHash: requestHash(custody.OpIssueCredential, in.Body),
		Render: render(func(c custody.Credential) (int, any) {
			return http.StatusCreated, viewIssued(c)
		}),
	})
	if err != nil {
		return answer{}, err
	}
	// The stored answer has no token; it joins here, first time and replay alike.
	var issued credentialIssued
	if err := json.Unmarshal(a.Data, &issued); err != nil {
		return answer{}, fmt.Errorf("reading the stored answer of an issue: %w", err)
	}
	issued.Token = token
	a.Data, err = marshal(issued)
	return answer{Answer: a}, err
}
