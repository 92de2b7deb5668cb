package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newKeysCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Rotate the key-encryption key of the installation",
		Args:  noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRotateKeysCommand(app))
	return cmd
}

func newRotateKeysCommand(app *App) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Make a new key-encryption key and wrap every key anew; documents are not touched",
		Long: `Has the running service make a new key-encryption key in its key file and wrap every data key and signing secret anew. The old
one is removed from the file once nothing is wrapped by it. Copy the key file away again afterwards: it alone opens the key
store now. With a key service, keys are wrapped anew under the current version of its key.
Interrupted at any point everything can still be read; repeat it to finish.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			key := client.NewIdempotencyKey()
			var r *client.KeyRotation
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				r, err = service.RotateKeys(ctx, key)
				return err
			})
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(r.Response.Data)
			}
			app.row("rewrapped", strconv.Itoa(r.Rewrapped)+" keys")
			app.row("retired", strconv.Itoa(r.Retired)+" key-encryption keys")
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	_ = cmd.Flags().MarkHidden("org") // it is of the installation
	return cmd
}
