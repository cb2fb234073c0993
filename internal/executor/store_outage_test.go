package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
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

// away is a store that is unreachable until some time, like one that is restarted.
type away struct {
	store.Store
	until atomic.Pointer[time.Time]
}

func (a *away) goes(long time.Duration) {
	until := time.Now().Add(long)
	a.until.Store(&until)
}

func (a *away) err() error {
	if until := a.until.Load(); until != nil && time.Now().Before(*until) {
		return errReset
	}
	return nil
}

func (a *away) EndEffect(ctx context.Context, end store.EffectEnd) error {
	if err := a.err(); err != nil {
		return err
	}
	return a.Store.EndEffect(ctx, end)
}

func (a *away) Renew(ctx context.Context, lease store.Lease, long time.Duration) error {
	if err := a.err(); err != nil {
		return err
	}
	return a.Store.Renew(ctx, lease, long)
}

func (a *away) Claim(ctx context.Context, claim store.Claim) (*store.ClaimedRun, error) {
	if err := a.err(); err != nil {
		return nil, err
	}
	return a.Store.Claim(ctx, claim)
}

func (a *away) Now(ctx context.Context) (time.Time, error) {
	if err := a.err(); err != nil {
		return time.Time{}, err
	}
	return a.Store.Now(ctx)
}

func (a *away) EndExecution(ctx context.Context, lease store.Lease, rest store.ExecutionEnd) (store.Status, error) {
	if err := a.err(); err != nil {
		return "", err
	}
	return a.Store.EndExecution(ctx, lease, rest)
}

func (a *away) Release(ctx context.Context, lease store.Lease, how store.Release) error {
	if err := a.err(); err != nil {
		return err
	}
	return a.Store.Release(ctx, lease, how)
}

func (a *away) Fenced(lease store.Lease) store.Checkpoints {
	return &awayState{a.Store.Fenced(lease), a}
}

type awayState struct {
	store.Checkpoints
	away *away
}

func (s *awayState) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if err := s.away.err(); err != nil {
		return 0, err
	}
	return s.Checkpoints.Save(ctx, key, base, delta)
}

// paying makes an approved payment, during which the store becomes unreachable. A second payment
// would be an error.
func paying(t *testing.T, a *away, long time.Duration, paid *atomic.Int64) provider.Provider {
	return single(t, "pay", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "pay", Args: o.Table})
		if err != nil {
			return o, err
		}
		o.Receipt, err = fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) {
			paid.Add(1)
			a.goes(long)
			return "paid", nil
		})
		return o, err
	})
}

// A live process knows the result of its effect. Regression: it tried to record the receipt only
// once, so a restart of the store at that moment brought every payment in progress into doubt.
func TestI4_StoreOutageDoesNotCauseDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paid atomic.Int64
		a := &away{Store: memory.NewStore(nil)}
		e := executorOf(t, a, paying(t, a, 20*time.Second, &paid), func(c *executor.Config) { c.Lease = time.Minute })
		e.StartWorkers()
		id := waits(t, began(t, e, "k", "inproc:pay", `{"table":"bob"}`)).Interrupts[0].ID
		request := word("ann", "k", "1", id, yes)
		request.Wait = time.Hour
		if done := completed(t, mustRun(t, e, request)); string(done.Output) != `{"table":"bob","receipt":"paid"}` || paid.Load() != 1 {
			t.Errorf("paid %d times: %s", paid.Load(), done.Output)
		}
		agree(t, e)
	})
}

// Regression: a process whose leases were not renewed, because of an outage of the store or a pause
// of the process, took over its own runs. Each run was executed twice at once in one process, and
// its effects became in doubt.
func TestI16_ProcessDoesNotTakeOverItsOwnRun(t *testing.T) {
	for name, workers := range map[string]bool{"claimed by a worker": true, "repeated decision": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &away{Store: memory.NewStore(nil)}
				p := &scripted{execute: func(_ int64, x provider.Execution) (provider.Result, error) {
					if len(x.Answers) == 0 {
						return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{ID: "q", Envelope: fermata.Envelope{Kind: "k"}}}}}, nil
					}
					a.goes(21 * time.Second)
					time.Sleep(time.Minute)
					return provider.Result{Outcome: provider.Completed{}, Applied: []string{"q"}}, nil
				}}
				e := executorOf(t, a, p, func(c *executor.Config) { c.Poll, c.Lease = time.Second, 15*time.Second })
				if workers {
					e.StartWorkers()
				}
				waits(t, mustRun(t, e, scriptedStart()))
				request := executor.RunRequest{Account: "acme", StateKey: "x-1", ResumeID: "1", Actor: "ann", Value: []byte(`true`), Wait: time.Second}
				if _, err := e.Run(t.Context(), request); !errors.Is(err, executor.ErrPending) {
					t.Fatal(err)
				}
				// the lease has ended, the store is back, and the next renewal is not due yet
				time.Sleep(21 * time.Second)
				request.Wait = time.Hour
				completed(t, mustRun(t, e, request))
				if n := p.executed.Load(); n != 2 {
					t.Errorf("the run was executed %d times", n)
				}
			})
		})
	}
}

// Regression: no lease could be renewed during an outage, so all leases had ended after it. The
// first process took the runs of the others, and everything was done twice. A run of a dead process
// is still taken over, a little later.
func TestI16_ProcessKeepsItsRunsAfterAnOutage(t *testing.T) {
	for name, dies := range map[string]bool{"live process": false, "dead process": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &away{Store: memory.NewStore(nil)}
				p := &scripted{execute: func(n int64, _ provider.Execution) (provider.Result, error) {
					if n > 1 {
						return done, nil
					}
					a.goes(21 * time.Second)
					time.Sleep(time.Minute)
					return done, nil
				}}
				poll := func(c *executor.Config) { c.Poll, c.Lease = time.Second, 15*time.Second }
				first, second := executorOf(t, &mute{Store: a, dead: dies}, p, poll), executorOf(t, a, p, poll)
				second.StartWorkers()
				time.Sleep(time.Second)
				begin := time.Now()
				go func() { _, _ = first.Run(context.Background(), startSlowly()) }()
				time.Sleep(time.Second) // now it owns the run
				completed(t, mustRun(t, second, startSlowly()))
				if n, took := p.executed.Load(), time.Since(begin); dies && (n != 2 || took > 30*time.Second) || !dies && n != 1 {
					t.Errorf("the run was executed %d times, and completed after %s", n, took)
				}
			})
		})
	}
}

// mute is the store of a process that renews no lease if it is dead.
type mute struct {
	store.Store
	dead bool
}

func (m *mute) Renew(ctx context.Context, lease store.Lease, long time.Duration) error {
	if m.dead {
		return errReset
	}
	return m.Store.Renew(ctx, lease, long)
}

// A process that must stop at once does not wait for an unreachable store.
func TestStop_DoesNotWaitForAnUnreachableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paid atomic.Int64
		a := &away{Store: memory.NewStore(nil)}
		e := executorOf(t, a, paying(t, a, time.Hour, &paid), nil)
		id := waits(t, began(t, e, "k", "inproc:pay", `{"table":"bob"}`)).Interrupts[0].ID
		request := word("ann", "k", "1", id, yes)
		request.Wait = time.Second
		if _, err := e.Run(t.Context(), request); err == nil {
			t.Fatal("the run is complete")
		}
		begin := time.Now()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Stop(impatient); err != nil || time.Since(begin) > 2*time.Second {
			t.Errorf("Stop took %s: %v", time.Since(begin), err)
		}
	})
}

// A failed lookup of an approval does not mean that the approval is missing: like other store
// failures it does not fail the run.
func TestI2_FailedLookupOfAnApprovalFailsNoRun(t *testing.T) {
	type rows struct{ N int }
	purge := func(ctx context.Context, _ rows) (rows, error) {
		approved, err := fermata.Approve(ctx, fermata.Action[rows]{Name: "purge", Args: rows{1}})
		if err != nil {
			return rows{}, err
		}
		return fermata.Effect(ctx, approved, func(_ context.Context, args rows, _ string) (rows, error) { return args, nil })
	}
	for nth := 1; nth <= 3; nth++ {
		t.Run(fmt.Sprint("call ", nth), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hiccup{Store: memory.NewStore(nil), what: "Interrupts"}
				e := executorOf(t, h, single(t, "purge", inproc.FlowConfig[rows]{}, purge), nil)
				e.StartWorkers()
				asked := waits(t, began(t, e, "k", "inproc:purge", `{}`))
				say := func(resume, n string) fermata.Outcome {
					value := `{"verb":"approve","args":{"N":` + n + `}}`
					return told(t, e, word("ann", "k", resume, asked.Interrupts[0].ID, value))
				}
				// not a valid number: it is asked again, under another id
				asked = waits(t, say("r1", "100000000000000000000"))
				h.mu.Lock()
				h.left = nth
				h.mu.Unlock()
				if done := completed(t, say("r2", "4")); string(done.Output) != `{"N":4}` {
					t.Errorf("output %s", done.Output)
				}
			})
		})
	}
}

// Regression: a night without a database produced hundreds of thousands of identical log lines in
// every replica.
func TestLog_OutageIsLoggedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		a := &away{Store: memory.NewStore(nil)}
		e := executorOf(t, a, &scripted{}, func(c *executor.Config) {
			c.Poll, c.Workers, c.Log = time.Second, 16, slog.New(slog.NewTextHandler(&log, nil))
		})
		e.StartWorkers()
		time.Sleep(time.Minute)
		a.goes(10 * time.Minute)
		time.Sleep(11 * time.Minute)
		for _, what := range []string{"claiming work", "expiring questions"} {
			said := strings.Count(log.String(), what)
			if said == 0 || said > 110 {
				t.Errorf("%q is logged %d times in ten minutes", what, said)
			}
		}
		if !strings.Contains(log.String(), "suppressed=") {
			t.Error("the log does not contain the number of failures")
		}
	})
}
