package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accession/accession/client"
)

// result is how one of several uploads ended.
type result struct {
	name   string
	path   string // absolute, of a file; its note is kept until every one has a verdict
	id     string
	status string // where known
	data   json.RawMessage
	sent   int64
	begun  bool
	err    error
}

// ended says whether the gates gave a verdict, or nobody waits for one.
func (r *result) ended() bool {
	var verdict *verdictError
	return r.begun && (r.err == nil || errors.As(r.err, &verdict))
}

// severalError is a command for several uploads that did not end well for all. What is wrong with each was said.
type severalError struct {
	text, next string
	code       int
}

func (e *severalError) Error() string { return e.text }

// judged is the error of the whole command: none where every one ended well. Its exit code is theirs where they share one.
func judged(ctx context.Context, what string, results []result, next string) error {
	failed, code, open := 0, exitOK, false
	for i := range results {
		r := &results[i]
		open = open || !r.ended()
		if r.begun && r.err == nil {
			continue
		}
		failed++
		switch one := exitCode(r.err); {
		case r.err == nil: // never begun
		case code == exitOK:
			code = one
		case code != one:
			code = exitFailure
		}
	}
	if !open {
		next = ""
	}
	switch {
	case failed == 0:
		return nil
	case ctx.Err() != nil:
		return &interruptedError{next: next}
	}
	return &severalError{text: fmt.Sprintf("%d of %d %s did not end well", failed, len(results), what), next: next, code: max(code, exitFailure)}
}

// tally says how many ended how: "3 files: 2 READY, 1 not begun".
func tally(what string, results []result) string {
	counts := map[string]int{}
	for i := range results {
		r := &results[i]
		switch {
		case !r.begun:
			counts["not begun"]++
		case r.ended() && r.status != "":
			counts[r.status]++
		case exitCode(r.err) == exitInterrupted || errors.Is(r.err, context.Canceled):
			counts["interrupted"]++
		default:
			counts["with an error"]++
		}
	}
	var parts []string
	for _, state := range []string{
		client.StatusReady, client.StatusProcessing, client.StatusRejected, client.StatusFailed, client.StatusExpired, client.StatusWithdrawn,
		"with an error", "interrupted", "not begun",
	} {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	return fmt.Sprintf("%d %s: %s", len(results), what, strings.Join(parts, ", "))
}

// show prints how one ended: its line, or its object for machines, to standard output; an error and its next step beside it.
func (c *connection) show(b *board, r *result) {
	var out, aside bytes.Buffer
	app := *c.app
	app.Stdout, app.Stderr = &out, &aside
	var verdict *verdictError
	stopped := exitCode(r.err) == exitInterrupted
	if r.err != nil && !stopped {
		app.report(r.name+": ", r.err)
	}
	switch {
	case c.json:
		line, err := json.Marshal(r.object())
		if err == nil {
			fmt.Fprintf(&out, "%s\n", line)
		}
	case r.err == nil, errors.As(r.err, &verdict):
		colour := map[string]string{client.StatusReady: green, client.StatusRejected: red, client.StatusFailed: red}[r.status]
		fmt.Fprintf(&out, "%s %s  %s\n", app.paint(app.StdoutIsTerminal && colour != "", colour, fmt.Sprintf("%-10s", r.status)), oneLine(r.id), oneLine(r.name))
	}
	if out.Len() > 0 {
		b.stay(c.app.Stdout, strings.TrimSuffix(out.String(), "\n"))
	}
	if aside.Len() > 0 {
		b.stay(c.app.Stderr, strings.TrimSuffix(aside.String(), "\n"))
	}
}

// object is a result for machines.
func (r *result) object() map[string]any {
	o := map[string]any{"name": r.name, "exit_code": exitCode(r.err)}
	if r.err == nil {
		o["exit_code"] = exitOK
	}
	if r.id != "" {
		o["upload_id"] = r.id
	}
	if r.status != "" {
		o["status"] = r.status
	}
	if len(r.data) > 0 {
		o["data"] = r.data
	}
	if r.err != nil {
		failure := map[string]any{"message": r.err.Error()}
		var refusal *client.Error
		var verdict *verdictError
		switch {
		case errors.As(r.err, &refusal):
			failure["code"], failure["request_id"] = refusal.Code, refusal.RequestID
		case errors.As(r.err, &verdict):
			failure["request_id"] = verdict.status.Response.RequestID
			if verdict.status.Failure != nil {
				failure["code"] = verdict.status.Failure.Code
			}
		}
		if next := nextStep(r.err); next != "" {
			failure["next"] = next
		}
		o["error"] = failure
	}
	return o
}

// several sends the files, some at a time; one that fails stops no other.
func (up *upload) several(ctx context.Context, names []string, consent client.Consent) error {
	if err := distinct(names); err != nil {
		return err
	}
	var err error
	if up.service, err = up.conn.open(false); err != nil {
		return err
	}
	began := time.Now()
	b := newBoard(up.app, up.conn.quiet)
	results := make([]result, len(names))
	for i, name := range names {
		results[i].name = name
	}
	var next, done atomic.Int64
	var down atomic.Bool // nothing answers: the others need not wait for that, one after the other
	var workers sync.WaitGroup
	foot := func() { b.footer(fmt.Sprintf("%d of %d files done", done.Load(), len(names))) }
	for range min(up.concurrency, len(names)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(names) || ctx.Err() != nil || down.Load() {
					return
				}
				one := *up
				one.row = b.row(names[i])
				one.conn.say = one.row.say
				foot()
				r := one.kept(ctx, names[i], consent)
				one.row.end()
				results[i] = r
				done.Add(1)
				foot()
				up.conn.show(b, &r)
				var network *client.NetworkError
				if errors.As(r.err, &network) && r.id == "" {
					down.Store(true)
				}
			}
		})
	}
	workers.Wait()
	b.close()
	var sent int64
	for i := range results {
		sent += results[i].sent
	}
	summary := tally("files", results)
	if sent > 0 {
		took := time.Since(began)
		summary += fmt.Sprintf("; sent %s in %s (%s/s)", bytesText(sent), seconds(took), bytesText(int64(float64(sent)/max(took.Seconds(), 0.001))))
	}
	up.conn.note("%s", summary)
	err = judged(ctx, "files", results, "run the same command again: it goes on where this one stopped, and sends nothing twice")
	if up.allEnded(results) {
		for i := range results {
			err = errors.Join(err, up.app.forgetUnfinished(up.conn.server, up.conn.org, results[i].path))
		}
	}
	return err
}

// allEnded says that the same command would have nothing to go on with. Until then the notes of finished files are kept, so that it
// does not send them again.
func (up *upload) allEnded(results []result) bool {
	return !slices.ContainsFunc(results, func(r result) bool { return !r.ended() })
}

// kept brings one of several files into custody and follows it.
func (up *upload) kept(ctx context.Context, name string, consent client.Consent) result {
	r := result{name: name, begun: true}
	transfer, err := up.custody(ctx, name, consent)
	r.path, r.sent, r.err = up.path, up.sent, err
	if transfer != nil {
		r.id = transfer.UploadID
	}
	if up.completion != nil {
		r.status, r.data = up.completion.Status, up.completion.Response.Data
	}
	if err != nil || up.noFollow {
		return r
	}
	r.follow(ctx, &up.conn, up.service, up.row, nil)
	var verdict *verdictError
	if r.err != nil && !errors.As(r.err, &verdict) {
		r.err = up.explain(ctx, transfer, r.err)
	}
	return r
}

// follow goes on until the upload's status is terminal.
func (r *result) follow(ctx context.Context, c *connection, service *client.Client, row *boardRow, observe func(client.Change)) {
	last, err := service.Follow(ctx, c.org, r.id, c.retry(0), func(change client.Change) {
		row.gates(change.Status)
		if observe != nil {
			observe(change)
		}
	})
	if last != nil {
		r.status, r.data = last.Status, last.Response.Data
	}
	if err == nil && last.Status != client.StatusReady {
		err = &verdictError{status: last}
	}
	if ctx.Err() != nil {
		err = interrupted(err)
	}
	r.err = err
}

// distinct refuses a file that is named twice: its two uploads would wait for each other.
func distinct(names []string) error {
	seen := map[string]bool{}
	for _, name := range names {
		path := resolvedPath(name)
		if seen[path] {
			return usagef("%s is named twice", name)
		}
		seen[path] = true
	}
	return nil
}

// resolvedPath is absolute, with links resolved where the file is there.
func resolvedPath(name string) string {
	path := name
	if absolute, err := filepath.Abs(name); err == nil {
		path = absolute
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	return path
}
