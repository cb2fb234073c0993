package providertest

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/provider"
)

// Subject is a provider under test.
type Subject struct {
	// New creates the provider, as a new process would. The effects of its graphs go to the world.
	New func(t *testing.T, world *World) provider.Provider
	// Store creates an empty store.
	Store func(t *testing.T) store.Store

	// Slow reports that an execution takes seconds. The tests of crashes then take a random sample
	// of the store calls, and others have fewer runs, except in the soak.
	Slow bool

	// The graphs, if they differ from the package documentation.
	Review Review
	Pair   Pair
	Drop   Drop
}

// Review describes the subject's content review.
type Review struct {
	Graph string
	Input json.RawMessage
	// BadInputs are invalid inputs. If one contains the text CANARY, it must not appear in results.
	BadInputs []json.RawMessage
	// Revise and Approve are answers; Wrong are invalid ones.
	Revise, Approve json.RawMessage
	Wrong           []json.RawMessage
	// SingleQuestion reports that a run of this provider has exactly one interrupt. Then there is
	// no revision.
	SingleQuestion bool
	// NoDraft reports that no work is done before the interrupt.
	NoDraft bool
}

// Pair describes the subject's graph with two interrupts.
type Pair struct {
	Graph         string
	Input, Answer json.RawMessage
}

// Drop describes the subject's approved effect.
type Drop struct {
	Graph           string
	Input           json.RawMessage
	Approve, Reject json.RawMessage
	// Receipt is the answer of a person about the effect in doubt.
	Receipt json.RawMessage
}

// The work of the graphs.
const (
	workDraft   = "draft"
	workPublish = "publish"
	workLeft    = "left"
	workRight   = "right"
	workDrop    = "drop"
)

// sampled reports whether the tests use a sample.
func (s Subject) sampled() bool { return s.Slow && !testtier.IsNightly() }

// runs returns the number of runs in tests with many of them.
func (s Subject) runs(many int) int {
	if s.sampled() {
		return 3
	}
	return many
}

func (s Subject) complete() Subject {
	s.Review.Graph = cmp.Or(s.Review.Graph, "content-review")
	defaults(&s.Review.Input, `{"topic":"tea"}`)
	defaults(&s.Review.Revise, `{"action":"revise","feedback":"shorter"}`)
	defaults(&s.Review.Approve, `{"action":"approve"}`)
	if s.Review.Wrong == nil {
		s.Review.Wrong = list(`{"action":"maybe"}`, `"approve"`, `{"action":"approve","admin":true}`, `{"action":"reject","Action":"approve"}`, `[]`, `null`, `{`, ``)
	}
	if s.Review.BadInputs == nil {
		s.Review.BadInputs = list(`{"topic":{"of":"CANARY"}}`, `{"topic":"tea","extra":"CANARY"}`, `{"Topic":"CANARY"}`, `["CANARY"]`, `"CANARY"`, `{"topic":`)
	}
	s.Pair.Graph = cmp.Or(s.Pair.Graph, "pair")
	defaults(&s.Pair.Input, `{"topic":"tea"}`)
	defaults(&s.Pair.Answer, `{"action":"approve"}`)
	s.Drop.Graph = cmp.Or(s.Drop.Graph, "drop")
	defaults(&s.Drop.Input, `{"table":"users"}`)
	defaults(&s.Drop.Approve, `{"verb":"approve"}`)
	defaults(&s.Drop.Reject, `{"verb":"reject"}`)
	defaults(&s.Drop.Receipt, `"dropped"`)
	return s
}

func defaults(field *json.RawMessage, text string) {
	if *field == nil {
		*field = json.RawMessage(text)
	}
}

func list(texts ...string) []json.RawMessage {
	var all []json.RawMessage
	for _, text := range texts {
		all = append(all, json.RawMessage(text))
	}
	return all
}

// World is the outside world of the runs. It counts how often each piece of work was done, and can
// block one.
type World struct {
	mu          sync.Mutex
	begun, done map[string]int
	blockPoints map[string]*blockPoint
}

// blockPoint is where a piece of work blocks.
type blockPoint struct {
	heedsContext bool // returns when its context is done
	entered      chan struct{}
	release      chan struct{}
}

// Work does a piece of work, by name. It fails only if the context ends first.
func (w *World) Work(ctx context.Context, name string) error {
	w.mu.Lock()
	w.begun[name]++
	stop := w.blockPoints[name]
	delete(w.blockPoints, name) // only the next call blocks
	w.mu.Unlock()
	if stop != nil {
		close(stop.entered)
		var ended <-chan struct{}
		if stop.heedsContext {
			ended = ctx.Done()
		}
		select {
		case <-stop.release:
		case <-ended:
			return ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[name]++
	return nil
}

func newWorld() *World {
	return &World{begun: make(map[string]int), done: make(map[string]int), blockPoints: make(map[string]*blockPoint)}
}

// blockAt blocks the next piece of work with this name.
func (w *World) blockAt(name string, heeds bool) *blockPoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &blockPoint{heedsContext: heeds, entered: make(chan struct{}), release: make(chan struct{})}
	w.blockPoints[name] = s
	return s
}

// count returns how often a piece of work was completed.
func (w *World) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done[name]
}

// repeated returns how often work was started after the first time.
func (w *World) repeated() (sum int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.begun {
		sum += max(n-1, 0)
	}
	return sum
}
