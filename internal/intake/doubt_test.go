package intake

import (
	"context"
	"errors"
	"hash"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

// unsure is a store whose commits end in an error; doubtful says that they may have happened.
type unsure struct {
	Store
	commit error
	good   int // commits that succeed before
}

func (s *unsure) Upload(context.Context, string, string) (custody.Upload, error) {
	return custody.Upload{ID: "upl_1", OrgID: "acme", Status: custody.StatusInitiated, SizeBytes: 3, PartSizeBytes: 64, NextPart: 1, ExpiresAt: time.Now().Add(time.Hour)}, nil
}

func (s *unsure) Answered(context.Context, custody.Idempotency) (string, custody.Answer, error) {
	return "", custody.Answer{}, custody.ErrNotFound
}

func (s *unsure) InTx(context.Context, func(Tx) error) error {
	if s.good--; s.good >= 0 {
		return nil
	}
	return s.commit
}

// keeper counts what is taken back.
type keeper struct {
	Vault
	takenBack []string
}

func (v *keeper) Admit(context.Context, string) error { return nil }
func (v *keeper) Dismiss(context.Context, string) error {
	v.takenBack = append(v.takenBack, "data key")
	return nil
}
func (v *keeper) SealPart(context.Context, string, int, io.Reader, int64, ...hash.Hash) (string, error) {
	return "key", nil
}
func (v *keeper) DiscardPart(context.Context, string) error {
	v.takenBack = append(v.takenBack, "object")
	return nil
}
func (v *keeper) Destroy(context.Context, string) ([]custody.Deletion, error) {
	v.takenBack = append(v.takenBack, "everything")
	return nil, nil
}

// passing gates find nothing.
type passing struct{}

func (passing) Inline(context.Context, custody.Upload, []custody.Part) ([]custody.GateResult, []custody.Artifact, error) {
	return nil, nil, nil
}

// A commit without an answer may have published the bytes: they and their key stay.
func TestNothingIsTakenBackInDoubt(t *testing.T) {
	uploader := custody.Caller{CredentialID: "cred_1", OrgID: "acme", Role: custody.RoleSolutionCompanyUpload, Scopes: custody.RoleScopes[custody.RoleSolutionCompanyUpload]}
	for _, c := range []struct {
		commit error
		stays  bool
	}{{custody.Unavailable(errors.New("refused")), false}, {custody.Unavailable(errors.Join(custody.ErrInDoubt, errors.New("cut off"))), true}} {
		for what, ask := range map[string]func(s *Service) error{
			"initiate": func(s *Service) error {
				_, err := s.Initiate(t.Context(), uploader, custody.Reservation{OrgID: "acme", SizeBytes: 3}, custody.Idempotency{})
				return err
			},
			"part": func(s *Service) error {
				_, err := s.AcceptPart(t.Context(), uploader, custody.IncomingPart{OrgID: "acme", UploadID: "upl_1", Number: 1, Length: 3, Body: strings.NewReader("abc")}, custody.Idempotency{})
				return err
			},
			"submit": func(s *Service) error {
				_, err := s.submit(t.Context(), uploader, custody.Submission{OrgID: "acme", Filename: "a.txt", Payload: "abc", WorkspaceAccess: "granted"}, custody.Idempotency{})
				return err
			},
		} {
			v := &keeper{}
			store := &unsure{commit: c.commit}
			if what == "submit" {
				store.good = 1 // the reservation
			}
			err := ask(New(store, v, passing{}, Config{PartSizeBytes: 64, Log: slog.New(slog.DiscardHandler)}))
			if !errors.Is(err, c.commit) {
				t.Errorf("%s: %v", what, err)
			}
			if stays := len(v.takenBack) == 0; stays != c.stays {
				t.Errorf("%s after %v: taken back %q", what, c.commit, v.takenBack)
			}
		}
	}
}
