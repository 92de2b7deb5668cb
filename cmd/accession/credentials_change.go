package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newListCredentialsCommand(app *App) *cobra.Command {
	var conn connection
	var all bool
	cmd := &cobra.Command{
		Use:   "list [--org ORG]",
		Short: "List credentials, newest first; never a token",
		Long:  "Lists the active credentials of one organization, or of every one where none is given.",
		Args:  positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			query := client.CredentialQuery{OrgID: conn.org, Ended: all, Limit: 100}
			for {
				var page *client.CredentialPage
				err := conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
					page, err = service.ListCredentials(ctx, query)
					return err
				})
				if err != nil {
					return err
				}
				if conn.json {
					err = app.printData(page.Response.Data)
				} else {
					app.showCredentials(page.Credentials)
				}
				if len(page.Credentials) == 0 && query.Cursor == "" {
					conn.note("no credential fits")
				}
				if query.Cursor = page.NextCursor; err != nil || query.Cursor == "" {
					return err
				}
			}
		},
	}
	conn.register(app, cmd, false, true)
	cmd.Flags().BoolVar(&all, "all", false, "revoked and expired ones too")
	return cmd
}

func (a *App) showCredentials(credentials []client.CredentialState) {
	for _, c := range credentials {
		end := "until " + clock(c.ExpiresAt)
		switch c.State {
		case client.CredentialRevoked:
			end = "since " + clock(c.RevokedAt)
		case client.CredentialExpired:
			end = "since " + clock(c.ExpiresAt)
		}
		fmt.Fprintf(a.Stdout, "%s  %-7s %s  %-23s %s  %s\n", oneLine(c.CredentialID), oneLine(c.State), end, oneLine(c.Role), oneLine(c.OrgID), oneLine(c.Scope))
	}
}

func newRevokeCommand(app *App) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "revoke CREDENTIAL_ID",
		Short: "End a credential for good, and every access token made from it",
		Args:  positional(0, "CREDENTIAL_ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			key := client.NewIdempotencyKey()
			var state *client.CredentialState
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				state, err = service.RevokeCredential(ctx, args[0], key)
				return err
			})
			if err != nil {
				return credentialAdvice(err)
			}
			if conn.json {
				return app.printData(state.Response.Data)
			}
			app.showCredentials([]client.CredentialState{*state})
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	_ = cmd.Flags().MarkHidden("org") // the credential has one
	return cmd
}

func newRotateCommand(app *App) *cobra.Command {
	var conn connection
	var overlap time.Duration
	var expires string
	cmd := &cobra.Command{
		Use:   "rotate CREDENTIAL_ID",
		Short: "Issue a credential's successor; its token is printed this once",
		Long: `Issues a successor with the same organization, role and scopes. The old credential is accepted until the
overlap ends, so that whoever uses it can change over; revoke it sooner once nobody does.
The token goes to standard output, this once; all else to standard error.`,
		Example: `  (umask 077; accession credentials rotate cred_06gz --overlap 1h > reader.token)`,
		Args:    positional(0, "CREDENTIAL_ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := client.RotateRequest{IdempotencyKey: client.NewIdempotencyKey()}
			if cmd.Flags().Changed("overlap") {
				request.Overlap = &overlap
			}
			var err error
			if request.ExpiresAt, err = expiry(expires); err != nil {
				return err
			}
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			var rotated *client.RotatedCredential
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				rotated, err = service.RotateCredential(ctx, args[0], request)
				return err
			})
			if err != nil {
				return credentialAdvice(err)
			}
			if conn.json {
				return app.printData(rotated.Response.Data)
			}
			conn.note("%s, scope %s, expires %s", rotated.Credential, rotated.Scope, clock(rotated.ExpiresAt))
			conn.note("it replaces %s, which is accepted until %s", rotated.Replaces.CredentialID, clock(rotated.Replaces.ExpiresAt))
			conn.note("the token is shown this once:")
			_, err = fmt.Fprintln(app.Stdout, rotated.Token)
			return err
		},
	}
	conn.register(app, cmd, false, true)
	_ = cmd.Flags().MarkHidden("org") // the credential has one
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "for how long the old credential goes on being accepted, up to 720h; 0 ends it at once")
	cmd.Flags().StringVar(&expires, "expires-at", "", "RFC 3339 date-time of the successor's end; default: set by the service")
	return cmd
}

// credentialAdvice adds the next step where the general one would speak of uploads.
func credentialAdvice(err error) error {
	if exitCode(err) == exitNotFound {
		return &adviceError{err, "check the credential id: accession credentials list --all"}
	}
	return err
}
