package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

func TestCapabilities(t *testing.T) {
	b := newBench(t)
	data := b.call("GET", "/api/v1/ai/capabilities", nil).succeeds(t, 200)
	if data["api_contract"] != "v1-phase28" || data["status"] == "" {
		t.Errorf("data %v", data)
	}
	endpoints, _ := data["endpoints"].(map[string]any)
	if endpoints["getAIContext"] != b.url+"/api/v1/organizations/{org_id}/ai-context/{upload_id}" || endpoints["issueAccessToken"] != b.url+"/oauth/token" {
		t.Errorf("endpoints %v", endpoints)
	}
	boundary, _ := data["data_boundary"].(map[string]any)
	for name, value := range boundary {
		switch value.(type) {
		case bool, string:
		default:
			t.Errorf("%s is %T", name, value)
		}
	}
	if boundary["boundary_label"] != custody.BoundaryLabel || boundary["evaluation_status"] != "not_evaluated" || boundary["raw_payload_download"] != false {
		t.Errorf("data_boundary %v", boundary)
	}
	bare := b.call("GET", "/api/v1/ai/capabilities?include_boundaries=false", nil).succeeds(t, 200)
	if boundary, ok := bare["data_boundary"].(map[string]any); !ok || len(boundary) != 0 {
		t.Errorf("data_boundary %v", bare["data_boundary"])
	}
	if bare["endpoints"] == nil || bare["status"] == nil || bare["api_contract"] == nil {
		t.Errorf("required fields went: %v", bare)
	}
}

func TestAccessPolicy(t *testing.T) {
	b := newBench(t)
	data := b.call("GET", "/api/v1/ai/access-policy", nil).succeeds(t, 200)
	if data["access_mode"] == "" || data["public_discovery"] != true || data["raw_payload_download"] != false || data["bulk_export"] != false {
		t.Errorf("data %v", data)
	}
	if headers, _ := data["headers"].(map[string]any); headers["x-api-key"] == nil {
		t.Errorf("headers %v", data["headers"])
	}
	if data := b.call("GET", "/api/v1/ai/access-policy?include_headers=false", nil).succeeds(t, 200); data["headers"] != nil || data["access_mode"] == nil {
		t.Errorf("data %v", data)
	}
}

func TestPortalConfig(t *testing.T) {
	b := newBench(t)
	for query, want := range map[string][]string{
		"": {"customer", "solution_company"}, "?surface=all": {"customer", "solution_company"}, "?surface=customer": {"customer"}, "?surface=solution_company": {"solution_company"},
	} {
		data := b.call("GET", "/portal/config"+query, nil).succeeds(t, 200)
		var got []string
		surfaces, _ := data["surfaces"].([]any)
		for _, s := range surfaces {
			name, _ := s.(map[string]any)["surface"].(string)
			got = append(got, name)
		}
		if !slices.Equal(got, want) || data["entry"] != b.url+"/portal" || data["customer_authorized_uploaders_only"] != true ||
			data["account_required"] != false || data["email_verification_required"] != false {
			t.Errorf("%s: %v", query, data)
		}
		agreement, _ := data["agreement"].(map[string]any)
		if agreement["text"] != "I may submit this.\n" || agreement["text_hash_sha256"] != strings.Repeat("a", 64) ||
			agreement["beta_agreement_version"] != "2026-11" || agreement["ai_readable_use_consent_version"] != "2026-10" {
			t.Errorf("%s: the agreement is %v", query, agreement)
		}
	}
	b.call("GET", "/portal/config?surface=partner", nil).wants(t, 400, custody.CodeInvalidRequest, "/query/surface")
}

func TestTenantKeyPolicy(t *testing.T) {
	b := newBench(t)
	data := b.call("GET", "/admin/tenant-keys/policy", nil).succeeds(t, 200)
	roles, _ := data["roles"].(map[string]any)
	if data["metadata_read"] != true || data["ai_readiness"] != true || len(roles) != len(custody.RoleScopes) {
		t.Errorf("data %v", data)
	}
	for _, text := range []string{"role", "org_id", "scope"} {
		if said, ok := data[text].(string); !ok || said == "" {
			t.Errorf("%s is %v", text, data[text])
		}
	}
	if data := b.call("GET", "/admin/tenant-keys/policy?include_roles=false", nil).succeeds(t, 200); data["roles"] != nil {
		t.Errorf("data %v", data)
	}
	for role, scopes := range custody.RoleScopes { // what the policy says of every role
		if !slices.Contains(scopes, custody.ScopeMetadataRead) || !slices.Contains(scopes, custody.ScopeAIReadiness) {
			t.Errorf("%s has scopes %v", role, scopes)
		}
	}
}

// Metadata answers whoever asks, and a credential that comes with the question changes nothing.
func TestMetadataIsPublic(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/api/v1/ai/capabilities", "/api/v1/ai/access-policy", "/portal/config", "/admin/tenant-keys/policy", "/api/v1/ai/openapi.json", sandboxPath} {
		b.call("GET", path, nil).succeeds(t, 200)
		b.call("GET", path, nil, "X-Api-Key: acc_unknown").succeeds(t, 200)
		if query := map[string]string{"/api/v1/ai/capabilities": "include_boundaries", "/api/v1/ai/access-policy": "include_headers", "/admin/tenant-keys/policy": "include_roles"}[path]; query != "" {
			b.call("GET", path+"?"+query+"=maybe", nil).wants(t, 400, custody.CodeInvalidRequest, "/query/"+query)
		}
	}
}

// Every body that the contract describes has an example.
func TestEveryOperationHasExamples(t *testing.T) {
	b := newBench(t)
	var doc struct {
		Paths    map[string]map[string]described `json:"paths"`
		Webhooks map[string]map[string]described `json:"webhooks"`
	}
	if err := json.Unmarshal(b.call("GET", "/api/v1/ai/openapi.json", nil).raw, &doc); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, paths := range []map[string]map[string]described{doc.Paths, doc.Webhooks} {
		for path, item := range paths {
			for method, op := range item {
				known[op.OperationID] = true
				if op.Summary == "" || op.OperationID == "" || len(op.Tags) != 1 || op.Security == nil {
					t.Errorf("%s %s is not fully described: %+v", method, path, op)
				}
				for mediaType, content := range op.RequestBody.Content {
					if content.Example == nil && !strings.Contains(mediaType, "octet-stream") {
						t.Errorf("%s has no example of its request", op.OperationID)
					}
				}
				for status, response := range op.Responses {
					if response.Description == "" {
						t.Errorf("%s %s is not described", op.OperationID, status)
					}
					if content := response.Content["application/json"]; content != nil && content.Example == nil {
						t.Errorf("%s has no example of %s", op.OperationID, status)
					}
				}
			}
		}
	}
	if !known["uploadStatusChanged"] {
		t.Error("the webhook is not published")
	}
	for name := range examples() {
		if !known[name] {
			t.Errorf("there is an example of %s, which is no operation", name)
		}
	}
}

type described struct {
	OperationID string                `json:"operationId"`
	Summary     string                `json:"summary"`
	Tags        []string              `json:"tags"`
	Security    []map[string][]string `json:"security"`
	RequestBody struct {
		Content map[string]*struct{ Example any } `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Description string `json:"description"`
		Content     map[string]*struct {
			Example any `json:"example"`
		} `json:"content"`
	} `json:"responses"`
}
