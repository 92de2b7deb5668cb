package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/httpapi"
)

func newServeCommand(app *App) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "serve --data DIR",
		Short: "Run the whole service: API, workers, and a clamd of its own",
		Long: `Runs the whole service with nothing else configured: metadata in SQLite, bytes in folders, workers in the
process, and a clamd that it starts and watches itself, all under the data folder.
Every setting is a flag, an environment variable, or a key of the YAML file that --config names; see accession config.
SIGTERM or Ctrl-C fails /readyz, drains requests and stops; work that is under way goes on elsewhere, or at the next start.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(cmd.Flags()); err != nil {
				return err
			}
			return app.serve(cmd.Context(), s)
		},
	}
	s.flags(cmd.Flags(), app.Getenv)
	return cmd
}

func (a *App) serve(ctx context.Context, s settings) (err error) {
	log := slog.New(slog.NewJSONHandler(a.Stderr, nil))
	for _, warning := range s.doubts(a.Environ) {
		log.WarnContext(ctx, warning)
	}
	ctx = custody.AcrossOrganizations(ctx) // of the service itself; a request sees what its caller may see
	svc, err := openService(ctx, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.close()) }()
	var secret *certificate
	if s.TLSCert != "" {
		if secret, err = openCertificate(s.TLSCert, s.TLSKey, log); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		err = fmt.Errorf("cannot listen: %w", err)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = &adviceError{err, "stop what listens there, or name another address with --listen; accession doctor shows how to find it"}
		}
		return err
	}
	baseURL := s.baseURL(listener.Addr())
	handler, place, err := svc.answers(ctx, baseURL)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	stopMetrics, err := svc.serveMetrics()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, stopMetrics()) }()
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	svc.work(working)

	listener = httpapi.Bounded(listener, svc.settings.connections())
	if secret != nil {
		listener = httpapi.TLS(listener, secret.config(), log, svc.requests())
	}
	server := httpapi.Server(svc.leaving(handler))
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug) // peers that break off are no news
	served := make(chan error, 1)
	go func() { served <- server.Serve(httpapi.Listener(listener, log, svc.requests())) }()
	fmt.Fprintf(a.Stdout, "accession is ready at %s\n", baseURL)
	if place != "" {
		fmt.Fprintf(a.Stdout, "admin token: %s\n", place)
	}
	log.InfoContext(ctx, "ready", "base_url", baseURL, "version", version, "roles", s.Roles)

	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	return svc.drain(context.WithoutCancel(ctx), server, served)
}

// drain ends the requests: /readyz fails first and, for as long as balancers need to notice, requests are still taken; then
// nobody is let in, and those inside may end. Workers go on meanwhile: a withdrawal's request waits for them.
func (svc *service) drain(ctx context.Context, server *http.Server, served <-chan error) error {
	close(svc.stopping) // before the line that says so: whoever reads it may ask at once
	svc.log.InfoContext(ctx, "stopping", "drain_delay", svc.settings.DrainDelay.String(), "drain_time", svc.settings.DrainTime.String())
	select {
	case err := <-served:
		return err
	case <-time.After(svc.settings.DrainDelay):
	}
	close(svc.closing)
	ending, cancel := context.WithTimeout(ctx, svc.settings.DrainTime)
	defer cancel()
	if server.Shutdown(ending) != nil { // what still runs was never acknowledged; clients resume
		_ = server.Close() // it has closed the listener already, and connections have nobody to tell
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
