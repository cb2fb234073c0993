package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

type order struct {
	Table   string `json:"table"`
	Receipt string `json:"receipt,omitempty"`
}

// dropper drops tables after a person approves it.
type dropper struct {
	dropped atomic.Int64
	entered chan struct{} // receives a value at each drop, if not nil
	hold    chan struct{} // each drop then waits for it
}

func (d *dropper) executor(t *testing.T, runs store.Store, change func(*executor.Config)) *executor.Executor {
	t.Helper()
	g := graph.New[order]("drop")
	g.Node("drop", func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "drop-table", Args: o.Table})
		if err != nil {
			return o, err
		}
		o.Receipt, err = fermata.Effect(ctx, yes, func(_ context.Context, table, _ string) (string, error) {
			d.dropped.Add(1)
			if d.hold != nil {
				d.entered <- struct{}{}
				<-d.hold // ignores its context, like a call in progress
			}
			return "dropped " + table, nil
		})
		return o, err
	})
	g.Edge(graph.Start, "drop")
	g.Edge("drop", graph.End)
	p := providing(t, g)
	return executorOf(t, runs, p, change)
}

func decision(id, verb string) executor.RunRequest {
	return executor.RunRequest{Account: "acme", StateKey: "drop-1", ResumeID: id, Actor: "ann", Value: json.RawMessage(`{"verb":"` + verb + `"}`)}
}

func startDrop(t *testing.T, e *executor.Executor) fermata.NeedsInput {
	t.Helper()
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "drop-1", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return waits(t, outcome)
}

func TestI4_ApprovedEffectIsDoneOnceAndInTheLedger(t *testing.T) {
	runs, d := memory.NewStore(nil), new(dropper)
	e := d.executor(t, runs, nil)
	asked := startDrop(t, e)
	outcome, err := e.Run(t.Context(), addressed(t, e, decision("1", "approve")))
	if err != nil {
		t.Fatal(err)
	}
	if done, ok := outcome.(fermata.Completed); !ok || string(done.Output) != `{"table":"users","receipt":"dropped users"}` || d.dropped.Load() != 1 {
		t.Fatalf("outcome %#v, dropped %d times", outcome, d.dropped.Load())
	}
	// Only an owner can read the ledger entry, so the test claims the run. The entry exists and has
	// ended.
	run, err := runs.Get(t.Context(), "acme", "drop-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := runs.BeginEffect(t.Context(), store.Lease{Account: "acme", Run: run.ID, Fence: run.Fence}, store.NewEffect{Interrupt: asked.Interrupts[0].ID, Attempt: 1, ActionDigest: "another"}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a run that has ended can begin effects: %v", err)
	}
	if err := runs.EndEffect(t.Context(), store.EffectEnd{Account: "acme", Interrupt: asked.Interrupts[0].ID, Attempt: 2, State: store.EffectSucceeded}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a second entry: %v", err)
	}
	if err := runs.EndEffect(t.Context(), store.EffectEnd{Account: "acme", Interrupt: asked.Interrupts[0].ID, Attempt: 1, State: store.EffectFailed}); err != nil {
		t.Errorf("no entry: %v", err)
	}
}

func TestI4_RejectedEffectDoesNotHappen(t *testing.T) {
	d := new(dropper)
	e := d.executor(t, memory.NewStore(nil), nil)
	startDrop(t, e)
	outcome, err := e.Run(t.Context(), addressed(t, e, decision("1", "reject")))
	if failed, ok := outcome.(fermata.Failed); err != nil || !ok || failed.Code != "rejected" || d.dropped.Load() != 0 {
		t.Errorf("%#v, %v, dropped %d times", outcome, err, d.dropped.Load())
	}
}

func TestI4_EffectOfALostOwnerIsInDoubt(t *testing.T) {
	runs := memory.NewStore(nil)
	lost := &dropper{entered: make(chan struct{}), hold: make(chan struct{})}
	release := sync.OnceFunc(func() { close(lost.hold) })
	first := lost.executor(t, runs, func(c *executor.Config) { c.Lease = time.Hour })
	t.Cleanup(release) // before the executor is stopped, which would otherwise block
	startDrop(t, first)
	yes := addressed(t, first, decision("1", "approve"))
	go func() { _, _ = first.Run(context.Background(), yes) }()
	<-lost.entered // the effect is in progress
	expire(t, runs, "drop-1")
	d := new(dropper)
	second := d.executor(t, runs, nil)
	second.StartWorkers()
	outcome, err := second.Run(t.Context(), yes)
	if err != nil {
		t.Fatal(err)
	}
	doubt := waits(t, outcome)
	if doubt.Interrupts[0].Kind != fermata.EffectInDoubt.Name() || d.dropped.Load() != 0 {
		t.Fatalf("the run asks %+v, dropped %d times", doubt, d.dropped.Load())
	}
	release() // the owner that lost the run completed the effect after all
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	request := decision("2", "")
	request.Value = json.RawMessage(`{"happened":true,"receipt":"dropped users"}`)
	if _, err := second.Run(t.Context(), request); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("an answer that names no request: %v", err)
	}
	request = addressed(t, second, request)
	outcome, err = second.Run(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if done, ok := outcome.(fermata.Completed); !ok || string(done.Output) != `{"table":"users","receipt":"dropped users"}` || d.dropped.Load() != 0 {
		t.Errorf("%#v, dropped %d times more", outcome, d.dropped.Load())
	}
}

func TestI11_UndecidedActionExpiresWithoutTheEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, d := memory.NewStore(nil), new(dropper)
		e := d.executor(t, runs, func(c *executor.Config) { c.RequestTimeout, c.Poll = 24*time.Hour, time.Minute })
		asked := startDrop(t, e)
		e.StartWorkers()
		time.Sleep(25 * time.Hour)
		run, err := runs.Get(t.Context(), "acme", "drop-1")
		if err != nil || run.Status != store.StatusFailed || d.dropped.Load() != 0 {
			t.Errorf("the run is %s, %v, and the effect was done %d times", run.Status, err, d.dropped.Load())
		}
		list, err := runs.Interrupts(t.Context(), "acme", asked.Run)
		if err != nil || list[0].Verdict != store.VerdictExpire || list[0].Source != store.SourceClock {
			t.Errorf("inbox %+v, %v", list, err)
		}
		_, err = e.Run(t.Context(), addressed(t, e, decision("1", "approve")))
		if r, ok := errors.AsType[*executor.RefusedError](err); !ok || r.Result != store.ResultAlreadyDecided || r.Verdict != store.VerdictExpire {
			t.Errorf("a late approval: %v", err)
		}
	})
}

func TestI10_ClockJumpDoesNotEmptyTheInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		runs, d := memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }), new(dropper)
		e := d.executor(t, runs, func(c *executor.Config) { c.RequestTimeout, c.Poll = 24*time.Hour, time.Minute })
		startDrop(t, e)
		e.StartWorkers()
		time.Sleep(time.Hour)
		jump.Store(int64(48 * time.Hour))
		time.Sleep(59 * time.Second) // until the next read of the clock, which is not trusted
		jump.Store(0)
		time.Sleep(2 * time.Hour)
		run, err := runs.Get(t.Context(), "acme", "drop-1")
		if err != nil || run.Status != store.StatusWaiting {
			t.Errorf("the run is %s, %v", run.Status, err)
		}
	})
}
