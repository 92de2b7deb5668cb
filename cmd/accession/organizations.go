package main

import (
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newOrganizationsCommand(app *App) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "organizations",
		Short: "List organizations: what each keeps and may keep (admin)",
		Long: `Lists every organization with what it keeps and has reserved, its allowance, its uploads that hold bytes, its retention and
its active credentials. An organization begins with its first credential or webhook.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			for cursor := ""; ; {
				var page *client.OrganizationPage
				err := conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
					page, err = service.ListOrganizations(ctx, cursor)
					return err
				})
				if err != nil {
					return err
				}
				if conn.json {
					err = app.printData(page.Response.Data)
				} else {
					err = app.showOrganizations(page.Organizations, cursor == "")
				}
				if cursor = page.NextCursor; err != nil || cursor == "" {
					return err
				}
			}
		},
	}
	conn.register(app, cmd, false, true)
	_ = cmd.Flags().MarkHidden("org") // they are all listed
	return cmd
}

func (a *App) showOrganizations(organizations []client.Organization, first bool) error {
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	if first {
		fmt.Fprintln(table, "ORG\tUSED\tRESERVED\tALLOWANCE\tUPLOADS\tRETENTION\tCREDENTIALS\tSINCE")
	}
	for _, o := range organizations {
		retention := "none"
		if o.RetentionDays > 0 {
			retention = strconv.Itoa(o.RetentionDays) + " days"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\n", oneLine(o.OrgID), bytesText(o.UsedBytes), bytesText(o.ReservedBytes), bytesText(o.AllowanceBytes),
			o.UploadCount, retention, o.ActiveCredentials, clock(o.CreatedAt))
	}
	return table.Flush()
}
