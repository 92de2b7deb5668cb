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
			app.row("allowance", bytesText(quota.AllowanceBytes))
			app.row("used", bytesText(quota.UsedBytes))
			app.row("reserved", bytesText(quota.ReservedBytes))
			app.row("available", bytesText(quota.AvailableBytes))
			app.row("uploads", strconv.FormatInt(quota.UploadCount, 10))
			return nil
		},
	}
	conn.register(app, cmd, true, false)
	return cmd
}
