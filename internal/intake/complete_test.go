package intake

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

// lapsing is metadata whose own clock is ahead: there the reservation has lapsed already.
type lapsing struct {
	Store
	Tx
}

func (lapsing) Upload(context.Context, string, string) (custody.Upload, error) {
	return custody.Upload{
		ID: "upl_1", OrgID: "acme", Status: custody.StatusReceiving, SizeBytes: 3, PartSizeBytes: 64, ReceivedBytes: 3, NextPart: 2,
		SHA256: "sum", ExpiresAt: time.Now().Add(time.Hour),
	}, nil
}

func (s lapsing) InTx(_ context.Context, fn func(Tx) error) error { return fn(s) }

func (s lapsing) UploadForChange(ctx context.Context, orgID, uploadID string) (custody.Upload, error) {
	return s.Upload(ctx, orgID, uploadID)
}

func (lapsing) UseQuota(context.Context, *custody.Upload) error { return nil }

func (lapsing) Transition(context.Context, *custody.Upload, custody.Change) error {
	return custody.ErrConflict
}

func TestCompleteAfterTheDatabaseSaysThatItLapsed(t *testing.T) {
	s := New(lapsing{}, nil, nil, Config{})
	caller := custody.Caller{CredentialID: "cred_1", OrgID: "acme", Role: custody.RoleSolutionCompanyUpload, Scopes: custody.RoleScopes[custody.RoleSolutionCompanyUpload]}
	_, err := s.Complete(t.Context(), caller, custody.Completion{OrgID: "acme", UploadID: "upl_1", ClientSHA256: "sum", Parts: []custody.DeclaredPart{{Number: 1}}}, custody.Idempotency{})
	var refused *custody.Error
	if !errors.As(err, &refused) || refused.Code != custody.CodeReservationExpired {
		t.Errorf("got %v, want reservation_expired", err)
	}
}
