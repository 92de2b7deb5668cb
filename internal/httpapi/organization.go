package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/accession/accession/internal/custody"
)

// OrganizationAdmin lists organizations and sets what each may keep.
type OrganizationAdmin interface {
	// Organizations returns the organization to go on after; empty when there are no more.
	Organizations(context.Context, custody.Caller, custody.OrganizationQuery) (page []custody.OrganizationState, next string, err error)
	Allowance(ctx context.Context, c custody.Caller, orgID string) (custody.Allowance, error)
	// SetAllowance renders a custody.Allowance.
	SetAllowance(context.Context, custody.Caller, custody.AllowanceChange, custody.Idempotency) (custody.Answer, error)
}

// organizations is the administrator's view of them.
type organizations struct{ room OrganizationAdmin }

const (
	organizationsPath = "/admin/organizations"
	allowancePath     = organizationsPath + "/{org_id}/quota"
)

type listOrganizationsInput struct {
	Limit  int   `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor orgID `query:"cursor" doc:"next_cursor of the page before."`
}

type organizationView struct {
	quota
	CreatedAt         timestamp `json:"created_at"`
	RetentionDays     int       `json:"retention_days" minimum:"0" maximum:"36500" doc:"0: without end."`
	ActiveCredentials int       `json:"active_credentials" minimum:"0" doc:"Neither revoked nor expired."`
}

type organizationPage struct {
	Organizations []organizationView `json:"organizations" nullable:"false" doc:"By org_id, in ascending order of bytes."`
	NextCursor    string             `json:"next_cursor" doc:"Empty on the last page."`
}

type allowanceInput struct {
	OrgID orgID `path:"org_id"`
}

type setAllowanceInput struct {
	OrgID orgID          `path:"org_id"`
	Key   idempotencyKey `header:"Idempotency-Key"`
	Body  struct {
		AllowanceBytes *int64   `json:"allowance_bytes" minimum:"0" maximum:"9007199254740991" doc:"null: what a new organization gets now."`
		_              struct{} `additionalProperties:"false"`
	}
}

type allowance struct {
	quota
	DefaultBytes int64 `json:"default_allowance_bytes" minimum:"0" doc:"What a new organization gets."`
}

func (s organizations) mount(d *door) {
	const tag = "organizations"
	mount(d, operation{
		id: custody.OpOrganizations, method: http.MethodGet, path: organizationsPath, tag: tag,
		summary: "List organizations", doc: "An organization begins with its first credential or webhook. A page with a next_cursor is not the whole.",
		answers: map[int]reflect.Type{200: says[organizationPage]()},
	}, s.list)
	mount(d, operation{
		id: custody.OpAllowance, method: http.MethodGet, path: allowancePath, tag: tag,
		summary: "Read what an organization may keep", failures: []int{404}, answers: map[int]reflect.Type{200: says[allowance]()},
	}, s.allowance)
	mount(d, operation{
		id: custody.OpSetAllowance, method: http.MethodPut, path: allowancePath, tag: tag, body: bodyJSON,
		summary: "Set what an organization may keep", doc: "It holds for the next upload, on every replica. An allowance below what is kept and reserved deletes nothing and ends no upload under way: " +
			"nothing more is accepted until there is room. A later change of the service's default changes no organization that is there.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{200: says[allowance]()},
	}, s.setAllowance)
}

func (s organizations) list(ctx context.Context, x *exchange, in *listOrganizationsInput) (answer, error) {
	found, next, err := s.room.Organizations(ctx, x.caller, custody.OrganizationQuery{After: string(in.Cursor), Limit: in.Limit})
	if err != nil {
		return answer{}, err
	}
	page := organizationPage{Organizations: []organizationView{}, NextCursor: next}
	for _, o := range found {
		page.Organizations = append(page.Organizations, organizationView{viewQuota(o.Quota), timestamp{o.CreatedAt}, o.RetentionDays, o.ActiveCredentials})
	}
	return respond(page)
}

func (s organizations) allowance(ctx context.Context, x *exchange, in *allowanceInput) (answer, error) {
	a, err := s.room.Allowance(ctx, x.caller, string(in.OrgID))
	if err != nil {
		return answer{}, err
	}
	return respond(allowance{viewQuota(a.Quota), a.DefaultBytes})
}

func (s organizations) setAllowance(ctx context.Context, x *exchange, in *setAllowanceInput) (answer, error) {
	change := custody.AllowanceChange{OrgID: string(in.OrgID), Bytes: in.Body.AllowanceBytes}
	a, err := s.room.SetAllowance(ctx, x.caller, change, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpSetAllowance, Key: string(in.Key), RequestHash: requestHash(custody.OpSetAllowance, change),
		Render: render(func(a custody.Allowance) (int, any) {
			return http.StatusOK, allowance{viewQuota(a.Quota), a.DefaultBytes}
		}),
	})
	return answer{Answer: a}, err
}
