package pipeline

import (
	"context"

	"github.com/accession/accession/internal/custody"
)

// delete does what the deletion lane found due: an accepted withdrawal, or a reservation that lapsed.
func (r *Runner) delete(ctx context.Context, c custody.Claim) {
	var err error
	if c.Upload.Status == custody.StatusWithdrawing {
		err = r.withdrawals.Finish(ctx, c)
	} else {
		err = r.expire(ctx, &c)
	}
	if err == nil || isLost(err) || ctx.Err() != nil {
		return
	}
	r.cfg.Log.ErrorContext(ctx, "deletion tries again", "upload_id", c.Upload.ID, "status", c.Upload.Status, "attempt", c.Attempt, "error", err)
	r.postpone(ctx, c)
}

// expire deletes what a lapsed reservation received; once that is confirmed the quota comes back, and names are forgotten.
func (r *Runner) expire(ctx context.Context, c *custody.Claim) error {
	if _, err := r.vault.Destroy(ctx, c.Upload.ID); err != nil {
		return err
	}
	err := r.inHold(ctx, c, func(tx Tx, u *custody.Upload) error {
		if _, err := tx.FreeQuota(ctx, u); err != nil {
			return err
		}
		if err := tx.DropLedger(ctx, u.ID); err != nil {
			return err
		}
		if err := tx.ForgetNames(ctx, u.ID, u.Consent); err != nil {
			return err
		}
		return tx.Transition(ctx, u, custody.Change{Trigger: custody.TriggerReservationLapsed, Cause: c.Cause, Failure: &custody.Failure{
			Code: string(custody.CodeReservationExpired), Message: "The upload was not complete when its reservation ended, at expires_at; what had arrived is deleted.",
		}})
	})
	if err != nil {
		return err
	}
	if err := r.store.Scrub(context.WithoutCancel(ctx)); err != nil {
		r.cfg.Log.WarnContext(ctx, "names of a lapsed reservation stay in the log until the next one", "upload_id", c.Upload.ID, "error", err)
	}
	return nil
}
