package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// A process that ends unexpectedly leaves all runs that it executed, and only one of them may be
// the cause. So a run is not blamed for that, but becomes a suspect when it happens again:
//
//	crash ──▶ executed at once ──crash──▶ suspect ──delay──▶ executed alone ──finished──▶ cleared
//	                                         ▲                     │
//	                                         └── crash (× 3: parked)┘
//
// While a suspect is executed alone, the process executes nothing else, so that a crash has one
// possible cause. The delay grows with the crashes.
const (
	suspectAfter = 2 // crashes
	parkAfter    = 3 // crashes of processes that executed nothing else
)

// maxCrashDelay limits the delay before a suspect is executed again.
const maxCrashDelay = 5 * time.Minute

// errBusy reports that a suspect could not be executed alone. Another process, or a later attempt,
// executes it.
var errBusy = errors.New("executor: other executions are in progress")

// crashAssessment is what to do with a claimed run.
type crashAssessment struct {
	// alone: execute the run while the process executes nothing else.
	alone bool
	// delay, if positive: release the run and execute it later. park, if not nil: park it.
	delay time.Duration
	park  *parkReason
	// failures are the failed attempts, without those that were not failures of the run.
	failures int
}

// assessCrashes decides how a run is executed that was attempted before.
func (w *Worker) assessCrashes(ctx context.Context, work *store.ClaimedRun) (v crashAssessment, err error) {
	run := work.Run
	if run.Attempts == 0 {
		return crashAssessment{}, nil
	}
	problem, _, err := w.docs.Problem(ctx, run.Account, run.ID)
	if err != nil {
		return v, err
	}
	if !work.TakenOver {
		return crashAssessment{alone: problem.Crashes >= suspectAfter, failures: run.Attempts - problem.Excused}, nil
	}
	wasAlone := problem.AloneFence != 0 && problem.AloneFence == work.Lease.Fence-1
	err = w.changeProblem(ctx, run, func(p *docs.Problem) {
		p.Crashes++
		p.Excused++
		if wasAlone {
			p.AloneCrashes++
		}
		p.AloneFence = 0
		if p.AloneCrashes < parkAfter && p.Crashes >= suspectAfter {
			p.Excused++ // of the release
		}
		problem = *p
	})
	if err != nil {
		return v, err
	}
	v.failures = run.Attempts - problem.Excused
	switch {
	case problem.AloneCrashes >= parkAfter:
		v.park = &parkReason{codeCrashed, fmt.Sprintf("%d processes ended while they executed the run, %d of them executed nothing else", problem.Crashes, problem.AloneCrashes)}
	case problem.Crashes >= suspectAfter:
		v.delay = min(w.config.Lease<<min(problem.Crashes-suspectAfter, 10), maxCrashDelay)
		w.config.Log.Warn("process ended while it executed this run; it will be executed alone", "account", run.Account, "run", run.ID, "crashes", problem.Crashes, "alone", problem.AloneCrashes, "delay", v.delay)
	}
	return v, nil
}

// soloGate lets one execution be the only one of this process.
type soloGate struct {
	mu      sync.Mutex
	running int           // executions that are not alone
	solo    bool          // an execution is alone, or waits to be
	changed chan struct{} // closed when running or solo changes
}

func (g *soloGate) notify() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// wait waits for a change. The lock must be held, and is held again afterwards.
func (g *soloGate) wait(ctx context.Context) error {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	changed := g.changed
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter begins an execution next to others. leave must be called at its end.
func (g *soloGate) enter(ctx context.Context) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.solo {
		if err := g.wait(ctx); err != nil {
			return nil, err
		}
	}
	g.running++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running--
		g.notify()
	}, nil
}

// enterAlone begins an execution that is alone until open is called, which may be called again.
// Others wait for it. It returns an error if the context ends before the process is idle.
func (g *soloGate) enterAlone(ctx context.Context) (open func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.solo {
		if err := g.wait(ctx); err != nil {
			return nil, err
		}
	}
	g.solo = true
	release := sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.solo = false
		g.notify()
	})
	for g.running > 0 {
		if err := g.wait(ctx); err != nil {
			g.solo = false
			g.notify()
			return nil, err
		}
	}
	return release, nil
}

// admit waits until a run may be executed. A suspect is executed alone for a third of a lease, so
// that a long execution does not delay others; then it has had the time to end the process. leave
// must be called at the end of the execution.
func (w *Worker) admit(ctx context.Context, work *store.ClaimedRun, v crashAssessment) (leave func(), err error) {
	if p, err := w.providers.Of(work.Run); err == nil && p.Capabilities().Remote {
		return func() {}, nil // it only waits for a remote call
	}
	if !v.alone {
		return w.solo.enter(ctx)
	}
	window := w.config.Lease / 3
	waiting, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	open, err := w.solo.enterAlone(waiting)
	if err != nil && ctx.Err() == nil {
		w.config.Log.Warn("suspect not executed: other executions are in progress", "account", work.Run.Account, "run", work.Run.ID)
		err = w.changeProblem(ctx, work.Run, func(p *docs.Problem) { p.Excused++ })
		return nil, cmp.Or(err, errBusy)
	}
	if err != nil {
		return nil, err
	}
	if err := w.changeProblem(ctx, work.Run, func(p *docs.Problem) { p.AloneFence = work.Lease.Fence }); err != nil {
		open()
		return nil, err
	}
	over := time.AfterFunc(window, func() {
		// others may begin only after it is recorded that this execution is not alone
		if w.changeProblem(ctx, work.Run, func(p *docs.Problem) { p.AloneFence = 0 }) == nil {
			open()
		}
	})
	return func() { over.Stop(); open() }, nil
}
