package main

import (
	"context"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newWithdrawCommand(app *App) *cobra.Command {
	var conn connection
	var reason string
	cmd := &cobra.Command{
		Use:   "withdraw [ORG] UPLOAD_ID",
		Short: "Delete an upload, its copies and its context for good",
		Long: `Deletes an upload, its copies and its context for good; a receipt remains. The admin token is used
where no credential of the organization is given.`,
		Args: positional(1, "[ORG]", "UPLOAD_ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			uploadID, err := conn.target(args)
			if err != nil {
				return err
			}
			if n := utf8.RuneCountInString(reason); n > 500 {
				return usagef("--reason has %d characters: 500 at most", n)
			}
			service, err := conn.open(true)
			if err != nil {
				return err
			}
			request := client.WithdrawRequest{Reason: reason, IdempotencyKey: client.NewIdempotencyKey()}
			var withdrawal *client.Withdrawal
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) error {
				var err error
				withdrawal, err = service.WithdrawUpload(ctx, conn.org, uploadID, request)
				return err
			})
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(withdrawal.Response.Data)
			}
			app.row("upload", withdrawal.UploadID)
			app.row("status", withdrawal.Status)
			app.row("receipt", withdrawal.WithdrawalReceiptID)
			app.row("quota freed", bytesText(withdrawal.QuotaBytes))
			return nil
		},
	}
	conn.register(app, cmd, true, true)
	cmd.Flags().StringVar(&reason, "reason", "", "why, at most 500 characters; kept with the receipt")
	return cmd
}
