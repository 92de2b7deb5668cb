package intake

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accession/accession/internal/custody"
)

// elsewhere is metadata in which another process changes an upload, and nobody passes on that it did.
type elsewhere struct {
	Store
	changes time.Time
}

func (e elsewhere) Changed() <-chan struct{} { return nil }

func (e elsewhere) UploadState(context.Context, string, string) (custody.UploadState, error) {
	u := custody.UploadState{Upload: custody.Upload{ID: "up_1", OrgID: "harbour", Status: custody.StatusProcessing, Sequence: 3}}
	if !time.Now().Before(e.changes) {
		u.Sequence++
	}
	return u, nil
}

func (e elsewhere) GatesShown(context.Context, string) ([]custody.GateShown, error) { return nil, nil }

func TestChangeOfAnotherProcessIsFoundWithoutWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := New(elsewhere{changes: begun.Add(7 * time.Second)}, nil, nil, Config{})
		caller := custody.Caller{CredentialID: "cred_1", OrgID: "harbour", Role: custody.RoleSolutionCompanyUpload, Scopes: []custody.Scope{custody.ScopeMetadataRead}}
		state, err := s.AwaitChange(t.Context(), caller, "harbour", "up_1", 3, 0)
		if took := time.Since(begun); err != nil || state.Sequence != 4 || took != 10*time.Second {
			t.Errorf("%+v, %v after %s", state, err, took)
		}
	})
}
