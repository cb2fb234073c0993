package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/provider"
)

// mourned is a provider whose runs ask two requests, and that records withdrawals.
type mourned struct {
	scripted
	mu    sync.Mutex
	fails int // number of failing withdrawals
	told  []string
}

func (m *mourned) NotifyWithdrawn(_ context.Context, run provider.Run, gone provider.Withdrawal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, fmt.Sprintf("%s %s %s %d", gone.InterruptID, gone.Reason, gone.Input, gone.Attempt))
	if m.fails--; m.fails >= 0 {
		return &fermata.RetryError{After: time.Nanosecond, Err: errors.New("busy")}
	}
	return nil
}

func (m *mourned) heard() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.told
}

func newMourned() *mourned {
	m := new(mourned)
	m.execute = func(_ int64, e provider.Execution) (result provider.Result, _ error) {
		for _, a := range e.Answers {
			result.Applied = append(result.Applied, a.InterruptID)
		}
		var open []provider.Interrupt
		for _, id := range []string{"q1", "q2"} {
			if !slices.Contains(result.Applied, id) {
				open = append(open, provider.Interrupt{ID: id, Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`{}`)}})
			}
		}
		result.Outcome = provider.Waiting{Interrupts: open}
		return result, nil
	}
	return m
}

// Of several processes one reports the withdrawal, until it succeeds. Decided requests are not
// reported.
func TestWithdrawn_ProviderIsToldOnceThatTheRunEnded(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		m := newMourned()
		m.fails = 1
		e := looking(t, s, m)
		looking(t, s, m)
		looking(t, s, m)
		waits(t, mustRun(t, e, scriptedStart()))
		if err := e.Cancel(t.Context(), "acme", "x-1", by("ops")); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return len(m.heard()) >= 3 })
		told := map[string]bool{}
		for _, line := range m.heard() {
			told[line] = true
		}
		if len(told) != 3 || !(told["q1 cancelled {} 0"] && told["q2 cancelled {} 0"]) || !(told["q1 cancelled {} 1"] || told["q2 cancelled {} 1"]) {
			t.Errorf("reported %q", m.heard())
		}
		papers, err := s.Documents(t.Context(), "acme", "back", store.DocumentFilter{})
		if err != nil || len(papers) != 2 {
			t.Errorf("documents %+v, %v", papers, err)
		}
	})
}

// A decision before the end of the run stays valid, and its request is not reported as withdrawn.
func TestWithdrawn_DecidedRequestIsNotReported(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		m := newMourned()
		e := executorOf(t, s, m, nil)
		waits(t, mustRun(t, e, scriptedStart()))
		word := executor.RunRequest{Account: "acme", StateKey: "x-1", ResumeID: "1", Actor: "ann", Wait: -1, Targets: map[string]executor.Answer{"q1": {Value: json.RawMessage(`1`)}}}
		if _, err := e.Run(t.Context(), word); err != nil {
			if _, pending := errors.AsType[*executor.PendingError](err); !pending {
				t.Fatal(err)
			}
		}
		escape := desk.Abandon{From: by("ann"), Reason: "never mind"}
		if err := e.Abandon(t.Context(), "acme", "q2", escape); err != nil {
			t.Fatal(err)
		}
		e.StartWorkers()
		eventually(t, func() bool { return len(m.heard()) >= 1 })
		papers, err := s.Documents(t.Context(), "acme", "back", store.DocumentFilter{})
		if err != nil || len(papers) != 1 || m.heard()[0] != "q2 cancelled {} 0" {
			t.Errorf("documents %+v, %v, reported %q", papers, err, m.heard())
		}
	})
}

// A page gets its all-clear when the run ends, and analytics do not count the request as open.
func TestWithdrawn_IsNotifiedAndCounted(t *testing.T) {
	s := memory.NewStore(nil)
	var mu sync.Mutex
	told := make(map[desk.NoticeKind]int)
	e := executorOf(t, s, asking([]string{"a"}, nil), func(c *executor.Config) {
		c.Desk.Routes = map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{
			{Page: []string{"oncall:dba"}, Severity: "error"}, {At: timespan.Duration(time.Hour), Expire: "stale"},
		}}}
		c.Desk.Channels = []channel.Channel{channel.Notify(func(_ context.Context, _ string, n desk.Notice) error {
			mu.Lock()
			defer mu.Unlock()
			told[n.Kind]++
			return nil
		})}
	})
	e.StartWorkers()
	waits(t, mustRun(t, e, scriptedStart()))
	if err := e.Cancel(t.Context(), "acme", "x-1", by("ann")); err != nil {
		t.Fatal(err)
	}
	report, err := e.Analytics(t.Context(), "acme", analytics.Query{})
	if err != nil || report.All.Open != 0 || report.All.Withdrawn != 1 {
		t.Errorf("the run has ended, but the report has %d open, %d withdrawn (%v)", report.All.Open, report.All.Withdrawn, err)
	}
	if got := lines(t, s); !slices.Contains(got, "request.withdrawn") {
		t.Errorf("I12: audit lines %q", got)
	}
	papers, err := s.Documents(t.Context(), "acme", "notice", store.DocumentFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(papers) < 2 {
		t.Errorf("a page was sent, and there are only %d notices: no all-clear", len(papers))
	}
}

// unheard is a provider whose receiver does not respond to the withdrawals of one account.
type unheard struct {
	*scripted
	told chan time.Time
}

func (*unheard) Capabilities() provider.Capabilities { return provider.Capabilities{Remote: true} }

func (d *unheard) NotifyWithdrawn(ctx context.Context, run provider.Run, _ provider.Withdrawal) error {
	if run.Account == "acme" {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case d.told <- time.Now():
	default:
	}
	return nil
}

// Many withdrawals that fail do not delay others.
func TestWithdrawn_FailingReceiverDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &unheard{crowd(100), make(chan time.Time, 1)}
		e := executorOf(t, memory.NewStore(nil), d, func(c *executor.Config) { c.Poll, c.Log = time.Second, slog.New(slog.DiscardHandler) })
		e.StartWorkers()
		end := func(account string) {
			r := scriptedStart()
			r.Account = account
			waits(t, mustRun(t, e, r))
			if err := e.Cancel(t.Context(), account, "x-1", by("ops")); err != nil {
				t.Fatal(err)
			}
		}
		end("acme")
		time.Sleep(3 * time.Second)
		ended := time.Now()
		end("other")
		if after := (<-d.told).Sub(ended); after > 3*time.Second {
			t.Errorf("the withdrawal of another account is reported after %v", after)
		}
	})
}

// dying is the store of a process that ends before it writes anything after the end of a run.
type dying struct {
	store.Store
	dead bool
}

func (d dying) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	if d.dead {
		return errors.New("the process is dead")
	}
	return d.Store.CommitWrites(ctx, account, beside)
}

// Regression: an execution that ended just before its run was cancelled had asked a request that
// the cancelling call did not know. The request stayed open, and the provider was never told that
// it will not be answered.
func TestWithdrawn_RequestAskedJustBeforeTheEnd(t *testing.T) {
	ends := map[string]func(ctx context.Context, e *executor.Executor) error{
		"cancelled": func(ctx context.Context, e *executor.Executor) error { return e.Cancel(ctx, "acme", "x-1", by("ops")) },
		"erased": func(ctx context.Context, e *executor.Executor) error {
			_, err := e.EraseAccount(ctx, "acme")
			return err
		},
	}
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := memory.NewStore(nil), newMourned()
				resting, ending := bar(s, "Rest"), bar(dying{s, how == "cancelled"}, "Cancel")
				start := scriptedStart()
				start.Wait = -1
				if _, err := executorOf(t, resting, m, nil).Run(t.Context(), start); !errors.Is(err, executor.ErrPending) {
					t.Fatal(err)
				}
				<-resting.reached
				other := executorOf(t, ending, m, nil)
				var all sync.WaitGroup
				all.Go(func() {
					if err := end(t.Context(), other); err != nil {
						t.Error(err)
					}
				})
				<-ending.reached
				close(resting.open)
				synctest.Wait()
				close(ending.open)
				all.Wait()
				if lines := recorded[audit.RequestWithdrawn](t, s); len(lines) != 2 {
					t.Errorf("I12: the log has %d lines of withdrawals", len(lines))
				}
				if how == "erased" {
					return
				}
				for _, id := range []string{"q1", "q2"} {
					if request, err := other.RequestDocument(t.Context(), "acme", id); err != nil || request.State != desk.StateWithdrawn {
						t.Errorf("the request %s is %s, %v", id, request.State, err)
					}
				}
				executorOf(t, s, m, nil).StartWorkers()
				time.Sleep(time.Second)
				if heard := m.heard(); len(heard) != 2 {
					t.Errorf("reported %q", heard)
				}
			})
		})
	}
}

// Regression: a request was decided while its run was cancelled. The provider was told both that
// there is an answer and that there will be none.
func TestI1_RequestDecidedDuringTheCancelIsNotReportedAsWithdrawn(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		m := newMourned()
		between := &intruder{Store: s}
		e := looking(t, between, m)
		outcome := waits(t, mustRun(t, e, scriptedStart()))
		var once sync.Once
		between.listed = func() {
			once.Do(func() {
				if _, err := e.Run(t.Context(), word("ann", "x-1", "r-1", outcome.Interrupts[0].ID, `true`)); err != nil {
					t.Error(err)
				}
			})
		}
		if err := e.Cancel(t.Context(), "acme", "x-1", by("ops")); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return len(m.heard()) > 0 })
		asked, err := s.Interrupts(t.Context(), "acme", outcome.Run)
		if err != nil {
			t.Fatal(err)
		}
		var withdrawn []string
		for _, i := range asked {
			if i.State == store.InterruptWithdrawn {
				withdrawn = append(withdrawn, i.ID)
			}
		}
		papers, err := s.Documents(t.Context(), "acme", "back", store.DocumentFilter{Limit: 10})
		if err != nil || len(withdrawn) != 1 || len(papers) != 1 || papers[0].ID != withdrawn[0]+"/withdrawn" {
			t.Errorf("%v was withdrawn, documents %+v, %v", withdrawn, papers, err)
		}
	})
}

// hesitating is a store whose DeleteRun takes long.
type hesitating struct{ store.Store }

func (s hesitating) DeleteRun(ctx context.Context, account, run string, beside store.Writes) error {
	time.Sleep(time.Minute)
	return s.Store.DeleteRun(ctx, account, run, beside)
}

// Erased requests are not reported. Regression: withdrawals that a process sent before the run was
// deleted were reported.
func TestErase_WithdrawalIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMourned()
		e := executorOf(t, hesitating{memory.NewStore(nil)}, m, func(c *executor.Config) { c.Poll = time.Second })
		e.StartWorkers()
		waits(t, mustRun(t, e, scriptedStart()))
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Error(n, err)
		}
		if heard := m.heard(); len(heard) != 0 {
			t.Errorf("reported %q", heard)
		}
	})
}
