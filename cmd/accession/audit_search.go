package main

import (
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

// searchPage is how many lines are asked for, and lined up, at a time.
const searchPage = 100

func newAuditSearchCommand(app *App) *cobra.Command {
	var conn connection
	var q client.AuditQuery
	var since, until string
	var limit int
	cmd := &cobra.Command{
		Use:   "search [--org ORG] [--upload ID] [--credential ID] [--action ACTION]",
		Short: "Find audit lines by organization, upload, credential, action and time, newest first",
		Long: `Finds audit lines of every organization and of the installation itself, newest first: those that fit all that is given.
Lines stay when an upload is withdrawn or a credential is revoked. --since and --until take a date-time such as
2026-11-20T09:30:00Z, or how long ago, such as 24h. With --json each line is a JSON object with its position and
everything its hash covers.`,
		Example: `  accession audit search --upload upl_06gz --limit 0
  accession audit search --action quota_set --since 720h`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit must not be negative")
			}
			var err error
			if q.Since, err = moment("--since", since); err != nil {
				return err
			}
			if q.Until, err = moment("--until", until); err != nil {
				return err
			}
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			q.OrgID = conn.org
			return conn.searchAudit(cmd.Context(), service, q, limit)
		},
	}
	conn.register(app, cmd, false, true)
	flags := cmd.Flags()
	flags.StringVar(&q.UploadID, "upload", "", "about this upload")
	flags.StringVar(&q.CredentialID, "credential", "", "done by this credential; admin, or retention")
	flags.StringVar(&q.Action, "action", "", "what was done, such as withdrawal_accepted or credential_issued")
	flags.StringVar(&since, "since", "", "from then on")
	flags.StringVar(&until, "until", "", "before then")
	flags.IntVar(&limit, "limit", searchPage, "show at most so many lines; 0: all")
	return cmd
}

// moment reads a date-time, or how long ago something was; empty is no time.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usagef("%s %q is no time: write a date-time like 2026-11-20T09:30:00Z, or how long ago like 24h", flag, text)
	}
	return at, nil
}

// searchAudit prints up to limit lines (0: all), page by page.
func (c *connection) searchAudit(ctx context.Context, service *client.Client, q client.AuditQuery, limit int) error {
	show := c.app.showFound
	if c.json {
		show = c.app.printLines
	}
	for shown := 0; ; {
		if q.Limit = searchPage; limit > 0 {
			q.Limit = min(searchPage, limit-shown)
		}
		var page *client.AuditPage
		err := c.retry(shortAttempts).Do(ctx, func(ctx context.Context) (err error) {
			page, err = service.SearchAudit(ctx, q)
			return err
		})
		if err != nil {
			return err
		}
		if err := show(page.Lines, shown == 0); err != nil {
			return err
		}
		if shown += len(page.Lines); page.NextCursor == "" {
			if shown == 0 {
				c.note("no audit line fits")
			}
			return nil
		}
		if limit > 0 && shown >= limit {
			c.note("there are more; --limit 0 shows all")
			return nil
		}
		q.Cursor = page.NextCursor
	}
}

func (a *App) showFound(lines []client.EvidenceLine, first bool) error {
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for i, l := range lines {
		if first && i == 0 {
			fmt.Fprintln(table, "AT\tORG\tPOSITION\tACTION\tCREDENTIAL\tUPLOAD\tSTATUS\tDETAIL\tREQUEST")
		}
		if l.Audit == nil {
			continue
		}
		fmt.Fprint(table, clock(l.Audit.At), "\t", orgName(l.Audit.OrgID), "\t", strconv.FormatInt(l.Position, 10))
		for _, cell := range []string{l.Audit.Action, l.Audit.CredentialID, l.Audit.UploadID, l.Audit.Status, l.Audit.Detail, l.Audit.RequestID} {
			fmt.Fprint(table, "\t", oneLine(cell))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
