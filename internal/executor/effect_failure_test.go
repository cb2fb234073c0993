package executor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// failing is a graph whose approved effect calls pay.
func failing(t *testing.T, pay func() error, options ...fermata.EffectOption) provider.Provider {
	return single(t, "pay", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "pay", Args: o.Table})
		if err != nil {
			return o, err
		}
		o.Receipt, err = fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) { return "paid", pay() }, options...)
		return o, err
	})
}

// An error of an effect is an unknown outcome: a person is asked, and reconciliation reports it
// until the person has answered.
func TestI4_FailingEffectAsksAPersonAndIsAFindingUntilItIsSettled(t *testing.T) {
	for name, happened := range map[string]string{"it happened": `{"happened":true,"receipt":"paid"}`, "it did not happen": `{"happened":false}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fail := errors.New("i/o timeout")
				e := executorOf(t, memory.NewStore(nil), failing(t, func() error { return fail }), nil)
				asked := waits(t, began(t, e, "pay-1", "inproc:pay", `{"table":"rent"}`)).Interrupts[0].ID
				doubt := waits(t, mustRun(t, e, word("ann", "pay-1", "1", asked, yes)))
				if doubt.Interrupts[0].Kind != fermata.EffectInDoubt.Name() {
					t.Fatalf("the run asks %+v", doubt)
				}
				time.Sleep(time.Hour)
				found, err := e.Reconcile(t.Context(), "acme")
				if err != nil || len(found) != 1 || found[0].Code != reconcile.FindingEffectInDoubt {
					t.Fatalf("findings %+v, %v", found, err)
				}
				fail = nil
				completed(t, mustRun(t, e, word("ann", "pay-1", "2", doubt.Interrupts[0].ID, happened)))
				time.Sleep(time.Hour)
				agree(t, e)
			})
		})
	}
}

func TestRetry_IdempotentEffectIsRepeatedAfterItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, start := 0, time.Now()
		e := executorOf(t, memory.NewStore(nil), failing(t, func() error {
			if calls++; calls < 3 {
				return fermata.Retry(errors.New("i/o timeout"), fermata.After(3*time.Minute))
			}
			return nil
		}, fermata.Idempotent()), nil)
		e.StartWorkers()
		asked := waits(t, began(t, e, "pay-1", "inproc:pay", `{"table":"rent"}`)).Interrupts[0].ID
		said := word("ann", "pay-1", "1", asked, yes)
		if _, err := e.Run(t.Context(), said); err == nil {
			t.Log("the outcome is not known yet")
		}
		time.Sleep(time.Until(start.Add(4 * time.Minute)))
		synctest.Wait()
		if calls != 2 {
			t.Errorf("called %d times after 4 minutes", calls)
		}
		time.Sleep(3 * time.Minute)
		completed(t, mustRun(t, e, said))
		agree(t, e)
	})
}

func TestRetry_NodeFailsAfterItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, calls := memory.NewStore(nil), 0
		e := executorOf(t, s, single(t, "fetch", inproc.FlowConfig[order]{}, func(_ context.Context, o order) (order, error) {
			calls++
			return o, fermata.Retry(errors.New("busy"), fermata.After(time.Second), fermata.AtMost(2))
		}), nil)
		e.StartWorkers()
		_, _ = e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "fetch-1", Graph: "inproc:fetch", Input: []byte(`{}`)})
		time.Sleep(time.Minute)
		synctest.Wait()
		if run, err := s.Get(t.Context(), "acme", "fetch-1"); err != nil || run.Status != store.StatusFailed || calls != 3 {
			t.Errorf("%s after %d calls, %v", run.Status, calls, err)
		}
	})
}
