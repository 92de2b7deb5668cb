package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newReceiptCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "receipt",
		Short: "Show a withdrawal's receipt, and verify a kept one",
		Args:  noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newShowReceiptCommand(app), newVerifyReceiptCommand(app))
	return cmd
}

func newShowReceiptCommand(app *App) *cobra.Command {
	var conn connection
	var file string
	cmd := &cobra.Command{
		Use:   "show [ORG] RECEIPT_ID",
		Short: "Show a receipt and, with -o, keep its signed form",
		Long: `Shows the receipt of a withdrawal and, with -o, writes its signed form to a file that accession receipt verify
checks without the service. The admin token is used where no credential of the organization is given.`,
		Args: positional(1, "[ORG]", "RECEIPT_ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			receiptID, err := conn.target(args)
			if err != nil {
				return err
			}
			service, err := conn.open(true)
			if err != nil {
				return err
			}
			var receipt *client.WithdrawalReceipt
			err = conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
				receipt, err = service.WithdrawalReceipt(ctx, conn.org, receiptID)
				return err
			})
			if err != nil {
				return err
			}
			if file != "" {
				if err := os.WriteFile(file, []byte(receipt.SignedReceipt+"\n"), 0o644); err != nil {
					return usagef("the receipt cannot be kept: %v", err)
				}
				conn.note("kept in %s; keep the keys too, from %s/oauth/jwks", file, conn.server)
			}
			if conn.json {
				return app.printData(receipt.Response.Data)
			}
			app.showReceipt(&receipt.Receipt)
			return nil
		},
	}
	conn.register(app, cmd, true, true)
	cmd.Flags().StringVarP(&file, "output", "o", "", "file for the signed receipt")
	return cmd
}

func newVerifyReceiptCommand(app *App) *cobra.Command {
	var keys, server string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify a signed receipt and show what it certifies",
		Long: `Verifies a signed receipt with the service's public keys, and shows what it certifies. With --keys FILE nothing is
asked of anybody: keep the keys beside the receipt. Exit code 1 where the receipt does not verify.`,
		Example: `  curl -o keys.json https://custody.example/oauth/jwks
  accession receipt verify receipt.jws --keys keys.json`,
		Args: positional(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			signed, err := fileOf(args[0], "receipt", client.MaxReceiptBytes)
			if err != nil {
				return err
			}
			if keys == "" {
				of := connection{app: app, server: server, profileName: app.Getenv(envProfile)}
				if err := of.resolve(func(string) bool { return false }); err != nil {
					return err
				}
				keys = strings.TrimRight(of.server, "/") + "/oauth/jwks"
			}
			keySet, err := keySetOf(cmd.Context(), keys)
			if err != nil {
				return err
			}
			receipt, err := client.VerifyReceipt(string(signed), keySet)
			if err != nil {
				return err
			}
			if asJSON {
				b, err := json.Marshal(receipt)
				if err != nil {
					return err
				}
				return app.printData(b)
			}
			app.row("signature", "verified")
			app.showReceipt(receipt)
			return nil
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&keys, "keys", "", "the service's public keys, a file or a URL; default: --url's")
	cmd.Flags().StringVar(&server, "url", app.Getenv(envServer), "address of the service that the keys are fetched from ($"+envServer+"); default: the profile's, or "+defaultServer)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what is certified as JSON")
	return cmd
}

// keySetOf reads public keys from a file, or from a URL.
func keySetOf(ctx context.Context, from string) ([]byte, error) {
	if !strings.HasPrefix(from, "https://") && !strings.HasPrefix(from, "http://") {
		return fileOf(from, "key set", client.MaxKeySetBytes)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, usagef("--keys is neither a file nor a URL such as https://custody.example/oauth/jwks")
	}
	request.Header.Set("User-Agent", "accession/"+programVersion())
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, &adviceError{fmt.Errorf("the keys cannot be fetched: %w", err), "check --url, or give kept keys with --keys FILE"}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, &adviceError{errors.New("the keys cannot be fetched: " + answer.Status), "check --url, or give kept keys with --keys FILE"}
	}
	return bounded(answer.Body, "key set", client.MaxKeySetBytes)
}

func fileOf(name, what string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, usagef("the %s cannot be read: %v", what, err)
	}
	defer file.Close()
	return bounded(file, what, most)
}

func bounded(r io.Reader, what string, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, usagef("the %s cannot be read: %v", what, err)
	}
	if int64(len(b)) > most {
		return nil, usagef("the %s is larger than %s: this is another file", what, bytesText(most))
	}
	return bytes.TrimSpace(b), nil
}

func (a *App) showReceipt(r *client.Receipt) {
	a.row("receipt", r.WithdrawalReceiptID)
	a.row("issuer", r.Issuer)
	a.row("org", r.OrgID)
	a.row("upload", r.UploadID)
	if r.SHA256 != "" {
		a.row("sha256", r.SHA256)
		a.row("size", bytesText(r.SizeBytes))
	}
	a.row("requested", joined(clock(r.RequestedAt), "by "+r.RequestedBy))
	a.row("reason", r.Reason)
	a.row("withdrawn", clock(r.WithdrawnAt))
	a.row("quota freed", bytesText(r.QuotaBytes))
	for _, d := range r.Deletions {
		a.row("deleted", fmt.Sprintf("%s: %d objects, %s; %s, %s", d.Backend, d.Objects, bytesText(d.Bytes), d.Confirmation, clock(d.ConfirmedAt)))
	}
	a.row("key gone", clock(r.KeyDestroyedAt))
	a.row("key backups", "kept "+r.KeyBackupHorizon)
	for _, c := range r.Recalled {
		a.row("recalled", fmt.Sprintf("%s was served the context %d times, last %s", c.CredentialID, c.Servings, clock(c.LastServedAt)))
	}
	for _, k := range r.Remains {
		until := ""
		if !k.Until.IsZero() {
			until = "until " + clock(k.Until)
		}
		a.row("remains", joined(k.What, until))
	}
}
