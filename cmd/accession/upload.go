package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

// upload is one run of the command.
type upload struct {
	app  *App
	conn connection
	consentFlags

	contentType, notes, materialType, importance string
	restart, noFollow                            bool
	concurrency                                  int

	// What follows is of one file.
	row        *boardRow // where there are several
	completion *client.Completion
	sent       int64

	service *client.Client
	file    *os.File
	path    string // absolute, links resolved
	info    fs.FileInfo
	note    *unfinished
}

func newUploadCommand(app *App) *cobra.Command {
	up := &upload{app: app}
	cmd := &cobra.Command{
		Use:   "upload FILE... --org ORG --accept",
		Short: "Take files into custody, resume where it stopped, follow their gates",
		Long: `Sends files in parts, then follows their six gates until the context is ready. Interrupted by Ctrl-C or a lost
connection, the same command goes on where it stopped. Of several files, one that fails stops no other; the exit code
is theirs where those that failed share one, else 1; with --json each is one line. --accept states that the person named
by --consent-user-id and --consent-email agrees to the text of accession agreement, or of --consent-text.`,
		Example: `  accession upload record.pdf --org harbour --accept --consent-user-id ada --consent-email ada@harbour.example
  accession upload scans/*.pdf --profile harbour --accept --concurrency 4`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s takes FILE..., at least one; write: %s", cmd.CommandPath(), cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return up.run(cmd.Context(), args) },
	}
	up.conn.register(app, cmd, true, false)
	up.consentFlags.register(app, cmd)
	flags := cmd.Flags()
	flags.StringVar(&up.contentType, "content-type", "", "media type; default: from the file's name or first bytes")
	flags.StringVar(&up.notes, "notes", "", "notes, at most 2,000 characters")
	flags.StringVar(&up.materialType, "material-type", "", "what kind of material it is")
	flags.StringVar(&up.importance, "importance", "", "normal or important")
	flags.BoolVar(&up.restart, "restart", false, "give an unfinished upload of this file up and begin anew")
	flags.IntVar(&up.concurrency, "concurrency", 2, "files that are sent at once, 1 to 8")
	flags.BoolVar(&up.noFollow, "no-follow", false, "stop once the file is in custody; do not wait for the gates")
	return cmd
}

func (up *upload) run(ctx context.Context, names []string) error {
	if err := up.conn.needOrg(); err != nil {
		return err
	}
	if up.importance != "" && up.importance != "normal" && up.importance != "important" {
		return usagef("--importance has to be normal or important")
	}
	if up.concurrency < 1 || up.concurrency > 8 {
		return usagef("--concurrency has to be between 1 and 8")
	}
	consent, err := up.consent()
	if err != nil {
		return err
	}
	if len(names) > 1 {
		return up.several(ctx, names, consent)
	}
	transfer, err := up.custody(ctx, names[0], consent)
	if err != nil {
		return err
	}
	if !up.noFollow {
		return up.follow(ctx, transfer)
	}
	if up.conn.json {
		err = up.app.printData(up.completion.Response.Data)
	} else {
		up.app.row("upload", up.completion.UploadID)
		up.app.row("status", up.completion.Status)
	}
	return errors.Join(err, up.note.forget())
}

// custody brings one file into custody: its transfer is complete where there is no error.
func (up *upload) custody(ctx context.Context, name string, consent client.Consent) (*client.Transfer, error) {
	if err := up.openFile(name); err != nil {
		return nil, err
	}
	defer up.file.Close()
	var err error
	if up.service == nil {
		if up.service, err = up.conn.open(false); err != nil {
			return nil, err
		}
	}
	if up.note, err = up.app.openUnfinished(up.conn.server, up.conn.org, up.path); errors.Is(err, errNoStateFolder) {
		up.conn.note("warning: %v; an interrupted upload will begin anew", err)
		up.note = new(unfinished)
	} else if err != nil {
		return nil, &adviceError{err, "wait for it, or stop it"}
	}
	defer up.note.close()

	mediaType, err := up.mediaType()
	if err != nil {
		return nil, err
	}
	request := client.InitiateRequest{
		Filename: filepath.Base(name), ContentType: mediaType, SizeBytes: up.info.Size(), Consent: consent,
		Notes: up.notes, MaterialType: up.materialType, Importance: up.importance,
	}
	transfer, err := up.transfer(ctx, request)
	if err != nil {
		return transfer, err
	}
	if err := up.send(ctx, transfer); err != nil {
		var over *client.TransferOverError
		if !errors.As(err, &over) {
			return transfer, up.explain(ctx, transfer, err)
		}
		up.conn.note("%v; beginning anew", over)
		transfer = client.NewTransfer(up.conn.org, request)
		if err := up.send(ctx, transfer); err != nil {
			return transfer, up.explain(ctx, transfer, err)
		}
	}
	return transfer, nil
}

// openFile accepts regular files of 1 byte to 8 GiB.
func (up *upload) openFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return usagef("file cannot be read: %v", err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		err = usagef("file cannot be read: %v", err)
	case !info.Mode().IsRegular():
		err = usagef("%s is no regular file: an upload has to know its size and be able to read it again", name)
	case info.Size() == 0:
		err = usagef("%s is empty", name)
	case info.Size() > client.MaxUploadBytes:
		err = usagef("%s has %s: 8 GiB at most", name, bytesText(info.Size()))
	}
	if err != nil {
		file.Close()
		return err
	}
	up.file, up.info, up.path = file, info, resolvedPath(name)
	return nil
}

func (up *upload) mediaType() (string, error) {
	if up.contentType != "" {
		if name, _, err := mime.ParseMediaType(up.contentType); err != nil || !strings.Contains(name, "/") {
			return "", usagef("--content-type %q is no media type: write it like application/pdf", up.contentType)
		}
		return up.contentType, nil
	}
	if known := mime.TypeByExtension(filepath.Ext(up.path)); known != "" {
		return known, nil
	}
	head := make([]byte, 512)
	n, err := up.file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("read file: %w", err)
	}
	return http.DetectContentType(head[:n]), nil
}

// transfer is the unfinished one of this file, or a new one.
func (up *upload) transfer(ctx context.Context, request client.InitiateRequest) (*client.Transfer, error) {
	fresh := client.NewTransfer(up.conn.org, request)
	note, err := up.note.read()
	if err != nil {
		up.conn.note("warning: %v; beginning anew", err)
		return fresh, nil
	}
	if note == nil {
		return fresh, nil
	}
	before := note.Transfer
	if up.restart {
		return fresh, up.giveUp(ctx, before)
	}
	earlier := before.Request
	earlier.Consent.AcceptedAt, request.Consent.AcceptedAt = time.Time{}, time.Time{}
	changed := earlier.SizeBytes != request.SizeBytes
	earlier.SizeBytes = request.SizeBytes
	switch {
	case before.UploadID == "" && (changed || earlier != request):
		return fresh, nil // never reserved: nothing to go on with
	case before.Completed && (changed || !note.Modified.IsZero() && !note.Modified.Equal(up.info.ModTime())):
		up.conn.note("the file was changed after upload %s had sent it; sending it anew", before.UploadID)
		return fresh, nil
	case changed:
		return nil, up.explain(ctx, before, fmt.Errorf("%w: it had %s", client.ErrFileChanged, bytesText(before.Request.SizeBytes)))
	case earlier != request:
		return nil, &usageError{"upload " + before.UploadID + " of this file was begun with other consent, notes or type: repeat those flags, or begin anew with --restart"}
	case before.Completed:
		up.conn.note("upload %s of this file was sent earlier; following its gates", before.UploadID)
	case before.UploadID != "":
		up.conn.note("resuming upload %s: %s of %s are in custody", before.UploadID, bytesText(before.AcceptedBytes()), bytesText(request.SizeBytes))
	}
	return before, nil
}

// giveUp withdraws an upload that was never completed, which frees its quota. A completed one is left alone.
func (up *upload) giveUp(ctx context.Context, before *client.Transfer) error {
	if before.UploadID != "" && !before.Completed {
		_, err := up.service.WithdrawUpload(ctx, before.Org, before.UploadID, client.WithdrawRequest{
			Reason: "begun anew", IdempotencyKey: before.Key + "-withdraw",
		})
		if err != nil {
			up.conn.note("warning: the unfinished upload %s was not withdrawn and lapses by itself: %v", before.UploadID, err)
		} else {
			up.conn.note("gave the unfinished upload %s up", before.UploadID)
		}
	}
	return up.note.forget()
}

// send brings the file into custody, with a bar on a terminal.
func (up *upload) send(ctx context.Context, transfer *client.Transfer) error {
	if transfer.Completed {
		up.completion = &client.Completion{UploadID: transfer.UploadID, Status: client.StatusProcessing}
		return nil
	}
	drawn := newBar(up.app.Stderr, up.row == nil && up.app.StderrIsTerminal && !up.conn.quiet, transfer.Request.Filename)
	defer drawn.close()
	announced := transfer.UploadID != ""
	sender := client.Uploader{
		Client: up.service, Retry: up.conn.retry(0), Progress: up.progress(drawn), Unchanged: up.unchanged,
		Save: func(transfer *client.Transfer) error {
			if !announced && transfer.UploadID != "" {
				announced = true
				up.conn.note("upload %s: %s, %s", transfer.UploadID, transfer.Request.Filename, bytesText(transfer.Request.SizeBytes))
			}
			return up.note.write(noted{Server: up.conn.server, File: up.path, Modified: up.info.ModTime(), Transfer: transfer})
		},
	}
	notify := sender.Retry.Notify
	sender.Retry.Notify = func(err error, wait time.Duration) { drawn.interrupt(); notify(err, wait) }
	completion, err := sender.Upload(ctx, transfer, up.file)
	if err != nil {
		return err
	}
	drawn.close()
	up.completion, up.sent = completion, drawn.sent
	if summary := drawn.summary(); summary != "" && up.row == nil {
		up.conn.note("%s", summary)
	} else if up.row != nil {
		up.row.step("in custody; " + summary)
	}
	return nil
}

// progress draws what is reported: the one bar, or this file's line of several.
func (up *upload) progress(drawn *bar) func(client.Progress) {
	if up.row == nil {
		return drawn.update
	}
	return func(p client.Progress) {
		drawn.update(p)
		up.row.progress(p)
	}
}

// unchanged compares the file with what it was when it was opened.
func (up *upload) unchanged() error {
	now, err := up.file.Stat()
	if err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	if now.Size() != up.info.Size() || !now.ModTime().Equal(up.info.ModTime()) {
		return fmt.Errorf("%w: it was written to while it was sent", client.ErrFileChanged)
	}
	return nil
}

func (up *upload) follow(ctx context.Context, transfer *client.Transfer) error {
	err := up.conn.followGates(ctx, up.service, transfer.UploadID)
	var verdict *verdictError
	if err != nil && !errors.As(err, &verdict) {
		return up.explain(ctx, transfer, err)
	}
	if err == nil {
		up.conn.note("read it with: accession context %s --org %s (credential of an %s)", transfer.UploadID, up.conn.org, client.RoleAIReader)
	}
	return errors.Join(err, up.note.forget())
}

// explain adds what is safe and what to do next.
func (up *upload) explain(ctx context.Context, transfer *client.Transfer, err error) error {
	again := "run the same command again to go on"
	if up.note.path == "" {
		again = "run the command again; it begins anew"
	}
	var refusal *client.Error
	switch {
	case ctx.Err() != nil:
		state := fmt.Sprintf("%s of %s are in custody as upload %s; ", bytesText(transfer.AcceptedBytes()), bytesText(transfer.Request.SizeBytes), transfer.UploadID)
		if transfer.UploadID == "" {
			state = ""
		}
		return &interruptedError{next: state + again}
	case errors.Is(err, client.ErrFileChanged):
		return &adviceError{err, "restore the file and run the same command again, or begin anew with --restart"}
	case client.Retryable(err):
		return &adviceError{err, "what was accepted is safe; " + again}
	case errors.As(err, &refusal) && transfer.UploadID == "":
		// Refused before anything was reserved: the next try is a new one.
		return errors.Join(err, up.note.forget())
	case errors.As(err, &refusal) && (refusal.Status == http.StatusConflict || refusal.Status == http.StatusNotFound):
		return &adviceError{err, "begin anew with --restart; accession status " + transfer.UploadID + " shows what the service holds"}
	}
	return err
}
