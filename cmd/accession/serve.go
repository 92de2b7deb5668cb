package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/internal/httpapi"
)

// drain is how long requests may take to end once the service stops; the workers give their uploads back meanwhile.
const drain = 5 * time.Second

func newServeCommand(app *App) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "serve --data DIR",
		Short: "Run the whole service: API, workers, and a clamd of its own",
		Long: `Runs the whole service with nothing else configured: metadata in SQLite, bytes in folders, workers in the
process, and a clamd that it starts and watches itself, all under the data folder.
SIGTERM or Ctrl-C drains requests and stops; work that is under way goes on at the next start.`,
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
	svc, err := openService(ctx, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.close()) }()
	token, place, err := adminToken(s.Data, a.Getenv(envAdminToken))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	baseURL := s.baseURL(listener.Addr())
	handler, err := svc.handler(ctx, baseURL, token)
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

	server := httpapi.Server(handler)
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug) // peers that break off are no news
	served := make(chan error, 1)
	go func() { served <- server.Serve(httpapi.Listener(listener, log, svc.requests())) }()
	fmt.Fprintf(a.Stdout, "accession is ready at %s\n", baseURL)
	if place != "" {
		fmt.Fprintf(a.Stdout, "admin token: %s\n", place)
	}
	log.InfoContext(ctx, "ready", "base_url", baseURL, "version", version)

	select {
	case err := <-served:
		stopWorking()
		return err
	case <-ctx.Done():
	}
	log.InfoContext(ctx, "stopping")
	close(svc.closing)
	stopWorking()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if server.Shutdown(stopping) != nil { // what still runs was never acknowledged; clients resume
		_ = server.Close() // it has closed the listener already, and connections have nobody to tell
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
