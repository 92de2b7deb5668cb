package evidence_test

import (
	"context"
	"errors"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/evidence"
)

type store struct{ err error }

func (s store) Evidence(_ context.Context, q custody.EvidenceQuery) (custody.EvidencePage, error) {
	return custody.EvidencePage{Next: q.After + 1}, s.err
}

func (s store) Heads(_ context.Context, q custody.HeadsQuery) ([]custody.OrganizationHeads, string, error) {
	return []custody.OrganizationHeads{{OrgID: q.From}}, "next", s.err
}

func (s store) AuditLines(_ context.Context, q custody.AuditQuery) ([]custody.EvidenceLine, custody.AuditPosition, error) {
	return []custody.EvidenceLine{{Position: int64(q.Limit)}}, custody.AuditPosition{ID: "aud_1"}, s.err
}

func TestEvidenceIsTheAdministrators(t *testing.T) {
	admin := custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true}
	reader := custody.Caller{CredentialID: "cred_1", OrgID: "acme", Role: custody.RoleAIReader, Scopes: custody.RoleScopes[custody.RoleAIReader]}
	for name, c := range map[string]struct {
		caller custody.Caller
		err    error
		want   custody.Code
	}{
		"the admin":       {admin, nil, ""},
		"nobody":          {custody.Caller{}, nil, custody.CodeAuthenticationRequired},
		"its own reader":  {reader, nil, custody.CodeCredentialInvalid},
		"a store on fire": {admin, errors.New("on fire"), custody.CodeUnavailable},
		"nobody, on fire": {custody.Caller{}, errors.New("on fire"), custody.CodeAuthenticationRequired},
	} {
		s := evidence.New(store{c.err})
		page, err := s.Evidence(t.Context(), c.caller, custody.EvidenceQuery{OrgID: "acme", Chain: custody.ChainAudit, After: 6, Limit: 1})
		heads, next, headsErr := s.Heads(t.Context(), c.caller, custody.HeadsQuery{From: "acme", Limit: 1})
		lines, before, searchErr := s.Search(t.Context(), c.caller, custody.AuditQuery{Limit: 3})
		if c.want == "" {
			if searchErr != nil || len(lines) != 1 || lines[0].Position != 3 || before.ID != "aud_1" {
				t.Errorf("%s found %+v %+v, %v", name, lines, before, searchErr)
			}
			if err != nil || headsErr != nil || page.Next != 7 || heads[0].OrgID != "acme" || next != "next" {
				t.Errorf("%s: %+v %+v %q, %v, %v", name, page, heads, next, err, headsErr)
			}
			continue
		}
		for _, err := range []error{err, headsErr, searchErr} {
			var e *custody.Error
			if !errors.As(err, &e) || e.Code != c.want {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		}
		if page.Next != 0 || heads != nil || next != "" || lines != nil || before.ID != "" {
			t.Errorf("%s was told %+v %+v %+v", name, page, heads, lines)
		}
	}
}
