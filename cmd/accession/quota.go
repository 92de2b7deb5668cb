package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newQuotaCommand(app *App) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "quota --org ORG",
		Short: "Show the storage allowance of an organization",
		Args:  positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := conn.needOrg(); err != nil {
				return err
			}
			service, err := conn.open(false)
			if err != nil {
				return err
			}
			var quota *client.Quota
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) error {
				var err error
				quota, err = service.Quota(ctx, conn.org)
				return err
			})
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(quota.Response.Data)
			}
			app.showQuota(quota)
			return nil
		},
	}
	conn.register(app, cmd, true, false)
	cmd.AddCommand(newQuotaSetCommand(app))
	return cmd
}

func (a *App) showQuota(q *client.Quota) {
	a.row("allowance", bytesText(q.AllowanceBytes))
	a.row("used", bytesText(q.UsedBytes))
	a.row("reserved", bytesText(q.ReservedBytes))
	a.row("available", bytesText(q.AvailableBytes))
	a.row("uploads", strconv.FormatInt(q.UploadCount, 10))
}
