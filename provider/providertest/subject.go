package providertest

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Subject is a provider that is tested.
type Subject struct {
	// New makes the provider, as a new process would. What its graphs do outside goes to the world.
	New func(t *testing.T, world *World) provider.Provider
	// Store makes an empty store.
	Store func(t *testing.T) store.Store

	// The graphs, if they differ from what the package's documentation says.
	Review Review
	Pair   Pair
	Drop   Drop
}

// Review is how a subject spells the content review.
type Review struct {
	Graph string
	Input json.RawMessage
	// BadInputs are some that no run can begin with. Where one holds the text CANARY, that must not be seen again.
	BadInputs []json.RawMessage
	// Revise and Approve are answers; Wrong are some that do not fit.
	Revise, Approve json.RawMessage
	Wrong           []json.RawMessage
	// Once says that a run of this provider asks one question, ever. Then there is no revising.
	SingleQuestion bool
	// NoDraft says that nothing is done before the question.
	NoDraft bool
}

// Pair is how a subject spells the two questions.
type Pair struct {
	Graph         string
	Input, Answer json.RawMessage
}

// Drop is how a subject spells the approved effect.
type Drop struct {
	Graph           string
	Input           json.RawMessage
	Approve, Reject json.RawMessage
	// Receipt is what a person says who has to tell whether the effect happened.
	Receipt json.RawMessage
}

// The work that the graphs do.
const (
	workDraft   = "draft"
	workPublish = "publish"
	workLeft    = "left"
	workRight   = "right"
	workDrop    = "drop"
)

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

// World is the outside of the runs. It sees how often each piece of work was done, and can stop one in the middle.
type World struct {
	mu          sync.Mutex
	begun, done map[string]int
	blockPoints map[string]*blockPoint
}

// blockPoint is where a piece of work waits.
type blockPoint struct {
	heedsContext bool // the end of its context
	entered      chan struct{}
	release      chan struct{}
}

// Work does a piece of work, by name. It fails only if the context ends before.
func (w *World) Work(ctx context.Context, name string) error {
	w.mu.Lock()
	w.begun[name]++
	stop := w.blockPoints[name]
	delete(w.blockPoints, name) // whoever comes next is not stopped
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

// stopAt has the next piece of work of a name wait in the middle.
func (w *World) blockAt(name string, heeds bool) *blockPoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &blockPoint{heedsContext: heeds, entered: make(chan struct{}), release: make(chan struct{})}
	w.blockPoints[name] = s
	return s
}

// count is how often a piece of work was done to the end.
func (w *World) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done[name]
}

// repeated is how often anything was begun after the first time.
func (w *World) repeated() (sum int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.begun {
		sum += max(n-1, 0)
	}
	return sum
}
