package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/accession/accession/internal/extract"
)

// newWorkerCommand is the caged process that reads untrusted bytes; the service starts it, people do not.
func newWorkerCommand(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "worker NAME", Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(1),
		Run: func(_ *cobra.Command, args []string) {
			os.Exit(extract.Worker(args[0], args[1:], app.Stdin, app.Stdout))
		},
	}
}
