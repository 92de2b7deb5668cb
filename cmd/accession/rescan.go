package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

// Between two looks at the re-scans lies a time that grows from the first to the last.
const (
	firstRescanLook = 100 * time.Millisecond
	lastRescanLook  = 2 * time.Second
)

func newRescanCommand(app *App) *cobra.Command {
	var conn connection
	var uploadID string
	var wait bool
	cmd := &cobra.Command{
		Use:   "rescan [--org ORG] [--upload ID]",
		Short: "Scan stored uploads again with the newest malware signatures",
		Long: `Has every READY upload scanned again, those of one organization, or one. Signatures that changed are loaded first.
What is found is REJECTED and its context withdrawn; without an answer of the scanner an upload stays READY and
the re-scan is tried again. New signatures also start a re-scan by themselves.
With --wait the exit code is 6 where something was refused.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			scope := client.RescanScope{OrgID: conn.org, UploadID: uploadID}
			key := client.NewIdempotencyKey()
			var queued *client.QueuedRescans
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				queued, err = service.QueueRescans(ctx, scope, key)
				return err
			})
			if err != nil {
				return err
			}
			if queued.Queued+queued.Waiting == 0 && scope != (client.RescanScope{}) {
				conn.note("no READY upload fits: check --org and --upload")
			}
			if wait {
				conn.note("%d uploads queued", queued.Queued)
				return conn.followRescans(cmd.Context(), service, scope, queued.RequestedAt)
			}
			if conn.json {
				return app.printData(queued.Response.Data)
			}
			app.row("queued", strconv.Itoa(queued.Queued))
			app.row("waiting", strconv.Itoa(queued.Waiting))
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	cmd.Flags().StringVar(&uploadID, "upload", "", "this upload alone")
	cmd.Flags().BoolVar(&wait, "wait", false, "go on until none waits, then print what was found")
	return cmd
}

// followRescans tells what changes until nothing waits any more.
func (c *connection) followRescans(ctx context.Context, service *client.Client, scope client.RescanScope, since time.Time) error {
	var last client.RescanState
	for look := firstRescanLook; ; look = min(2*look, lastRescanLook) {
		var state *client.RescanState
		err := c.retry(0).Do(ctx, func(ctx context.Context) (err error) {
			state, err = service.Rescans(ctx, scope, since)
			return err
		})
		if err != nil {
			return err
		}
		if state.Waiting == 0 {
			return c.showRescans(state)
		}
		if state.Waiting != last.Waiting || state.Unanswered != last.Unanswered {
			c.note("%d waiting, %d of them unanswered; %d clean, %d found, %d unreadable", state.Waiting, state.Unanswered, state.Clean, state.Found, state.Unreadable)
		}
		last = *state
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *connection) showRescans(state *client.RescanState) error {
	if c.json {
		if err := c.app.printData(state.Response.Data); err != nil {
			return err
		}
	} else {
		for _, count := range []struct {
			name string
			n    int
		}{{"clean", state.Clean}, {"found", state.Found}, {"unreadable", state.Unreadable}, {"unanswered", state.Unanswered}} {
			c.app.row(count.name, strconv.Itoa(count.n))
		}
	}
	if refused := state.Found + state.Unreadable; refused > 0 {
		return &refusedError{fmt.Sprintf("%d stored uploads were refused", refused)}
	}
	return nil
}
