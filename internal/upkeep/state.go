package upkeep

import (
	"context"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	mostStuck    = 20              // uploads of each kind that InstallationState lists
	scannerPause = 2 * time.Second // the scanner may take to prove itself
)

// Installation is what InstallationState tells beside the metadata.
type Installation struct {
	Process custody.ProcessState
	Scanner func(context.Context) custody.ScannerState // asks the engine now; never fails
}

// InstallationState answers what the installation does and waits for: queues and stuck uploads of all replicas, the scanner and the version of
// this one. Errors: 401 for all but the administrator, service_unavailable.
func (s *Service) InstallationState(ctx context.Context, c custody.Caller) (custody.InstallationState, error) {
	if err := custody.Authorize(custody.OpState, c, ""); err != nil {
		return custody.InstallationState{}, err
	}
	state := custody.InstallationState{At: custody.Now(), Process: s.here.Process}
	if err := s.backlog(ctx, &state); err != nil {
		return custody.InstallationState{}, custody.Unavailable(err)
	}
	asking, cancel := context.WithTimeout(ctx, scannerPause)
	defer cancel()
	state.Scanner = s.here.Scanner(asking)
	return state, nil
}

// backlog reads what only the metadata knows.
func (s *Service) backlog(ctx context.Context, state *custody.InstallationState) (err error) {
	for _, named := range custody.NamedLanes {
		l := custody.LaneState{Name: named.Name}
		if l.Waiting, l.Oldest, err = s.store.Backlog(ctx, named.Lane); err != nil {
			return err
		}
		if l.Running, err = s.store.Running(ctx, named.Lane); err != nil {
			return err
		}
		state.Lanes = append(state.Lanes, l)
	}
	if state.Stuck, err = s.store.StuckUploads(ctx, mostStuck); err != nil {
		return err
	}
	hooks := &state.Webhooks
	if hooks.Waiting, hooks.Dead, hooks.Oldest, err = s.store.WebhookBacklog(ctx); err != nil {
		return err
	}
	rescans, err := s.store.RescanState(ctx, custody.RescanScope{}, state.At)
	state.RescansWaiting = rescans.Waiting
	return err
}
