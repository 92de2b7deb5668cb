package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newStatusCommand(app *App) *cobra.Command {
	var conn connection
	var follow bool
	cmd := &cobra.Command{
		Use:   "status [ORG] UPLOAD_ID",
		Short: "Show where an upload stands, gate by gate",
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
			if follow {
				return conn.followGates(cmd.Context(), service, uploadID)
			}
			var status *client.UploadStatus
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) error {
				var err error
				status, err = service.UploadStatus(ctx, conn.org, uploadID, client.StatusOptions{})
				return err
			})
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(status.Response.Data)
			}
			app.showStatus(status)
			return nil
		},
	}
	conn.register(app, cmd, true, false)
	cmd.Flags().BoolVar(&follow, "follow", false, "go on until the status is terminal; exit code 6 if a gate rejected or failed")
	return cmd
}

func (a *App) showStatus(status *client.UploadStatus) {
	a.row("upload", status.UploadID)
	a.row("file", status.Filename)
	a.row("status", status.Status+" (sequence "+strconv.FormatInt(status.Sequence, 10)+")")
	a.row("received", bytesText(status.ReceivedBytes)+" of "+bytesText(status.SizeBytes))
	a.row("updated", clock(status.UpdatedAt))
	if status.Status == client.StatusInitiated || status.Status == client.StatusReceiving {
		a.row("next part", strconv.Itoa(status.NextPartNumber))
		a.row("expires", clock(status.ExpiresAt))
	}
	if !status.RetainedUntil.IsZero() {
		a.row("retained", clock(status.RetainedUntil))
	}
	if failure := status.Failure; failure != nil && failure.Gate == "" {
		a.row("failure", fmt.Sprintf("%s (%s)", failure.Message, failure.Code))
	} else if failure != nil {
		a.row("failure", fmt.Sprintf("gate %s: %s (%s)", failure.Gate, failure.Message, failure.Code))
	}
	if w := status.Withdrawal; w != nil {
		a.row("withdrawal", "asked for "+clock(w.RequestedAt))
		if len(w.Unconfirmed) > 0 {
			a.row("unconfirmed", fmt.Sprintf("%s since %s, %d attempts", strings.Join(w.Unconfirmed, " and "), clock(w.UnconfirmedSince), w.Attempts))
		}
	}
	for _, gate := range status.Gates {
		fmt.Fprintln(a.Stdout, a.gateLine(a.StdoutIsTerminal, gate))
	}
}
