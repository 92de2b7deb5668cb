package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newAuditCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show the audit log, and prove that no evidence was changed",
		Args:  noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditVerifyCommand(app), newAuditHeadsCommand(app), newAuditShowCommand(app), newAuditSearchCommand(app))
	return cmd
}

// chains are where evidence is read: the service, or its data folder.
type chains interface {
	client.ChainSource
	EvidenceHeads(ctx context.Context, cursor string) (*client.HeadsPage, error)
}

// patient asks the service again where that helps.
type patient struct {
	conn    *connection
	service *client.Client
}

func (p patient) Evidence(ctx context.Context, q client.EvidenceQuery) (page *client.EvidencePage, err error) {
	err = p.conn.retry(shortAttempts).Do(ctx, func(ctx context.Context) (err error) {
		page, err = p.service.Evidence(ctx, q)
		return err
	})
	return page, err
}

func (p patient) EvidenceHeads(ctx context.Context, cursor string) (page *client.HeadsPage, err error) {
	err = p.conn.retry(shortAttempts).Do(ctx, func(ctx context.Context) (err error) {
		page, err = p.service.EvidenceHeads(ctx, cursor)
		return err
	})
	return page, err
}

// openEvidence opens the data folder where one is named, else the service.
func (c *connection) openEvidence(data string) (chains, io.Closer, error) {
	if data != "" {
		opened, err := openStoredEvidence(data)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, usagef("--data: there is no metadata.db in this folder")
		}
		return opened, opened, err
	}
	service, err := c.openAdmin()
	return patient{c, service}, io.NopCloser(nil), err
}

// allHeads are the heads of every organization. at is the time before the first was read.
func allHeads(ctx context.Context, from chains) (client.Heads, error) {
	var all client.Heads
	for cursor := ""; ; {
		page, err := from.EvidenceHeads(ctx, cursor)
		if err != nil {
			return all, err
		}
		if cursor == "" {
			all.At = page.At
		}
		all.Heads = append(all.Heads, page.Heads...)
		if page.NextCursor == "" {
			return all, nil
		}
		if page.NextCursor == cursor || len(page.Heads) == 0 {
			return all, errors.New("the pages of heads do not follow each other: this is not the service's answer")
		}
		cursor = page.NextCursor
	}
}

const dataFlagUsage = "read this data folder of a service, stopped or not, instead of asking the service"

func newAuditHeadsCommand(app *App) *cobra.Command {
	var conn connection
	var output, data string
	cmd := &cobra.Command{
		Use:   "heads [-o FILE]",
		Short: "Export where all hash chains end, to be kept elsewhere",
		Long: `Prints the position and hash in which the audit log and the request records of every organization end, as one line
of JSON. Keep it, or its SHA-256, where nobody who can write the database can: accession audit verify --heads FILE
then finds every line that was changed or removed since. A file that is there already is never replaced.`,
		Example: `  accession audit heads -o heads-$(date +%F).json`,
		Args:    positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, opened, err := conn.openEvidence(data)
			if err != nil {
				return err
			}
			defer opened.Close()
			heads, err := allHeads(cmd.Context(), from)
			if err != nil {
				return err
			}
			content, err := heads.Encode()
			if err != nil {
				return err
			}
			if output == "" {
				_, err = app.Stdout.Write(content)
			} else {
				err = writeNew(output, content)
			}
			if err != nil {
				return err
			}
			sum := sha256.Sum256(content)
			conn.note("%d organizations, SHA-256 %s", len(heads.Heads), hex.EncodeToString(sum[:]))
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	for _, every := range []string{"org", "json"} {
		_ = cmd.Flags().MarkHidden(every) // heads are of all, and JSON
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write; default: standard output")
	cmd.Flags().StringVar(&data, "data", "", dataFlagUsage)
	return cmd
}

// writeNew writes a file that must not be there yet, and leaves none behind that is not whole.
func writeNew(name string, content []byte) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s is there already, and exported heads are not replaced: name another file", name)
	}
	if err != nil {
		return usagef("the file cannot be written: %v", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func newAuditShowCommand(app *App) *cobra.Command {
	var conn connection
	var chain, data string
	var after int64
	var limit int
	cmd := &cobra.Command{
		Use:   "show --org ORG",
		Short: "Show the audit log of an organization, oldest first",
		Long: `Shows audit lines, or with --chain records request records, in the order of their chain. --org "" shows what concerns
the installation itself. With --json each line is a JSON object with its position and everything its hash covers.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("org") {
				if err := conn.needOrg(); err != nil {
					return err
				}
			}
			if chain != client.ChainAudit && chain != client.ChainRecords {
				return usagef("--chain has to be %s or %s", client.ChainAudit, client.ChainRecords)
			}
			if after < 0 || limit < 0 {
				return usagef("--after and --limit must not be negative")
			}
			from, opened, err := conn.openEvidence(data)
			if err != nil {
				return err
			}
			defer opened.Close()
			return conn.showChain(cmd.Context(), from, client.EvidenceQuery{OrgID: conn.org, Chain: chain, After: after}, limit)
		},
	}
	conn.register(app, cmd, false, true)
	cmd.Flags().StringVar(&chain, "chain", client.ChainAudit, client.ChainAudit+" or "+client.ChainRecords)
	cmd.Flags().Int64Var(&after, "after", 0, "begin after this position")
	cmd.Flags().IntVar(&limit, "limit", 0, "show at most so many lines; 0: all")
	cmd.Flags().StringVar(&data, "data", "", dataFlagUsage)
	return cmd
}

// showPage is how many lines are asked for, and lined up, at a time.
const showPage = 500

// showChain prints up to limit lines (0: all), page by page.
func (c *connection) showChain(ctx context.Context, from chains, q client.EvidenceQuery, limit int) error {
	show := c.app.showLines
	if c.json {
		show = c.app.printLines
	}
	for shown := 0; ; {
		if q.Limit = showPage; limit > 0 {
			q.Limit = min(showPage, limit-shown)
		}
		page, err := from.Evidence(ctx, q)
		if err != nil {
			return err
		}
		if err := show(page.Lines, shown == 0); err != nil {
			return err
		}
		if shown += len(page.Lines); shown == 0 {
			c.note("no line fits")
		}
		if page.NextAfter <= q.After || limit > 0 && shown >= limit {
			return nil
		}
		q.After = page.NextAfter
	}
}

func (a *App) showLines(lines []client.EvidenceLine, first bool) error {
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for i, l := range lines {
		var at time.Time
		var cells []string
		head := "POSITION\tAT\tACTION\tCREDENTIAL\tUPLOAD\tSTATUS\tDETAIL\tREQUEST"
		if l.Audit != nil {
			at, cells = l.Audit.At, []string{l.Audit.Action, l.Audit.CredentialID, l.Audit.UploadID, l.Audit.Status, l.Audit.Detail, l.Audit.RequestID}
		} else if r := l.Record; r != nil {
			head = "POSITION\tAT\tOUTCOME\tCREDENTIAL\tUPLOAD\tSURFACE\tRECORD\tREQUEST"
			at, cells = r.ServedAt, []string{r.Outcome, r.CredentialID, r.UploadID, r.Surface, r.RecordID, r.RequestID}
		}
		if first && i == 0 {
			fmt.Fprintln(table, head)
		}
		fmt.Fprint(table, strconv.FormatInt(l.Position, 10), "\t", clock(at))
		for _, cell := range cells {
			fmt.Fprint(table, "\t", oneLine(cell))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
