package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newRetentionCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retention",
		Short: "Have an organization's uploads withdrawn once they are old (admin)",
		Args:  noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	show := retentionCommand(app, "show [ORG]", "Show how long an organization's uploads stay", "",
		func(ctx context.Context, service *client.Client, org string, _ int, _ string) (*client.Retention, error) {
			return service.Retention(ctx, org)
		})
	set := retentionCommand(app, "set [ORG] DAYS|none", "Set how long an organization's uploads stay, in days; none: without end", "DAYS|none",
		func(ctx context.Context, service *client.Client, org string, days int, key string) (*client.Retention, error) {
			return service.SetRetention(ctx, org, days, key)
		})
	set.Long = `Uploads of any kind and status are withdrawn, for good, once they are that many days old, counted from their creation.
Uploads that are there already count too: those that are older are withdrawn within a minute.`
	cmd.AddCommand(set, show)
	return cmd
}

// retentionCommand makes one request, repeated under the same key where it has to be, and shows the retention of its answer. value is the
// argument after the organization; empty: none.
func retentionCommand(app *App, use, short, value string, act func(ctx context.Context, service *client.Client, org string, days int, key string) (*client.Retention, error)) *cobra.Command {
	var conn connection
	names := []string{"[ORG]"}
	if value != "" {
		names = append(names, value)
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: positional(1, names...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == len(names) {
				conn.org = args[0]
			}
			if err := conn.needOrg(); err != nil {
				return err
			}
			days := 0
			if value != "" && args[len(args)-1] != "none" {
				var err error
				if days, err = strconv.Atoi(args[len(args)-1]); err != nil || days < 1 || days > 36500 {
					return usagef("DAYS has to be a whole number from 1 to 36500, or none")
				}
			}
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			key := client.NewIdempotencyKey()
			var r *client.Retention
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				r, err = act(ctx, service, conn.org, days, key)
				return err
			})
			if exitCode(err) == exitNotFound {
				return &adviceError{err, "check the organization's id; it begins with its first credential"}
			}
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(r.Response.Data)
			}
			app.row("org", r.OrgID)
			if r.RetentionDays == 0 {
				app.row("retention", "none")
			} else {
				app.row("retention", strconv.Itoa(r.RetentionDays)+" days from an upload's creation")
			}
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	return cmd
}
