package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newResumeCommand(app *App) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "resume [ORG] UPLOAD_ID",
		Short: "Let a FAILED upload go on at the gate that failed",
		Long: `Lets a FAILED upload go on once the reason is gone: the gates that passed stay passed, the one that failed
starts anew with a whole deadline.`,
		Args: positional(1, "[ORG]", "UPLOAD_ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			uploadID, err := conn.target(args)
			if err != nil {
				return err
			}
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			key := client.NewIdempotencyKey()
			var resumed *client.Resumed
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				resumed, err = service.ResumeUpload(ctx, conn.org, uploadID, key)
				return err
			})
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(resumed.Response.Data)
			}
			app.row("upload", resumed.UploadID)
			app.row("status", resumed.Status)
			app.row("sequence", strconv.FormatInt(resumed.Sequence, 10))
			app.row("gate", resumed.Gate)
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	return cmd
}
