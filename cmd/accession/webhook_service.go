package main

import (
	"context"
	"strings"
	"time"

	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/webhook"
)

type webhookStore struct{ *sqlstore.Store }

func (s webhookStore) InTx(ctx context.Context, fn func(webhook.Tx) error) error {
	return s.Store.InTx(ctx, func(tx *sqlstore.Tx) error { return fn(tx) })
}

// webhooks joins the room that requests and workers share.
func (svc *service) webhooks() *webhook.Service {
	s := svc.settings
	return webhook.New(webhookStore{svc.store}, webhook.Config{
		Keys: svc.keys, AllowanceBytes: s.QuotaBytes, PrivateAddresses: s.WebhookPrivateAddresses == "allow",
		Delays: s.webhookDelays(), RetryFor: s.WebhookRetryFor, Timeout: s.WebhookTimeout, Log: svc.log,
	})
}

// webhookDelays before the second attempt, the third, and so on; nil where one is no duration.
func (s *webhookSettings) webhookDelays() (delays []time.Duration) {
	for text := range strings.SplitSeq(s.WebhookRetryDelays, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || d <= 0 {
			return nil
		}
		delays = append(delays, d)
	}
	return delays
}
