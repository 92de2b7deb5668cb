package e2e

import (
	"strings"
	"sync"
	"testing"
)

// Each tool, asked by each of two organizations at the same time: about its own, about the other's by name, and about the other's
// upload as if it were its own.
func TestMCPToolsKeepToTheirOrganization(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--rate-limits", "off"}})
	orgs := []string{"harbour", "island"}
	uploads, readers := map[string]string{}, map[string]string{}
	for _, org := range orgs {
		uploads[org] = s.partner(org).submit(text("The gate of "+org+" was painted.", nil))
		readers[org] = s.issue(org, "ai_reader")
		s.context(org, readers[org], uploads[org]).want(t, 200, "")
	}
	var all sync.WaitGroup
	for i, org := range orgs {
		other := orgs[1-i]
		ask := func(tool, about, upload string) string {
			c := calling(tool, fields{"org_id": about, "upload_id": upload})
			c.token = readers[org]
			r, err := s.try(c)
			if err != nil {
				t.Error(err)
			}
			if said := string(r.Raw); strings.Contains(said, other) || strings.Contains(said, uploads[other]) {
				t.Errorf("%s: %s was told of the other: %s", tool, org, said)
			}
			return string(r.Raw)
		}
		for tool, want := range map[string]struct{ own, others, named string }{
			"get_ai_context":       {"gate of " + org, "upload_not_found", "access_denied"},
			"get_upload_status":    {`"status":"READY"`, "upload_not_found", "upload_not_found"},
			"list_request_records": {`"outcome":"served"`, `"records":[]`, "access_denied"},
		} {
			all.Go(func() {
				for range 10 {
					if said := ask(tool, org, uploads[org]); !strings.Contains(said, want.own) {
						t.Errorf("%s: %s of its own: %s", tool, org, said)
					}
					if said := ask(tool, org, uploads[other]); !strings.Contains(said, want.others) {
						t.Errorf("%s: %s of the other's: %s", tool, org, said)
					}
					if said := ask(tool, other, uploads[other]); !strings.Contains(said, want.named) {
						t.Errorf("%s: %s, naming the other: %s", tool, org, said)
					}
				}
			})
		}
	}
	all.Wait()
}
