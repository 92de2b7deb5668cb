package custody

import "context"

// Row-level security: on PostgreSQL a query sees the rows of the one organization that its context names, whatever the query
// itself asks for. A context that names none sees no row at all.

type organizationScope struct{}

const (
	everyOrganization = "*"
	oneOrganization   = "=" // and its org_id, which may be any text
)

// InOrganization returns a context whose queries see that organization's rows alone; none where orgID is empty.
func InOrganization(ctx context.Context, orgID string) context.Context {
	scope := ""
	if orgID != "" {
		scope = oneOrganization + orgID
	}
	return context.WithValue(ctx, organizationScope{}, scope)
}

// AcrossOrganizations returns a context whose queries see the rows of all: for the administrator, and for what the service
// does of its own accord.
func AcrossOrganizations(ctx context.Context) context.Context {
	return context.WithValue(ctx, organizationScope{}, everyOrganization)
}

// InScopeOf returns a context whose queries see at most what c may see. Every door calls it once it knows who asks.
func InScopeOf(ctx context.Context, c Caller) context.Context {
	if c.Admin {
		return AcrossOrganizations(ctx)
	}
	return InOrganization(ctx, c.OrgID)
}

// OrganizationScope is what the queries of ctx may see: "" nothing, "*" all, "=ORG" one organization. The database's policies
// read it.
func OrganizationScope(ctx context.Context) string {
	scope, _ := ctx.Value(organizationScope{}).(string)
	return scope
}
