package custody

import (
	"slices"
	"time"
)

// Scope is one permission of a credential. (Section 5, rule 4.)
type Scope string

const (
	ScopeCustomerUpload    Scope = "customer_upload"
	ScopeMetadataRead      Scope = "metadata_read"
	ScopeAIReadiness       Scope = "ai_readiness"
	ScopeAIContext         Scope = "ai_context"
	ScopeMCP               Scope = "mcp"
	ScopeCorrection        Scope = "correction"
	ScopeExternalReference Scope = "external_reference"
)

// Role of a credential. (Section 5, rule 5.)
type Role string

const (
	RoleSolutionCompanyUpload Role = "solution_company_upload"
	RoleAIReader              Role = "ai_reader"
)

// RoleScopes is each role's full set, in the order answers show it. (Contract decisions, "Authentication per operation".)
var RoleScopes = map[Role][]Scope{
	RoleSolutionCompanyUpload: {ScopeCustomerUpload, ScopeMetadataRead, ScopeAIReadiness, ScopeCorrection, ScopeExternalReference},
	RoleAIReader:              {ScopeAIContext, ScopeMetadataRead, ScopeAIReadiness, ScopeMCP},
}

// AdminCredentialID stands for the bootstrap admin token wherever a credential id is recorded.
const AdminCredentialID = "admin"

// Credential is what the service keeps of an issued token: never the token itself.
type Credential struct {
	ID        string
	OrgID     string
	Role      Role
	Scopes    []Scope
	KeyID     string // the signing key of its token
	CreatedAt time.Time
	ExpiresAt time.Time
	RevokedAt time.Time // zero while it is good
}

// Caller is whoever sent a request, after authentication. It is passed explicitly to every operation.
type Caller struct {
	CredentialID string
	OrgID        string // empty for the admin
	Role         Role   // empty for the admin
	Scopes       []Scope
	Admin        bool

	// Of an OAuth access token alone; empty for a credential.
	TokenID        string
	TokenExpiresAt time.Time
	Audience       []string // the resources it is for

	RequestID string
	TraceID   string
}

// Cause is what the changes that c asks for carry.
func (c Caller) Cause() Cause { return Cause{c.CredentialID, c.RequestID, c.TraceID} }

// Has tells whether c holds scope. The admin token holds no tenant scope.
func (c Caller) Has(s Scope) bool { return slices.Contains(c.Scopes, s) }
