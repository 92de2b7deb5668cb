package client

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Transfer is this client's note of one upload until it is complete. Keep it as JSON to resume in another process. It
// holds no credential and no content, but the consent's user id and e-mail address: keep it private.
type Transfer struct {
	Org     string          `json:"org"`
	Request InitiateRequest `json:"request"`
	// Key is the stem of the Idempotency-Keys, one per step, so that a repeated step repeats its key.
	Key string `json:"key"`

	UploadID      string         `json:"upload_id,omitempty"`
	PartSizeBytes int64          `json:"part_size_bytes,omitempty"`
	ExpiresAt     time.Time      `json:"expires_at,omitzero"`
	Parts         []CompletePart `json:"parts,omitempty"` // accepted, in order
	Completed     bool           `json:"completed,omitempty"`
}

// NewTransfer begins a transfer to org. Nothing is sent yet. Consent.AcceptedAt is set to now where it is zero.
func NewTransfer(org string, request InitiateRequest) *Transfer {
	if request.Consent.AcceptedAt.IsZero() {
		request.Consent.AcceptedAt = time.Now().UTC().Truncate(time.Second)
	}
	return &Transfer{Org: org, Request: request, Key: NewIdempotencyKey()}
}

// AcceptedBytes is how much of the file the service has acknowledged as durable.
func (t *Transfer) AcceptedBytes() int64 {
	var sum int64
	for _, part := range t.Parts {
		sum += part.SizeBytes
	}
	return sum
}

// validate refuses a transfer read from a damaged or foreign note.
func (t *Transfer) validate() error {
	size := t.Request.SizeBytes
	switch {
	case t.Org == "" || t.Key == "":
		return errors.New("transfer lacks its organization or key: begin with NewTransfer")
	case size < 1 || size > MaxUploadBytes:
		return fmt.Errorf("a file of %d bytes cannot be uploaded: 1 byte to 8 GiB", size)
	case t.UploadID == "" && len(t.Parts) > 0, t.UploadID != "" && t.PartSizeBytes < 1:
		return errors.New("transfer is damaged: begin anew with NewTransfer")
	}
	for i, part := range t.Parts {
		if _, length := t.slice(i + 1); part.PartNumber != i+1 || part.SizeBytes != length || length < 1 || len(part.SHA256) != 64 {
			return errors.New("transfer is damaged: begin anew with NewTransfer")
		}
	}
	return nil
}

// count is the number of parts the file has.
func (t *Transfer) count() int {
	return int((t.Request.SizeBytes + t.PartSizeBytes - 1) / t.PartSizeBytes)
}

// slice is where part number n lies in the file.
func (t *Transfer) slice(n int) (offset, length int64) {
	offset = int64(n-1) * t.PartSizeBytes
	return offset, min(t.PartSizeBytes, t.Request.SizeBytes-offset)
}

func (t *Transfer) stepKey(step string) string { return t.Key + "-" + step }

func (t *Transfer) partKey(n int) string { return t.stepKey("part-" + strconv.Itoa(n)) }
