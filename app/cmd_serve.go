package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/webhook"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web"
)

type serveCommand struct {
	storeFlags
	Addr string `help:"The listen address; overrides listen.addr." placeholder:"HOST:PORT"`
}

// Run serves until it is stopped.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	settings, err := c.settings("listen.addr", c.Addr)
	if err != nil {
		return err
	}
	log := logger(p, settings.Log)
	for _, warning := range settings.Warnings {
		log.Warn(warning)
	}
	if err := p.tryStart(ctx, settings); err != nil {
		return err
	}
	r, err := start(ctx, p, settings, log)
	if err != nil {
		return err
	}
	log.Info("serving", "url", r.url, "metrics", r.metricsURL, "version", version())
	return r.serve(ctx)
}

func logger(p *program, c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // the configuration allows only valid values
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(p.err, options))
	}
	return slog.New(slog.NewTextHandler(p.err, options))
}

// runningServer is a server with its components.
type runningServer struct {
	*executor.Executor
	settings *config.Config
	server   *server.Server
	site     *web.Site // the pages, and the API behind them
	store    closableStore
	log      *slog.Logger
	url      string

	metricsURL  string // "" if there are none
	listeners   []httpListener
	tracing     tracing
	policyFiles *policyFiles
	channels    []channel.Channel
	dialog      *dialog.Handler // nil: no conversations
}

// start opens all components and listens. It does not serve yet.
func start(ctx context.Context, p *program, c *config.Config, log *slog.Logger) (*runningServer, error) {
	k := storeSettings{c}
	if err := k.checkMigrated(ctx); err != nil {
		return nil, err
	}
	file, _, err := k.openKeyRing(k.isNew())
	if err != nil {
		return nil, err
	}
	st, err := k.open(ctx, false)
	if err != nil {
		return nil, err
	}
	r := &runningServer{settings: c, store: st, log: log}
	if err := r.wire(p, file, log); err != nil {
		return nil, errors.Join(err, r.close(context.WithoutCancel(ctx)))
	}
	return r, nil
}

// checkMigrated rejects a store that needs a migration, if only fermata migrate may migrate it.
func (k storeSettings) checkMigrated(ctx context.Context) error {
	if k.Store.Migrate {
		return nil
	}
	applied, known, err := k.version(ctx)
	if err == nil && applied < len(known) {
		err = fmt.Errorf("the schema of the store is at version %d, and this program needs %d: run fermata migrate (store.migrate is false)", applied, len(known))
	}
	return err
}

func (r *runningServer) wire(p *program, file *seal.KeyFile, log *slog.Logger) error {
	c := r.settings
	providers, err := p.providers(c)
	if err != nil {
		return err
	}
	if r.tracing, err = newTracing(context.Background(), c.Tracing, log); err != nil {
		return err
	}
	// In the executor's configuration 0 means the default; negative values mean no expiry and no
	// save delay.
	timeout, saveDelay := cmp.Or(c.Runs.Timeout, -1), cmp.Or(c.Runs.SaveDelay, -1)
	if r.channels, err = p.openChannels(c, log); err != nil {
		return err
	}
	files, sitting, err := openPolicyFiles(context.Background(), c, servedBy(r.channels))
	if err != nil {
		return err
	}
	r.policyFiles, sitting.Channels = files, r.channels
	sitting.BaseURL = c.Listen.PublicURL
	auditing, err := auditConfig(c.Audit)
	if err != nil {
		return err
	}
	hooks, err := webhook.New(c.Webhooks.Allow)
	if err != nil {
		return fmt.Errorf("webhooks.allow: %w", err)
	}
	r.Executor, err = executor.New(executor.Config{
		Webhooks: hooks,
		Desk:     sitting, Audit: auditing, Store: r.store, Sealer: file, Providers: providers, RequestTimeout: timeout, Retention: c.Runs.Retention, Workers: c.Runs.Workers,
		Lease: c.Runs.Lease, SaveDelay: saveDelay, Wait: c.Runs.Wait, MaxAttempts: c.Runs.MaxAttempts, Log: log, Tracer: r.tracing.tracer(),
	})
	if err != nil {
		return err
	}
	if r.dialog, err = r.openDialog(p.dialog, file); err != nil {
		return err
	}
	r.server, err = server.New(server.Config{
		Executor: r.Executor, Dialog: r.dialog, Auth: authn.Keys(r.store), Log: log, Version: version(), Tracer: r.tracing.tracer(),
		WebPush: webPushOf(r.channels), Settings: serverSettings(c), Limits: serverLimits(c.Limits), PolicyStatus: files.Status,
		SignIn: &authn.SignIn{Credentials: r.store, Sealer: file, PublicURL: c.Listen.PublicURL, OIDC: oidcConfig(c.Auth.OIDC), Lifetime: c.Auth.Session.Lifetime, IdleTimeout: c.Auth.Session.IdleTimeout},
	})
	if err != nil {
		return err
	}
	if r.site, err = web.New(web.Config{API: r.server, Log: log, Tour: p.tour, Chat: r.dialog != nil}); err != nil {
		return err
	}
	return r.listen(log)
}

// auditConfig opens the signing key and the checkpoint directory.
func auditConfig(c config.Audit) (a executor.AuditConfig, err error) {
	a.SignEvery, a.CheckEvery, a.ReceiptAfter = c.Sign.Every, c.Check.Every, c.Check.ReceiptAfter
	if c.Sign.Key != "" {
		if a.Key, err = audit.OpenOrCreateKey(c.Sign.Key); err != nil {
			return a, &fileError{fmt.Errorf("audit.sign.key: %w", err)}
		}
	}
	if c.Sign.Dir != "" {
		if a.CheckpointDir, err = audit.OpenCheckpointDir(c.Sign.Dir); err != nil {
			return a, &fileError{fmt.Errorf("audit.sign.dir: %w", err)}
		}
	}
	return a, nil
}

// serverSettings returns the configuration for the administration page.
func serverSettings(c *config.Config) (list []api.Setting) {
	for _, v := range c.Effective() {
		list = append(list, api.Setting{Key: v.Key, Value: v.Value, From: v.From})
	}
	return list
}

func serverLimits(l config.Limits) server.Limits {
	return server.Limits{
		Body: l.Body, Rate: l.Rate, Burst: l.Burst, InFlight: l.InFlight, Concurrency: l.Concurrency, Streams: l.Streams, IdleConns: l.IdleConns, OpenRequests: l.OpenRequests, ActiveRuns: l.ActiveRuns, RequestsPerAgent: l.RequestsPerAgent,
		MessageRate: l.MessageRate, MessageBurst: l.MessageBurst,
		BodyTimeout: l.BodyTimeout, WriteTimeout: l.WriteTimeout, Heartbeat: l.Heartbeat, AuthRecheck: l.AuthRecheck,
	}
}

// oidcConfig returns the configured identity provider; nil if there is none.
func oidcConfig(c config.OIDC) *authn.OIDC {
	if c.Issuer == "" {
		return nil
	}
	roles := make(map[string][]authn.Role)
	for group, names := range c.Roles {
		for _, name := range names {
			roles[group] = append(roles[group], authn.Role(name))
		}
	}
	classes := make(map[string]requirement.Auth)
	for acr, strength := range c.ACR {
		classes[acr] = requirement.Auth(strength)
	}
	return &authn.OIDC{
		ACR: classes, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret.Reveal(), RedirectURL: c.RedirectURL, Scopes: c.Scopes,
		GroupsClaim: c.GroupsClaim, Roles: roles, Account: c.Account, AccountClaim: c.AccountClaim, PrincipalClaim: c.PrincipalClaim, Audience: c.Audience,
	}
}

// listen opens the listeners.
func (r *runningServer) listen(log *slog.Logger) error {
	c := r.settings
	main, err := listen("listen.addr", c.Listen.Addr, server.ChannelHandler(r.site, r.channels, r.server.Desk(c.Listen.PublicURL)), c.Listen, log)
	if err != nil {
		return err
	}
	main.listener = r.server.LimitIdleConns(main.http, main.listener)
	r.listeners, r.url = append(r.listeners, main), main.url
	if c.Metrics.Addr == config.Off {
		return nil
	}
	plain := c.Listen
	plain.TLS = config.TLS{}
	metrics, err := listen("metrics.addr", c.Metrics.Addr, r.operatorHandler(), plain, log)
	switch {
	case err == nil:
		r.listeners, r.metricsURL = append(r.listeners, metrics), metrics.url+"/metrics"
	case c.From("metrics.addr") == "": // the address is only the default
		log.Warn("metrics are not served: the default address is in use; set metrics.addr, or off", "key", "metrics.addr", "addr", c.Metrics.Addr)
	default:
		return err
	}
	return nil
}

// operatorHandler serves metrics and health checks. It has its own listener, which can be kept
// private.
func (r *runningServer) operatorHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", r.server.Metrics())
	mux.Handle("GET /healthz", r.server)
	mux.Handle("GET /readyz", r.server)
	return mux
}

// serve serves until ctx ends, and then waits for in-flight work.
func (r *runningServer) serve(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	r.StartWorkers()
	var work sync.WaitGroup
	work.Go(func() { r.policyFiles.watch(ctx, r.log) })
	work.Go(func() { r.sweepDialog(ctx) })
	work.Go(func() {
		r.server.RunChannels(ctx, r.channels, r.server.Desk(r.settings.Listen.PublicURL))
	})
	failed := make(chan error, len(r.listeners))
	for _, d := range r.listeners {
		work.Go(func() { failed <- d.serve() })
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	end()
	r.log.Info("shutting down", "drainTimeout", r.settings.Listen.DrainTimeout)
	err = errors.Join(err, r.close(context.WithoutCancel(ctx)))
	work.Wait()
	r.log.Info("stopped")
	return err
}

// close stops everything, the executor first: callers that wait get an outcome, or a pending
// result.
func (r *runningServer) close(ctx context.Context) error {
	timeoutCtx, cancel := context.WithTimeout(ctx, r.settings.Listen.DrainTimeout)
	defer cancel()
	// for responses that become pending now
	drainCtx, gone := context.WithTimeout(ctx, r.settings.Listen.DrainTimeout+time.Second)
	defer gone()
	var errs []error
	if r.Executor != nil {
		errs = append(errs, r.Stop(timeoutCtx))
	}
	for _, d := range r.listeners {
		d.close(drainCtx)
	}
	if err := r.tracing.close(timeoutCtx); err != nil {
		r.log.Warn("flushing traces failed", "err", err)
	}
	return errors.Join(append(errs, r.store.Close())...)
}

// mainAddr returns the address of the main listener.
func (r *runningServer) mainAddr() net.Addr { return r.listeners[0].listener.Addr() }
