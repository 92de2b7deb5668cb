package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/accession/accession/client"
)

// followGates prints one line per gate as it ends, and the last status. An upload that ends other than READY is an error.
func (c *connection) followGates(ctx context.Context, service *client.Client, uploadID string) error {
	out, terminal := c.app.Stdout, c.app.StdoutIsTerminal
	if c.json {
		out, terminal = c.app.Stderr, c.app.StderrIsTerminal
	}
	if c.quiet {
		out, terminal = io.Discard, false
	}
	live := terminal && c.app.Getenv("TERM") != "dumb"
	running := false
	clear := func() {
		if running {
			fmt.Fprint(out, "\r\x1b[K")
		}
		running = false
	}
	retry := c.retry(0)
	notify := retry.Notify
	retry.Notify = func(err error, wait time.Duration) { clear(); notify(err, wait) }
	last, err := service.Follow(ctx, c.org, uploadID, retry, func(change client.Change) {
		for _, gate := range change.Gates {
			clear()
			if gate.State == client.GateRunning {
				if live {
					fmt.Fprint(out, c.app.gateLine(terminal, gate))
					running = true
				}
				continue
			}
			if gate.State != client.GatePending {
				fmt.Fprintln(out, c.app.gateLine(terminal, gate))
			}
		}
	})
	clear()
	if err != nil {
		return err
	}
	if c.json {
		if err := c.app.printData(last.Response.Data); err != nil {
			return err
		}
	}
	if last.Status != client.StatusReady {
		return &verdictError{status: last}
	}
	if !c.json {
		c.app.row("upload", last.UploadID)
		c.app.row("status", last.Status)
	}
	return nil
}

// gateLine is one gate on one line: when it ended, its state, name, how long it took, and its detail.
func (a *App) gateLine(terminal bool, gate client.Gate) string {
	at, took := "--:--:--", ""
	if !gate.StartedAt.IsZero() {
		at = gate.StartedAt.Local().Format("15:04:05")
	}
	if !gate.FinishedAt.IsZero() {
		at = gate.FinishedAt.Local().Format("15:04:05")
		if !gate.StartedAt.IsZero() {
			took = seconds(gate.FinishedAt.Sub(gate.StartedAt))
		}
	}
	colours := map[string]string{
		client.GatePassed: green, client.GateRejected: red, client.GateFailed: red, client.GateRunning: yellow, client.GatePending: faint,
	}
	state := a.paint(terminal, colours[gate.State], fmt.Sprintf("%-8s", oneLine(gate.State)))
	line := fmt.Sprintf("%s  %s  %-18s  %7s  %s", at, state, oneLine(gate.Name), took, oneLine(gate.DetailText()))
	return strings.TrimRight(line, " ")
}
