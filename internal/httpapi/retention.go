package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/accession/accession/internal/custody"
)

// Retentions is how long organizations' uploads stay.
type Retentions interface {
	Retention(ctx context.Context, c custody.Caller, orgID string) (custody.Retention, error)
	// SetRetention renders a custody.Retention.
	SetRetention(context.Context, custody.Caller, custody.Retention, custody.Idempotency) (custody.Answer, error)
}

// retentions is the administrator's way to have an organization's uploads withdrawn by themselves.
type retentions struct{ room Retentions }

const retentionPath = "/admin/organizations/{org_id}/retention"

type retentionInput struct {
	OrgID orgID `path:"org_id"`
}

type setRetentionInput struct {
	OrgID orgID          `path:"org_id"`
	Key   idempotencyKey `header:"Idempotency-Key"`
	Body  struct {
		RetentionDays int      `json:"retention_days" minimum:"0" maximum:"36500" doc:"Days of 24 hours from an upload's creation; 0: without end."`
		_             struct{} `additionalProperties:"false"`
	}
}

type retention struct {
	OrgID         string `json:"org_id"`
	RetentionDays int    `json:"retention_days" minimum:"0" maximum:"36500" doc:"0: without end."`
}

func (s retentions) mount(d *door) {
	const tag = "upkeep"
	mount(d, operation{
		id: custody.OpSetRetention, method: http.MethodPut, path: retentionPath, tag: tag, body: bodyJSON,
		summary: "Set how long an organization's uploads stay",
		doc: "An upload of any kind and status is withdrawn by itself once it is that many days old, counted from its creation; uploads that are there already too, within a minute. " +
			"The receipt is the same as of any withdrawal; requested_by says retention.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{200: says[retention]()},
	}, s.set)
	mount(d, operation{
		id: custody.OpRetention, method: http.MethodGet, path: retentionPath, tag: tag,
		summary: "How long an organization's uploads stay", failures: []int{404}, answers: map[int]reflect.Type{200: says[retention]()},
	}, s.get)
}

func (s retentions) set(ctx context.Context, x *exchange, in *setRetentionInput) (answer, error) {
	r := custody.Retention{OrgID: string(in.OrgID), Days: in.Body.RetentionDays}
	a, err := s.room.SetRetention(ctx, x.caller, r, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpSetRetention, Key: string(in.Key), RequestHash: requestHash(custody.OpSetRetention, r),
		Render: render(func(r custody.Retention) (int, any) { return http.StatusOK, retention{r.OrgID, r.Days} }),
	})
	return answer{Answer: a}, err
}

func (s retentions) get(ctx context.Context, x *exchange, in *retentionInput) (answer, error) {
	r, err := s.room.Retention(ctx, x.caller, string(in.OrgID))
	if err != nil {
		return answer{}, err
	}
	return respond(retention{r.OrgID, r.Days})
}
