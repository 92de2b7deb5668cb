package intake

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// overtaken is metadata in which another process takes a key between the look for it and the commit.
type overtaken struct {
	unsure
	looks int
}

func (s *overtaken) Answered(context.Context, custody.Idempotency) (string, custody.Answer, error) {
	if s.looks++; s.looks == 1 {
		return "", custody.Answer{}, custody.ErrNotFound
	}
	return "of another part", custody.Answer{}, nil
}

func TestKeyThatAnotherPartTookMeanwhile(t *testing.T) {
	v := &keeper{}
	s := New(&overtaken{unsure: unsure{commit: custody.ErrTaken}}, v, nil, Config{PartSizeBytes: 64, Log: slog.New(slog.DiscardHandler)})
	uploader := custody.Caller{CredentialID: "cred_1", OrgID: "acme", Role: custody.RoleSolutionCompanyUpload, Scopes: custody.RoleScopes[custody.RoleSolutionCompanyUpload]}
	_, err := s.AcceptPart(t.Context(), uploader, custody.IncomingPart{OrgID: "acme", UploadID: "upl_1", Number: 1, Length: 3, Body: strings.NewReader("abc")}, custody.Idempotency{Key: "key-0001"})
	var refused *custody.Error
	if !errors.As(err, &refused) || refused.Code != custody.CodeIdempotencyConflict || len(v.takenBack) != 1 {
		t.Errorf("got %v, want idempotency_conflict; taken back: %q", err, v.takenBack)
	}
}
