package fermata_test

import (
	"context"
	"sync"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// run is one run of a graph with one node.
type run struct {
	t    *testing.T
	flow *graph.Flow[string]
	st   store.Checkpoints
	opts []graph.Option
}

type node = func(ctx context.Context) (string, error)

func newRun(t *testing.T, n node, opts ...graph.Option) *run {
	return &run{t: t, flow: flowOf(t, n), st: memory.New(), opts: opts}
}

func flowOf(t *testing.T, n node) *graph.Flow[string] {
	t.Helper()
	g := graph.New[string]("g")
	g.Node("n", func(ctx context.Context, _ string) (string, error) { return n(ctx) })
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

func (r *run) start() (string, error) {
	return r.flow.Run(r.t.Context(), "", append(r.opts, graph.WithStore(r.st), graph.WithRun("r"))...)
}

func (r *run) resume(opts ...graph.Option) (string, error) {
	return r.flow.Resume(r.t.Context(), "r", append(append(opts, r.opts...), graph.WithStore(r.st))...)
}

func (r *run) answer(err error, answer any) (string, error) {
	r.t.Helper()
	return r.resume(graph.Answer(waitsFor(r.t, err).ID, answer))
}

// waitsFor returns the only open interrupt.
func waitsFor(t *testing.T, err error) *fermata.InterruptCtx {
	t.Helper()
	info, ok := fermata.ExtractInterruptInfo(err)
	if !ok || len(info.Interrupts) != 1 {
		t.Fatalf("the run should wait for one answer, but: %v", err)
	}
	return info.Interrupts[0]
}

// calls is a concurrent counter.
type calls struct {
	mu sync.Mutex
	n  int
}

func (c *calls) add() { c.mu.Lock(); c.n++; c.mu.Unlock() }

// allowing lets every action pass.
var allowing = graph.WithPolicy(fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
	return fermata.Ruling{Verdict: fermata.Allow}, nil
}))
