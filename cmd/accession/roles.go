package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/accession/accession/internal/httpapi"
)

// answers is the handler for this process's roles: the whole door, or, in one that only works, what whoever keeps it running
// asks. place is where the admin token lies, if it is kept.
func (svc *service) answers(ctx context.Context, baseURL string) (handler http.Handler, place string, err error) {
	if !svc.settings.has(roleAPI) {
		svc.withdrawals(baseURL)
		return httpapi.NewProbes(httpapi.Config{BaseURL: baseURL, Log: svc.log, Requests: svc.requests()}, svc.checks()...), "", nil
	}
	token, place, err := adminToken(svc.settings.Data, svc.settings.AdminToken)
	if err != nil {
		return nil, "", err
	}
	handler, err = svc.handler(ctx, baseURL, token)
	return handler, place, err
}

// checks are what /readyz asks.
func (svc *service) checks() []httpapi.Check {
	return []httpapi.Check{
		{Name: "accepting", Readiness: ready(svc.accepting)},
		{Name: "store", Readiness: ready(svc.store.Ping)},
		{Name: "blobs", Readiness: ready(svc.vault.Ready)},
		{Name: "keys", Readiness: ready(svc.keys.Ready)},
		{Name: "disk", Readiness: ready(svc.diskUsable)},
		{Name: "room", Readiness: ready(svc.diskRoom), Informs: true},
		{Name: "scanner", Readiness: ready(svc.scannerAnswers), Informs: true},
	}
}

// accepting fails from SIGTERM on, so that balancers send requests elsewhere while these are still answered here.
func (svc *service) accepting(context.Context) error {
	select {
	case <-svc.stopping:
		return errors.New("the process stops")
	default:
		return nil
	}
}

// leaving has each answer end its connection once the process stops: clients open the next one elsewhere, and none is cut with
// a request on its way.
func (svc *service) leaving(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if svc.accepting(r.Context()) != nil {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}
