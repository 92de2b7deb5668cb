package webhook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	slots       = 64 // attempts under way in this process
	perEndpoint = 8  // attempts under way to one endpoint, over all replicas
	trips       = 5  // failed attempts in a row that open an endpoint's circuit

	pollEvery = 250 * time.Millisecond // looks for what falls due without a commit
	drain     = 3 * time.Second        // for attempts that are under way when the service stops

	keepDelivered      = 3 * 24 * time.Hour
	keepDead           = 30 * 24 * time.Hour
	keepDeliveredCount = 10_000 // of an organization
	tidyEvery          = time.Minute
)

// Run delivers until ctx ends; attempts that are under way then may end.
func (s *Service) Run(ctx context.Context) {
	ctx = custody.AcrossOrganizations(ctx)
	hard, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var working sync.WaitGroup
	working.Go(func() { s.tidyUp(ctx) })
	courier := &courier{Service: s, lease: custody.NewID("lease"), free: make(chan struct{}, slots), ended: make(chan struct{}, 1)}
	for range slots {
		courier.free <- struct{}{}
	}
	beating, still := context.WithCancel(hard)
	var heart sync.WaitGroup
	heart.Go(func() { courier.beat(beating) })
	courier.run(ctx, hard)
	time.AfterFunc(drain, stop)
	courier.working.Wait()
	still()
	heart.Wait()
	working.Wait()
}

// courier carries what it claims under one lease.
type courier struct {
	*Service
	lease   string
	free    chan struct{}
	ended   chan struct{} // an attempt has; one place
	working sync.WaitGroup
}

func (c *courier) run(ctx, hard context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		announced := c.store.Work() // taken before looking: what comes in between is not missed
		if err := c.look(ctx, hard); err != nil && ctx.Err() == nil {
			c.cfg.Log.ErrorContext(ctx, "cannot claim webhook deliveries", "error", err)
		}
		select {
		case <-announced:
		case <-c.ended:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look claims what is due, endpoint by endpoint in no order, so that none is always last.
func (c *courier) look(ctx, hard context.Context) error {
	orgs, err := c.store.DueWebhooks(ctx)
	if err != nil {
		return err
	}
	rand.Shuffle(len(orgs), func(i, j int) { orgs[i], orgs[j] = orgs[j], orgs[i] })
	for _, org := range orgs {
		held := 0
		for held < perEndpoint {
			select {
			case <-c.free:
				held++
				continue
			default:
			}
			break
		}
		if held == 0 {
			return nil // an attempt that ends wakes this up
		}
		var w custody.Webhook
		var claims []custody.Delivery
		err := c.store.InTx(ctx, func(tx Tx) (err error) {
			w, claims, err = tx.ClaimDeliveries(ctx, org, c.lease, held, perEndpoint, trips)
			return err
		})
		if err != nil {
			claims = nil
		}
		for range held - len(claims) {
			c.free <- struct{}{}
		}
		for _, d := range claims {
			c.working.Go(func() {
				defer func() {
					c.free <- struct{}{}
					select { // the next event of the upload has become due
					case c.ended <- struct{}{}:
					default:
					}
				}()
				c.deliver(hard, w, d)
			})
		}
		if err != nil && !errors.Is(err, custody.ErrNotFound) {
			return err
		}
	}
	return nil
}

// beat keeps the lease alive on everything that is under way.
func (c *courier) beat(ctx context.Context) {
	tick := time.NewTicker(custody.LeaseLifetime / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if len(c.free) == slots {
			continue
		}
		if err := c.store.InTx(ctx, func(tx Tx) error { return tx.KeepDeliveries(ctx, c.lease) }); err != nil && ctx.Err() == nil {
			c.cfg.Log.WarnContext(ctx, "webhook deliveries are not kept; others may repeat them", "error", err)
		}
	}
}

// deliver makes one attempt and writes what it came to.
func (c *courier) deliver(ctx context.Context, w custody.Webhook, d custody.Delivery) {
	log := c.cfg.Log.With("org_id", d.OrgID, "event_id", d.EventID, "upload_id", d.UploadID, "attempt", d.Attempt)
	ctx = custody.InOrganization(ctx, d.OrgID) // one claim is one organization's affair
	attempt, advice, err := c.attempt(ctx, w, d)
	finish := context.WithoutCancel(ctx)
	if err != nil || ctx.Err() != nil { // nothing was sent, or nobody knows: the next to come tries
		delay := time.Duration(0)
		if err != nil {
			log.ErrorContext(ctx, "webhook delivery could not be made", "error", err)
			if ctx.Err() == nil { // a secret that cannot be read, for example: it fails at once again
				delay = c.cfg.Delays[0]
			}
		}
		if err := c.store.InTx(finish, func(tx Tx) error { return tx.ReleaseDelivery(finish, d, delay) }); err != nil && !errors.Is(err, custody.ErrLeaseLost) {
			log.WarnContext(ctx, "webhook delivery waits for its lease to run out", "error", err)
		}
		return
	}
	r := c.decide(d, attempt, advice)
	err = c.store.InTx(finish, func(tx Tx) error {
		if err := tx.FinishDelivery(finish, d, r); err != nil || !r.Disable {
			return err
		}
		return tx.AppendAudit(finish, line(custody.Caller{}, d.OrgID, "webhook_disabled", "the receiver answered 410 to "+d.EventID))
	})
	switch {
	case errors.Is(err, custody.ErrLeaseLost):
		log.DebugContext(ctx, "webhook delivery was taken over, or its webhook is gone")
	case err != nil:
		log.ErrorContext(ctx, "outcome of a webhook delivery is not kept; it is repeated", "outcome", attempt.Outcome, "error", err)
	case r.State == custody.DeliveryDead || r.Disable:
		log.WarnContext(ctx, "webhook delivery stopped", "outcome", attempt.Outcome, "status", attempt.Status, "state", r.State, "advice", "accession webhooks list --org ORG --state dead")
	default:
		log.DebugContext(ctx, "webhook delivery", "outcome", attempt.Outcome, "status", attempt.Status, "latency", attempt.Latency)
	}
}

func (c *courier) attempt(ctx context.Context, w custody.Webhook, d custody.Delivery) (custody.DeliveryAttempt, time.Duration, error) {
	secrets, err := c.signWith(ctx, w)
	if err != nil {
		return custody.DeliveryAttempt{}, 0, err
	}
	b, err := body(d)
	if err != nil {
		return custody.DeliveryAttempt{}, 0, fmt.Errorf("write event: %w", err)
	}
	return c.sender.post(ctx, w.URL, d.EventID, secrets, b)
}

// decide is the table of doc.go.
func (s *Service) decide(d custody.Delivery, a custody.DeliveryAttempt, advice time.Duration) custody.DeliveryResult {
	r := custody.DeliveryResult{DeliveryAttempt: a, State: custody.DeliveryPending, Pause: s.pause}
	switch a.Outcome {
	case custody.DeliveryAccepted, custody.DeliveryDuplicate:
		r.State = custody.DeliveryDelivered
	case custody.DeliveryRefused:
		r.State = custody.DeliveryDead
	case custody.DeliveryGone:
		r.Disable = true
	default:
		r.Failed = true
		r.Delay = max(s.delay(d.Attempt), advice)
		if a.At.Add(r.Delay).After(d.QueuedAt.Add(s.cfg.RetryFor)) {
			r.State, r.Delay = custody.DeliveryDead, 0
		}
	}
	return r
}

// delay after the n-th attempt, from 1: what the schedule says, give or take a fifth, so that many do not come back at once.
func (s *Service) delay(n int) time.Duration {
	d := s.cfg.Delays[min(max(n, 1), len(s.cfg.Delays))-1]
	return d*4/5 + rand.N(d*2/5+1)
}

// pause of an endpoint after that many failures in a row; the circuit opens at trips.
func (s *Service) pause(failures int) time.Duration {
	if failures < trips {
		return 0
	}
	return min(s.delay(failures-trips+1), custody.LongestPause)
}

// tidyUp gives up what is too old, prunes the log and destroys secrets whose overlap ended, again and again until ctx ends.
func (s *Service) tidyUp(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		if err := s.Tidy(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.ErrorContext(ctx, "webhook deliveries could not be tidied up", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Tidy does that once.
func (s *Service) Tidy(ctx context.Context) error {
	now := custody.Now()
	if err := s.store.InTx(ctx, func(tx Tx) error {
		dead, err := tx.ExpireDeliveries(ctx, now.Add(-s.cfg.RetryFor))
		if err != nil {
			return err
		}
		if dead > 0 {
			s.cfg.Log.WarnContext(ctx, "webhook deliveries were given up", "deliveries", dead)
		}
		return tx.PruneDeliveries(ctx, now.Add(-keepDelivered), now.Add(-keepDead), keepDeliveredCount)
	}); err != nil {
		return err
	}
	ended, err := s.store.EndedOverlaps(ctx)
	if err != nil {
		return err
	}
	for _, w := range ended {
		if err := s.cfg.Keys.RetireSigningSecret(ctx, w.PreviousSecretID); err != nil && !errors.Is(err, custody.ErrNotFound) {
			return err
		}
		if err := s.store.InTx(ctx, func(tx Tx) error { return tx.ForgetPreviousSecret(ctx, w.OrgID, w.PreviousSecretID) }); err != nil {
			return err
		}
	}
	return nil
}
