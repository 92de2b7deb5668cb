package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newStateCommand(app *App) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Show queues, uploads that are stuck, deliveries and the scanner",
		Long: `Shows what the service does and waits for: uploads per queue, uploads whose gate has no answer (held) or had none until
its deadline (FAILED; accession resume lets them go on), webhook deliveries, re-scans and the malware scanner.
Exit code 1 where the scanner is not ok: uploads then wait at the malware_scan gate.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			var state *client.ServiceState
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				state, err = service.State(ctx)
				return err
			})
			if err != nil {
				return err
			}
			if conn.json {
				err = app.printData(state.Response.Data)
			} else {
				err = app.showState(state)
			}
			if err == nil && !state.Scanner.OK {
				return &adviceError{fmt.Errorf("the malware scanner is not ok"), "run accession doctor where the service runs"}
			}
			return err
		},
	}
	conn.register(app, cmd, false, true)
	_ = cmd.Flags().MarkHidden("org") // it is of all
	return cmd
}

func (a *App) showState(s *client.ServiceState) error {
	a.row("version", s.Process.Version+", up "+seconds(time.Duration(s.Process.UptimeSeconds)*time.Second)+", "+strings.Join(s.Process.Roles, " and "))
	for _, q := range s.Queues {
		text := fmt.Sprintf("%d waiting, %d running", q.Waiting, q.Running)
		if q.Waiting > 0 {
			text += ", the oldest due for " + seconds(time.Duration(q.OldestSeconds)*time.Second)
		}
		a.row(q.Lane, text)
	}
	a.row("uploads", fmt.Sprintf("%d held, %d FAILED", s.Uploads.Held, s.Uploads.Failed))
	a.row("webhooks", fmt.Sprintf("%d waiting, %d dead", s.Webhooks.Waiting, s.Webhooks.Dead))
	a.row("re-scans", strconv.Itoa(s.RescansWaiting)+" waiting")
	a.row("scanner", s.Scanner.Sentence)
	if len(s.Uploads.Listed) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nORG\tUPLOAD\tSTATUS\tSINCE\tGATE\tWHY")
	for _, u := range s.Uploads.Listed {
		status := u.Status
		if status == client.StatusProcessing {
			status = "held"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(u.OrgID), oneLine(u.UploadID), oneLine(status), clock(u.Since), oneLine(u.Gate), oneLine(u.Message))
	}
	return table.Flush()
}
