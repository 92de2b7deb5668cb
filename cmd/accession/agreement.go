package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

func newAgreementCommand(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "agreement",
		Short: "Print the agreement that upload --accept agrees to",
		Args:  positional(0),
		RunE: func(*cobra.Command, []string) error {
			// Exactly the bytes whose SHA-256 is sent, so that | sha256sum shows it.
			_, err := fmt.Fprint(app.Stdout, client.AgreementText)
			return err
		},
	}
}
