package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// The phases of Uploader.Upload, in their order.
const (
	PhaseVerify   = "verify"   // compares the file with what was accepted earlier; only when resuming
	PhaseSend     = "send"     // sends the parts that are missing
	PhaseComplete = "complete" // declares the upload whole
)

// Progress of one phase. Bytes never exceeds Total; it falls back where a part has to be sent again.
type Progress struct {
	Phase string
	// Bytes of the file done, from its beginning; Total is its size.
	Bytes, Total int64
}

// TransferOverError means that the upload can take no more parts: it has expired or was withdrawn. Begin a new transfer.
type TransferOverError struct {
	UploadID string
	Status   string
}

func (e *TransferOverError) Error() string {
	return "upload " + e.UploadID + " is " + e.Status + " and takes no more parts"
}

// Uploader sends files and resumes them. The fields are read only; one Uploader may run several transfers at once if Save and
// Progress allow it.
type Uploader struct {
	Client *Client
	Retry  Retry
	// Save, if set, keeps the transfer; it is called before the first request and after every step the service
	// acknowledged. An error ends the upload.
	Save func(*Transfer) error
	// Progress, if set, is called often and from one goroutine at a time; it must not block.
	Progress func(Progress)
	// Unchanged, if set, is asked before completion whether the file is still as it was opened; its error ends the upload.
	Unchanged func() error
	// StallTimeout ends an attempt during which the connection took no byte for so long; 0 means one minute.
	StallTimeout time.Duration
}

// Upload brings the file src into custody as transfer says, from wherever an earlier run stopped, and completes it. src holds
// transfer.Request.SizeBytes bytes. At most 768 KiB of the file are in memory at a time. A file read from its beginning is read
// once; when resuming, the accepted parts are read again and compared with their digests.
//
// The gates have only begun when Upload returns: see Client.Follow. Errors: ErrFileChanged; *TransferOverError; *Error as of
// InitiateUpload, PutPart and CompleteUpload, with what was accepted so far kept in transfer.
func (u *Uploader) Upload(ctx context.Context, transfer *Transfer, src io.ReaderAt) (*Completion, error) {
	if err := transfer.validate(); err != nil {
		return nil, err
	}
	resuming := transfer.UploadID != ""
	if !resuming {
		if err := u.initiate(ctx, transfer); err != nil {
			return nil, err
		}
	}
	whole := sha256.New()
	if resuming {
		completion, digest, err := u.resume(ctx, transfer, src)
		if completion != nil || err != nil {
			return completion, err
		}
		whole = digest
	}
	for n := len(transfer.Parts) + 1; n <= transfer.count(); n++ {
		digest, err := u.sendPart(ctx, transfer, n, src, whole)
		if err != nil {
			return nil, fmt.Errorf("part %d of %d: %w", n, transfer.count(), err)
		}
		whole = digest
	}
	if u.Unchanged != nil {
		if err := u.Unchanged(); err != nil {
			return nil, err
		}
	}
	return u.complete(ctx, transfer, hex.EncodeToString(whole.Sum(nil)))
}

func (u *Uploader) initiate(ctx context.Context, transfer *Transfer) error {
	// Saved first: should the answer be lost, the next run repeats this request with its key and finds this upload.
	if err := u.save(transfer); err != nil {
		return err
	}
	request := transfer.Request
	request.IdempotencyKey = transfer.stepKey("initiate")
	var reservation *Reservation
	err := u.Retry.Do(ctx, func(ctx context.Context) error {
		var err error
		reservation, err = u.Client.InitiateUpload(ctx, transfer.Org, request)
		return err
	})
	if err != nil {
		return err
	}
	transfer.UploadID = reservation.UploadID
	transfer.PartSizeBytes = reservation.PartSizeBytes
	transfer.ExpiresAt = reservation.ExpiresAt
	return u.save(transfer)
}

// resume asks where the service stands and hashes the file up to there. A completion means that nothing is left to send.
func (u *Uploader) resume(ctx context.Context, transfer *Transfer, src io.ReaderAt) (*Completion, hash.Hash, error) {
	var status *UploadStatus
	err := u.Retry.Do(ctx, func(ctx context.Context) error {
		var err error
		status, err = u.Client.UploadStatus(ctx, transfer.Org, transfer.UploadID, StatusOptions{})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	switch status.Status {
	case StatusInitiated, StatusReceiving:
	case StatusExpired, StatusWithdrawing, StatusWithdrawn:
		return nil, nil, &TransferOverError{UploadID: transfer.UploadID, Status: status.Status}
	default: // completed earlier; the answer was lost, or its following interrupted
		transfer.Completed = true
		return &Completion{
			UploadID: status.UploadID, PipelineID: status.PipelineID, Status: status.Status,
			Sequence: status.Sequence, Response: status.Response,
		}, nil, u.save(transfer)
	}
	accepted := max(status.NextPartNumber, 1) - 1
	if accepted > transfer.count() {
		return nil, nil, fmt.Errorf("upload %s has %d parts at the service and %d in the file: begin a new transfer",
			transfer.UploadID, accepted, transfer.count())
	}
	digest, err := u.verify(ctx, transfer, src, accepted)
	if err != nil {
		return nil, nil, err
	}
	return nil, digest, u.save(transfer)
}

// verify reads the accepted parts again. Parts whose acknowledgement was lost have no digest here; the service compares them at completion.
func (u *Uploader) verify(ctx context.Context, transfer *Transfer, src io.ReaderAt, accepted int) (hash.Hash, error) {
	known := transfer.Parts
	transfer.Parts = nil
	whole := sha256.New()
	buffer := make([]byte, blockBytes)
	for n := 1; n <= accepted; n++ {
		offset, length := transfer.slice(n)
		part := sha256.New()
		section := io.NewSectionReader(src, offset, length)
		for done := int64(0); done < length; {
			if err := context.Cause(ctx); err != nil {
				return nil, u.restore(transfer, known, err)
			}
			block := buffer[:min(blockBytes, length-done)]
			if _, err := io.ReadFull(section, block); err != nil {
				return nil, u.restore(transfer, known, readError(err))
			}
			part.Write(block)
			whole.Write(block)
			done += int64(len(block))
			u.report(Progress{Phase: PhaseVerify, Bytes: offset + done, Total: transfer.Request.SizeBytes})
		}
		sum := hex.EncodeToString(part.Sum(nil))
		if n <= len(known) && known[n-1].SHA256 != sum {
			return nil, u.restore(transfer, known, fmt.Errorf("%w: part %d of upload %s differs", ErrFileChanged, n, transfer.UploadID))
		}
		transfer.Parts = append(transfer.Parts, CompletePart{PartNumber: n, SHA256: sum, SizeBytes: length})
	}
	return whole, nil
}

func (u *Uploader) restore(transfer *Transfer, known []CompletePart, err error) error {
	transfer.Parts = known
	return err
}

// sendPart sends part n until it is acknowledged and returns the digest of the file up to its end.
func (u *Uploader) sendPart(ctx context.Context, transfer *Transfer, n int, src io.ReaderAt, whole hash.Hash) (hash.Hash, error) {
	offset, length := transfer.slice(n)
	before, ok := whole.(hash.Cloner)
	if !ok {
		return nil, errors.New("digest cannot be cloned")
	}
	var sum string
	err := u.Retry.Do(ctx, func(ctx context.Context) error {
		ctx, watch := u.watch(ctx)
		defer watch.stop()
		body, err := newPartBody(src, offset, length, before, func(sent int64) {
			watch.alive(sent < length)
			u.report(Progress{Phase: PhaseSend, Bytes: offset + sent, Total: transfer.Request.SizeBytes})
		})
		if err != nil {
			return err
		}
		_, err = u.Client.PutPart(ctx, transfer.Org, transfer.UploadID, Part{
			Number: n, Body: body, SizeBytes: length, IdempotencyKey: transfer.partKey(n),
		})
		if err != nil {
			if broken := body.abandon(); broken != nil {
				return broken // not the connection's fault, and not to be retried
			}
			return err
		}
		sum, whole, err = body.digests()
		return err
	})
	if err != nil {
		return nil, err
	}
	transfer.Parts = append(transfer.Parts, CompletePart{PartNumber: n, SHA256: sum, SizeBytes: length})
	return whole, u.save(transfer)
}

func (u *Uploader) complete(ctx context.Context, transfer *Transfer, digest string) (*Completion, error) {
	size := transfer.Request.SizeBytes
	u.report(Progress{Phase: PhaseComplete, Bytes: size, Total: size})
	var completion *Completion
	err := u.Retry.Do(ctx, func(ctx context.Context) error {
		var err error
		completion, err = u.Client.CompleteUpload(ctx, transfer.Org, CompleteRequest{
			UploadID: transfer.UploadID, Parts: transfer.Parts, ClientFileSHA256: digest,
			IdempotencyKey: transfer.stepKey("complete"),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	transfer.Completed = true
	return completion, u.save(transfer)
}

func (u *Uploader) save(transfer *Transfer) error {
	if u.Save == nil {
		return nil
	}
	if err := u.Save(transfer); err != nil {
		return fmt.Errorf("save transfer: %w", err)
	}
	return nil
}

func (u *Uploader) report(progress Progress) {
	if u.Progress != nil {
		u.Progress(progress)
	}
}

// stallWatch cancels an attempt whose connection takes no more bytes; the answer has a limit of its own in the transport.
type stallWatch struct {
	timer   *time.Timer
	timeout time.Duration
	cancel  context.CancelCauseFunc
}

func (u *Uploader) watch(ctx context.Context) (context.Context, *stallWatch) {
	watch := &stallWatch{timeout: or(u.StallTimeout, time.Minute)}
	ctx, watch.cancel = context.WithCancelCause(ctx)
	watch.timer = time.AfterFunc(watch.timeout, func() { watch.cancel(errStalled) })
	return ctx, watch
}

func (w *stallWatch) alive(more bool) {
	w.timer.Stop()
	if more {
		w.timer.Reset(w.timeout)
	}
}

func (w *stallWatch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}
