package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

func testNames(t *testing.T, s Subject) {
	p := s.New(t, newWorld())
	if p.Name() == "" || strings.Contains(p.Name(), ":") {
		t.Errorf("it is named %q", p.Name())
	}
	known := make(map[string]bool)
	for _, g := range p.Graphs() {
		if g.Name == "" || known[g.Name] || g.Input != nil && !json.Valid(g.Input) {
			t.Errorf("the graph %+v", g)
		}
		known[g.Name] = true
	}
	for graph, needed := range map[string]bool{s.Review.Graph: true, s.Pair.Graph: p.Capabilities().Parallel, s.Drop.Graph: p.Capabilities().Effects} {
		if needed && !known[graph] {
			t.Errorf("the graph %s is missing", graph)
		}
	}
}

// testUnknownGraph: another process may have the graph, so the run must not fail.
func testUnknownGraph(t *testing.T, s Subject) {
	d := begin(t, s, "no-such-graph", s.Review.Input)
	unchanged := d.wantUnchanged()
	if result, err := d.execute(t.Context()); err == nil {
		t.Errorf("it returned %#v", result.Outcome)
	}
	if _, err := d.provider.CheckAnswer(t.Context(), d.run(d.store), "int_1", s.Review.Approve); err == nil {
		t.Error("an answer to it is accepted")
	}
	unchanged("an unknown graph")
}

func testBadInput(t *testing.T, s Subject) {
	for _, input := range s.Review.BadInputs {
		d := begin(t, s, s.Review.Graph, input)
		result, err := d.execute(t.Context())
		failed, ok := result.Outcome.(provider.Failed)
		if err != nil || !ok || failed.Code != "invalid_input" {
			t.Errorf("%s: it returned %#v, %v", input, result.Outcome, err)
			continue
		}
		if strings.Contains(failed.Message, "CANARY") {
			t.Errorf("%s: run data is in %q", input, failed.Message)
		}
		if _, err := d.store.Load(t.Context(), d.storeKey()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: something was saved: %v", input, err)
		}
		d.wantNotDone(workDraft, workPublish)
	}
}

func testDelete(t *testing.T, s Subject) {
	d, q := startReview(t, s)
	d.decide(s.Review.Approve, q)
	d.completes()
	for range 2 {
		if err := d.provider.Delete(t.Context(), d.run(d.store)); err != nil {
			t.Error(err)
		}
	}
	unknown := d.run(d.store)
	unknown.ID, unknown.Ref = "run_unknown", ""
	if err := d.provider.Delete(t.Context(), unknown); err != nil {
		t.Errorf("an unknown run: %v", err)
	}
}

// testGoroutines checks that an execution leaves no goroutines behind.
func testGoroutines(t *testing.T, s Subject) {
	first, q := startReview(t, s)
	first.decide(s.Review.Approve, q)
	first.completes()
	before := runtime.NumGoroutine()
	for n := range s.runs(20) {
		d := *first
		d.id, d.key, d.ref, d.answers = fmt.Sprint("run_", n+2), fmt.Sprint("demo-", n+2), "", nil
		d.create()
		d.decide(s.Review.Approve, d.waits(1)[0])
		d.completes()
	}
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > before+5 { // the end of a connection is not signalled
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, then %d:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(time.Millisecond)
	}
}
