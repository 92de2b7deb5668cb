package e2e

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// issue makes a credential, of the role's scopes or of one alone.
func (m *model) issue(t *rapid.T) {
	org := m.drawOrg(t)
	role := rapid.SampledFrom([]string{uploads, reads}).Draw(t, "role")
	scopes := modelScopes[role]
	body := map[string]any{"org_id": org.id, "role": role}
	if rapid.IntRange(0, 3).Draw(t, "narrow") == 3 {
		scopes = []string{rapid.SampledFrom(scopes).Draw(t, "scope")}
		body["scope"] = scopes[0]
	}
	m.do(t, modelRequest{
		op: "issue", by: m.drawAdmin(t), how: drawHow(t), key: m.drawKey(t), same: fmt.Sprint(body),
		call:  call{method: "POST", path: "/admin/tenant-keys/issue", json: body},
		judge: simply(201),
		apply: func(t *rapid.T, r reply) {
			d := dataOf(t, r)
			d.want(t, map[string]any{"org_id": org.id, "role": role, "scope": strings.Join(scopes, " ")})
			m.credentials = append(m.credentials, &modelCredential{id: d.text("credential_id"), token: d.text("token"), org: org, role: role, scopes: scopes, active: true})
			org.audit["credential_issued"]++
		},
	})
}

// drawEndable is a credential that may be ended: no observer.
func (m *model) drawEndable(t *rapid.T) *modelCredential {
	c := m.drawCredential(t)
	if c == c.org.observer {
		return m.credentials[0]
	}
	return c
}

// rotate replaces a credential, at once or with overlap.
func (m *model) rotate(t *rapid.T) {
	old := m.drawEndable(t)
	body := map[string]any{}
	atOnce := rapid.Bool().Draw(t, "at once")
	if atOnce {
		body["overlap_seconds"] = 0
	}
	m.do(t, modelRequest{
		op: "rotate", by: m.drawAdmin(t), how: drawHow(t), key: m.drawKey(t), same: fmt.Sprint(old.id, body),
		call: call{method: "POST", path: "/admin/tenant-keys/credentials/" + old.id + "/rotate", json: body},
		judge: func() []modelOutcome {
			if !old.active {
				return one(409, "credential_not_active")
			}
			return one(201, "")
		},
		apply: func(t *rapid.T, r reply) {
			d := dataOf(t, r)
			d.want(t, map[string]any{"org_id": old.org.id, "role": old.role, "scope": strings.Join(old.scopes, " ")})
			m.credentials = append(m.credentials, &modelCredential{id: d.text("credential_id"), token: d.text("token"), org: old.org, role: old.role, scopes: old.scopes, active: true})
			old.active = !atOnce
			old.org.audit["credential_rotated"]++
		},
	})
}

// revoke ends a credential for good.
func (m *model) revoke(t *rapid.T) {
	c := m.drawEndable(t)
	m.do(t, modelRequest{
		op: "revoke", by: m.drawAdmin(t), how: drawHow(t), key: m.drawKey(t), same: c.id,
		call:  call{method: "POST", path: "/admin/tenant-keys/credentials/" + c.id + "/revoke"},
		judge: simply(200),
		apply: func(t *rapid.T, r reply) {
			dataOf(t, r).want(t, map[string]any{"credential_id": c.id, "org_id": c.org.id, "state": "revoked"})
			if !c.revoked {
				c.org.audit["credential_revoked"]++
			}
			c.active, c.revoked = false, true
		},
	})
}

// allow changes an organization's allowance, also to less than what it holds.
func (m *model) allow(t *rapid.T) {
	org := m.drawOrg(t)
	bytes := rapid.SampledFrom([]int{modelAllowance, 2 * modelAllowance, 300, 0, -1}).Draw(t, "allowance")
	body := map[string]any{"allowance_bytes": bytes}
	if bytes < 0 { // the default again
		body["allowance_bytes"], bytes = nil, modelAllowance
	}
	m.do(t, modelRequest{
		op: "allow", by: m.drawAdmin(t), how: drawHow(t), key: m.drawKey(t), same: fmt.Sprint(org.id, body),
		call:  call{method: "PUT", path: "/admin/organizations/" + org.id + "/quota", json: body},
		judge: simply(200),
		apply: func(t *rapid.T, r reply) {
			org.allowance = bytes
			org.audit["quota_set"]++
			org.wantFigures(t, dataOf(t, r))
		},
	})
}

// repeat sends a request that succeeded once more, with its key: the same answer, whatever happened since, if its credential may.
func (m *model) repeat(t *rapid.T) {
	if len(m.given) == 0 {
		t.Skip("no answer yet")
	}
	a := m.given[rapid.IntRange(0, len(m.given)-1).Draw(t, "which")]
	q := a.request
	q.how = drawHow(t)
	m.do(t, q)
}

// repeatAnew sends it with another key, or as somebody else: what it does is for the state of things to say.
func (m *model) repeatAnew(t *rapid.T) {
	if len(m.given) == 0 {
		t.Skip("no answer yet")
	}
	q := m.given[rapid.IntRange(0, len(m.given)-1).Draw(t, "which")].request
	if rapid.Bool().Draw(t, "another key") {
		q.key = m.drawKey(t)
		if q.op == "submit" || q.op == "correct" || q.op == "initiate" {
			q.key = m.freshKey()
		}
	} else {
		q.by = m.drawCredential(t)
	}
	m.do(t, q)
}
