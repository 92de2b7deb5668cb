package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newWebhooksCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "Set, test, list, replay, rotate and delete an organization's webhook (admin)",
		Long: `An organization's events are posted to its webhook: signed (Standard Webhooks 1.0), in order per upload, at least once.
All of it needs the admin token.`,
		Args: noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWebhookSetCommand(app), newWebhookTestCommand(app), newWebhookListCommand(app), newWebhookReplayCommand(app),
		newWebhookRotateCommand(app), newWebhookDeleteCommand(app))
	return cmd
}

// webhookCommand makes one request, repeated under the same key where it has to be, and shows its answer.
func webhookCommand[T any](app *App, cmd *cobra.Command, names []string, act func(ctx context.Context, service *client.Client, org string, args []string, key string) (T, error), show func(conn *connection, answer T) error) *cobra.Command {
	var conn connection
	cmd.Args = positional(0, names...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := conn.needOrg(); err != nil {
			return err
		}
		service, err := conn.openAdmin()
		if err != nil {
			return err
		}
		key := client.NewIdempotencyKey()
		var answer T
		err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
			answer, err = act(ctx, service, conn.org, args, key)
			return err
		})
		if exitCode(err) == exitNotFound {
			return &adviceError{err, "set one: accession webhooks set --org ORG URL"}
		}
		if err != nil {
			return err
		}
		return show(&conn, answer)
	}
	conn.register(app, cmd, false, true)
	return cmd
}

func newWebhookSetCommand(app *App) *cobra.Command {
	return webhookCommand(app, &cobra.Command{
		Use: "set --org ORG URL", Short: "Post the organization's events to URL, from now on",
		Long: `Posts the organization's events to URL, from now on. A new webhook gets a secret, which is printed this once: give it to
whoever runs the receiver, over a secure channel. An existing webhook gets the address, keeps its secret, and is
active again where the receiver had answered 410.`,
	}, []string{"URL"}, func(ctx context.Context, service *client.Client, org string, args []string, key string) (*client.Webhook, error) {
		return service.SetWebhook(ctx, org, args[0], key)
	}, showWebhook)
}

func newWebhookRotateCommand(app *App) *cobra.Command {
	overlap := 24 * time.Hour
	cmd := webhookCommand(app, &cobra.Command{
		Use: "rotate --org ORG", Short: "Replace the secret; deliveries carry two signatures until the overlap ends",
	}, nil, func(ctx context.Context, service *client.Client, org string, _ []string, key string) (*client.Webhook, error) {
		if overlap < 0 {
			return nil, usagef("--overlap must not be negative")
		}
		return service.RotateWebhookSecret(ctx, org, overlap, key)
	}, showWebhook)
	cmd.Flags().DurationVar(&overlap, "overlap", overlap, "for how long deliveries are signed with the secret before it too")
	return cmd
}

func showWebhook(conn *connection, w *client.Webhook) error {
	app := conn.app
	if conn.json {
		return app.printData(w.Response.Data)
	}
	app.row("org", w.OrgID)
	app.row("url", w.URL)
	app.row("state", w.State)
	app.row("two until", clock(w.OverlapUntil))
	app.row("secret", w.Secret)
	if w.Secret != "" {
		conn.note("the secret is shown this once")
	}
	return nil
}

func newWebhookTestCommand(app *App) *cobra.Command {
	return webhookCommand(app, &cobra.Command{
		Use: "test --org ORG", Short: "Post a signed test event, and say what became of it",
		Long: "Posts a signed test event at once and once, and says what became of it. Exit code 1 where the receiver did not accept it.",
	}, nil, func(ctx context.Context, service *client.Client, org string, _ []string, key string) (*client.WebhookTest, error) {
		return service.TestWebhook(ctx, org, key)
	}, func(conn *connection, t *client.WebhookTest) error {
		if conn.json {
			if err := app.printData(t.Response.Data); err != nil {
				return err
			}
		} else {
			app.row("event", t.EventID)
			app.row("outcome", attemptText(t.DeliveryAttempt))
		}
		if t.Outcome != "accepted" && t.Outcome != "duplicate" {
			return &deliveryError{"the receiver did not accept the test event: " + t.Outcome}
		}
		return nil
	})
}

// deliveryError is a webhook that does not take what is posted to it.
type deliveryError struct{ text string }

func (e *deliveryError) Error() string { return e.text }

func newWebhookDeleteCommand(app *App) *cobra.Command {
	return webhookCommand(app, &cobra.Command{
		Use: "delete --org ORG", Short: "Delete the webhook, its secrets and what it has not delivered",
	}, nil, func(ctx context.Context, service *client.Client, org string, _ []string, key string) (*client.DeletedWebhook, error) {
		return service.DeleteWebhook(ctx, org, key)
	}, func(conn *connection, d *client.DeletedWebhook) error {
		if conn.json {
			return app.printData(d.Response.Data)
		}
		app.row("deleted", d.OrgID)
		app.row("discarded", strconv.FormatInt(d.Discarded, 10))
		return nil
	})
}

func newWebhookReplayCommand(app *App) *cobra.Command {
	var replay client.WebhookReplay
	cmd := webhookCommand(app, &cobra.Command{
		Use: "replay --org ORG [--upload ID | --event ID]", Short: "Deliver dead events again, or those of an upload",
		Long: `Delivers every dead event of the organization again; with --upload every event of that upload, also those from before
the webhook was set; with --event that one. The receiver sees the same event ids.`,
	}, nil, func(ctx context.Context, service *client.Client, org string, _ []string, key string) (*client.ReplayedDeliveries, error) {
		if replay.UploadID != "" && replay.EventID != "" {
			return nil, usagef("give --upload or --event, not both")
		}
		return service.ReplayWebhook(ctx, org, replay, key)
	}, func(conn *connection, r *client.ReplayedDeliveries) error {
		if conn.json {
			return app.printData(r.Response.Data)
		}
		app.row("queued", strconv.FormatInt(r.Queued, 10))
		return nil
	})
	cmd.Flags().StringVar(&replay.UploadID, "upload", "", "every event of this upload")
	cmd.Flags().StringVar(&replay.EventID, "event", "", "this event alone")
	return cmd
}

func newWebhookListCommand(app *App) *cobra.Command {
	var conn connection
	var q client.DeliveryQuery
	var log bool
	cmd := &cobra.Command{
		Use: "list [--org ORG] [--log] [--state STATE] [--upload ID]", Short: "List webhooks, or the delivery log of one",
		Long: `Lists webhooks with what waits and what is dead. With --log, --state or --upload: the delivery log of the organization,
newest event first, with status and latency of each attempt.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			if log || q.State != "" || q.UploadID != "" {
				return conn.showDeliveries(cmd.Context(), service, q)
			}
			return conn.showWebhooks(cmd.Context(), service)
		},
	}
	conn.register(app, cmd, false, true)
	cmd.Flags().BoolVar(&log, "log", false, "the delivery log")
	cmd.Flags().StringVar(&q.State, "state", "", "of the log: pending, delivered or dead")
	cmd.Flags().StringVar(&q.UploadID, "upload", "", "of the log: this upload alone")
	cmd.Flags().IntVar(&q.Limit, "limit", 20, "of the log: lines, 1 to 100")
	return cmd
}

func (c *connection) showWebhooks(ctx context.Context, service *client.Client) error {
	for cursor := ""; ; {
		var page *client.WebhookList
		err := c.retry(shortAttempts).Do(ctx, func(ctx context.Context) (err error) {
			page, err = service.ListWebhooks(ctx, c.org, cursor)
			return err
		})
		if err != nil {
			return err
		}
		if c.json {
			if err := c.app.printData(page.Response.Data); err != nil {
				return err
			}
		} else {
			for _, w := range page.Webhooks {
				state := w.State
				if !w.PausedUntil.IsZero() {
					state = "paused until " + clock(w.PausedUntil)
				}
				fmt.Fprintf(c.app.Stdout, "%s  %s  %s  %d pending, %d dead\n", oneLine(w.OrgID), oneLine(w.URL), oneLine(state), w.Pending, w.Dead)
			}
		}
		if len(page.Webhooks) == 0 && cursor == "" {
			c.note("no webhook is set")
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}

func (c *connection) showDeliveries(ctx context.Context, service *client.Client, q client.DeliveryQuery) error {
	if err := c.needOrg(); err != nil {
		return err
	}
	var page *client.DeliveryList
	err := c.retry(shortAttempts).Do(ctx, func(ctx context.Context) (err error) {
		page, err = service.ListDeliveries(ctx, c.org, q)
		return err
	})
	if err != nil {
		return err
	}
	if c.json {
		return c.app.printData(page.Response.Data)
	}
	for _, d := range page.Deliveries {
		fmt.Fprintf(c.app.Stdout, "%s  %-9s  %s  %d  %s  %s\n", oneLine(d.EventID), oneLine(d.State), oneLine(d.UploadID), d.Sequence, oneLine(d.Status), oneLine(d.Event))
		for _, a := range d.Attempts {
			fmt.Fprintf(c.app.Stdout, "  %s  %s\n", clock(a.At), attemptText(a))
		}
	}
	if page.NextCursor != "" {
		c.note("there are more; ask for them by --state, --upload or --limit")
	}
	return nil
}

func attemptText(a client.DeliveryAttempt) string {
	text := oneLine(a.Outcome)
	if a.Status != 0 {
		text += " " + strconv.Itoa(a.Status)
	}
	return text + fmt.Sprintf(", %d ms", a.LatencyMS)
}
