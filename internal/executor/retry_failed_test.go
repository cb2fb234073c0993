package executor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// A run pays, and its next step fails. After a retry it continues with that step: the payment was
// made once, and nobody is asked again.
func TestRetry_FailedRunContinuesFromItsLastStep(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		paid, broken := 0, true
		p := single(t, "pay", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
			yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "pay", Args: o.Table})
			if err != nil {
				return o, err
			}
			o.Receipt, err = fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) { paid++; return "paid", nil })
			if err == nil && broken {
				err = errors.New("the ledger of host-7 is down")
			}
			return o, err
		})
		e := executorOf(t, s, p, nil)
		e.StartWorkers()
		asked := waits(t, began(t, e, "pay-1", "inproc:pay", `{"table":"rent"}`)).Interrupts[0].ID
		failedWith(t, mustRun(t, e, word("ann", "pay-1", "1", asked, yes)), "node_failed")
		view, err := e.GetRun(t.Context(), "acme", "pay-1")
		if err != nil || view.Problem == nil || view.Problem.Final || strings.Contains(view.Problem.Message, "host-7") || !strings.Contains(view.Problem.Detail, "host-7") {
			t.Fatalf("the problem is %+v, %v", view.Problem, err)
		}
		broken = false
		if err := e.Retry(t.Context(), "acme", "pay-1", by("ops")); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return known(t, s, "pay-1").Run.Status == store.StatusCompleted })
		if view, err := e.GetRun(t.Context(), "acme", "pay-1"); err != nil || view.Problem != nil || completed(t, view.Outcome).Run == "" || paid != 1 {
			t.Errorf("paid %d times, %+v, %v", paid, view, err)
		}
		want := []string{"run.ended", "run.retried", "run.ended"}
		got := slices.DeleteFunc(lines(t, s), func(kind string) bool { return !slices.Contains(want, kind) })
		if !slices.Equal(got, want) {
			t.Errorf("audit lines %v", got)
		}
		failedWith(t, mustRun(t, e, word("ann", "pay-1", "1", asked, yes)), "node_failed") // one resume id, one outcome
		agree(t, e)
	})
}

// The question of a failed run is withdrawn. The retried run asks it under a new id, and the old
// one cannot be answered.
func TestRetry_FailedRunAsksAgainUnderANewID(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p := &scripted{execute: func(n int64, x provider.Execution) (provider.Result, error) {
			if n == 1 {
				if _, err := x.Run.State.Save(t.Context(), store.Key{Account: x.Run.Account, Run: x.Run.ID}, 0, store.Delta{Put: []store.Part{{Name: "a", Data: []byte("1")}}}); err != nil {
					return provider.Result{}, err
				}
			}
			if n == 2 {
				return provider.Result{Applied: []string{"int_a"}, Outcome: provider.Failed{Code: "node_failed", Message: "it failed"}}, nil
			}
			open := []provider.Interrupt{{ID: "int_b", Envelope: fermata.Envelope{Kind: "plain", Data: []byte(`"b"`)}}}
			if n == 1 {
				open = append(open, provider.Interrupt{ID: "int_a", Envelope: fermata.Envelope{Kind: "plain", Data: []byte(`"a"`)}})
			}
			return provider.Result{Outcome: provider.Waiting{Interrupts: open}}, nil
		}}
		e := executorOf(t, s, p, nil)
		e.StartWorkers()
		waits(t, mustRun(t, e, scriptedStart()))
		failedWith(t, mustRun(t, e, word("ann", "x-1", "1", "int_a", `"yes"`)), "node_failed")
		if err := e.Retry(t.Context(), "acme", "x-1", by("ops")); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return known(t, s, "x-1").Run.Status == store.StatusWaiting })
		view, err := e.GetRun(t.Context(), "acme", "x-1")
		if err != nil {
			t.Fatal(err)
		}
		if again := waits(t, view.Outcome).Interrupts; len(again) != 1 || again[0].ID != "int_b~2" {
			t.Errorf("it asks %+v", again)
		}
		_, err = e.Run(t.Context(), word("ann", "x-1", "2", "int_b", `"yes"`))
		if refused, ok := errors.AsType[*executor.RefusedError](err); !ok || refused.Result != store.ResultWithdrawn {
			t.Errorf("an answer to the withdrawn question: %v", err)
		}
	})
}

func TestRetry_FinalFailuresAreRefusedWithTheReason(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := executorOf(t, s, failing(t, func() error { return nil }), nil)
		asked := waits(t, began(t, e, "pay-1", "inproc:pay", `{"table":"rent"}`)).Interrupts[0].ID
		failedWith(t, mustRun(t, e, word("ann", "pay-1", "1", asked, `{"verb":"reject","reason":"no"}`)), "rejected")
		err := e.Retry(t.Context(), "acme", "pay-1", by("ops"))
		if !errors.Is(err, executor.ErrNotRetryable) || !strings.Contains(err.Error(), "final (rejected") {
			t.Errorf("retry of a rejected run: %v", err)
		}
		if count(lines(t, s), "run.retried") != 0 {
			t.Error("the refused retry has an audit line")
		}
	})
}
