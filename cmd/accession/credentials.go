package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newCredentialsCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "credentials",
		Short: "Issue, list, rotate and revoke credentials (admin)",
		Args:  noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newIssueCommand(app), newListCredentialsCommand(app), newRotateCommand(app), newRevokeCommand(app), newSigningKeysCommand(app))
	return cmd
}

func newIssueCommand(app *App) *cobra.Command {
	var conn connection
	var role, expires string
	var scope []string
	cmd := &cobra.Command{
		Use:   "issue --org ORG --role ROLE",
		Short: "Issue a credential; its token is printed this once",
		Long: `Issues a credential for one organization and one role. The token goes to standard output, this once; all
else to standard error, so that the token can be written to a file.`,
		Example: `  (umask 077; accession credentials issue --org harbour --role ai_reader > reader.token)`,
		Args:    positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := conn.needOrg(); err != nil {
				return err
			}
			if role != client.RoleUpload && role != client.RoleAIReader {
				return usagef("--role has to be %s or %s", client.RoleUpload, client.RoleAIReader)
			}
			request := client.IssueRequest{
				OrgID: conn.org, Role: role, Scope: strings.Join(scope, " "), IdempotencyKey: client.NewIdempotencyKey(),
			}
			var err error
			if request.ExpiresAt, err = expiry(expires); err != nil {
				return err
			}
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			var credential *client.Credential
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) error {
				var err error
				credential, err = service.IssueCredential(ctx, request)
				return err
			})
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(credential.Response.Data)
			}
			conn.note("%s, scope %s, expires %s", credential, credential.Scope, clock(credential.ExpiresAt))
			conn.note("the token is shown this once:")
			_, err = fmt.Fprintln(app.Stdout, credential.Token)
			return err
		},
	}
	conn.register(app, cmd, false, true)
	cmd.Flags().StringVar(&role, "role", "", client.RoleUpload+" or "+client.RoleAIReader)
	cmd.Flags().StringSliceVar(&scope, "scope", nil, "narrow the role's scopes, comma-separated")
	cmd.Flags().StringVar(&expires, "expires-at", "", "RFC 3339 date-time; default: set by the service")
	return cmd
}

// expiry reads --expires-at; empty leaves the end to the service.
func expiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usagef("--expires-at %q is no date-time: write it like 2027-05-01T00:00:00Z", text)
	}
	return at, nil
}
