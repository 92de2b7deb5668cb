package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Store is the metadata that webhooks read and, in transactions, change.
type Store interface {
	Webhook(ctx context.Context, orgID string) (custody.Webhook, error)
	Webhooks(ctx context.Context, q custody.WebhookQuery) (list []custody.Webhook, next string, err error)
	Deliveries(ctx context.Context, q custody.DeliveryQuery) (list []custody.Delivery, next string, err error)
	DueWebhooks(ctx context.Context) ([]string, error)
	EndedOverlaps(ctx context.Context) ([]custody.Webhook, error)
	Answered(ctx context.Context, i custody.Idempotency) (requestHash string, a custody.Answer, err error)
	Work() <-chan struct{}
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction of Store.
type Tx interface {
	WebhookForChange(ctx context.Context, orgID string) (custody.Webhook, error)
	PutWebhook(ctx context.Context, w custody.Webhook) error
	DeleteWebhook(ctx context.Context, orgID string) (discarded int64, err error)
	ForgetPreviousSecret(ctx context.Context, orgID, secretID string) error
	ReplayDeliveries(ctx context.Context, q custody.WebhookReplay) (int64, error)
	ClaimDeliveries(ctx context.Context, orgID, lease string, limit, concurrency, trips int) (custody.Webhook, []custody.Delivery, error)
	KeepDeliveries(ctx context.Context, lease string) error
	ReleaseDelivery(ctx context.Context, d custody.Delivery, delay time.Duration) error
	FinishDelivery(ctx context.Context, d custody.Delivery, r custody.DeliveryResult) error
	ExpireDeliveries(ctx context.Context, before time.Time) (int64, error)
	PruneDeliveries(ctx context.Context, deliveredBefore, deadBefore time.Time, keep int) error
	EnsureOrganization(ctx context.Context, orgID string, allowance int64) error
	AppendAudit(ctx context.Context, l custody.AuditLine) error
	KeepAnswer(ctx context.Context, i custody.Idempotency, a custody.Answer) error
}

// Keys is where secrets lie, wrapped.
type Keys interface {
	AddSigningSecret(ctx context.Context, purpose, keyID string, secret []byte) error
	ReadSigningSecrets(ctx context.Context, purpose string) ([]custody.SigningKey, error)
	RetireSigningSecret(ctx context.Context, keyID string) error
	RetireSigningPurpose(ctx context.Context, purpose string) error
}

// Config of the service. Zero values have sensible defaults.
type Config struct {
	Keys             Keys
	AllowanceBytes   int64           // of an organization that is new
	PrivateAddresses bool            // deliver to addresses that are not public, and over http
	Delays           []time.Duration // before the second attempt, the third, …; the last one repeats. Default: 5 s … 4 h
	RetryFor         time.Duration   // from queueing to giving up; default 3 days
	Timeout          time.Duration   // of one attempt, default 15 s
	Log              *slog.Logger
}

// Defaults of the retries: about twenty-three attempts in three days.
var (
	DefaultDelays   = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour}
	DefaultRetryFor = 72 * time.Hour
	DefaultTimeout  = 15 * time.Second
)

// Service sets webhooks and delivers to them.
type Service struct {
	store  Store
	cfg    Config
	sender *sender

	mu      sync.Mutex
	secrets map[string][]byte // by name; they never change
}

// New makes the service.
func New(store Store, cfg Config) *Service {
	if len(cfg.Delays) == 0 {
		cfg.Delays = DefaultDelays
	}
	if cfg.RetryFor <= 0 {
		cfg.RetryFor = DefaultRetryFor
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Service{store: store, cfg: cfg, sender: newSender(cfg.PrivateAddresses, cfg.Timeout), secrets: map[string][]byte{}}
}

// SetWebhook makes an organization's webhook with a new secret, or gives it another address and makes it active again; its secret
// stays then. Render gets the custody.WebhookSet; secret is shown once, beside the answer, and on its replay. Errors:
// invalid_request with details.fields.
func (s *Service) SetWebhook(ctx context.Context, c custody.Caller, orgID, address string, i custody.Idempotency) (a custody.Answer, secret string, err error) {
	if err := custody.Authorize(custody.OpSetWebhook, c, ""); err != nil {
		return a, "", err
	}
	if err := checkURL(address, s.cfg.PrivateAddresses); err != nil {
		return a, "", err
	}
	return s.again(ctx, i, func() (custody.Answer, error) { return s.set(ctx, c, orgID, address, i) })
}

// again repeats change where somebody else changed the webhook meanwhile, and adds the secret to its answer.
func (s *Service) again(ctx context.Context, i custody.Idempotency, change func() (custody.Answer, error)) (a custody.Answer, secret string, err error) {
	for range 10 {
		var found bool
		if a, found, err = i.Replay(ctx, s.store); found || err != nil {
			break
		}
		if a, err = change(); !errors.Is(err, custody.ErrConflict) {
			break
		}
	}
	if errors.Is(err, custody.ErrConflict) {
		err = custody.Unavailable(err)
	}
	return s.withSecret(ctx, a, err)
}

func (s *Service) set(ctx context.Context, c custody.Caller, orgID, address string, i custody.Idempotency) (a custody.Answer, err error) {
	fresh := custody.Webhook{OrgID: orgID, EndpointID: custody.NewID("whe"), SecretID: custody.NewID("key"), CreatedAt: custody.Now()}
	existing, err := s.store.Webhook(ctx, orgID)
	if err == nil {
		fresh = existing
	} else if !errors.Is(err, custody.ErrNotFound) {
		return a, err
	} else if err := s.cfg.Keys.AddSigningSecret(ctx, purpose(fresh), fresh.SecretID, newSecret()); err != nil { // durable before anything names it
		return a, fmt.Errorf("keep webhook secret: %w", err)
	}
	added := errors.Is(err, custody.ErrNotFound)
	a, err = custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		if err := tx.EnsureOrganization(ctx, orgID, s.cfg.AllowanceBytes); err != nil {
			return nil, err
		}
		w, err := tx.WebhookForChange(ctx, orgID)
		set := custody.WebhookSet{}
		switch {
		case errors.Is(err, custody.ErrNotFound) && added:
			w, set.NewSecretID = fresh, fresh.SecretID
		case errors.Is(err, custody.ErrNotFound):
			return nil, custody.ErrConflict // deleted meanwhile
		case err != nil:
			return nil, err
		case added:
			return nil, custody.ErrConflict // set by somebody else meanwhile
		}
		w.URL, w.State, w.UpdatedAt, w.Failures, w.RetryAt = address, custody.WebhookActive, custody.Now(), 0, time.Time{}
		set.Webhook = w
		if err := tx.PutWebhook(ctx, w); err != nil {
			return nil, err
		}
		return set, tx.AppendAudit(ctx, line(c, orgID, "webhook_set", "host="+host(address)))
	})
	if added && err != nil && !errors.Is(err, custody.ErrInDoubt) { // nothing names it; in doubt the webhook may
		err = errors.Join(err, s.cfg.Keys.RetireSigningPurpose(context.WithoutCancel(ctx), purpose(fresh)))
	}
	return a, err
}

// RotateSecret makes a new secret. Until the overlap ends, deliveries carry two signatures, by the new one and by the one before
// it; an overlap of 0 ends that one at once. Answer and secret as in SetWebhook. Errors: webhook_not_found.
func (s *Service) RotateSecret(ctx context.Context, c custody.Caller, orgID string, overlap time.Duration, i custody.Idempotency) (a custody.Answer, secret string, err error) {
	if err := custody.Authorize(custody.OpRotateWebhookSecret, c, ""); err != nil {
		return a, "", err
	}
	return s.again(ctx, i, func() (custody.Answer, error) { return s.rotate(ctx, c, orgID, overlap, i) })
}

func (s *Service) rotate(ctx context.Context, c custody.Caller, orgID string, overlap time.Duration, i custody.Idempotency) (a custody.Answer, err error) {
	w, err := s.store.Webhook(ctx, orgID)
	if err != nil {
		return a, notFound(err)
	}
	id, oldest := custody.NewID("key"), w.PreviousSecretID
	if err := s.cfg.Keys.AddSigningSecret(ctx, purpose(w), id, newSecret()); err != nil {
		return a, fmt.Errorf("keep webhook secret: %w", err)
	}
	a, err = custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		now, err := tx.WebhookForChange(ctx, orgID)
		if err != nil {
			return nil, notFound(err)
		}
		if now.SecretID != w.SecretID || now.EndpointID != w.EndpointID {
			return nil, custody.ErrConflict
		}
		now.PreviousSecretID, now.SecretID, now.UpdatedAt = now.SecretID, id, custody.Now()
		now.OverlapUntil = now.UpdatedAt.Add(overlap)
		if err := tx.PutWebhook(ctx, now); err != nil {
			return nil, err
		}
		return custody.WebhookSet{Webhook: now, NewSecretID: id}, tx.AppendAudit(ctx, line(c, orgID, "webhook_secret_rotated", id+" overlap="+overlap.String()))
	})
	if err == nil && oldest != "" { // two at most
		if e := s.cfg.Keys.RetireSigningSecret(ctx, oldest); e != nil && !errors.Is(e, custody.ErrNotFound) {
			s.cfg.Log.WarnContext(ctx, "a webhook secret that signs nothing any more is not destroyed", "secret_id", oldest, "error", e)
		}
	}
	if errors.Is(err, custody.ErrConflict) { // nothing names the one that was made
		if e := s.cfg.Keys.RetireSigningSecret(ctx, id); e != nil && !errors.Is(e, custody.ErrNotFound) && !errors.Is(e, custody.ErrConflict) {
			s.cfg.Log.WarnContext(ctx, "a webhook secret that nobody uses is not destroyed", "secret_id", id, "error", e)
		}
	}
	return a, err
}

// DeleteWebhook forgets a webhook, what it has not delivered and its log; its secrets are destroyed. Render gets the
// custody.WebhookDeleted. Errors: webhook_not_found.
func (s *Service) DeleteWebhook(ctx context.Context, c custody.Caller, orgID string, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpDeleteWebhook, c, ""); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	var gone custody.Webhook
	a, err := custody.Once(ctx, s.store, i, func(tx Tx) (_ any, err error) {
		if gone, err = tx.WebhookForChange(ctx, orgID); err != nil {
			return nil, notFound(err)
		}
		discarded, err := tx.DeleteWebhook(ctx, orgID)
		if err != nil {
			return nil, err
		}
		return custody.WebhookDeleted{OrgID: orgID, Discarded: discarded}, tx.AppendAudit(ctx, line(c, orgID, "webhook_deleted", fmt.Sprintf("discarded=%d", discarded)))
	})
	if err != nil {
		return a, err
	}
	if gone.EndpointID == "" {
		return a, nil // the same request at the same time did it
	}
	return a, s.cfg.Keys.RetireSigningPurpose(context.WithoutCancel(ctx), purpose(gone))
}

// Webhooks lists them, without secrets, and the organization to go on after. Errors: 401 for all but the administrator.
func (s *Service) Webhooks(ctx context.Context, c custody.Caller, q custody.WebhookQuery) ([]custody.Webhook, string, error) {
	if err := custody.Authorize(custody.OpListWebhooks, c, ""); err != nil {
		return nil, "", err
	}
	return s.store.Webhooks(ctx, q)
}

// Deliveries reads the delivery log, newest event first. Errors: webhook_not_found.
func (s *Service) Deliveries(ctx context.Context, c custody.Caller, q custody.DeliveryQuery) ([]custody.Delivery, string, error) {
	if err := custody.Authorize(custody.OpListWebhookDeliveries, c, ""); err != nil {
		return nil, "", err
	}
	if _, err := s.store.Webhook(ctx, q.OrgID); err != nil {
		return nil, "", notFound(err)
	}
	return s.store.Deliveries(ctx, q)
}

// Replay queues deliveries again. Render gets their number as int64. Errors: webhook_not_found.
func (s *Service) Replay(ctx context.Context, c custody.Caller, q custody.WebhookReplay, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpReplayWebhook, c, ""); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	return custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		if _, err := tx.WebhookForChange(ctx, q.OrgID); err != nil {
			return nil, notFound(err)
		}
		n, err := tx.ReplayDeliveries(ctx, q)
		if err != nil {
			return nil, err
		}
		l := line(c, q.OrgID, "webhook_replayed", fmt.Sprintf("event_id=%q queued=%d", q.EventID, n))
		l.UploadID = q.UploadID
		return n, tx.AppendAudit(ctx, l)
	})
}

// Test posts a signed test event at once, whatever the webhook's state, and says what became of it; nothing is queued. Render gets
// the custody.WebhookTested. Errors: webhook_not_found.
func (s *Service) Test(ctx context.Context, c custody.Caller, orgID string, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpTestWebhook, c, ""); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	w, err := s.store.Webhook(ctx, orgID)
	if err != nil {
		return custody.Answer{}, notFound(err)
	}
	secrets, err := s.signWith(ctx, w)
	if err != nil {
		return custody.Answer{}, err
	}
	tested := custody.WebhookTested{EventID: custody.NewID("evt")}
	b, err := testBody(orgID, tested.EventID, c, custody.Now())
	if err != nil {
		return custody.Answer{}, err
	}
	if tested.DeliveryAttempt, _, err = s.sender.post(ctx, w.URL, tested.EventID, secrets, b); err != nil {
		return custody.Answer{}, err
	}
	return custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		return tested, tx.AppendAudit(ctx, line(c, orgID, "webhook_tested", tested.EventID+" "+tested.Outcome))
	})
}

func line(c custody.Caller, orgID, action, detail string) custody.AuditLine {
	return custody.AuditLine{OrgID: orgID, At: custody.Now(), Action: action, CredentialID: c.CredentialID, Detail: detail, RequestID: c.RequestID, TraceID: c.TraceID}
}

// host is what may be recorded of an address: the rest can hold a token.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

func notFound(err error) error {
	if errors.Is(err, custody.ErrNotFound) {
		return custody.Errorf(custody.CodeWebhookNotFound, "the organization has no webhook")
	}
	return err
}

func purpose(w custody.Webhook) string { return custody.PurposeWebhook + w.EndpointID }

// signWith reads the secrets that sign now, the newest first.
func (s *Service) signWith(ctx context.Context, w custody.Webhook) (secrets [][]byte, err error) {
	ids := []string{w.SecretID}
	if w.PreviousSecretID != "" && time.Now().Before(w.OverlapUntil) {
		ids = append(ids, w.PreviousSecretID)
	}
	for _, id := range ids {
		secret, err := s.secret(ctx, w, id)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// rememberedSecrets bounds what is kept unwrapped.
const rememberedSecrets = 1000

func (s *Service) secret(ctx context.Context, w custody.Webhook, id string) ([]byte, error) {
	s.mu.Lock()
	known := s.secrets[id]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	keys, err := s.cfg.Keys.ReadSigningSecrets(ctx, purpose(w))
	if err != nil {
		return nil, fmt.Errorf("read webhook secret: %w", err)
	}
	at := slices.IndexFunc(keys, func(k custody.SigningKey) bool { return k.ID == id })
	if at < 0 || len(keys[at].Key) != secretBytes {
		return nil, errors.New("read webhook secret: it is not there")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.secrets) >= rememberedSecrets {
		clear(s.secrets)
	}
	s.secrets[id] = keys[at].Key
	return keys[at].Key, nil
}
