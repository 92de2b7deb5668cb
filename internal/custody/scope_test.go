package custody

import "testing"

// Nobody gets more than asked for, whatever an organization is called.
func TestOrganizationScope(t *testing.T) {
	none := t.Context()
	for what, c := range map[string]struct{ got, want string }{
		"nobody said":                {OrganizationScope(none), ""},
		"one":                        {OrganizationScope(InOrganization(none, "acme")), "=acme"},
		"an id that looks like all":  {OrganizationScope(InOrganization(none, "*")), "=*"},
		"no id":                      {OrganizationScope(InOrganization(AcrossOrganizations(none), "")), ""},
		"all":                        {OrganizationScope(AcrossOrganizations(none)), "*"},
		"one after all":              {OrganizationScope(InOrganization(AcrossOrganizations(none), "acme")), "=acme"},
		"the administrator":          {OrganizationScope(InScopeOf(none, Caller{Admin: true})), "*"},
		"a caller":                   {OrganizationScope(InScopeOf(none, Caller{OrgID: "acme"})), "=acme"},
		"a stranger":                 {OrganizationScope(InScopeOf(none, Caller{})), ""},
		"a stranger within a worker": {OrganizationScope(InScopeOf(AcrossOrganizations(none), Caller{})), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", what, c.got, c.want)
		}
	}
}
