package executor_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// slow is a store whose EndExecution takes long, for a number of calls.
type slow struct {
	store.Store
	takes time.Duration
	times atomic.Int64
}

func (s *slow) EndExecution(ctx context.Context, lease store.Lease, rest store.ExecutionEnd) (store.Status, error) {
	if s.times.Add(-1) >= 0 {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return s.Store.EndExecution(ctx, lease, rest)
}

// two returns two executors on one store that poll every second.
func two(t *testing.T, s store.Store, p provider.Provider) (first, second *executor.Executor) {
	t.Helper()
	poll := func(c *executor.Config) { c.Poll, c.Lease = time.Second, 15*time.Second }
	first, second = executorOf(t, s, p, poll), executorOf(t, s, p, poll)
	first.StartWorkers()
	second.StartWorkers()
	return first, second
}

func startSlowly() executor.RunRequest {
	request := scriptedStart()
	request.Wait = 10 * time.Minute
	return request
}

// Regression: a run with many requests was taken over by another process during EndExecution, which
// took longer than a lease, because the lease was no longer renewed. The other process was no
// faster, and so on.
func TestSlow_RunIsNotTakenOverDuringEndExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: memory.NewStore(nil), takes: 25 * time.Second}
		s.times.Store(100)
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) { return done, nil }}
		first, _ := two(t, s, p)
		completed(t, mustRun(t, first, startSlowly()))
		if n := p.executed.Load(); n != 1 {
			t.Errorf("the run was executed %d times", n)
		}
	})
}

// Regression: one timeout covered EndExecution and the release after its failure. So the last steps
// were lost, and the run did not continue before the lease ended.
func TestSlow_RunIsReleasedAfterEndExecutionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: memory.NewStore(nil), takes: time.Hour}
		s.times.Store(1)
		p := &scripted{execute: func(attempt int64, e provider.Execution) (provider.Result, error) {
			if attempt == 1 {
				return done, savesSteps(t, e, "a", "b")
			}
			if got := stepsOf(t, e.Run.State, store.Run{ID: e.Run.ID}); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("the next attempt finds %q", got)
			}
			return done, nil
		}}
		first, _ := two(t, s, p)
		begin := time.Now()
		completed(t, mustRun(t, first, startSlowly()))
		if took := time.Since(begin); took > 35*time.Second {
			t.Errorf("the next attempt was after %v", took)
		}
	})
}

// Stop waits for a node that ignores its context. Regression: another process took over the run
// during that time, and the node ran twice at once.
func TestSlow_RunOfAStoppedProcessIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var working, most atomic.Int64
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
			most.Store(max(most.Load(), working.Add(1)))
			time.Sleep(time.Minute)
			working.Add(-1)
			return done, nil
		}}
		first, second := two(t, memory.NewStore(nil), p)
		go func() { _, _ = first.Run(context.Background(), startSlowly()) }()
		time.Sleep(time.Second)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Stop(over); err != nil {
			t.Fatal(err)
		}
		completed(t, mustRun(t, second, startSlowly()))
		if most.Load() != 1 {
			t.Errorf("the node ran %d times at once", most.Load())
		}
	})
}

// reader is a store that counts how often all requests of a run are read.
type reader struct {
	store.Store
	read atomic.Int64
}

func (r *reader) Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) ([]store.Document, error) {
	if kind == store.RequestDocument {
		r.read.Add(1)
	}
	return r.Store.Documents(ctx, account, kind, filter)
}

func (r *reader) Interrupts(ctx context.Context, account, run string) ([]store.Interrupt, error) {
	r.read.Add(1)
	return r.Store.Interrupts(ctx, account, run)
}

// Regression: for each new request of a run all of its requests were read. A few hundred at once
// exceeded the time limit, and every retry failed as well.
func TestSlow_ManyRequestsAreAskedWithOneRead(t *testing.T) {
	s := &reader{Store: memory.NewStore(nil)}
	const items = 20
	g := graph.New[note]("many")
	var target atomic.Int64
	graph.Each(g, "all", func(note) []int { return make([]int, items) }, func(ctx context.Context, _ int) (int, error) {
		for _, name := range []string{"prepare", "commit"} {
			action := fermata.Action[string]{Name: name, Args: name, Target: func(context.Context, string) (any, error) { return target.Load(), nil }}
			if _, err := fermata.Approve(ctx, action); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}, func(n note, _ []int) note { return n })
	g.Edge(graph.Start, "all")
	g.Edge("all", graph.End)
	e := executorOf(t, s, providing(t, g), func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, `
default: deny
rules:
- {id: both, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], editable: [""], deadline: 1h}}
`)
	})
	outcome := began(t, e, "a", "inproc:many", `{}`)
	for round, value := range []string{yes, `{"verb":"approve","args":"edited"}`, yes} {
		target.Store(int64(min(round, 1))) // so that everything is asked again
		request := executor.RunRequest{Account: "acme", StateKey: "a", ResumeID: fmt.Sprint(round), Actor: fmt.Sprint("nr", round), Targets: make(map[string]executor.Answer)}
		for _, i := range waits(t, outcome).Interrupts {
			request.Targets[i.ID] = executor.Answer{Value: []byte(value)}
		}
		s.read.Store(0)
		if outcome = mustRun(t, e, request); s.read.Load() > 6 {
			t.Errorf("round %d: all requests were read %d times for %d answers", round, s.read.Load(), len(request.Targets))
		}
	}
}

// Regression: for each answer in one call the complete state of the run was read again, and 1500
// answers took minutes. The test measures memory, because time depends on the load of the machine.
func TestSlow_CostOfAnswersInOneCallIsLinear(t *testing.T) {
	few, many := costOfAnswers(t, 50), costOfAnswers(t, 200)
	if many > 6*few {
		t.Errorf("50 answers took %d bytes, 200 took %d", few, many)
	}
}

// costOfAnswers returns the bytes that are allocated to answer all requests of a run in one call.
func costOfAnswers(t *testing.T, questions int) uint64 {
	t.Helper()
	g := graph.New[note]("many")
	graph.Each(g, "all", func(note) []int { return make([]int, questions) }, func(ctx context.Context, _ int) (int, error) {
		_, err := fermata.Approve(ctx, fermata.Action[string]{Name: "commit"})
		return 0, err
	}, func(n note, _ []int) note { return n })
	g.Edge(graph.Start, "all")
	g.Edge("all", graph.End)
	e := executorOf(t, memory.NewStore(nil), providing(t, g), nil)
	request := executor.RunRequest{Account: "acme", StateKey: "a", ResumeID: "1", Actor: "ann", Targets: make(map[string]executor.Answer)}
	for _, i := range waits(t, began(t, e, "a", "inproc:many", `{}`)).Interrupts {
		request.Targets[i.ID] = executor.Answer{Value: []byte(yes)}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	completed(t, mustRun(t, e, request))
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
