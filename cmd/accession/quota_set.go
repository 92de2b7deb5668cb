package main

import (
	"context"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

// maxAllowance is the largest that the service takes, in bytes.
const maxAllowance = 1<<53 - 1

func newQuotaSetCommand(app *App) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "set [ORG] BYTES|default",
		Short: "Set how much an organization may keep (admin)",
		Long: `Sets how much an organization may keep, from the next upload on: BYTES is a number, with a unit if you like (500MB, 20GiB);
default is what a new organization gets. Less than what it keeps deletes nothing: nothing more is accepted until
there is room.`,
		Example: `  accession quota set harbour 20GiB`,
		Args:    positional(1, "[ORG]", "BYTES|default"),
		RunE: func(cmd *cobra.Command, args []string) error {
			allowance, err := conn.target(args)
			if err != nil {
				return err
			}
			bytes := int64(client.DefaultAllowance)
			if allowance != "default" {
				n, err := humanize.ParseBytes(allowance)
				if err != nil || n > maxAllowance {
					return usagef("BYTES has to be a whole number of bytes up to %d, which may have a unit as in 500MB or 20GiB; or default", int64(maxAllowance))
				}
				bytes = int64(n)
			}
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			key := client.NewIdempotencyKey()
			var a *client.Allowance
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				a, err = service.SetAllowance(ctx, conn.org, bytes, key)
				return err
			})
			if exitCode(err) == exitNotFound {
				return &adviceError{err, "check the organization's id with accession organizations; it begins with its first credential"}
			}
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(a.Response.Data)
			}
			app.row("org", a.OrgID)
			app.showQuota(&a.Quota)
			if a.UsedBytes+a.ReservedBytes > a.AllowanceBytes {
				conn.note("it keeps more than that: nothing is deleted, and nothing more is accepted until there is room")
			}
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	return cmd
}
