package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/httpapi"
	"github.com/accession/accession/internal/ratelimit"
	"github.com/accession/accession/internal/sandbox"
)

// requests counts what the door does; nil where nobody listens for metrics.
func (svc *service) requests() httpapi.Requests {
	if svc.metrics == nil {
		return nil
	}
	return svc.metrics
}

// follows is who follows requests; nil where nobody collects traces.
func (svc *service) follows() httpapi.Traces {
	if svc.traces == nil {
		return nil
	}
	return svc.traces
}

// door is what the REST door needs besides the rooms behind it.
func (svc *service) door(ctx context.Context, baseURL string) (httpapi.Config, error) {
	keys, err := svc.keys.SigningKeys(ctx, "sandbox")
	if err != nil {
		return httpapi.Config{}, err
	}
	trial, err := sandbox.New(sandbox.Config{Key: keys[0].Key})
	if err != nil {
		return httpapi.Config{}, err
	}
	rates, err := ratelimit.Parse(svc.settings.RateLimits)
	if err != nil {
		return httpapi.Config{}, fmt.Errorf("--rate-limits: %w", err)
	}
	slots, err := ratelimit.ParseSlots(svc.settings.RequestSlots)
	if err != nil {
		return httpapi.Config{}, fmt.Errorf("--request-slots: %w", err)
	}
	counting := ratelimit.Config{Rates: rates}
	if svc.settings.shared() {
		counting.Store = svc.store
	}
	limits, err := ratelimit.New(counting)
	if err != nil {
		return httpapi.Config{}, err
	}
	proxies, err := svc.settings.proxies()
	if err != nil {
		return httpapi.Config{}, err
	}
	return httpapi.Config{
		BaseURL: baseURL, MaxPartBytes: svc.settings.PartSizeBytes, Log: svc.log,
		Agreement: agreement(), Sandbox: trial, Limits: limits, Slots: ratelimit.NewGate(slots), Turns: svc.turns, TrustedProxies: proxies, Requests: svc.requests(), Traces: svc.follows(),
	}, nil
}

// turns keep the processors busy while some requests wait for the disk; with more, who comes later waits for longer. Of a database
// elsewhere all connections can be used.
func (s settings) turns() *ratelimit.Turns {
	n := 4 * runtime.GOMAXPROCS(0)
	if s.shared() {
		n = max(n, int(s.Connections))
	}
	return ratelimit.NewTurns(n)
}

// agreement is the text that the portal shows: the one that the command line agrees to.
func agreement() *httpapi.Agreement {
	return &httpapi.Agreement{
		AgreementVersion: client.AgreementVersion, ConsentVersion: client.ConsentVersion,
		Text: client.AgreementText, TextSHA256: client.TextSHA256([]byte(client.AgreementText)),
	}
}
