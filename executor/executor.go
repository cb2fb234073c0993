package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Config says how an executor works.
type Config struct {
	// Runs is where the state of runs is kept.
	Runs      store.Runs
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
	// Wait is how long Run waits for an execution. The default is 5 s.
	Wait time.Duration
	// Timeout is how long a question may be open. The default is 24 h; a negative one is for ever.
	Timeout time.Duration
	// Log gets what operators should know. The default is slog.Default.
	Log *slog.Logger
}

// Box seals values. A sealed value opens only under its label.
type Box interface {
	Seal(label string, data []byte) []byte
	Open(label string, sealed []byte) ([]byte, error)
}

// Executor executes runs. Make one with New; Start lets it look for work, Stop ends it.
type Executor struct {
	config    Config
	providers map[string]provider.Provider

	life context.Context // ends when the executor is stopped
	kill context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	started bool
	resting map[store.Key]chan struct{} // closed when the run comes to rest in this process
	wake    chan struct{}               // there may be work
}

// New makes an executor.
func New(config Config) (*Executor, error) {
	switch {
	case config.Runs == nil:
		return nil, errors.New("executor: Config.Runs is missing")
	case config.Box == nil:
		return nil, errors.New("executor: Config.Box is missing: without a key nothing can be kept")
	}
	config.Owner = cmp.Or(config.Owner, ident.Random("exec"))
	config.Lease = cmp.Or(config.Lease, 15*time.Second)
	config.Workers = cmp.Or(config.Workers, 4)
	config.Poll = cmp.Or(config.Poll, time.Second)
	config.Wait = cmp.Or(config.Wait, 5*time.Second)
	config.Timeout = cmp.Or(config.Timeout, 24*time.Hour)
	config.Log = cmp.Or(config.Log, slog.Default())
	e := &Executor{config: config, providers: make(map[string]provider.Provider), resting: make(map[store.Key]chan struct{}), wake: make(chan struct{}, 1)}
	for _, p := range config.Providers {
		if e.providers[p.Name()] != nil {
			return nil, fmt.Errorf("executor: two providers are named %s", p.Name())
		}
		e.providers[p.Name()] = p
	}
	e.life, e.kill = context.WithCancel(context.Background())
	return e, nil
}

// graph finds the provider of a graph id, and the graph's name there.
func (e *Executor) graph(id string) (provider.Provider, string, error) {
	prefix, name, ok := strings.Cut(id, ":")
	p := e.providers[prefix]
	if !ok || p == nil {
		return nil, "", fmt.Errorf("%w: %q", ErrUnknownGraph, id)
	}
	for _, g := range p.Graphs() {
		if g.Name == name {
			return p, name, nil
		}
	}
	return nil, "", fmt.Errorf("%w: %q", ErrUnknownGraph, id)
}

// Start lets the executor look for work: runs that became ready, runs whose owner died, questions that are over their deadline.
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
}

// Stop takes no more work, waits for what is under way until ctx ends, and then lets go of it: another process takes over. It may
// be called several times.
func (e *Executor) Stop(ctx context.Context) error {
	e.mu.Lock()
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
	return nil
}

// closing reports whether no more work is taken.
func (e *Executor) closing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}

// nudge wakes one idle worker.
func (e *Executor) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// idle waits until there may be work.
func (e *Executor) idle() {
	timer := time.NewTimer(e.config.Poll)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.wake:
		e.nudgeOthers()
	case <-e.life.Done():
	}
}

// nudgeOthers passes the end on: one nudge wakes one worker.
func (e *Executor) nudgeOthers() {
	if e.closing() {
		e.nudge()
	}
}

// seek looks for runs to execute.
func (e *Executor) seek() {
	for !e.closing() {
		work, err := e.config.Runs.Claim(e.life, store.Claim{Owner: e.config.Owner, Lease: e.config.Lease})
		if err != nil && e.life.Err() == nil {
			e.config.Log.Error("claiming work", "err", err)
		}
		if work == nil {
			e.idle()
			continue
		}
		e.execute(work)
	}
}

// sweep lets questions expire. A clock that jumps must not empty an inbox: what the store's clock says has to agree with how much time has
// passed here.
func (e *Executor) sweep() {
	var guard clockGuard
	for !e.closing() {
		now, err := e.config.Runs.Now(e.life)
		if err == nil && guard.trusts(now, time.Now()) {
			var expired []store.Interrupt
			if expired, err = e.config.Runs.Expire(e.life, 100); len(expired) > 0 {
				e.nudge()
			}
		}
		if err != nil && e.life.Err() == nil {
			e.config.Log.Error("expiring questions", "err", err)
		}
		e.idle()
	}
}

// clockGuard compares the store's clock with the monotonic one of this process.
type clockGuard struct{ store, here time.Time }

// maxDrift is how far the two may differ between two looks.
const maxDrift = 5 * time.Second

func (g *clockGuard) trusts(store, here time.Time) bool {
	before := *g
	g.store, g.here = store, here
	if before.here.IsZero() {
		return true
	}
	drift := store.Sub(before.store) - here.Sub(before.here)
	return drift.Abs() <= maxDrift
}
