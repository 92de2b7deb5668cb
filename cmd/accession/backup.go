package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/internal/backup"
	"github.com/accession/accession/internal/blobstore"
)

// defaultKeyBackupHorizon is how long a copy of the key store may be used: as long as it lives, withdrawn documents can come back.
const defaultKeyBackupHorizon = "720h"

func newBackupCommand(app *App) *cobra.Command {
	var data, blobs, out string
	cmd := &cobra.Command{
		Use:   "backup --data DIR --out NEW-DIR",
		Short: "Copy metadata and sealed objects of an installation, beside the running service",
		Long: `Copies the metadata at one moment and the sealed objects that it names into a new folder, which gets its name once it is
whole. The service may be running; nothing is locked or changed. Keys are not in it: see accession backup keys.
What was withdrawn while the backup ran is left out and listed. The exit code is 1 where the storage lacks an object that
the metadata names; the backup is kept, and lists it.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" || out == "" {
				return usagef("write accession backup --data DIR --out NEW-DIR")
			}
			if blobs == "" {
				blobs = filepath.Join(data, "blobs")
			}
			if blobstore.IsS3(blobs) {
				return usagef("the objects lie in S3, which this command does not copy: keep the quarantine storage or a mirror in another service, and back up the metadata with SQLite's own means; see docs/operations.md")
			}
			s, err := backup.Take(cmd.Context(), backup.Source{
				Metadata: filepath.Join(data, "metadata.db"), Blobs: blobs, SealedSize: blobstore.SealedSize,
			}, out)
			if err != nil {
				return err
			}
			app.showBackup(out, s)
			if len(s.Missing) > 0 {
				return fmt.Errorf("%d objects that the metadata names are not in the storage; backup.json lists them as missing", len(s.Missing))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", app.Getenv(environment("data")), "data folder of the installation ("+environment("data")+")")
	cmd.Flags().StringVar(&blobs, "blobs", app.Getenv(environment("blobs")), "staging storage; default: a folder in the data folder ("+environment("blobs")+")")
	cmd.Flags().StringVar(&out, "out", "", "folder to make")
	cmd.AddCommand(newBackupKeysCommand(app))
	return cmd
}

func newBackupKeysCommand(app *App) *cobra.Command {
	var data, out string
	var horizonText string
	cmd := &cobra.Command{
		Use:   "keys --data DIR --out NEW-FILE",
		Short: "Copy the key store, its keys still wrapped",
		Long: `Copies the key store at one moment into a new file, beside the running service. The keys in it stay wrapped: keep the
key-encryption key elsewhere. As long as such a copy and its key-encryption key exist, what was withdrawn after it can be
brought back. So it has a horizon, after which accession restore keys refuses it: delete every copy by then.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" || out == "" {
				return usagef("write accession backup keys --data DIR --out NEW-FILE")
			}
			horizon, err := time.ParseDuration(horizonText)
			if err != nil || horizon <= 0 {
				return usagef("--key-backup-horizon must be longer than 0, such as 168h; 0 means that there are no such copies")
			}
			until, err := backup.TakeKeys(cmd.Context(), filepath.Join(data, "keys.db"), out, horizon)
			if err != nil {
				return err
			}
			app.row("file", out)
			app.row("horizon", until.Format(time.RFC3339)+" (delete every copy by then)")
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", app.Getenv(environment("data")), "data folder of the installation ("+environment("data")+")")
	cmd.Flags().StringVar(&out, "out", "", "file to make")
	const name = "key-backup-horizon"
	cmd.Flags().StringVar(&horizonText, name, app.env(environment(name), defaultKeyBackupHorizon), "how long the copy may be used, as withdrawal receipts state it ("+environment(name)+")")
	return cmd
}

func newRestoreCommand(app *App) *cobra.Command {
	var data, from string
	cmd := &cobra.Command{
		Use:   "restore --from DIR --data NEW-DIR",
		Short: "Make a data folder from a backup",
		Long: `Makes the metadata, blobs and quarantine of a data folder from a backup. Every file is compared with its digest, and the
folder gets its name once all are right. A folder that holds anything is refused.
Then bring the key store and the key-encryption key. The ones of now: what was withdrawn stays gone.
Credentials are as they were when the backup was made: one that was revoked since is accepted again until it is revoked again.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" || from == "" {
				return usagef("write accession restore --from DIR --data NEW-DIR")
			}
			s, err := backup.Restore(cmd.Context(), from, data)
			if err != nil {
				return err
			}
			app.showBackup(data, s)
			app.row("next", "accession restore keys, and put the key-encryption key in its place")
			app.row("then", "revoke again what was revoked since it was made: those credentials are accepted again")
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", app.Getenv(environment("data")), "data folder to make ("+environment("data")+")")
	cmd.Flags().StringVar(&from, "from", "", "folder that accession backup made")
	cmd.AddCommand(newRestoreKeysCommand(app))
	return cmd
}

func newRestoreKeysCommand(app *App) *cobra.Command {
	var data, from string
	var past bool
	cmd := &cobra.Command{
		Use:   "keys --from FILE --data DIR",
		Short: "Put a copy of the key store into a data folder that has none",
		Long: `Puts a copy of the key store into a data folder that has none; one that is there is never replaced.
Everything that was withdrawn after the copy was made can be read again. A copy past its horizon is refused.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" || from == "" {
				return usagef("write accession restore keys --from FILE --data DIR")
			}
			until, err := backup.RestoreKeys(cmd.Context(), from, data, past)
			if err != nil {
				return err
			}
			app.row("key store", filepath.Join(data, "keys.db"))
			app.row("horizon", until.Format(time.RFC3339))
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", app.Getenv(environment("data")), "data folder ("+environment("data")+")")
	cmd.Flags().StringVar(&from, "from", "", "file that accession backup keys made")
	cmd.Flags().BoolVar(&past, "past-horizon", false, "even though it is past its horizon")
	return cmd
}

func (a *App) showBackup(folder string, s backup.Summary) {
	a.row("folder", folder)
	a.row("made at", s.MadeAt.Format(time.RFC3339))
	a.row("objects", strconv.Itoa(s.Objects)+", "+bytesText(s.Bytes))
	if n := len(s.LeftOut); n > 0 {
		a.row("left out", strconv.Itoa(n)+" objects that were deleted meanwhile")
	}
}
