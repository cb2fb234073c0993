package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/admin"
	"github.com/fermata-go/fermata/internal/executor/await"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/decide"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/expiry"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/outbox"
	"github.com/fermata-go/fermata/internal/executor/periodic"
	"github.com/fermata-go/fermata/internal/executor/progress"
	"github.com/fermata-go/fermata/internal/executor/providers"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/executor/stats"
	"github.com/fermata-go/fermata/internal/executor/storeclock"
	"github.com/fermata-go/fermata/internal/executor/tracing"
	"github.com/fermata-go/fermata/internal/executor/view"
	"github.com/fermata-go/fermata/internal/executor/webhooks"
	"github.com/fermata-go/fermata/internal/executor/worker"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/webhook"
	"github.com/fermata-go/fermata/provider"
)

// Config configures an executor.
type Config struct {
	// Store keeps everything that must outlive a process.
	Store     store.Store
	Providers []provider.Provider
	// Sealer encrypts what must not be readable in the store: see package store/encrypted.
	Sealer Sealer
	// Owner names this process among those that share the store. The default is a random name.
	Owner string
	// Lease is how long a process owns a run without renewing the lease; then another process may
	// take the run over. The default is 15 s; leases are renewed after a third of it.
	Lease time.Duration
	// Workers is how many runs from the store this process executes at the same time. Runs that its
	// own callers start or decide, and runs that only wait for a remote call, are executed in
	// addition: see [provider.Capabilities]. The default is 4.
	Workers int
	// Poll is how often idle workers look for work. The default is 1 s.
	Poll time.Duration
	// SaveDelay is how long the result of a step may stay in memory before it is saved, so that
	// several steps are saved in one transaction. If the process fails, unsaved steps are executed
	// again; requests, decisions and effects are always saved at once. The default is 25 ms; a
	// negative value saves each step at once.
	SaveDelay time.Duration
	// Wait is how long Start and Decide wait for an execution. The default is 5 s.
	Wait time.Duration
	// RequestTimeout is how long a request may be open. The default is 24 h; a negative value means
	// no limit.
	RequestTimeout time.Duration
	// OutageAfter is how long no process may have checked deadlines before that counts as an
	// outage. Requests whose deadline fell into an outage stay open for the grace period of their
	// route. The default is 2 min; the minimum is four times Poll.
	OutageAfter time.Duration
	// MaxAttempts is how often an execution is attempted before the run is parked until an operator
	// calls Retry. The default is 25.
	MaxAttempts int
	// Retention is how long a run is kept after it has ended. By default runs are kept.
	Retention time.Duration
	// Desk says how people decide.
	Desk DeskConfig
	// Webhooks, if set, sends events to the subscriptions of accounts.
	Webhooks *webhook.Sender
	// Audit says how the audit logs are maintained.
	Audit AuditConfig
	// Tracer, if set, gets spans of runs, with ids and names and never with the data of runs.
	Tracer trace.Tracer
	// Log gets messages for operators. The default is slog.Default.
	Log *slog.Logger
}

func (c *Config) setDefaults() error {
	switch {
	case c.Store == nil:
		return errors.New("executor: Config.Store is missing")
	case c.Sealer == nil:
		return errors.New("executor: Config.Box is missing: the store cannot be encrypted without a key")
	case c.Lease < 0 || c.Workers < 0 || c.Poll < 0 || c.Wait < 0 || c.MaxAttempts < 0 || c.Retention < 0 || c.OutageAfter < 0 || c.Audit.SignEvery < 0 || c.Audit.CheckEvery < 0 || c.Audit.ReceiptAfter < 0:
		return errors.New("executor: only Config.RequestTimeout and Config.SaveDelay may be negative")
	}
	for name, route := range c.Desk.Routes {
		if err := route.Check(); err != nil {
			return fmt.Errorf("executor: Config.Desk: route %q: %w", name, err)
		}
	}
	kinds := make(map[string]bool)
	for _, ch := range c.Desk.Channels {
		if kinds[ch.Kind()] {
			return fmt.Errorf("executor: Config.Desk: two channels of the kind %q", ch.Kind())
		}
		kinds[ch.Kind()] = true
	}
	c.Owner = cmp.Or(c.Owner, ident.Random("exec"))
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.Workers = cmp.Or(c.Workers, 4)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.SaveDelay = cmp.Or(c.SaveDelay, 25*time.Millisecond)
	c.Wait = cmp.Or(c.Wait, 5*time.Second)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 24*time.Hour)
	// a process that polls this seldom is not down
	c.OutageAfter = max(cmp.Or(c.OutageAfter, 2*time.Minute), 4*c.Poll)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 25)
	c.Audit.SignEvery, c.Audit.ReceiptAfter = cmp.Or(c.Audit.SignEvery, time.Hour), cmp.Or(c.Audit.ReceiptAfter, 24*time.Hour)
	c.Log = cmp.Or(c.Log, slog.Default())
	return nil
}

// routes returns the function that returns the current routes.
func (c DeskConfig) routes() func() map[string]desk.Route {
	if c.CurrentRoutes != nil {
		return c.CurrentRoutes
	}
	return func() map[string]desk.Route { return c.Routes }
}

// DeskConfig says how people decide on requests. The zero value asks any one person, for as long as
// [Config.RequestTimeout].
type DeskConfig struct {
	// Directory returns the members of groups. Without one, all groups are empty.
	Directory desk.Directory
	// Routes are, by name, the notices, reminders and pages of requests. The route named "default"
	// is used for requests without a route in the policy.
	Routes map[string]desk.Route
	// DefaultPage are the targets that the built-in default route pages after 2 hours. Defaults to
	// none: a page needs a target that reaches people.
	DefaultPage []string
	// CurrentRoutes, if set, returns the routes for new requests instead of Routes, so that they
	// can change. Its routes must be valid. Open requests keep their route.
	CurrentRoutes func() map[string]desk.Route
	// Policy, if set, says which actions are allowed, denied or asked about, and who decides them.
	Policy policy.Source
	// Environment, as "prod", and Zone are inputs of the policy. Without a zone that of the policy
	// is used, and UTC if it has none.
	Environment string
	Zone        *time.Location
	// DiscardRulings does not store the rulings on actions. Rulings hold the arguments of actions
	// and are kept as long as their runs; without them [Policies.Replay] has no data.
	DiscardRulings bool
	// Channels deliver notices to people. Their kinds differ. Without channels people find requests
	// in the inbox only.
	Channels []channel.Channel
	// BaseURL is the public address of the server, for links in messages; "" for none.
	BaseURL string
}

// Executor executes runs. Make one with New; StartWorkers begins the work in the background, Stop
// ends it.
type Executor struct {
	Reads
	Policies
	Maintenance
	Channels
	Webhooks

	config     Config
	store      *encrypted.Store
	background *background.Group
	stats      *stats.Counter
	progress   *progress.Hub

	docs      *docs.Docs
	providers *providers.Set
	governor  *govern.Governor
	requests  *requests.Service
	personal  *requests.Personal
	outbox    *outbox.Sender
	messenger *outbox.Messenger
	webhooks  *webhooks.Service
	expiry    *expiry.Job
	worker    *worker.Worker
	decider   *decide.Decider
	waiter    *await.Waiter
	views     *view.Reader
	periodic  *periodic.Runner
	admin     *admin.Admin

	keyReloadFailing atomic.Bool
	mu               sync.Mutex
	started          bool
}

// New makes an executor. It returns ErrWrongKey if the sealer cannot decrypt what is in the store.
func New(config Config) (*Executor, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	e := &Executor{config: config, store: encrypted.New(config.Store, config.Sealer), background: background.New(config.Log), stats: &stats.Counter{}, progress: &progress.Hub{}}
	e.store.SetLogger(config.Log)
	e.docs = docs.New(e.store)
	var err error
	if e.providers, err = providers.New(e.store, config.Providers); err != nil {
		return nil, err
	}
	if err := e.store.CheckKey(e.background.Ctx); err != nil {
		e.background.Cancel()
		return nil, err
	}
	contact := storeclock.NewContact(config.Store, config.Lease, config.Poll)
	tracer := tracing.New(config.Tracer, e.docs)
	e.governor = govern.New(govern.Config{
		Policy: config.Desk.Policy, Environment: config.Desk.Environment, Zone: config.Desk.Zone, DiscardRulings: config.Desk.DiscardRulings, Log: config.Log,
	}, e.store, e.docs)
	e.requests = requests.New(requests.Config{
		Directory: config.Desk.Directory, Routes: config.Desk.routes(), DefaultPage: config.Desk.DefaultPage, Policy: config.Desk.Policy != nil, Notify: len(config.Desk.Channels) > 0,
		RequestTimeout: config.RequestTimeout, Poll: config.Poll, Log: config.Log,
	}, e.store, e.docs, e.governor, e.providers, e.background)
	e.personal = requests.NewPersonal(e.store, e.docs)
	e.outbox = outbox.New(outbox.Config{Channels: config.Desk.Channels, Directory: config.Desk.Directory, Environment: config.Desk.Environment, BaseURL: config.Desk.BaseURL, Poll: config.Poll, Log: config.Log}, e.store, e.docs, e.requests, e.background, e.stats)
	e.messenger = outbox.NewMessenger(config.Poll, config.Log, e.store, e.docs, e.requests, e.providers, e.background)
	e.webhooks = webhooks.New(webhooks.Config{
		Sender: config.Webhooks, Environment: config.Desk.Environment, BaseURL: config.Desk.BaseURL, Poll: config.Poll, Log: config.Log, Card: e.outbox.Card,
	}, e.store, e.docs, e.background)
	e.worker = worker.New(worker.Config{
		Owner: config.Owner, Lease: config.Lease, Poll: config.Poll, SaveDelay: config.SaveDelay, MaxAttempts: config.MaxAttempts, Log: config.Log,
	}, worker.Deps{
		Store: e.store, Docs: e.docs, Providers: e.providers, Requests: e.requests, Governor: e.governor, Tracing: tracer, Background: e.background,
		Contact: contact, Stats: e.stats, Progress: e.progress,
	})
	e.expiry = expiry.New(expiry.Config{OutageAfter: config.OutageAfter, Poll: config.Poll, Log: config.Log}, e.store, e.docs, e.requests, e.background, contact, e.stats, e.worker.WakeWorker)
	e.decider = decide.New(decide.Config{Owner: config.Owner, Lease: config.Lease}, e.store, e.docs, e.requests, e.governor, e.providers, tracer, e.background)
	e.waiter = await.New(await.Config{Wait: config.Wait, Poll: config.Poll}, e.store, e.docs, e.background)
	e.views = view.New(config.Poll, e.store, e.docs, e.providers, e.waiter, e.background)
	e.periodic = periodic.New(config.Poll, e.store, e.docs, e.background)
	e.admin = admin.New(admin.Config{Retention: config.Retention, Audit: config.Audit, Poll: config.Poll, Log: config.Log}, e.store, e.docs, e.requests, e.providers, e.periodic, e.background)
	e.Reads = Reads{views: e.views, requests: e.requests, personal: e.personal, providers: e.providers, waiter: e.waiter}
	e.Policies = Policies{governor: e.governor, requests: e.requests}
	e.Channels = Channels{outbox: e.outbox}
	e.Webhooks = Webhooks{webhooks: e.webhooks}
	e.Maintenance = Maintenance{admin: e.admin, store: e.store}
	return e, nil
}

// StartWorkers begins the work in the background: it executes runs that are ready or whose owner
// failed, expires requests, sends notices, deletes runs after their retention, and maintains the
// audit logs. It may be called several times.
func (e *Executor) StartWorkers() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started || e.background.IsStopping() {
		return
	}
	e.started = true
	for range e.config.Workers {
		e.background.Tasks.Go(e.worker.WorkLoop)
	}
	e.background.Tasks.Go(e.expiry.ExpireLoop)
	e.background.Tasks.Go(func() { e.requests.RouteLoop(e.decidePending) })
	e.background.Tasks.Go(e.messenger.Loop)
	e.background.Tasks.Go(e.keyLoop)
	if len(e.config.Desk.Channels) > 0 {
		e.background.Tasks.Go(e.outbox.OutboxLoop)
	}
	if e.config.Webhooks != nil {
		e.background.Tasks.Go(e.webhooks.Loop)
	}
	if e.config.Retention > 0 {
		e.background.Tasks.Go(e.admin.RetentionLoop)
	}
	for _, c := range e.admin.AuditJobs() {
		e.background.Tasks.Go(func() { e.periodic.JobLoop(c) })
	}
}

// Stop begins no more work and waits for executions in progress. When ctx ends it cancels them, and
// other processes take them over at once. It may be called several times.
func (e *Executor) Stop(ctx context.Context) error {
	e.background.Stop(ctx, e.worker.WakeWorker)
	e.waiter.Close()
	return nil
}
