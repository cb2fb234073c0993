package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// question is the kind of most tests: a string question and a string answer.
var question = fermata.NewKind[string, string]("test-question")

func storeKey(run string) store.Key { return store.Key{Run: run} }

func compile[S any](t testing.TB, g *graph.Graph[S]) *graph.Flow[S] {
	t.Helper()
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

// unpack returns the parts of a run as if all were separate.
func unpack(t testing.TB, stored map[string][]byte) map[string][]byte {
	t.Helper()
	parts := maps.Clone(stored)
	var head, packed map[string]json.RawMessage
	if json.Unmarshal(parts["run"], &head) != nil || head["parts"] == nil {
		return parts
	}
	if err := json.Unmarshal(head["parts"], &packed); err != nil {
		t.Fatal(err)
	}
	for name, data := range packed {
		parts[name] = data
	}
	delete(head, "parts")
	var err error
	if parts["run"], err = json.Marshal(head); err != nil {
		t.Fatal(err)
	}
	return parts
}

// put returns the delta that stores parts.
func put(parts map[string][]byte) (delta store.Delta) {
	for name, data := range parts {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: data})
	}
	return delta
}

// harness executes one run of one flow in one store.
type harness[S any] struct {
	t    testing.TB
	flow *graph.Flow[S]
	st   store.Checkpoints
	run  string
}

func newHarness[S any](t testing.TB, g *graph.Graph[S]) *harness[S] {
	t.Helper()
	return &harness[S]{t: t, flow: compile(t, g), st: memory.New(), run: "run"}
}

func (h *harness[S]) start(input S, options ...graph.Option) (S, error) {
	return h.flow.Run(h.t.Context(), input, append(options, graph.WithStore(h.st), graph.WithRun(h.run))...)
}

func (h *harness[S]) resume(options ...graph.Option) (S, error) {
	return h.flow.Resume(h.t.Context(), h.run, append(options, graph.WithStore(h.st))...)
}

// waits returns the open interrupts in err.
func (h *harness[S]) waits(err error) []*fermata.InterruptCtx {
	h.t.Helper()
	info, ok := fermata.ExtractInterruptInfo(err)
	if !ok {
		h.t.Fatalf("the run should wait, but: %v", err)
	}
	return info.Interrupts
}

// answer resumes with one answer to the open interrupt with this question.
func (h *harness[S]) answer(open []*fermata.InterruptCtx, asked string, answer any) (S, error) {
	h.t.Helper()
	return h.resume(graph.Answer(find(h.t, open, asked).ID, answer))
}

func find(t testing.TB, open []*fermata.InterruptCtx, asked string) *fermata.InterruptCtx {
	t.Helper()
	i := slices.IndexFunc(open, func(ic *fermata.InterruptCtx) bool { return fmt.Sprint(ic.Info) == asked })
	if i < 0 {
		t.Fatalf("no interrupt asks %q, but: %v", asked, infos(open))
	}
	return open[i]
}

func infos(open []*fermata.InterruptCtx) []string {
	var list []string
	for _, ic := range open {
		list = append(list, fmt.Sprint(ic.Info))
	}
	slices.Sort(list)
	return list
}

func addresses(open []*fermata.InterruptCtx) []string {
	var list []string
	for _, ic := range open {
		list = append(list, ic.Address.String())
	}
	return list
}

// counter counts events from any goroutine.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[what]++
}

func (c *counter) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

func (c *counter) want(t testing.TB, want map[string]int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, n := range want {
		if c.n[what] != n {
			t.Errorf("%s happened %d times, want %d", what, c.n[what], n)
		}
	}
}

func wantErr(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got error %v, want %v", err, target)
	}
}

// notes is a state with a field for each node of a test.
type notes struct {
	A, B, C, D string
	N          int
	Log        []string
}

type fn = graph.Func[notes]

// write returns a node that counts itself and writes one field.
func write(c *counter, name string, field func(*notes) *string) fn {
	return func(_ context.Context, s notes) (notes, error) {
		c.add(name)
		*field(&s) = name
		return s, nil
	}
}

// ask returns a node that counts its entries, asks, and writes the answer into a field.
func ask(c *counter, name string, field func(*notes) *string) fn {
	return func(ctx context.Context, s notes) (notes, error) {
		c.add(name)
		answer, err := question.Ask(ctx, name+"?")
		if err != nil {
			return s, err
		}
		*field(&s) = answer
		return s, nil
	}
}

func fieldA(s *notes) *string { return &s.A }
func fieldB(s *notes) *string { return &s.B }
func fieldC(s *notes) *string { return &s.C }
func fieldD(s *notes) *string { return &s.D }
