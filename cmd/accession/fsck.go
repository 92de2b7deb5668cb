package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

// storageCheck is all steps of a check together.
type storageCheck struct {
	Uploads  int                     `json:"uploads"`
	Findings []client.StorageFinding `json:"findings"`
	Omitted  int                     `json:"omitted"`
}

func newFsckCommand(app *App) *cobra.Command {
	var conn connection
	var repair bool
	cmd := &cobra.Command{
		Use:   "fsck [--repair]",
		Short: "Compare rows, objects and keys of a running service",
		Long: `Compares metadata, storage backends and data keys of the whole installation in both directions, while the service runs:

  orphan_objects   no row names them, or their upload is gone   --repair deletes them
  orphan_key       a data key of no upload, or of one that is gone   --repair destroys it
  missing_objects  an upload's bytes are not there or not whole
  missing_copies   likewise its copy in quarantine storage
  missing_key      an upload's data key is not there or does not open

Objects and keys without a row count once they are 2 hours old. What is missing cannot be mended: restore a backup,
or withdraw the upload. After a restore of old metadata look before you repair: newer uploads have no rows.
The exit code is 1 where a problem remains.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			service, err := conn.openAdmin()
			if err != nil {
				return err
			}
			check := storageCheck{Findings: []client.StorageFinding{}}
			for after := ""; ; {
				key := client.NewIdempotencyKey()
				var step *client.StorageReport
				err := conn.retry(shortAttempts).Do(cmd.Context(), func(ctx context.Context) (err error) {
					step, err = service.CheckStorage(ctx, after, repair, key)
					return err
				})
				if err != nil {
					return err
				}
				check.Uploads += step.Uploads
				check.Findings = append(check.Findings, step.Findings...)
				check.Omitted += step.Omitted
				if after = step.NextAfter; after == "" {
					return app.showStorageCheck(check, conn.json)
				}
				conn.note("%d uploads, %d findings", check.Uploads, len(check.Findings)+check.Omitted)
			}
		},
	}
	conn.register(app, cmd, false, true)
	_ = cmd.Flags().MarkHidden("org") // it is of the installation
	cmd.Flags().BoolVar(&repair, "repair", false, "delete orphans")
	return cmd
}

func (a *App) showStorageCheck(check storageCheck, asJSON bool) error {
	remain := check.Omitted
	for _, f := range check.Findings {
		if !f.Repaired {
			remain++
		}
	}
	if asJSON {
		b, err := json.Marshal(check)
		if err == nil {
			err = a.printData(b)
		}
		if err != nil {
			return err
		}
	} else {
		table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
		if len(check.Findings) > 0 {
			fmt.Fprintln(table, "PROBLEM\tUPLOAD\tORGANIZATION\tSTATUS\tBACKEND\tOBJECTS\tREPAIRED")
		}
		for _, f := range check.Findings {
			repaired := "no"
			if f.Repaired {
				repaired = "yes"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", f.Problem, f.UploadID, f.OrgID, f.Status, f.Backend, f.Objects, repaired)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "%d uploads, %d problems, %d remain\n", check.Uploads, len(check.Findings)+check.Omitted, remain)
	}
	if remain > 0 {
		return fmt.Errorf("%d problems remain; see accession fsck --help", remain)
	}
	return nil
}
