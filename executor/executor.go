package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Config says how an executor works.
type Config struct {
	// Store is where everything is kept that must outlive a process.
	Store     store.Store
	Providers []provider.Provider
	// Box seals what must not be readable in the store.
	Box Box
	// Owner names this process among those that share the store. The default is a random name.
	Owner string
	// Lease is how long a run stays with a process that says nothing. The default is 15 s; it is renewed after a third of it.
	Lease time.Duration
	// Workers is how many runs this process executes at the same time, beside those that callers wait for. The default is 4.
	Workers int
	// Poll is how often idle workers look for work. The default is 1 s.
	Poll time.Duration
	// SaveDelay is for how long a step that a run has done may be kept in memory before it is saved, so that several are saved together. A process
	// that dies does again what it has not saved; questions, decisions and effects are never kept back. The default is 25 ms; a negative
	// one saves each step at once.
	SaveDelay time.Duration
	// Wait is how long Run waits for an execution. The default is 5 s.
	Wait time.Duration
	// Timeout is how long a question may be open. The default is 24 h; a negative one is for ever.
	Timeout time.Duration
	// Outage is for how long no process must have looked at the clock for that to be an outage: what would have expired in it stays open for
	// the grace of its route. The default is 2 min; less than four times Poll is as long as that.
	Outage time.Duration
	// MaxAttempts is how often an execution is tried before the run is parked for somebody to look at it. The default is 25.
	MaxAttempts int
	// Retention is how long a run is kept after it is over. The default is for ever.
	Retention time.Duration
	// Desk says how people decide.
	Desk Desk
	// Audit says how the audit logs are looked after.
	Audit Audit
	// Tracer, if given, draws what runs do; never what they work on.
	Tracer trace.Tracer
	// Log gets what operators should know. The default is slog.Default.
	Log *slog.Logger
}

func (c *Config) check() error {
	switch {
	case c.Store == nil:
		return errors.New("executor: Config.Store is missing")
	case c.Box == nil:
		return errors.New("executor: Config.Box is missing: without a key nothing can be kept")
	case c.Lease < 0 || c.Workers < 0 || c.Poll < 0 || c.Wait < 0 || c.MaxAttempts < 0 || c.Retention < 0 || c.Outage < 0 || c.Audit.SignEvery < 0 || c.Audit.CheckEvery < 0:
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
	c.Timeout = cmp.Or(c.Timeout, 24*time.Hour)
	c.Outage = max(cmp.Or(c.Outage, 2*time.Minute), 4*c.Poll) // whoever looks so seldom is still there
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 25)
	c.Audit.SignEvery = cmp.Or(c.Audit.SignEvery, time.Hour)
	c.Log = cmp.Or(c.Log, slog.Default())
	return nil
}

// Executor executes runs. Make one with New; Start lets it look for work, Stop ends it.
type Executor struct {
	config    Config
	store     store.Store
	providers map[string]provider.Provider
	changes   hub  // what the store hints at
	live      live // what happens at this moment
	stats     stats
	findings  toldFindings // in the log of operators
	policies  policies     // that are kept
	dossiers  dossiers
	// explaining counts the questions that runs think about here.
	explaining atomic.Int64

	life context.Context // ends when the executor is stopped
	kill context.CancelFunc
	work sync.WaitGroup
	wake chan struct{} // there may be work
	// over is closed when no more work is taken.
	over chan struct{}

	mu      sync.Mutex
	stopped bool
	started bool
}

// New makes an executor. It returns ErrKey if the box has not the key with which the store was filled.
func New(config Config) (*Executor, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	e := &Executor{config: config, store: config.Store, providers: make(map[string]provider.Provider), wake: make(chan struct{}, 1), over: make(chan struct{})}
	for _, p := range config.Providers {
		if e.providers[p.Name()] != nil {
			return nil, fmt.Errorf("executor: two providers are named %s", p.Name())
		}
		e.providers[p.Name()] = p
	}
	e.life, e.kill = context.WithCancel(context.Background())
	if err := e.checkKey(e.life); err != nil {
		e.kill()
		return nil, err
	}
	return e, nil
}

// Graphs lists what can be run, by graph id.
func (e *Executor) Graphs() map[string]provider.Graph {
	all := make(map[string]provider.Graph)
	for name, p := range e.providers {
		for _, g := range p.Graphs() {
			all[name+":"+g.Name] = g
		}
	}
	return all
}

// SplitGraph takes a graph id apart: "inproc:review" is the graph review of the provider inproc.
func SplitGraph(id string) (provider, graph string, err error) {
	provider, graph, ok := strings.Cut(id, ":")
	if !ok || provider == "" || graph == "" {
		return "", "", fmt.Errorf("%w: %q is no graph id, as inproc:review", ErrInvalid, id)
	}
	return provider, graph, nil
}

// graph finds the provider of a graph id, and the graph's name there.
func (e *Executor) graph(id string) (provider.Provider, string, error) {
	prefix, name, err := SplitGraph(id)
	p := e.providers[prefix]
	if err != nil || p == nil {
		return nil, "", fmt.Errorf("%w: %q", ErrUnknownGraph, id)
	}
	for _, g := range p.Graphs() {
		if g.Name == name {
			return p, name, nil
		}
	}
	return nil, "", fmt.Errorf("%w: %q", ErrUnknownGraph, id)
}

// providerOf finds the provider of a run.
func (e *Executor) providerOf(run store.Run) (provider.Provider, error) {
	if p := e.providers[run.Provider]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: this process has no provider %q", ErrUnknownGraph, run.Provider)
}

// Start lets the executor look for work: runs that became ready, runs whose owner died, questions that are over their deadline, runs that
// were kept long enough.
func (e *Executor) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started || e.stopped {
		return
	}
	e.started = true
	for range e.config.Workers {
		e.work.Go(e.seek)
	}
	e.work.Go(e.sweep)
	e.work.Go(e.tick)
	if e.config.Desk.Notify != nil {
		e.work.Go(e.deliver)
	}
	if e.config.Retention > 0 {
		e.work.Go(e.retain)
	}
	for _, c := range e.chores() {
		e.work.Go(func() { e.do(c) })
	}
}

// Stop takes no more work, waits for what is under way until ctx ends, and then lets go of it: another process takes over at once. It may
// be called several times.
func (e *Executor) Stop(ctx context.Context) error {
	e.mu.Lock()
	if !e.stopped {
		close(e.over)
	}
	e.stopped = true
	e.mu.Unlock()
	done := make(chan struct{})
	go func() {
		e.work.Wait()
		close(done)
	}()
	e.nudge()
	select {
	case <-done:
	case <-ctx.Done():
	}
	e.kill()
	<-done
	e.changes.wait()
	return nil
}

// closing reports whether no more work is taken.
func (e *Executor) closing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}
