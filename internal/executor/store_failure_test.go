package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

var errReset = errors.New("the connection was reset")

// hiccup is a store that fails once, at the n-th call of a method. The call takes effect or not,
// and the caller does not know which.
type hiccup struct {
	store.Store
	what  string
	takes bool
	why   error // errReset if nil

	mu   sync.Mutex
	left int // calls until the failure; 0 after it
}

// now makes a call, or fails.
func (h *hiccup) now(what string, call func() error) error {
	h.mu.Lock()
	fails := false
	if h.what == what && h.left > 0 {
		h.left--
		fails = h.left == 0
	}
	h.mu.Unlock()
	why := h.why
	if why == nil {
		why = errReset
	}
	if fails && !h.takes {
		return why
	}
	if err := call(); err != nil || !fails {
		return err
	}
	return why
}

// failed reports whether the failure has occurred.
func (h *hiccup) failed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.left == 0
}

func (h *hiccup) BeginEffect(ctx context.Context, lease store.Lease, effect store.NewEffect) (line store.Effect, begun bool, err error) {
	err = h.now("Begin", func() (err error) { line, begun, err = h.Store.BeginEffect(ctx, lease, effect); return err })
	return line, begun, err
}

func (h *hiccup) EndEffect(ctx context.Context, end store.EffectEnd) error {
	return h.now("End", func() error { return h.Store.EndEffect(ctx, end) })
}

func (h *hiccup) Interrupts(ctx context.Context, account, run string) (asked []store.Interrupt, err error) {
	err = h.now("Interrupts", func() (err error) { asked, err = h.Store.Interrupts(ctx, account, run); return err })
	return asked, err
}

func (h *hiccup) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (paper store.Document, err error) {
	err = h.now("Paper", func() (err error) { paper, err = h.Store.Document(ctx, account, kind, id); return err })
	return paper, err
}

func (h *hiccup) Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) (papers []store.Document, err error) {
	err = h.now("Papers", func() (err error) { papers, err = h.Store.Documents(ctx, account, kind, filter); return err })
	return papers, err
}

func (h *hiccup) RunSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (stands store.RunSnapshot, err error) {
	err = h.now("Standing", func() (err error) { stands, err = h.Store.RunSnapshot(ctx, account, stateKey, own); return err })
	return stands, err
}

func (h *hiccup) Load(ctx context.Context, key store.Key) (checkpoint store.Checkpoint, err error) {
	err = h.now("Load", func() (err error) { checkpoint, err = h.Store.Load(ctx, key); return err })
	return checkpoint, err
}

func (h *hiccup) Now(ctx context.Context) (now time.Time, err error) {
	err = h.now("Now", func() (err error) { now, err = h.Store.Now(ctx); return err })
	return now, err
}

func (h *hiccup) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	return h.now("Amend", func() error { return h.Store.CommitWrites(ctx, account, beside) })
}

func (h *hiccup) Decide(ctx context.Context, decision store.Decision) (receipt store.DecisionReceipt, err error) {
	err = h.now("Decide", func() (err error) { receipt, err = h.Store.Decide(ctx, decision); return err })
	if err != nil {
		return store.DecisionReceipt{}, err
	}
	return receipt, nil
}

func (h *hiccup) EndExecution(ctx context.Context, lease store.Lease, rest store.ExecutionEnd) (status store.Status, err error) {
	err = h.now("Rest", func() (err error) { status, err = h.Store.EndExecution(ctx, lease, rest); return err })
	return status, err
}

func (h *hiccup) Fenced(lease store.Lease) store.Checkpoints {
	return &hiccupState{h.Store.Fenced(lease), h}
}

type hiccupState struct {
	store.Checkpoints
	*hiccup
}

func (s *hiccupState) Load(ctx context.Context, key store.Key) (checkpoint store.Checkpoint, err error) {
	err = s.now("Load", func() (err error) { checkpoint, err = s.Checkpoints.Load(ctx, key); return err })
	return checkpoint, err
}

func (s *hiccupState) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (revision int64, err error) {
	err = s.now("Save", func() (err error) { revision, err = s.Checkpoints.Save(ctx, key, base, delta); return err })
	return revision, err
}

func (s *hiccupState) Delete(ctx context.Context, key store.Key) error {
	return s.Checkpoints.Delete(ctx, key)
}

// errand makes a note, which the rules allow a few times a day, and then a payment, which needs
// approval. Its targets support idempotency keys.
func errand(t *testing.T, done map[string]int) provider.Provider {
	act := func(ctx context.Context, name string, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: name, Args: o.Table})
		if err != nil {
			return o, err
		}
		o.Receipt, err = fermata.Effect(ctx, yes, func(_ context.Context, _, key string) (string, error) {
			done[name+" "+key]++
			return name, nil
		}, fermata.Idempotent())
		return o, err
	}
	return single(t, "errand", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		o, err := act(ctx, "note", o)
		if err != nil {
			return o, err
		}
		return act(ctx, "pay", o)
	})
}

// told repeats a request until there is an answer, as its caller would.
func told(t *testing.T, e *executor.Executor, request executor.RunRequest) fermata.Outcome {
	t.Helper()
	for range 10 {
		outcome, err := e.Run(t.Context(), request)
		if err == nil {
			return outcome
		}
		if !errors.Is(err, errReset) && !errors.Is(err, executor.ErrPending) {
			t.Fatal(err)
		}
	}
	t.Fatal("no answer after 10 attempts")
	return nil
}

// A store that fails once fails no run, whichever call it is, and whether or not it took effect:
// the run completes, each effect has one key, and the reconciliation has no findings.
func TestI2_StoreThatFailsOnceFailsNoRun(t *testing.T) {
	for _, what := range []string{"Begin", "End", "Paper", "Papers", "Now", "Standing", "Amend", "Decide", "Rest", "Load", "Save"} {
		for _, takes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, taking effect %v", what, takes), func(t *testing.T) {
				tried := 0
				for n := 1; errandWith(t, &hiccup{what: what, takes: takes, left: n}); n++ {
					tried++
				}
				if tried == 0 {
					t.Error("the method was never called")
				}
			})
		}
	}
}

// A write that fails because the store is full is not repeated at once: the execution ends, and the
// run continues later.
func TestI2_FullStoreFailsNoRun(t *testing.T) {
	for n := 1; n <= 2; n++ { // there are two effects
		if !errandWith(t, &hiccup{what: "Begin", why: fmt.Errorf("memory: %w", store.ErrFull), left: n}) {
			t.Errorf("effect %d was never begun", n)
		}
	}
}

// errandWith runs the errand, and reports whether the store failed.
func errandWith(t *testing.T, h *hiccup) (failed bool) {
	nth := h.left
	synctest.Test(t, func(t *testing.T) {
		h.Store = memory.NewStore(nil)
		done := make(map[string]int)
		left := h.left
		h.left = 0 // until the executor has started
		e := executorOf(t, h, errand(t, done), func(c *executor.Config) {
			c.Log, c.Poll, c.Lease = slog.New(slog.DiscardHandler), 10*time.Minute, 30*time.Second
			c.Desk.Policy = loadRules(t, `
default: deny
rules:
- {id: notes, when: req.tool == "note", then: deny, limit: {max: 3, window: 24h}}
- {id: note, when: req.tool == "note", then: allow}
- {id: pay, when: req.tool == "pay", then: ask, ask: {groups: [{from: [anyone]}], deadline: 100h, separation_of_duties: [prior_approver]}}
`)
		})
		e.StartWorkers()
		synctest.Wait()
		h.mu.Lock()
		h.left = left
		h.mu.Unlock()
		asked := waits(t, told(t, e, executor.RunRequest{Account: "acme", StateKey: "e", Graph: "inproc:errand", Input: []byte(`{"table":"users"}`), Wait: 24 * time.Hour}))
		request := word("ann", "e", "1", asked.Interrupts[0].ID, yes)
		request.Wait = 24 * time.Hour
		outcome := told(t, e, request)
		if failed = h.failed(); !failed {
			return
		}
		if _, ok := outcome.(fermata.Completed); !ok {
			t.Errorf("call %d: outcome %#v", nth, outcome)
		}
		if len(done) != 2 {
			t.Errorf("call %d: effects %v", nth, done)
		}
		ended := make(map[string]bool)
		for _, line := range known(t, h, "e").Effects {
			ended[line.IdempotencyKey] = ended[line.IdempotencyKey] || line.State == store.EffectSucceeded
		}
		if len(ended) != 2 || slices.Contains(slices.Collect(maps.Values(ended)), false) {
			t.Errorf("call %d: ledger %v", nth, ended)
		}
		found, err := e.Reconcile(t.Context(), "acme")
		if err != nil || len(found) > 0 {
			t.Errorf("call %d: reconciliation findings %+v, %v", nth, found, err)
		}
	})
	return failed
}
