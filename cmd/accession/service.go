package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/internal/aicontext"
	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/evidence"
	"github.com/accession/accession/internal/extract"
	"github.com/accession/accession/internal/httpapi"
	"github.com/accession/accession/internal/intake"
	"github.com/accession/accession/internal/keystore"
	"github.com/accession/accession/internal/manual"
	"github.com/accession/accession/internal/metrics"
	"github.com/accession/accession/internal/pipeline"
	"github.com/accession/accession/internal/portal"
	"github.com/accession/accession/internal/ratelimit"
	"github.com/accession/accession/internal/rescan"
	"github.com/accession/accession/internal/scanner"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/telemetry"
	"github.com/accession/accession/internal/tenant"
	"github.com/accession/accession/internal/upkeep"
	"github.com/accession/accession/internal/vault"
	"github.com/accession/accession/internal/webhook"
	"github.com/accession/accession/internal/withdrawal"
)

// service is one installation, opened. Its parts close in the reverse order of their opening.
type service struct {
	settings   settings
	log        *slog.Logger
	store      *sqlstore.Store
	vault      *vault.Vault
	keys       *keystore.Store
	scanner    clamav
	extractor  *extract.Extractor
	runner     *pipeline.Runner
	rescans    *rescan.Service
	hooks      *webhook.Service
	turns      *ratelimit.Turns
	retentions func(context.Context)                      // withdraws what is past its retention
	metrics    *metrics.Metrics                           // nil: nobody listens for them
	traces     *telemetry.Traces                          // nil: nobody collects them
	pools      map[string]func() (open, inUse, limit int) // of databases that have one
	stopping   chan struct{}                              // closed when the process is asked to stop
	closing    chan struct{}                              // closed when requests that would last have to end
	working    sync.WaitGroup
	closers    []func() error
}

// openService opens everything under the data folder and starts the engines; no worker runs and nobody listens yet.
func openService(ctx context.Context, s settings, log *slog.Logger) (_ *service, err error) {
	svc := &service{settings: s, log: log, turns: s.turns(), stopping: make(chan struct{}), closing: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, svc.close())
		}
	}()
	if err := svc.turns.Listen(); err != nil {
		return nil, err
	}
	svc.closers = append(svc.closers, svc.turns.Close)
	if err := svc.lock(); err != nil {
		return nil, err
	}
	if err := svc.refuseMoved(ctx); err != nil {
		return nil, err
	}
	if err := svc.openTelemetry(ctx); err != nil {
		return nil, err
	}
	if err := svc.openStores(ctx); err != nil {
		return nil, err
	}
	if err := svc.openEngines(ctx); err != nil {
		return nil, err
	}
	gates, err := s.gates()
	if err != nil {
		return nil, err
	}
	var store pipeline.Store = pipelineStore{svc.store}
	if svc.metrics != nil {
		store = observedStore{pipelineStore{svc.store}, svc.metrics}
	}
	limits := contextGates{}
	scan := freshSignatures{scanGate{scanner.NewPacked(svc.scanner, unpacker{svc.extractor})}, svc.scanner, s.SignaturesMaxAge}
	svc.hooks = svc.webhooks()
	svc.rescans = rescan.New(rescanStore{svc.store}, rescanEngine{svc.scanner}, s.SignaturesCheck, log)
	svc.runner = pipeline.New(store, svc.observedVault(),
		pipeline.Engines{Scanner: scan, Extractor: extractGate{svc.extractor}, Summarizer: limits, Composer: limits},
		pipeline.Config{Gates: gates, Slots: max(2, runtime.NumCPU()), Log: log, Rescanned: svc.rescanned, Watch: svc.watch()})
	return svc, nil
}

// lock makes sure that one process alone uses the data folder; the kernel gives the lock back whatever happens.
func (svc *service) lock() error {
	if err := blobstore.MakeFolder(svc.settings.Data); err != nil {
		return fmt.Errorf("the data folder cannot be made: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(svc.settings.Data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("the data folder cannot be used: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("another accession uses the data folder %s; stop it first", svc.settings.Data), f.Close())
	}
	svc.closers = append(svc.closers, f.Close)
	return nil
}

func (svc *service) openStores(ctx context.Context) error {
	if err := svc.openDatabases(ctx); err != nil {
		return err
	}
	return svc.openVault(ctx)
}

func (svc *service) openEngines(ctx context.Context) (err error) {
	svc.extractor = extract.New(svc.settings.extraction(svc.log))
	if missing := extract.MissingWalls(); len(missing) > 0 {
		says := "THE CAGE CANNOT BE CLOSED: no document is read"
		if svc.settings.MissingWalls == "allow" {
			says = "THE CAGE IS OPEN: documents are read by workers that are not locked in"
		}
		svc.log.WarnContext(ctx, says, "missing", missing, "advice", "see accession doctor")
	}
	if svc.settings.ClamdAddress != "" {
		clamd, err := scanner.NewClamd(svc.settings.ClamdAddress)
		svc.scanner = provenClamd{clamd}
		return err
	}
	if database := scanner.InspectDatabase(svc.settings.ClamAVDatabase); !database.Full {
		svc.log.WarnContext(ctx, "NO FULL SIGNATURE DATABASE: the malware scan protects from next to nothing", "advice", database.Advice)
	}
	managed, err := scanner.StartManaged(context.WithoutCancel(ctx), scanner.ManagedConfig{
		Dir: filepath.Join(svc.settings.Data, "clamd"), Database: svc.settings.ClamAVDatabase, CheckEvery: svc.settings.SignaturesCheck, Log: svc.log,
	})
	if err != nil {
		return err
	}
	svc.closers = append(svc.closers, managed.Close)
	svc.scanner = managed
	return nil
}

// handler joins the rooms behind the REST door.
func (svc *service) handler(ctx context.Context, baseURL, adminToken string) (http.Handler, error) {
	tenants, err := tenant.New(ctx, tenantStore{svc.store}, tenant.Config{
		AdminToken: adminToken, AllowanceBytes: svc.settings.QuotaBytes, Keys: svc.keys, Issuer: baseURL, Resources: []string{baseURL, svc.settings.mcpURL(baseURL)},
	})
	if down := (*custody.Error)(nil); errors.As(err, &down) {
		return nil, fmt.Errorf("%w; the key-encryption key must be the one that the key store's keys are wrapped with, and a key service must answer", err)
	}
	if err != nil {
		return nil, err
	}
	door, err := svc.door(ctx, baseURL)
	if err != nil {
		return nil, err
	}
	withdrawals := svc.withdrawals(baseURL)
	contexts := aicontext.NewService(contextStore{svc.store}, svc.observedVault())
	uploads := intake.New(intakeStore{svc.store}, svc.observedVault(), svc.runner, intake.Config{
		PartSizeBytes: svc.settings.PartSizeBytes, ReservationLifetime: svc.settings.Reservation, Closing: svc.closing, Log: svc.log,
	})
	if door.MCP, err = svc.agents(baseURL, contexts, uploads); err != nil {
		return nil, err
	}
	door.Webhooks, door.Pages, door.Manual = svc.hooks, portal.New(), manual.New(baseURL)
	door.MCPURL, door.SecurityContact = svc.settings.mcpURL(baseURL), svc.settings.SecurityContact
	return httpapi.New(
		door,
		uploads,
		withdrawals,
		contexts,
		tenants,
		svc.rescans,
		evidence.New(svc.store),
		upkeep.New(upkeepStore{svc.store}, svc.vault, svc.here(), svc.log),
		svc.checks()...,
	)
}

// withdrawals joins the room that requests and workers share.
func (svc *service) withdrawals(baseURL string) *withdrawal.Service {
	withdrawals := withdrawal.New(withdrawalStore{svc.store}, svc.observedVault(), withdrawal.Config{
		Keys: svc.keys, Issuer: baseURL, KeyBackups: svc.settings.KeyBackupHorizon, Interrupt: svc.runner.Interrupt, Log: svc.log,
	})
	svc.runner.Connect(withdrawals)
	svc.retentions = withdrawals.Run
	return withdrawals
}

func (svc *service) scannerAnswers(ctx context.Context) error {
	_, err := svc.scanner.Health(ctx)
	return err
}

type ready func(context.Context) error

func (r ready) Ready(ctx context.Context) error { return r(ctx) }

// work runs the workers until ctx ends. A process without the role of a worker only warms its extractor, which reads the texts of
// customers inside their requests.
func (svc *service) work(ctx context.Context) {
	svc.working.Go(func() {
		if err := svc.extractor.Warm(ctx); err != nil && ctx.Err() == nil {
			svc.log.WarnContext(ctx, "extraction engines are not warm", "error", err)
		}
		giveBack()
	})
	if !svc.settings.has(roleWorker) {
		return
	}
	svc.working.Go(func() { svc.runner.Run(ctx) })
	svc.working.Go(func() { svc.rescans.Run(ctx) })
	svc.working.Go(func() { svc.hooks.Run(ctx) })
	svc.working.Go(func() { svc.retentions(ctx) })
	svc.working.Go(func() {
		if err := svc.findLostKeys(ctx); err != nil && ctx.Err() == nil {
			svc.log.WarnContext(ctx, "could not look for uploads without a data key", "error", err)
		}
	})
	svc.working.Go(func() { pipeline.NewSweeper(pipelineSweepStore{svc.store}, svc.vault, svc.log).Run(ctx) })
}

// giveBack returns to the system what the start alone needed, some 10 MiB that an idle service would keep. The first collection only
// sets aside what pools of buffers hold.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
}

// close waits for the workers and closes everything.
func (svc *service) close() (err error) {
	svc.working.Wait()
	for i := len(svc.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, svc.closers[i]())
	}
	svc.closers = nil
	return err
}

// adminToken is the one given by the environment, or the one kept in the data folder, made when it is not there.
// place is where a kept one lies.
func adminToken(data, given string) (token, place string, err error) {
	if given != "" {
		return given, "", nil
	}
	place = filepath.Join(data, "admin-token")
	kept, err := os.ReadFile(place)
	if err == nil {
		token = strings.TrimSpace(string(kept))
		if len(token) < tenant.MinAdminToken {
			return "", "", fmt.Errorf("%s holds fewer than %d characters; delete it to have a new one made", place, tenant.MinAdminToken)
		}
		return token, place, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	token = rand.Text() + rand.Text()
	return token, place, errors.Join(keystore.RemoveUnnamedSecrets(place), keystore.WriteSecret(place, []byte(token+"\n")))
}
