package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

// metadataChainPages reads chains in order, in pages of every size, and where they end.
func metadataChainPages(t *testing.T, in *Installation) {
	const lines = 7
	for _, org := range []string{"", "acme", "rival", "zero"} {
		in.organization(t, org, 1)
	}
	for i := range lines {
		for _, org := range []string{"acme", "rival", ""} {
			in.must(t, func(tx *sqlstore.Tx) error {
				return errors.Join(tx.AppendRecord(t.Context(), newRecord(org, "upl_1", fmt.Sprint("req_", i))),
					tx.AppendAudit(t.Context(), custody.AuditLine{OrgID: org, At: time.Now(), Action: "credential_issued", Detail: fmt.Sprint("größer <&> ", i)}))
			})
		}
	}
	for _, chain := range []custody.Chain{custody.ChainAudit, custody.ChainRecords} {
		for limit := 1; limit <= lines+1; limit++ {
			previous, read := custody.FirstHash, int64(0)
			for after := int64(0); ; {
				page, err := in.Store.Evidence(t.Context(), custody.EvidenceQuery{OrgID: "acme", Chain: chain, After: after, Limit: limit})
				if err != nil || len(page.Lines) > limit || page.Head.Position != lines {
					t.Fatalf("%s after %d: %+v, %v", chain, after, page, err)
				}
				for _, l := range page.Lines {
					read++
					var kept, own string
					if chain == custody.ChainAudit {
						kept = l.Audit.Hash
						l.Audit.Link(previous)
						own = l.Audit.Hash
					} else {
						kept = l.Record.Hash
						l.Record.Link(previous)
						own = l.Record.Hash
					}
					if own != kept || l.Position != read || (l.Audit == nil) == (l.Record == nil) {
						t.Errorf("%s: line %d comes as %+v", chain, read, l)
					}
					previous = kept
				}
				if page.Next == 0 {
					if read != lines || previous != page.Head.Hash {
						t.Errorf("%s in pages of %d: %d lines, the last is %s of %s", chain, limit, read, previous, page.Head.Hash)
					}
					break
				}
				if page.Next != read {
					t.Fatalf("%s: go on after %d, but %d lines are read", chain, page.Next, read)
				}
				after = page.Next
			}
		}
		for _, org := range []string{"zero", "nobody"} {
			page, err := in.Store.Evidence(t.Context(), custody.EvidenceQuery{OrgID: org, Chain: chain, Limit: 5})
			if err != nil || len(page.Lines) != 0 || page.Next != 0 || page.Head != (custody.ChainHead{Hash: custody.FirstHash}) {
				t.Errorf("%s of %s: %+v, %v", chain, org, page, err)
			}
		}
	}
	for limit := 1; limit <= 5; limit++ {
		var orgs []string
		for from := ""; ; {
			heads, next, err := in.Store.Heads(t.Context(), custody.HeadsQuery{From: from, Limit: limit})
			if err != nil || len(heads) > limit || len(heads) == 0 {
				t.Fatalf("heads from %q: %+v, %v", from, heads, err)
			}
			for _, h := range heads {
				orgs = append(orgs, h.OrgID)
				if h.OrgID == "zero" && (h.Audit.Position != 0 || h.Audit.Hash != custody.FirstHash) ||
					h.OrgID != "zero" && (h.Audit.Position != lines || h.Records.Position != lines || h.Audit.Hash == h.Records.Hash) {
					t.Errorf("heads %+v", h)
				}
			}
			if next == "" {
				break
			}
			from = next
		}
		if !slices.Equal(orgs, []string{"", "acme", "rival", "zero"}) {
			t.Errorf("heads in pages of %d: %q", limit, orgs)
		}
	}
}
