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

	"github.com/fermata-go/fermata/executor/internal/background"
	"github.com/fermata-go/fermata/executor/internal/errs"
	"github.com/fermata-go/fermata/executor/internal/progress"
	"github.com/fermata-go/fermata/executor/internal/retry"
	"github.com/fermata-go/fermata/executor/internal/stats"
	"github.com/fermata-go/fermata/executor/internal/storeclock"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/encrypted"
)

// Config says how an executor works.
type Config struct {
	// Store is where everything is kept that must outlive a process.
	Store     store.Store
	Providers []provider.Provider
	// Sealer seals what must not be readable in the store.
	Sealer Sealer
	// Owner names this process among those that share the store. The default is a random name.
	Owner string
	// Lease is how long a process owns a run without renewing the lease; then another one may take the run over. The default is 15 s; leases are renewed
	// after a third of it.
	Lease time.Duration
	// Workers is how many runs that it found in the store this process executes at the same time. Those that its own callers start or decide are
	// executed beside them, and so are those that only wait for somebody elsewhere: see [provider.Capabilities]. The default is 4.
	Workers int
	// Poll is how often idle workers look for work. The default is 1 s.
	Poll time.Duration
	// SaveDelay is how long the result of a step may stay in memory before it is saved, so that several steps are saved in one transaction. If the
	// process dies, steps that were not saved are executed again; questions, decisions and effects are always saved at once. The default is 25 ms; a
	// negative value saves each step at once.
	SaveDelay time.Duration
	// Wait is how long Run waits for an execution. The default is 5 s.
	Wait time.Duration
	// Timeout is how long a question may be open. The default is 24 h; a negative value means for ever.
	RequestTimeout time.Duration
	// Outage is how long no process may have checked deadlines before that counts as an outage. Questions whose deadline fell into an outage stay
	// open for the grace period of their route. The default is 2 min; the least is four times Poll.
	OutageAfter time.Duration
	// MaxAttempts is how often an execution is tried before the run is parked until an operator calls Retry. The default is 25.
	MaxAttempts int
	// Retention is how long a run is kept after it is over. The default is for ever.
	Retention time.Duration
	// DeskConfig says how people decide.
	Desk DeskConfig
	// AuditConfig says how the audit logs are looked after.
	Audit AuditConfig
	// Tracer, if given, gets spans of what runs do, with ids and names and never with the data of runs.
	Tracer trace.Tracer
	// Log gets what operators should know. The default is slog.Default.
	Log *slog.Logger
}

func (c *Config) setDefaults() error {
	switch {
	case c.Store == nil:
		return errors.New("executor: Config.Store is missing")
	case c.Sealer == nil:
		return errors.New("executor: Config.Box is missing: without a key nothing can be kept")
	case c.Lease < 0 || c.Workers < 0 || c.Poll < 0 || c.Wait < 0 || c.MaxAttempts < 0 || c.Retention < 0 || c.OutageAfter < 0 || c.Audit.SignEvery < 0 || c.Audit.CheckEvery < 0:
		return errors.New("executor: only Config.Timeout and Config.SaveDelay may be negative")
	}
	for name, route := range c.Desk.Routes {
		if err := route.Check(); err != nil {
			return fmt.Errorf("executor: Config.Desk: route %q: %w", name, err)
		}
	}
	c.Owner = cmp.Or(c.Owner, ident.Random("exec"))
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.Workers = cmp.Or(c.Workers, 4)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.SaveDelay = cmp.Or(c.SaveDelay, 25*time.Millisecond)
	c.Wait = cmp.Or(c.Wait, 5*time.Second)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 24*time.Hour)
	c.OutageAfter = max(cmp.Or(c.OutageAfter, 2*time.Minute), 4*c.Poll) // a process that polls this seldom is not down
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 25)
	c.Audit.SignEvery = cmp.Or(c.Audit.SignEvery, time.Hour)
	c.Log = cmp.Or(c.Log, slog.Default())
	return nil
}

// Executor executes runs. Make one with New; Start lets it look for work, Stop ends it.
type Executor struct {
	config         Config
	store          *encrypted.Store
	providers      map[string]provider.Provider
	watchers       watchHub     // hands the store's hints of changes to those who wait for them
	progress       progress.Hub // hands the progress of runs that are executed here to those who listen
	stats          stats.Counter
	loggedFindings findingLog  // findings of audit checks that were logged already
	policies       policyCache // policyCache that are known to be in the store
	metaCache      metaCache   // a cache
	chargeQueue    retry.Queue // actions that are charged to the counters of an account
	// explaining counts the messages to runs that are being answered here, sending those that are only sent elsewhere: see explain.
	answeringNow, sendingNow atomic.Int64
	leases                   heldLeases // the leases of what is executed here
	contact                  *storeclock.Contact
	detachedNow              atomic.Int64 // the executions that have no worker: see aside
	keyReloadFailing         atomic.Bool

	background *background.Group
	workReady  chan struct{} // wakes an idle worker

	mu      sync.Mutex
	started bool
}

// New makes an executor. It returns ErrWrongKey if the box cannot open what is sealed in the store.
func New(config Config) (*Executor, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	e := &Executor{
		config: config, store: encrypted.New(config.Store, config.Sealer), providers: make(map[string]provider.Provider), background: background.New(config.Log),
		contact: storeclock.NewContact(config.Store, config.Lease, config.Poll), workReady: make(chan struct{}, 1),
	}
	for _, p := range config.Providers {
		if e.providers[p.Name()] != nil {
			return nil, fmt.Errorf("executor: two providers are named %s", p.Name())
		}
		e.providers[p.Name()] = p
	}
	e.store.SetLogger(config.Log)
	if err := e.store.CheckKey(e.background.Ctx); err != nil {
		e.background.Cancel()
		return nil, err
	}
	return e, nil
}

// providerOf finds the provider of a run.
func (e *Executor) providerOf(run store.Run) (provider.Provider, error) {
	if p := e.providers[run.Provider]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: this process has no provider %q", errs.ErrGraphNotFound, run.Provider)
}

// Start begins the work in the background: it executes runs that are ready or whose owner died, lets questions expire, sends notices, deletes runs
// after their retention, and looks after the audit logs. It may be called several times.
func (e *Executor) StartWorkers() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started || e.background.IsStopping() {
		return
	}
	e.started = true
	for range e.config.Workers {
		e.background.Tasks.Go(e.workLoop)
	}
	e.background.Tasks.Go(e.expireLoop)
	e.background.Tasks.Go(e.routeLoop)
	e.background.Tasks.Go(e.runMessageLoop)
	e.background.Tasks.Go(e.keyLoop)
	if e.config.Desk.Notify != nil {
		e.background.Tasks.Go(e.outboxLoop)
	}
	if e.config.Retention > 0 {
		e.background.Tasks.Go(e.retentionLoop)
	}
	for _, c := range e.auditJobs() {
		e.background.Tasks.Go(func() { e.jobLoop(c) })
	}
}

// Stop begins no more work and waits for what is under way. When ctx ends it cancels the rest, which other processes then take over at once. It
// may be called several times.
func (e *Executor) Stop(ctx context.Context) error {
	e.background.Stop(ctx, e.wakeWorker)
	e.watchers.wait()
	return nil
}
