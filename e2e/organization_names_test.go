package e2e

import (
	"net/url"
	"testing"

	"github.com/accession/accession/client"
)

// An organization that gets a credential can be reached with it, whatever it is called; a name that no path leads to gets none.
func TestOrganizationsOfAnyName(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for _, org := range []string{"a/b", "a?b#c", "50 %", "Prüfstelle Süd", "a:b;c,d&e=f", "a%2Fb", `a\b`, "...", " "} {
		at := "/api/v1/organizations/" + url.PathEscape(org)
		uploader := s.do(issuing(client.NewIdempotencyKey(), org, "solution_company_upload")).want(t, 201, "").field(t, "token")
		reader := s.do(issuing(client.NewIdempotencyKey(), org, "ai_reader")).want(t, 201, "").field(t, "token")
		uploaded := s.do(call{method: "POST", path: at + "/customer-uploads", token: uploader, key: client.NewIdempotencyKey(), json: text("The pump runs.", nil)}).want(t, 201, "")
		context := s.do(call{method: "GET", path: at + "/ai-context/" + uploaded.field(t, "upload_id"), token: reader}).want(t, 200, "")
		quota := s.do(call{method: "GET", path: at + "/quota", token: uploader}).want(t, 200, "")
		for _, r := range []reply{uploaded, context, quota} {
			if r.field(t, "org_id") != org {
				t.Errorf("%q: %s", org, r.Raw)
			}
		}
	}
	for _, org := range []string{".", "..", "/", "/a", "a/", "a//b", "a/./b", "a/../b"} {
		s.do(issuing(client.NewIdempotencyKey(), org, "ai_reader")).wantWrong(t, "invalid_request", "/org_id")
	}
}
