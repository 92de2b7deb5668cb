package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

// maxCanaryText bounds what is searched, in bytes: it is held in memory, a few times over.
const maxCanaryText = 64 << 20

func newCanaryCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "canary",
		Short: "Find the serving that a text came from",
		Args:  noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFindCanaryCommand(app))
	return cmd
}

func newFindCanaryCommand(app *App) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "find TEXT",
		Short: "Find the canaries in a text, and who was served them",
		Long: `Finds every canary in TEXT and shows which serving carried it: to which credential, when, and of which upload,
withdrawn ones too. TEXT is the text itself, @FILE for a file's, or - for standard input. It may be wrapped, quoted,
in capitals or in markup. Exit code 4 where no serving is found: that proves nothing, since a canary is easily cut off.`,
		Example: `  accession canary find @leaked.txt`,
		Args:    positional(0, "TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" && conn.adminTokenFile == "-" {
				return usagef("TEXT and --admin-token-file cannot both be standard input")
			}
			text, err := app.textOf(args[0])
			if err != nil {
				return err
			}
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			canaries := client.Canaries(text)
			if len(canaries) == 0 {
				return &nothingFoundError{"there is no canary in the text"}
			}
			found, err := conn.servings(cmd.Context(), service, canaries)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return &nothingFoundError{fmt.Sprintf("no serving of this service carries what looks like a canary in the text: %s", named(canaries))}
			}
			if unknown := len(canaries) - len(found); unknown > 0 {
				conn.note("no serving carries %d more that look like canaries", unknown)
			}
			if conn.json {
				return app.printServings(found)
			}
			app.showServings(found)
			return nil
		},
	}
	conn.register(app, cmd, false, true)
	_ = cmd.Flags().MarkHidden("org") // it is of the installation
	return cmd
}

// textOf reads TEXT: itself, @FILE, or - for standard input.
func (a *App) textOf(argument string) (string, error) {
	source := a.Stdin
	if name, isFile := strings.CutPrefix(argument, "@"); isFile {
		file, err := os.Open(name)
		if err != nil {
			return "", usagef("the text cannot be read: %v", err)
		}
		defer file.Close()
		source = file
	} else if argument != "-" {
		return argument, nil
	}
	content, err := io.ReadAll(io.LimitReader(source, maxCanaryText+1))
	if err != nil {
		return "", usagef("the text cannot be read: %v", err)
	}
	if len(content) > maxCanaryText {
		return "", usagef("the text is larger than %s: give it in parts", bytesText(maxCanaryText))
	}
	return string(content), nil
}

// servings are the records of those canaries that a serving carried.
func (c *connection) servings(ctx context.Context, service *client.Client, canaries []string) (found []*client.CanaryRecord, err error) {
	for _, canary := range canaries {
		var record *client.CanaryRecord
		err := c.retry(shortAttempts).Do(ctx, func(ctx context.Context) (err error) {
			record, err = service.FindCanary(ctx, canary)
			return err
		})
		var refusal *client.Error
		if errors.As(err, &refusal) && refusal.Code == "canary_not_found" {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, record)
	}
	return found, nil
}

func named(canaries []string) string {
	if len(canaries) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(canaries[:3], ", "), len(canaries)-3)
	}
	return strings.Join(canaries, ", ")
}

func (a *App) printServings(found []*client.CanaryRecord) error {
	list := struct {
		Records []json.RawMessage `json:"records"`
	}{}
	for _, r := range found {
		list.Records = append(list.Records, r.Response.Data)
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return a.printData(b)
}

func (a *App) showServings(found []*client.CanaryRecord) {
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RECORD\tORG\tUPLOAD\tCREDENTIAL\tSERVED AT\tCONTEXT SHA-256")
	for _, r := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(r.RecordID), oneLine(r.OrgID), oneLine(r.UploadID), oneLine(r.CredentialID), clock(r.ServedAt), oneLine(r.ContextSHA256))
	}
	table.Flush()
}
