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
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// upTo1000 are rules by which nobody is asked, and no more than 1000 cents are paid a day.
const upTo1000 = `
default: allow
rules:
- id: day
  when: req.tool == "pay"
  limit: {amount: args.cents, max: 1000, window: 24h}
  then: deny
`

// pays pays without asking anybody. behind is called between the approval and the effect.
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

// A run made processes crash behind its approval, until it was parked. Whoever went on after an operator had mended that took what was charged for the
// action for somebody else's, and the rules denied the action because of itself.
func TestLimits_ARunThatIsRetriedIsNotDeniedByItsOwnCharge(t *testing.T) {
	runs := memory.NewRuns(nil)
	var paid, crashed atomic.Int64
	entered, hold := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	p := pays(t, &paid, func() {
		if crashed.Add(1) == 1 {
			close(entered)
			<-hold // this process is dead
		}
	})
	once := func(c *executor.Config) { c.Desk.Rules, c.MaxAttempts = loadRules(t, upTo1000), 1 }
	first := executorOf(t, runs, p, once)
	t.Cleanup(release)
	request := executor.Request{Account: "acme", StateKey: "a", Graph: "inproc:pay", Input: []byte(`{"cents":600}`)}
	go func() { _, _ = first.Run(context.Background(), request) }()
	<-entered
	expire(t, runs, "a")
	second := executorOf(t, runs, p, once)
	second.Start()
	for second.Retry(t.Context(), "acme", "a", desk.From{}) != nil {
		time.Sleep(time.Millisecond) // it is not parked yet
	}
	outcome := mustRun(t, second, request)
	if paid.Load() != 600 {
		t.Errorf("600 of 1000: %#v, paid %d", outcome, paid.Load())
	}
}

// late is a store in which the first charge is on its way for long.
type late struct {
	store.Store
	first       atomic.Bool
	sent, hurry chan struct{}
}

func (l *late) Amend(ctx context.Context, account string, beside store.Beside) error {
	charges := slices.ContainsFunc(beside.Papers, func(p store.PaperChange) bool { return p.Kind == "counter" })
	if charges && l.first.CompareAndSwap(false, true) {
		close(l.sent)
		<-l.hurry
	}
	return l.Store.Amend(ctx, account, beside)
}

// A process stood still while it charged an action. By the time that it went on, another one had taken the run over, charged the action and done it. The
// first one found the counter changed, judged anew, and charged the action a second time; where that is too much, it wrote that the rules denied it.
func TestLimits_AnActionIsChargedOnceAlsoByAnOwnerWhoHasLostTheRun(t *testing.T) {
	for cents, input := range map[int64]string{400: `{"cents":400}`, 600: `{"cents":600}`} {
		runs := memory.NewRuns(nil)
		var paid atomic.Int64
		p := pays(t, &paid, func() {})
		limited := func(c *executor.Config) { c.Desk.Rules = loadRules(t, upTo1000) }
		slow := &late{Store: runs, sent: make(chan struct{}), hurry: make(chan struct{})}
		first, second := executorOf(t, slow, p, limited), executorOf(t, runs, p, limited)
		request := executor.Request{Account: "acme", StateKey: "a", Graph: "inproc:pay", Input: []byte(input)}
		var old sync.WaitGroup
		old.Go(func() { _, _ = first.Run(context.Background(), request) })
		<-slow.sent
		expire(t, runs, "a")
		second.Start()
		completed(t, mustRun(t, second, request))
		close(slow.hurry)
		old.Wait()
		if err := first.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sum := chargedIn(t, runs); sum != cents || paid.Load() != cents || slices.Contains(lines(t, runs), "policy.denied") {
			t.Errorf("%d were paid and %d charged; the log says %v", paid.Load(), sum, lines(t, runs))
		}
	}
}

// chargedIn is what is charged to all counters.
func chargedIn(t *testing.T, s store.Store) (sum int64) {
	t.Helper()
	papers, err := s.Papers(t.Context(), "acme", "counter", store.PaperFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range papers {
		var counter struct {
			Charges []struct {
				Amount int64 `json:"n"`
			} `json:"charges"`
		}
		if err := json.Unmarshal(p.Facts, &counter); err != nil {
			t.Fatal(err)
		}
		for _, c := range counter.Charges {
			sum += c.Amount
		}
	}
	return sum
}
