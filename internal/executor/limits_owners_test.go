package executor_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// upTo1000 are rules that need no approval, with a limit of 1000 cents a day.
const upTo1000 = `
default: allow
rules:
- id: day
  when: req.tool == "pay"
  limit: {amount: args.cents, max: 1000, window: 24h}
  then: deny
`

// pays pays without approval. behind is called between the approval and the effect.
func pays(t *testing.T, paid *atomic.Int64, behind func()) provider.Provider {
	t.Helper()
	return single(t, "pay", inproc.FlowConfig[payment]{}, func(ctx context.Context, p payment) (payment, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: p})
		if err != nil {
			return p, err
		}
		behind()
		_, err = fermata.Effect(ctx, yes, func(_ context.Context, args payment, _ string) (string, error) {
			paid.Add(args.Cents)
			return "paid", nil
		})
		return p, err
	})
}

// diesCharged starts a run that pays 600 cents, in a process that dies as soon as this is charged:
// its lease has ended.
func diesCharged(t *testing.T, runs *memory.Store, paid *atomic.Int64, change func(*executor.Config)) (provider.Provider, executor.RunRequest) {
	t.Helper()
	var tried atomic.Int64
	entered, hold := make(chan struct{}), make(chan struct{})
	p := pays(t, paid, func() {
		if tried.Add(1) == 1 {
			close(entered)
			<-hold // this process is dead
		}
	})
	first := executorOf(t, runs, p, change)
	t.Cleanup(func() { close(hold) })
	request := executor.RunRequest{Account: "acme", StateKey: "a", Graph: "inproc:pay", Input: []byte(`{"cents":600}`)}
	go func() { _, _ = first.Run(context.Background(), request) }()
	<-entered
	expire(t, runs, "a")
	return p, request
}

// The process that takes over a run evaluates its action again, and recognises the charge that was
// made already.
func TestLimits_TakeoverIsNotDeniedByTheFirstCharge(t *testing.T) {
	var paid atomic.Int64
	runs := memory.NewStore(nil)
	limited := func(c *executor.Config) { c.Desk.Policy = loadRules(t, upTo1000) }
	p, request := diesCharged(t, runs, &paid, limited)
	second := executorOf(t, runs, p, limited)
	second.StartWorkers()
	if outcome := mustRun(t, second, request); paid.Load() != 600 {
		t.Errorf("600 of 1000: %#v, paid %d", outcome, paid.Load())
	}
}

// Regression: a run crashed processes after its approval, until it was parked. After an operator
// fixed the cause, the next execution took the charge of the action for another one, and the rules
// denied the action because of itself.
func TestLimits_RetriedRunIsNotDeniedByItsOwnCharge(t *testing.T) {
	var paid atomic.Int64
	runs := memory.NewStore(nil)
	limited := func(c *executor.Config) { c.Desk.Policy = loadRules(t, upTo1000) }
	p, request := diesCharged(t, runs, &paid, limited)
	work, err := runs.Claim(t.Context(), store.Claim{Owner: "parker", Lease: time.Minute})
	if err != nil || work == nil {
		t.Fatalf("claimed %+v, %v", work, err)
	}
	if err := runs.Release(t.Context(), work.Lease, store.Release{Park: true}); err != nil {
		t.Fatal(err)
	}
	second := executorOf(t, runs, p, limited)
	second.StartWorkers()
	if err := second.Retry(t.Context(), "acme", "a", desk.From{}); err != nil {
		t.Fatal(err)
	}
	if outcome := mustRun(t, second, request); paid.Load() != 600 {
		t.Errorf("600 of 1000: %#v, paid %d", outcome, paid.Load())
	}
}

// late is a store in which the first charge takes long.
type late struct {
	store.Store
	first       atomic.Bool
	sent, hurry chan struct{}
}

func (l *late) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	charges := slices.ContainsFunc(beside.Documents, func(p store.DocumentChange) bool { return p.Kind == "counter" })
	if charges && l.first.CompareAndSwap(false, true) {
		close(l.sent)
		<-l.hurry
	}
	return l.Store.CommitWrites(ctx, account, beside)
}

// Regression: a process paused while it charged an action. Another process took over the run,
// charged the action and did it. The first process then found the counter changed, evaluated again,
// and charged the action a second time. If that was too much, it recorded that the rules denied the
// action.
func TestLimits_ActionIsChargedOnceAfterATakeover(t *testing.T) {
	for cents, input := range map[int64]string{400: `{"cents":400}`, 600: `{"cents":600}`} {
		runs := memory.NewStore(nil)
		var paid atomic.Int64
		p := pays(t, &paid, func() {})
		limited := func(c *executor.Config) { c.Desk.Policy = loadRules(t, upTo1000) }
		slow := &late{Store: runs, sent: make(chan struct{}), hurry: make(chan struct{})}
		first, second := executorOf(t, slow, p, limited), executorOf(t, runs, p, limited)
		request := executor.RunRequest{Account: "acme", StateKey: "a", Graph: "inproc:pay", Input: []byte(input)}
		var old sync.WaitGroup
		old.Go(func() { _, _ = first.Run(context.Background(), request) })
		<-slow.sent
		expire(t, runs, "a")
		second.StartWorkers()
		completed(t, mustRun(t, second, request))
		close(slow.hurry)
		old.Wait()
		if err := first.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sum := chargedIn(t, runs); sum != cents || paid.Load() != cents || slices.Contains(lines(t, runs), "policy.denied") {
			t.Errorf("paid %d, charged %d; audit lines %v", paid.Load(), sum, lines(t, runs))
		}
	}
}

// chargedIn returns the sum of all counters.
func chargedIn(t *testing.T, s store.Store) (sum int64) {
	t.Helper()
	for _, p := range papersOf(t, s, "acme", "counter") {
		var counter struct {
			Charges []struct {
				Amount int64 `json:"n"`
			} `json:"charges"`
		}
		if err := json.Unmarshal(p.Index, &counter); err != nil {
			t.Fatal(err)
		}
		for _, c := range counter.Charges {
			sum += c.Amount
		}
	}
	return sum
}
