package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
)

// verified is what accession audit verify --json prints.
type verified struct {
	Chains   []*client.ChainReport `json:"chains"`
	Findings int                   `json:"findings"`
}

func newAuditVerifyCommand(app *App) *cobra.Command {
	var conn connection
	var data string
	var files []string
	cmd := &cobra.Command{
		Use:   "verify [--org ORG] [--heads FILE]…",
		Short: "Recompute all hash chains, and compare them with exported heads",
		Long: `Reads the audit log and the request records of every organization, or of one, and recomputes every hash here. For
each chain it says how many lines hold, and the first position that is changed, missing, misplaced or cut off.
What was done by somebody who can write the database, heads included, is found only by heads that were exported
before: give them with --heads, as often as there are files. Exit code 1 where something was found.`,
		Example: `  accession audit verify --heads heads-2026-11-19.json
  accession audit verify --data /var/lib/accession --heads heads-2026-11-19.json`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kept, err := keptHeads(files)
			if err != nil {
				return err
			}
			from, opened, err := conn.openEvidence(data)
			if err != nil {
				return err
			}
			defer opened.Close()
			stated, err := allHeads(cmd.Context(), from)
			if err != nil {
				return err
			}
			for _, h := range stated.Heads {
				if _, known := kept[h.OrgID]; !known {
					kept[h.OrgID] = nil
				}
			}
			orgs := slices.Sorted(maps.Keys(kept))
			if conn.org != "" || cmd.Flags().Changed("org") {
				if _, known := kept[conn.org]; !known {
					return &nothingFoundError{fmt.Sprintf("neither the service nor an exported file knows an organization %s", orgName(conn.org))}
				}
				orgs = []string{conn.org}
			}
			said := verified{Chains: []*client.ChainReport{}}
			for _, org := range orgs {
				for _, chain := range []string{client.ChainAudit, client.ChainRecords} {
					var heads []client.ChainHead
					for _, h := range kept[org] {
						heads = append(heads, h.Of(chain))
					}
					report, err := client.VerifyChain(cmd.Context(), from, org, chain, heads...)
					if err != nil {
						return err
					}
					if said.Chains = append(said.Chains, report); report.Finding != nil {
						said.Findings++
					}
				}
			}
			if err := app.showVerified(said, conn.json); err != nil {
				return err
			}
			if len(files) == 0 {
				conn.note("without --heads, what was cut off or rewritten together with its head is not found")
			}
			if said.Findings > 0 {
				return &adviceError{fmt.Errorf("%d of %d chains do not hold", said.Findings, len(said.Chains)),
					"keep the data folder as it is, and compare with its backups; docs/operations.md, Evidence"}
			}
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	cmd.Flags().StringArrayVar(&files, "heads", nil, "file of exported heads; may be given again")
	cmd.Flags().StringVar(&data, "data", "", dataFlagUsage)
	return cmd
}

// keptHeads reads exported files, by organization.
func keptHeads(files []string) (map[string][]client.OrganizationHeads, error) {
	kept := map[string][]client.OrganizationHeads{}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, usagef("--heads cannot be read: %v", err)
		}
		heads, err := client.ReadHeads(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, usagef("--heads %s: %v", name, err)
		}
		for _, h := range heads.Heads {
			kept[h.OrgID] = append(kept[h.OrgID], h)
		}
	}
	return kept, nil
}

func orgName(org string) string {
	if org == "" {
		return "(installation)"
	}
	return oneLine(org)
}

func (a *App) showVerified(said verified, asJSON bool) error {
	if asJSON {
		b, err := json.Marshal(said)
		if err != nil {
			return err
		}
		return a.printData(b)
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ORG\tCHAIN\tLINES\tHEAD\tRESULT")
	for _, r := range said.Chains {
		result := "ok"
		if f := r.Finding; f != nil {
			result = fmt.Sprintf("%s at %d: %s", f.Problem, f.Position, f.Detail)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", orgName(r.OrgID), r.Chain, r.Lines, r.Head.Hash, oneLine(result))
	}
	return table.Flush()
}

func (a *App) printLines(lines []client.EvidenceLine, _ bool) error {
	encoder := json.NewEncoder(a.Stdout)
	for _, l := range lines {
		if err := encoder.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// storedEvidence reads chains where they are kept.
type storedEvidence struct {
	*sqldb.Inspection
	chains sqlstore.Chains
}

// openStoredEvidence opens the metadata of a data folder without a service; one that runs is not disturbed.
func openStoredEvidence(data string) (*storedEvidence, error) {
	opened, err := sqldb.InspectSQLite(filepath.Join(data, "metadata.db"))
	if err != nil {
		return nil, err
	}
	return &storedEvidence{opened, sqlstore.Inspect(opened)}, nil
}

func (s *storedEvidence) Evidence(ctx context.Context, q client.EvidenceQuery) (*client.EvidencePage, error) {
	page, err := s.chains.Evidence(ctx, custody.EvidenceQuery{OrgID: q.OrgID, Chain: custody.Chain(q.Chain), After: q.After, Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	said := &client.EvidencePage{Head: client.ChainHead(page.Head), NextAfter: page.Next}
	b, err := json.Marshal(page.Lines) // the two packages share the form, not the types
	if err != nil {
		return nil, err
	}
	return said, json.Unmarshal(b, &said.Lines)
}

func (s *storedEvidence) EvidenceHeads(ctx context.Context, cursor string) (*client.HeadsPage, error) {
	said := &client.HeadsPage{At: custody.Now()}
	heads, next, err := s.chains.Heads(ctx, custody.HeadsQuery{From: cursor, Limit: 1000})
	for _, h := range heads {
		said.Heads = append(said.Heads, client.OrganizationHeads{OrgID: h.OrgID, Audit: client.ChainHead(h.Audit), Records: client.ChainHead(h.Records)})
	}
	said.NextCursor = next
	return said, err
}
