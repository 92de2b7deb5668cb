package e2e

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// stranger is who asks about what is not theirs.
type stranger struct {
	name          string
	client        oauthClient // of island; empty where it holds none
	token, bearer string
	seat          map[string]string // headers of a session
}

// target is what is asked about: harbour's, or nobody's.
type target struct {
	org, upload, credential, signingKey, accessToken, canary, receipt string
}

var nobodys = target{"nowhere", missing, "cred_00000000000000000000000000", "key_00000000000000000000000000", "a.b.c", "accession-canary-rec_00000000000000000000000000", "rct_00000000000000000000000000"}

// isolationRows are the routes that take an id of an organization or of something that belongs to one, by operationId: the
// request of a stranger under org's path about a target.
var isolationRows = map[string]func(by stranger, org string, about target) call{
	"initiatePartnerUpload":       routeRow("initiate"),
	"putPartnerUploadPart":        routeRow("part"),
	"putPartnerUploadPartByPath":  routeRow("part by path"),
	"completePartnerUpload":       routeRow("complete"),
	"completePartnerUploadByPath": routeRow("complete by path"),
	"getPartnerUploadStatus":      routeRow("status"),
	"withdrawPartnerUpload":       routeRow("withdraw"),
	"getQuota":                    routeRow("quota"),
	"getAIContext":                routeRow("context"),
	"listRequestRecords":          routeRow("records"),
	"createCustomerUpload": func(_ stranger, org string, about target) call {
		return partner{org: org}.submitting("", text("The pump stands.", map[string]any{"asserted_subject_org_id": about.org}))
	},
	"createCorrection": func(_ stranger, org string, about target) call {
		return partner{org: org}.correcting(about.upload, "", text("The pump stands.", nil))
	},
	"attachExternalReview": func(_ stranger, org string, about target) call {
		return partner{org: org}.reviewing(about.upload, "", map[string]any{"review_id": "rev-1"})
	},
	"issueTenantKey": func(_ stranger, _ string, about target) call { return issuing("", about.org, "ai_reader") },
	"listTenantKeys": func(_ stranger, _ string, about target) call {
		return call{method: "GET", path: "/admin/tenant-keys/credentials?org_id=" + about.org}
	},
	"revokeTenantKey": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: "/admin/tenant-keys/credentials/" + about.credential + "/revoke"}
	},
	"rotateTenantKey": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: "/admin/tenant-keys/credentials/" + about.credential + "/rotate"}
	},
	"retireSigningKey": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: "/admin/tenant-keys/signing-keys/" + about.signingKey + "/retire", json: map[string]any{"force": true}}
	},
	"findCanary": func(_ stranger, _ string, about target) call {
		return call{method: "GET", path: "/admin/canaries/" + about.canary}
	},
	"listEvidence": func(_ stranger, _ string, about target) call {
		return call{method: "GET", path: "/admin/evidence?chain=audit&org_id=" + about.org}
	},
	"getWithdrawalReceipt": func(_ stranger, org string, about target) call {
		return call{method: "GET", path: "/api/v1/organizations/" + org + "/withdrawals/" + about.receipt}
	},
	"setRetention": func(_ stranger, org string, _ target) call {
		return call{method: "PUT", path: "/admin/organizations/" + org + "/retention", json: map[string]any{"retention_days": 1}}
	},
	"getRetention": func(_ stranger, org string, _ target) call {
		return call{method: "GET", path: "/admin/organizations/" + org + "/retention"}
	},
	"getOrganizationQuota": func(_ stranger, org string, _ target) call {
		return call{method: "GET", path: "/admin/organizations/" + org + "/quota"}
	},
	"setQuota": func(_ stranger, org string, _ target) call {
		return call{method: "PUT", path: "/admin/organizations/" + org + "/quota", json: map[string]any{"allowance_bytes": 1}}
	},
	"listOrganizations": func(_ stranger, _ string, about target) call {
		return call{method: "GET", path: "/admin/organizations?cursor=" + about.org}
	},
	"searchAudit": func(_ stranger, _ string, about target) call {
		return call{method: "GET", path: "/admin/audit?org_id=" + about.org + "&upload_id=" + about.upload + "&credential_id=" + about.credential}
	},
	"queueRescans": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: "/admin/rescans", json: map[string]any{"org_id": about.org, "upload_id": about.upload}}
	},
	"getRescans": func(_ stranger, _ string, about target) call {
		return call{method: "GET", path: "/admin/rescans?org_id=" + about.org + "&upload_id=" + about.upload}
	},
	"setWebhook": func(_ stranger, _ string, about target) call {
		return call{method: "PUT", path: webhookOf(about.org), json: map[string]any{"url": "https://hooks.example/"}}
	},
	"rotateWebhookSecret": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: webhookOf(about.org) + "/rotate"}
	},
	"testWebhook": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: webhookOf(about.org) + "/test"}
	},
	"deleteWebhook": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: webhookOf(about.org) + "/delete"}
	},
	"listWebhookDeliveries": func(_ stranger, _ string, about target) call {
		return call{method: "GET", path: webhookOf(about.org) + "/deliveries?upload_id=" + about.upload}
	},
	"replayWebhookDeliveries": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: webhookOf(about.org) + "/replay", json: map[string]any{"upload_id": about.upload}}
	},
	"listWebhooks": func(_ stranger, _ string, about target) call {
		return call{method: "GET", path: "/admin/webhooks?org_id=" + about.org}
	},
	"checkStorage": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: "/admin/fsck", json: map[string]any{"after": about.upload}}
	},
	"resumeUpload": func(_ stranger, _ string, about target) call {
		return call{method: "POST", path: "/admin/uploads/" + about.upload + "/resume", json: map[string]any{"org_id": about.org}}
	},
	"introspectAccessToken": formRow("/oauth/introspect", func(about target) url.Values { return url.Values{"token": {about.accessToken}} }),
	"revokeAccessToken":     formRow("/oauth/revoke", func(about target) url.Values { return url.Values{"token": {about.accessToken}} }),
	"issueAccessToken": func(by stranger, org string, about target) call { // one's own secret under another's name
		by.client.id = about.credential
		return formRow("/oauth/token", func(target) url.Values { return url.Values{"grant_type": {"client_credentials"}} })(by, org, about)
	},
}

// aboutNobody are the routes that take no such id.
var aboutNobody = []string{
	"getAccessPolicy", "getAuthorizationServerMetadata", "getCapabilities", "getHealth", "getIdentity", "getKeySet", "getOpenAPI", "getPortalConfig",
	"getProtectedResourceMetadata", "getProtectedResourceMetadataOfMCP", "getMCPServerCard", "getMCPServerCardOfHost", "getLLMsText", "getSecurityText", "getReadiness", "getTenantKeyPolicy",
	"getSandbox", "getSandboxKeys", "createSandboxKey", "echoSandbox", "batchSandbox", "createPortalSession", "getPortalSession", "deletePortalSession", "listSigningKeys", "rotateSigningKey", "listEvidenceHeads", "rotateKeyEncryptionKey", "getState",
}

func routeRow(name string) func(stranger, string, target) call {
	return func(_ stranger, org string, about target) call { return routes(org, about.upload)[name] }
}

func formRow(path string, fields func(target) url.Values) func(stranger, string, target) call {
	return func(by stranger, _ string, about target) call {
		form := fields(about)
		form.Set("client_id", by.client.id)
		form.Set("client_secret", by.client.secret)
		return call{method: "POST", path: path, body: []byte(form.Encode()), header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}
	}
}

// Every route of the served document, asked by every role about what belongs to another organization, answers as it does about
// what is not there. A route without a row fails.
func TestIsolationMatrix(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--rate-limits", "off"}})
	published := s.document()
	rows := append(sorted(isolationRows), aboutNobody...)
	for _, op := range published.operations {
		if named := strings.Contains(op.Path, "{"); named && isolationRows[op.id] == nil || !slices.Contains(rows, op.id) {
			t.Errorf("%s %s (%s) has no row", op.Method, op.Path, op.id)
		}
	}
	for _, id := range rows {
		if !slices.ContainsFunc(published.operations, func(op operation) bool { return op.id == id }) {
			t.Errorf("there is a row for %s, but no such route", id)
		}
	}

	owner, ownerReader := s.oauthClient("harbour", "solution_company_upload"), s.oauthClient("harbour", "ai_reader")
	victim := partner{s, "harbour", owner.secret}
	ready := victim.send("note.txt", "text/plain", note("salt-marsh"))
	victim.wantReady(ready)
	withdrawn := victim.submit(text("The pump ran.", nil))
	receipt := victim.withdraw(withdrawn).want(t, 200, "").field(t, "withdrawal_receipt_id")
	accessToken, signingKey := s.accessToken(owner), s.signingKey()
	served := decode[servedContext](t, s.context("harbour", ownerReader.secret, ready).want(t, 200, ""))
	uploads := map[string]string{
		"a partner upload": ready, "an open upload": victim.initiate("note.txt", "text/plain", len(note("salt-marsh"))), "a text": victim.submit(text("The pump runs.", nil)),
		"an internal text": victim.submit(text("The pump hums.", map[string]any{"visibility": "internal_only"})), "a withdrawn text": withdrawn,
	}
	before := map[string]int64{}
	for _, id := range uploads {
		before[id] = victim.status(id).Sequence
	}
	strangers := []stranger{{name: "nobody"}, {name: "a sandbox credential", token: s.do(call{method: "POST", path: "/api/v1/sandbox/keys"}).want(t, 201, "").field(t, "token")}}
	for _, role := range []string{"solution_company_upload", "ai_reader"} {
		c := s.oauthClient("island", role)
		strangers = append(strangers, stranger{role, c, c.secret, "", nil}, stranger{role + " as Bearer", c, "", c.secret, nil},
			stranger{role + " by OAuth", c, "", s.accessToken(c), nil}, stranger{role + " from a seat", c, "", "", s.seat(c, role)})
	}
	for _, by := range strangers {
		for name, row := range isolationRows {
			t.Run(by.name+" "+name, func(t *testing.T) {
				s := s.in(t)
				ask := func(org string, about target) call {
					c := row(by, org, about)
					c.token, c.bearer = by.token, by.bearer
					if c.header["Content-Type"] != "" { // a client authenticates in its form
						c.token, c.bearer = "", ""
					}
					if by.seat != nil && c.header == nil {
						c.header = by.seat
					}
					if c.key = ""; c.method != "GET" {
						c.key = client.NewIdempotencyKey()
					}
					return c
				}
				for what, id := range uploads {
					theirs := target{"harbour", id, owner.id, signingKey, accessToken, served.Context.Canary, receipt}
					for _, org := range []string{"island", "harbour"} {
						if name == "initiatePartnerUpload" && org == "island" {
							continue // its own right, or none; about no upload
						}
						r := wantSameAnswer(t, s, ask(org, theirs), ask(org, nobodys))
						if strings.Contains(row(by, org, theirs).path, "/harbour/") && r.Status < 400 {
							t.Errorf("%s: %d %s", what, r.Status, r.Raw)
						}
						for _, told := range []string{"salt-marsh", "pump", "note.txt"} {
							if strings.Contains(string(r.Raw), told) {
								t.Errorf("%s: the answer tells %q: %s", what, told, r.Raw)
							}
						}
					}
					wantSameAnswer(t, s, ask("harbour", theirs), ask("nowhere", nobodys)) // nor can an organization be told from none
				}
			})
		}
	}
	for what, id := range uploads {
		if after := victim.status(id).Sequence; after != before[id] {
			t.Errorf("%s: the attempts changed it: %d, then %d", what, before[id], after)
		}
	}
	s.do(call{method: "GET", path: "/oauth/identity", bearer: accessToken}).want(t, 200, "") // not revoked by a stranger
	if found := s.records("harbour", ownerReader.secret, ""); len(found) != 1 || found[0].ID != served.RecordID {
		t.Errorf("records of what was never served: %+v", found)
	}
	for _, r := range s.records("island", strangers[len(strangers)-1].client.secret, "") {
		if r.OrgID != "island" {
			t.Errorf("a record of another organization: %+v", r)
		}
	}
}

// signingKey is the id of one that is in use.
func (s *service) signingKey() string {
	s.t.Helper()
	list := decode[struct {
		SigningKeys []struct {
			KeyID string `json:"key_id"`
		} `json:"signing_keys"`
	}](s.t, s.do(call{method: "GET", path: "/admin/tenant-keys/signing-keys", bearer: adminToken}).want(s.t, 200, ""))
	if len(list.SigningKeys) == 0 {
		s.t.Fatal("there is no signing key")
	}
	return list.SigningKeys[0].KeyID
}
