package executor_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// mumbling is a store that records effects, but whose responses are lost or late.
type mumbling struct {
	store.Store
	lost   atomic.Int64 // number of the next responses that are lost
	late   func()       // called before a response arrives
	renews atomic.Bool  // leases can be renewed
}

func (d *mumbling) BeginEffect(ctx context.Context, lease store.Lease, effect store.NewEffect) (store.Effect, bool, error) {
	line, begun, err := d.Store.BeginEffect(ctx, lease, effect)
	if d.late != nil {
		d.late()
	}
	if err == nil && d.lost.Add(-1) >= 0 {
		return store.Effect{}, false, errReset
	}
	return line, begun, err
}

func (d *mumbling) Renew(ctx context.Context, lease store.Lease, duration time.Duration) error {
	if !d.renews.Load() {
		return errReset
	}
	return d.Store.Renew(ctx, lease, duration)
}

func (d *mumbling) executor(t *testing.T, execute func(e provider.Execution) (provider.Result, error)) *executor.Executor {
	d.Store = memory.NewStore(nil)
	d.renews.Store(true)
	p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) { return execute(e) }}
	return executorOf(t, d, p, func(c *executor.Config) { c.Log = slog.New(slog.DiscardHandler) })
}

// begins begins an effect that a policy allows.
func begins(ctx context.Context, e provider.Execution) (bool, error) {
	_, begun, err := e.Owner.Ledger().Begin(ctx, fermata.Intent{
		InterruptID: "a", Attempt: 1, Digest: "d", Key: "k", Allowed: &fermata.AllowedAction{Address: "x", By: "policy", Request: fermata.ApprovalRequest{Action: "tea", Digest: "d"}},
	})
	return begun, err
}

// Regression: an effect that was certainly not called became in doubt, because the store's response
// to its ledger entry was lost.
func TestBeginEffect_LostResponseLeavesNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hiccup{Store: memory.NewStore(nil), what: "Begin", takes: true}
		d := new(dropper)
		e := d.executor(t, h, func(c *executor.Config) { c.Log = slog.New(slog.DiscardHandler) })
		id := startDrop(t, e).Interrupts[0].ID
		h.left = 1
		completed(t, mustRun(t, e, word("ann", "drop-1", "1", id, yes)))
		lines := known(t, h, "drop-1").Effects
		if d.dropped.Load() != 1 || len(lines) != 1 || lines[0].State != store.EffectSucceeded || !h.failed() {
			t.Errorf("dropped %d times; the ledger has %+v", d.dropped.Load(), lines)
		}
	})
}

// A caller that was told that an effect is begun may have called it, whatever responses are lost
// after that.
func TestI4_BegunEffectIsNotBegunAgainAfterALostResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(mumbling)
		e := d.executor(t, func(x provider.Execution) (provider.Result, error) {
			if begun, err := begins(t.Context(), x); !begun || err != nil {
				t.Errorf("the first BeginEffect: %v, %v", begun, err)
			}
			d.lost.Store(2)
			if begun, err := begins(t.Context(), x); begun || err != nil {
				t.Errorf("the second BeginEffect: %v, %v", begun, err)
			}
			return done, nil
		})
		completed(t, mustRun(t, e, soonStart()))
	})
}

// A ledger entry without a response belongs to its own execution. Another execution may have
// received the response and called the effect.
func TestI4_EntryOfAnotherExecutionStaysInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(mumbling)
		executed := 0
		e := d.executor(t, func(x provider.Execution) (provider.Result, error) {
			if executed++; executed == 1 {
				d.lost.Store(1 << 30)
				begun, err := begins(t.Context(), x)
				if begun || err == nil {
					t.Errorf("the first BeginEffect: %v, %v", begun, err)
				}
				d.lost.Store(1)
				return done, &fermata.RetryError{After: time.Nanosecond, Err: err}
			}
			if begun, err := begins(t.Context(), x); begun || err != nil {
				t.Errorf("the second BeginEffect: %v, %v", begun, err)
			}
			return done, nil
		})
		e.StartWorkers()
		completed(t, mustRun(t, e, scriptedStart()))
		if executed != 2 {
			t.Errorf("%d executions", executed)
		}
	})
}

// A response that arrives after the lease ended is too late if another worker has taken over the
// run. That worker may have read that nothing happened yet.
func TestI4_NothingBeginsAfterATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(mumbling)
		executed := 0
		e := d.executor(t, func(x provider.Execution) (provider.Result, error) {
			if executed++; executed > 1 {
				return done, nil
			}
			d.renews.Store(false)
			d.late = func() {
				d.late = nil
				time.Sleep(20 * time.Second)
				work, err := d.Store.Claim(t.Context(), store.Claim{Owner: "other", Lease: time.Second})
				if err != nil || work == nil {
					t.Fatalf("no takeover: %+v, %v", work, err)
				}
				d.renews.Store(true)
			}
			begun, err := begins(t.Context(), x)
			if begun || !errors.Is(err, store.ErrFenced) {
				t.Errorf("the effect has begun: %v, %v", begun, err)
			}
			return done, err
		})
		request := scriptedStart()
		request.Wait = time.Minute
		_, _ = e.Run(t.Context(), request)
		if executed != 1 {
			t.Errorf("%d executions", executed)
		}
	})
}
