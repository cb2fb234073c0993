package serve

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
	embed "github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/webhook"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// Program is a program with the parts that its main function adds.
type Program struct {
	*cli.Program

	Graphs    []inproc.Graph
	Providers []provider.Provider
	Channels  []channel.Channel
	Dialog    *embed.DialogConfig // nil: no conversations
	Tour      bool                // the pages suggest what to try
}

// Command is the command that runs a server.
type Command struct {
	StoreFlags
	Addr string `help:"The listen address; overrides listen.addr." placeholder:"HOST:PORT"`
}

// Run serves until it is stopped.
func (c *Command) Run(ctx context.Context, p *Program) error {
	settings, err := c.Settings("listen.addr", c.Addr)
	if err != nil {
		return err
	}
	log := Logger(p.Program, settings.Log)
	for _, warning := range settings.Warnings {
		log.Warn(warning)
	}
	if err := p.TryStart(ctx, settings); err != nil {
		return err
	}
	r, err := Start(ctx, p, settings, log)
	if err != nil {
		return err
	}
	log.Info("serving", "url", r.URL, "metrics", r.MetricsURL, "version", cli.Version())
	return r.Serve(ctx)
}

// Logger returns the configured logger.
func Logger(p *cli.Program, c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // the configuration allows only valid values
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(p.Err, options))
	}
	return slog.New(slog.NewTextHandler(p.Err, options))
}

// Server is a server with its components.
type Server struct {
	*executor.Executor
	settings *config.Config
	API      *server.Server
	site     *web.Site // the pages, and the API behind them
	Store    closableStore
	log      *slog.Logger
	URL      string

	MetricsURL  string // "" if there are none
	listeners   []httpListener
	tracing     tracing
	policyFiles *policyFiles
	channels    []channel.Channel
	dialog      *conversation.Handler // nil: no conversations
}

// Start opens all components and listens. It does not serve yet.
func Start(ctx context.Context, p *Program, c *config.Config, log *slog.Logger) (*Server, error) {
	k := StoreSettings{c}
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
	r := &Server{settings: c, Store: st, log: log}
	if err := r.wire(p, file, log); err != nil {
		return nil, errors.Join(err, r.Close(context.WithoutCancel(ctx)))
	}
	return r, nil
}

// checkMigrated rejects a store that needs a migration, if only fermata migrate may migrate it.
func (k StoreSettings) checkMigrated(ctx context.Context) error {
	if k.Store.Migrate {
		return nil
	}
	applied, known, err := k.Version(ctx)
	if err == nil && applied < len(known) {
		err = fmt.Errorf("the schema of the store is at version %d, and this program needs %d: run fermata migrate (store.migrate is false)", applied, len(known))
	}
	return err
}

func (r *Server) wire(p *Program, file *seal.KeyFile, log *slog.Logger) error {
	c := r.settings
	providers, err := p.OpenProviders(c)
	if err != nil {
		return err
	}
	if r.tracing, err = newTracing(context.Background(), c.Tracing, log); err != nil {
		return err
	}
	// In the executor's configuration 0 means the default; negative values mean no expiry and no
	// save delay.
	timeout, saveDelay := cmp.Or(c.Runs.Timeout, -1), cmp.Or(c.Runs.SaveDelay, -1)
	if r.channels, err = p.OpenChannels(c, log); err != nil {
		return err
	}
	files, sitting, err := openPolicyFiles(context.Background(), c, ServedBy(r.channels))
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
		Desk:     sitting, Audit: auditing, Store: r.Store, Sealer: file, Providers: providers, RequestTimeout: timeout, Retention: c.Runs.Retention, Workers: c.Runs.Workers,
		Lease: c.Runs.Lease, SaveDelay: saveDelay, Wait: c.Runs.Wait, MaxAttempts: c.Runs.MaxAttempts, Log: log, Tracer: r.tracing.tracer(),
	})
	if err != nil {
		return err
	}
	if r.dialog, err = r.openDialog(p.dialogConfig(c), file); err != nil {
		return err
	}
	r.API, err = server.New(server.Config{
		Executor: r.Executor, Dialog: r.dialog, Auth: authn.Keys(r.Store), Log: log, Version: cli.Version(), Tracer: r.tracing.tracer(),
		WebPush: WebPushOf(r.channels), Settings: serverSettings(c), Limits: Limits(c.Limits), TrustedProxies: c.Listen.Proxies(), PolicyStatus: files.Status,
		SignIn: &authn.SignIn{Credentials: r.Store, Sealer: file, PublicURL: c.Listen.PublicURL, OIDC: oidcConfig(c.Auth.OIDC), Lifetime: c.Auth.Session.Lifetime, IdleTimeout: c.Auth.Session.IdleTimeout},
	})
	if err != nil {
		return err
	}
	if r.site, err = web.New(web.Config{API: r.API, PublicURL: cmp.Or(c.Listen.PublicURL, c.Auth.OIDC.RedirectURL), Log: log, Tour: p.Tour, Chat: r.dialog != nil}); err != nil {
		return err
	}
	return r.listen(log)
}

// auditConfig opens the signing key and the checkpoint directory.
func auditConfig(c config.Audit) (a executor.AuditConfig, err error) {
	a.SignEvery, a.CheckEvery, a.ReceiptAfter = c.Sign.Every, c.Check.Every, c.Check.ReceiptAfter
	if c.Sign.Key != "" {
		if a.Key, err = audit.OpenOrCreateKey(c.Sign.Key); err != nil {
			return a, cli.InvalidFile(fmt.Errorf("audit.sign.key: %w", err))
		}
	}
	if c.Sign.Dir != "" {
		if a.CheckpointDir, err = audit.OpenCheckpointDir(c.Sign.Dir); err != nil {
			return a, cli.InvalidFile(fmt.Errorf("audit.sign.dir: %w", err))
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

func Limits(l config.Limits) server.Limits {
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
func (r *Server) listen(log *slog.Logger) error {
	c := r.settings
	main, err := listen("listen.addr", c.Listen.Addr, r.API.ChannelHandler(r.site, r.channels, r.API.Desk(c.Listen.PublicURL)), c.Listen, log)
	if err != nil {
		return err
	}
	main.listener = r.API.LimitIdleConns(main.http, main.listener)
	r.listeners, r.URL = append(r.listeners, main), main.url
	if c.Metrics.Addr == config.Off {
		return nil
	}
	plain := c.Listen
	plain.TLS = config.TLS{}
	metrics, err := listen("metrics.addr", c.Metrics.Addr, r.operatorHandler(), plain, log)
	switch {
	case err == nil:
		r.listeners, r.MetricsURL = append(r.listeners, metrics), metrics.url+"/metrics"
	case c.From("metrics.addr") == "": // the address is only the default
		log.Warn("metrics are not served: the default address is in use; set metrics.addr, or off", "key", "metrics.addr", "addr", c.Metrics.Addr)
	default:
		return err
	}
	return nil
}

// operatorHandler serves metrics and health checks. It has its own listener, which can be kept
// private.
func (r *Server) operatorHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", r.API.Metrics())
	mux.Handle("GET /healthz", r.API)
	mux.Handle("GET /readyz", r.API)
	return mux
}

// Serve serves until ctx ends, and then waits for in-flight work.
func (r *Server) Serve(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	r.StartWorkers()
	var work sync.WaitGroup
	work.Go(func() { r.policyFiles.watch(ctx, r.log) })
	work.Go(func() { r.sweepDialog(ctx) })
	work.Go(func() {
		r.API.RunChannels(ctx, r.channels, r.API.Desk(r.settings.Listen.PublicURL))
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
	err = errors.Join(err, r.Close(context.WithoutCancel(ctx)))
	work.Wait()
	r.log.Info("stopped")
	return err
}

// Close stops everything, the executor first: callers that wait get an outcome, or a pending
// result.
func (r *Server) Close(ctx context.Context) error {
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
	return errors.Join(append(errs, r.Store.Close())...)
}

// Addr returns the address of the main listener.
func (r *Server) Addr() net.Addr { return r.listeners[0].listener.Addr() }
