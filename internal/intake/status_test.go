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
	busy    bool // somebody commits something all the time
	looks   *int
}

func (e elsewhere) Changed() <-chan struct{} {
	if !e.busy {
		return nil
	}
	committed := make(chan struct{})
	close(committed)
	return committed
}

func (e elsewhere) UploadState(context.Context, string, string) (custody.UploadState, error) {
	if e.looks != nil {
		*e.looks++
	}
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

// Who waits is told of every commit of anybody. It looks at once, then less and less often, and answers what is so in the end.
func TestCommitsOfOthersCostWhoWaitsLittle(t *testing.T) {
	caller := custody.Caller{CredentialID: "cred_1", OrgID: "harbour", Role: custody.RoleSolutionCompanyUpload, Scopes: []custody.Scope{custody.ScopeMetadataRead}}
	for name, c := range map[string]struct {
		changes  time.Duration
		sequence int64
		most     time.Duration
	}{
		"nothing comes of it": {changes: time.Hour, sequence: 3, most: 30 * time.Second},
		"a change":            {changes: 10 * time.Second, sequence: 4, most: 10*time.Second + longestPause},
		"a change at the end": {changes: 30 * time.Second, sequence: 4, most: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, looks := time.Now(), 0
				s := New(elsewhere{changes: begun.Add(c.changes), busy: true, looks: &looks}, nil, nil, Config{})
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				state, err := s.AwaitChange(ctx, caller, "harbour", "up_1", 3, 0)
				if took := time.Since(begun); err != nil || state.Sequence != c.sequence || took > c.most {
					t.Errorf("%d, %v after %s, want %d within %s", state.Sequence, err, took, c.sequence, c.most)
				}
				if looks > 150 {
					t.Errorf("it looked %d times", looks)
				}
			})
		})
	}
}
