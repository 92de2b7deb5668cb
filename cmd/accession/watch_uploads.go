package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

// maxWatched bounds the requests that wait at the service at a time.
const maxWatched = 50

func newWatchCommand(app *App) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "watch [UPLOAD_ID...]",
		Short: "Follow uploads live until all of them have ended",
		Long: `Follows uploads as their gates pass, until every one is READY or has ended otherwise. Without an id it follows
those that this computer has begun and not finished. With --json each change is one line: the upload's data object.
Exit code 0 where all are READY, 6 where a gate rejected or failed.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := conn.needOrg(); err != nil {
				return err
			}
			ids := slices.Compact(slices.Sorted(slices.Values(args)))
			if len(args) == 0 {
				if ids = conn.begun(); len(ids) == 0 {
					return &adviceError{&nothingFoundError{"this computer has no unfinished upload to " + conn.org}, "name the uploads: accession watch UPLOAD_ID..."}
				}
			}
			if len(ids) > maxWatched {
				return usagef("%d uploads at once are too many: %d at most", len(ids), maxWatched)
			}
			service, err := conn.open(false)
			if err != nil {
				return err
			}
			b := newBoard(app, conn.quiet)
			results := make([]result, len(ids))
			var followers sync.WaitGroup
			for i, id := range ids {
				results[i] = result{name: id, id: id, begun: true}
				row := b.row(id)
				followers.Go(func() {
					one := conn
					one.say = row.say
					r := &results[i]
					r.follow(cmd.Context(), &one, service, row, func(change client.Change) { one.changed(b, row, r, change) })
					row.end()
					if r.status == "" || !client.Terminal(r.status) || !one.json {
						one.show(b, r)
					}
				})
			}
			followers.Wait()
			b.close()
			if len(ids) == 1 && results[0].err != nil && cmd.Context().Err() == nil {
				return &severalError{text: "upload " + ids[0] + " did not end well", code: exitCode(results[0].err)}
			}
			if len(ids) > 1 {
				conn.note("%s", tally("uploads", results))
			}
			return judged(cmd.Context(), "uploads", results, "run the same command again to follow them on")
		},
	}
	conn.register(app, cmd, true, false)
	return cmd
}

// begun are the uploads of this computer's notes, to this service and organization.
func (c *connection) begun() (ids []string) {
	for _, note := range c.app.notes() {
		if note.Server == c.server && note.Transfer.Org == c.org && note.Transfer.UploadID != "" {
			ids = append(ids, note.Transfer.UploadID)
		}
	}
	slices.Sort(ids)
	return ids
}

// changed tells of a change where no line is drawn anew: each gate that ended, or the whole for machines.
func (c *connection) changed(b *board, row *boardRow, r *result, change client.Change) {
	if name := change.Status.Filename; name != "" && r.name == r.id {
		r.name = name
		row.rename(r.id + " " + name)
	}
	if c.json {
		var line bytes.Buffer
		if json.Compact(&line, change.Status.Response.Data) == nil {
			b.stay(c.app.Stdout, line.String())
		}
		return
	}
	if b.live || b.quiet {
		return
	}
	for _, gate := range change.Gates {
		if gate.State != client.GatePending && gate.State != client.GateRunning {
			b.stay(c.app.Stdout, strings.TrimRight(fmt.Sprintf("%s  %s", oneLine(r.id), c.app.gateLine(false, gate)), " "))
		}
	}
}

// rename changes what the row is called.
func (r *boardRow) rename(name string) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	r.name = oneLine(name)
}
