package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newSigningKeysCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "signing-keys",
		Short: "List, rotate and retire the keys that credentials, access tokens and receipts are signed with",
		Args:  noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := signingKeyCommand(app, "list", "List signing keys; never the keys themselves", nil, nil,
		func(ctx context.Context, service *client.Client, _, _ string) (*client.SigningKeyList, error) {
			return service.ListSigningKeys(ctx)
		})
	rotate := signingKeyCommand(app, "rotate PURPOSE", "Add a key: "+client.PurposeCredential+", "+client.PurposeOAuth+" or "+client.PurposeReceipt, []string{"PURPOSE"},
		func(purpose string) error {
			if purpose != client.PurposeCredential && purpose != client.PurposeOAuth && purpose != client.PurposeReceipt {
				return usagef("PURPOSE has to be %s, %s or %s", client.PurposeCredential, client.PurposeOAuth, client.PurposeReceipt)
			}
			return nil
		},
		func(ctx context.Context, service *client.Client, purpose, key string) (*client.SigningKeyList, error) {
			return listOf(service.RotateSigningKey(ctx, purpose, key))
		})
	rotate.Long = `Adds a key, without a restart: every replica learns of it, and two minutes later it signs. The key before it
verifies until it is retired; one of withdrawal receipts verifies for ever.`
	var force bool
	retire := signingKeyCommand(app, "retire KEY_ID", "Destroy a key: what it signed is refused from then on", []string{"KEY_ID"}, nil,
		func(ctx context.Context, service *client.Client, keyID, key string) (*client.SigningKeyList, error) {
			return listOf(service.RetireSigningKey(ctx, keyID, force, key))
		})
	retire.Flags().BoolVar(&force, "force", false, "even though active credentials or access tokens die with it")
	cmd.AddCommand(list, rotate, retire)
	return cmd
}

// signingKeyCommand makes one request, repeated under the same key where it has to be, and shows the signing keys of its answer.
func signingKeyCommand(app *App, use, short string, names []string, check func(string) error, act func(ctx context.Context, service *client.Client, argument, key string) (*client.SigningKeyList, error)) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use: use, Short: short, Args: positional(0, names...),
		RunE: func(cmd *cobra.Command, args []string) error {
			argument := ""
			if len(args) > 0 {
				argument = args[0]
			}
			if check != nil {
				if err := check(argument); err != nil {
					return err
				}
			}
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			key := client.NewIdempotencyKey()
			var keys *client.SigningKeyList
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				keys, err = act(ctx, service, argument, key)
				return err
			})
			if exitCode(err) == exitNotFound {
				return &adviceError{err, "check the key id: accession credentials signing-keys list"}
			}
			if err != nil {
				return err
			}
			if conn.json {
				return app.printData(keys.Response.Data)
			}
			for _, k := range keys.SigningKeys {
				fmt.Fprintf(app.Stdout, "%s  %-10s  %-9s  %s\n", oneLine(k.KeyID), oneLine(k.Purpose), oneLine(k.State), whenOf(k))
			}
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	_ = cmd.Flags().MarkHidden("org") // it is of the installation
	return cmd
}

func listOf(key *client.SigningKey, err error) (*client.SigningKeyList, error) {
	if err != nil {
		return nil, err
	}
	return &client.SigningKeyList{SigningKeys: []client.SigningKey{*key}, Response: key.Response}, nil
}

func whenOf(k client.SigningKey) string {
	if !k.RetiredAt.IsZero() {
		return "retired " + clock(k.RetiredAt)
	}
	return "signs from " + clock(k.SignsFrom)
}
