package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// metadata says what the service does and on which terms, to anybody. (Sections 1, 2.7 and 4.1.)
type metadata struct {
	baseURL   string
	agreement *Agreement
}

// Agreement is the text that people are shown before they consent.
type Agreement struct {
	AgreementVersion string `json:"beta_agreement_version"`
	ConsentVersion   string `json:"ai_readable_use_consent_version"`
	Text             string `json:"text" doc:"Show it whole to the person who consents."`
	TextSHA256       string `json:"text_hash_sha256" pattern:"^[a-f0-9]{64}$" doc:"Of text in UTF-8; a consent repeats it."`
}

// contractLabel is the version of the contract. (Section 9, rule 6.)
const contractLabel = custody.ContractLabel

type capabilitiesInput struct {
	IncludeBoundaries bool `query:"include_boundaries" default:"true"`
}

type capabilities struct {
	Status       string            `json:"status"`
	APIContract  string            `json:"api_contract" doc:"The version label of the contract."`
	Endpoints    map[string]string `json:"endpoints" nullable:"false" doc:"operationId to URL, which may hold {parameters}."`
	DataBoundary map[string]fact   `json:"data_boundary" nullable:"false" doc:"Empty with include_boundaries=false."`
}

// fact is a boolean or a string.
type fact struct{ value any }

func (fact) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeBoolean}, {Type: huma.TypeString}}}
}

// MarshalJSON is the value.
func (f fact) MarshalJSON() ([]byte, error) { return marshal(f.value) }

func dataBoundary() map[string]fact {
	facts := map[string]fact{}
	for name, value := range custody.DataBoundary {
		facts[name] = fact{value}
	}
	return facts
}

type accessPolicyInput struct {
	IncludeHeaders bool `query:"include_headers" default:"true"`
}

type accessPolicy struct {
	AccessMode         string            `json:"access_mode"`
	PublicDiscovery    bool              `json:"public_discovery" doc:"Documentation and metadata are public; no upload or context ever is."`
	RawPayloadDownload bool              `json:"raw_payload_download"`
	BulkExport         bool              `json:"bulk_export"`
	Headers            map[string]string `json:"headers,omitempty" doc:"The headers of requests and answers, and what each is for. Left out with include_headers=false."`
}

var policyHeaders = map[string]string{
	"x-api-key":       "request: the tenant credential; keep it on the server side",
	"Authorization":   "request: Bearer, a tenant credential or an OAuth access token",
	"Idempotency-Key": "request: names a change, 8 to 128 characters, kept at least 24 hours",
	seatHeader:        "request: of the portal's own pages, beside the cookie of a session: the role of the seat that asks",
	"traceparent":     "request and answer: W3C trace context",
	"X-Request-Id":    "answer: quote it when something is wrong",
	"RateLimit-Limit": "answer: with RateLimit-Remaining and RateLimit-Reset; X-RateLimit-* say the same",
	"Retry-After":     "answer: seconds to wait",
	"Deprecation":     "answer: the operation is being retired; Sunset says when",
}

type portalInput struct {
	Surface string `query:"surface" enum:"all,customer,solution_company" default:"all"`
}

type portalConfig struct {
	Entry               string          `json:"entry" format:"uri"`
	AccountRequired     bool            `json:"account_required" doc:"Of a kind to register oneself: there is none. Credentials come from the administrator."`
	EmailVerification   bool            `json:"email_verification_required"`
	AuthorizedUploaders bool            `json:"customer_authorized_uploaders_only"`
	Surfaces            []portalSurface `json:"surfaces" nullable:"false" doc:"The one asked for, or all."`
	Agreement           *Agreement      `json:"agreement,omitempty" doc:"What people who use the portal consent to; left out where there is none."`
}

type portalSurface struct {
	Surface    string   `json:"surface" enum:"customer,solution_company"`
	Role       string   `json:"role" doc:"Of the credential that its operations take."`
	Operations []string `json:"operations" nullable:"false" doc:"operationIds."`
}

var portalSurfaces = []portalSurface{
	{"customer", string(custody.RoleSolutionCompanyUpload), operationNames(custody.OpCustomerUpload, custody.OpCorrection, custody.OpExternalReview, custody.OpQuota)},
	{"solution_company", string(custody.RoleSolutionCompanyUpload), operationNames(custody.OpInitiateUpload, custody.OpPutPart, custody.OpCompleteUpload, custody.OpUploadStatus, custody.OpWithdrawUpload, custody.OpQuota)},
}

func operationNames(ops ...custody.Operation) []string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = string(op)
	}
	return names
}

type keyPolicyInput struct {
	IncludeRoles bool `query:"include_roles" default:"true"`
}

type keyPolicy struct {
	Role         string              `json:"role"`
	OrgID        string              `json:"org_id"`
	Scope        string              `json:"scope"`
	MetadataRead bool                `json:"metadata_read" doc:"Every role holds this scope."`
	AIReadiness  bool                `json:"ai_readiness" doc:"Every role holds this scope."`
	Roles        map[string][]string `json:"roles,omitempty" doc:"Each role's full set of scopes. Left out with include_roles=false."`
}

func (s metadata) mount(d *door) {
	op := operation{
		name: "getCapabilities", method: http.MethodGet, path: "/api/v1/ai/capabilities", tag: "discovery", public: true,
		summary: "What the service does, and where", answers: map[int]reflect.Type{200: says[capabilities]()},
	}
	mount(d, op, func(_ context.Context, _ *exchange, in *capabilitiesInput) (answer, error) {
		c := capabilities{Status: "available", APIContract: contractLabel, Endpoints: s.endpoints(d.api.OpenAPI()), DataBoundary: map[string]fact{}}
		if in.IncludeBoundaries {
			c.DataBoundary = dataBoundary()
		}
		return respond(c)
	})

	op.name, op.path, op.summary = "getAccessPolicy", "/api/v1/ai/access-policy", "On which terms an AI may read"
	op.answers = map[int]reflect.Type{200: says[accessPolicy]()}
	mount(d, op, func(_ context.Context, _ *exchange, in *accessPolicyInput) (answer, error) {
		p := accessPolicy{AccessMode: "tenant_credential", PublicDiscovery: true}
		if in.IncludeHeaders {
			p.Headers = policyHeaders
		}
		return respond(p)
	})

	op.name, op.path, op.summary = "getPortalConfig", "/portal/config", "How people get in"
	op.answers = map[int]reflect.Type{200: says[portalConfig]()}
	mount(d, op, func(_ context.Context, _ *exchange, in *portalInput) (answer, error) {
		p := portalConfig{Entry: s.baseURL + "/portal", AuthorizedUploaders: true, Surfaces: []portalSurface{}, Agreement: s.agreement}
		for _, surface := range portalSurfaces {
			if in.Surface == "all" || in.Surface == surface.Surface {
				p.Surfaces = append(p.Surfaces, surface)
			}
		}
		return respond(p)
	})

	op.name, op.path, op.tag, op.summary = "getTenantKeyPolicy", "/admin/tenant-keys/policy", "tenant credentials", "What a tenant credential may be"
	op.answers = map[int]reflect.Type{200: says[keyPolicy]()}
	mount(d, op, func(_ context.Context, _ *exchange, in *keyPolicyInput) (answer, error) {
		p := keyPolicy{
			Role: "one of the roles, fixed at issue", OrgID: "exactly one organization, fixed at issue",
			Scope: "the role's set, or a part of it named at issue", MetadataRead: true, AIReadiness: true,
		}
		if in.IncludeRoles {
			p.Roles = map[string][]string{}
			for role, scopes := range custody.RoleScopes {
				for _, scope := range scopes {
					p.Roles[string(role)] = append(p.Roles[string(role)], string(scope))
				}
			}
		}
		return respond(p)
	})
}

// endpoints are those of the published document.
func (s metadata) endpoints(doc *huma.OpenAPI) map[string]string {
	at := map[string]string{}
	for path, item := range doc.Paths {
		for _, op := range operationsOf(item) {
			at[op.OperationID] = s.baseURL + strings.TrimSuffix(path, "/")
		}
	}
	return at
}
