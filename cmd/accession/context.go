package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newContextCommand(app *App) *cobra.Command {
	conn := connection{reader: true}
	cmd := &cobra.Command{
		Use:   "context [ORG] UPLOAD_ID",
		Short: "Print the bounded context of an upload (AI reader credential)",
		Args:  positional(1, "[ORG]", "UPLOAD_ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			uploadID, err := conn.target(args)
			if err != nil {
				return err
			}
			service, err := conn.open(false)
			if err != nil {
				return err
			}
			var bounded *client.AIContext
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) error {
				var err error
				bounded, err = service.AIContext(ctx, conn.org, uploadID)
				return err
			})
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(bounded.Response.Data)
			}
			app.showContext(bounded)
			return nil
		},
	}
	conn.register(app, cmd, true, false)
	return cmd
}

func (a *App) showContext(bounded *client.AIContext) {
	c := bounded.Context
	a.row("upload", bounded.UploadID)
	a.row("label", c.BoundaryLabel)
	a.row("evaluation", c.EvaluationStatus+", content "+c.ContentTrust)
	a.row("visibility", bounded.Visibility)
	a.row("source", joined(c.Source.Filename, bytesText(c.Source.SizeBytes), c.MediaType, c.Language))
	tokens := fmt.Sprintf("%d of at most %d", c.TokenCount, c.TokenLimit)
	if c.Truncated {
		tokens += ", truncated"
	}
	a.row("tokens", tokens)
	a.row("signals", client.Gate{Detail: c.Signals}.DetailText())
	a.row("corrected", strings.Join(c.Corrections, ", "))
	a.row("canary", c.Canary)
	fmt.Fprintf(a.Stdout, "\nSummary\n%s\n", indented(c.Summary))
	if len(c.Excerpts) > 0 {
		fmt.Fprintln(a.Stdout, "\nExcerpts")
	}
	for _, excerpt := range c.Excerpts {
		if excerpt.Page > 0 {
			fmt.Fprintf(a.Stdout, "  page %d\n", excerpt.Page)
		}
		fmt.Fprintf(a.Stdout, "%s\n", indented(excerpt.Text))
	}
}

// indented sets a stranger's text apart from this program's own lines.
func indented(text string) string {
	return "  | " + strings.ReplaceAll(printable(strings.TrimSpace(text)), "\n", "\n  | ")
}

// joined leaves empty parts out.
func joined(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ", ")
}
