package graph_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// stoppable is a graph of two nodes; the first calls during while it runs.
func stoppable(c *counter, during func(ctx context.Context) error) *graph.Graph[notes] {
	g := graph.New[notes]("stoppable")
	g.Node("first", func(ctx context.Context, s notes) (notes, error) {
		c.add("first")
		if err := during(ctx); err != nil {
			return s, err
		}
		s.A = "first"
		return s, nil
	})
	g.Node("second", write(c, "second", fieldB))
	g.Edge(graph.Start, "first")
	g.Edge("first", "second")
	g.Edge("second", graph.End)
	return g
}

func TestStop_AtTheNextStepLeavesAResumableRun(t *testing.T) {
	for _, limit := range []time.Duration{graph.NoLimit, time.Hour} {
		var c counter
		ctx, stop := graph.WithStop(t.Context())
		h := newHarness(t, stoppable(&c, func(context.Context) error { stop(limit); stop(0); return nil }))
		_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
		wantErr(t, err, graph.ErrStopped)
		snapshot, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
		if err != nil || snapshot.Status != graph.StatusStopped || snapshot.State.A != "first" {
			t.Fatalf("got %+v, %v", snapshot, err)
		}
		out, err := h.resume()
		if err != nil || out.B != "second" {
			t.Fatalf("got %+v, %v", out, err)
		}
		c.want(t, map[string]int{"first": 1, "second": 1})
	}
}

func TestStop_AfterTheLimitNodesAreCancelledAndEnteredAgain(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Millisecond} {
		var c counter
		ctx, stop := graph.WithStop(t.Context())
		first := true
		h := newHarness(t, stoppable(&c, func(ctx context.Context) error {
			if !first {
				return nil
			}
			first = false
			stop(limit)
			<-ctx.Done()
			return ctx.Err()
		}))
		_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
		wantErr(t, err, graph.ErrStopped)
		out, err := h.resume()
		if err != nil || out.A != "first" || out.B != "second" {
			t.Fatalf("got %+v, %v", out, err)
		}
		c.want(t, map[string]int{"first": 2, "second": 1})
	}
}

func TestStop_ReachesSubgraphsAndKeepsTheirSteps(t *testing.T) {
	var c counter
	ctx, stop := graph.WithStop(t.Context())
	inner := compile(t, stoppable(&c, func(context.Context) error { stop(graph.NoLimit); return nil }))
	g := graph.New[notes]("outer")
	graph.Sub(g, "sub", inner, func(s notes) notes { return s }, func(_, r notes) notes { return r })
	g.Edge(graph.Start, "sub")
	g.Edge("sub", graph.End)
	h := newHarness(t, g)
	_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
	wantErr(t, err, graph.ErrStopped)
	if _, err := h.resume(); err != nil {
		t.Fatal(err)
	}
	c.want(t, map[string]int{"first": 1, "second": 1})
}

func TestCancel_LeavesAResumableRun(t *testing.T) {
	var c counter
	why := errors.New("the user went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	first := true
	h := newHarness(t, stoppable(&c, func(ctx context.Context) error {
		if first {
			first = false
			cancel(why)
			return context.Cause(ctx)
		}
		return nil
	}))
	_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
	wantErr(t, err, why)
	snapshot, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil || snapshot.Status != graph.StatusStopped {
		t.Fatalf("got %+v, %v", snapshot, err)
	}
	if out, err := h.resume(); err != nil || out.B != "second" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestCancel_AFinishedNodeIsSavedAllTheSame(t *testing.T) {
	var c counter
	ctx, cancel := context.WithCancel(t.Context())
	h := newHarness(t, stoppable(&c, func(context.Context) error { cancel(); return nil }))
	_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
	wantErr(t, err, context.Canceled)
	if out, err := h.resume(); err != nil || out.A != "first" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"first": 1, "second": 1})
}

func TestStop_AnOpenQuestionIsStillAnnounced(t *testing.T) {
	var c counter
	ctx, stop := graph.WithStop(t.Context())
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		c.add("node")
		stop(graph.NoLimit)
		answer, err := question.Ask(ctx, "still?")
		s.A = answer
		return s, err
	}))
	_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
	if _, waits := fermata.ExtractInterruptInfo(err); !waits {
		t.Fatalf("got %v", err)
	}
}

// The first Ctrl-C requests a graceful stop, the second an immediate one.
func TestStop_ALaterCallCanShortenTheLimitAndNotLengthenIt(t *testing.T) {
	for _, limits := range [][]time.Duration{{graph.NoLimit, 0}, {time.Hour, 0}, {time.Hour, time.Millisecond}, {0, time.Hour}, {0, graph.NoLimit}} {
		var c counter
		ctx, stop := graph.WithStop(t.Context())
		h := newHarness(t, stoppable(&c, func(ctx context.Context) error {
			for _, limit := range limits {
				stop(limit)
			}
			<-ctx.Done()
			return ctx.Err()
		}))
		_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
		wantErr(t, err, graph.ErrStopped)
	}
}

// registry is a context that counts its AfterFunc registrations.
type registry struct {
	context.Context
	waiting atomic.Int64
}

func (r *registry) AfterFunc(fn func()) (stop func() bool) {
	r.waiting.Add(1)
	unregister := context.AfterFunc(r.Context, fn)
	return func() bool {
		r.waiting.Add(-1)
		return unregister()
	}
}

// A server's context lives as long as the server: registrations of finished runs must be released.
func TestStop_LeavesNothingWithTheParent(t *testing.T) {
	for _, limits := range [][]time.Duration{{0}, {graph.NoLimit, 0}, {time.Hour, 0}, {time.Nanosecond}} {
		synctest.Test(t, func(t *testing.T) {
			parent := &registry{Context: t.Context()}
			ctx, stop := graph.WithStop(parent)
			for _, limit := range limits {
				stop(limit)
			}
			<-ctx.Done()
			synctest.Wait()
			if n := parent.waiting.Load(); n != 0 {
				t.Errorf("%v: %d registrations remain at the parent", limits, n)
			}
		})
	}
}
