package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/provider"
)

// scripted is a provider whose execution is a function of the test.
type scripted struct {
	provider.Provider
	executed atomic.Int64
	execute  func(attempt int64, e provider.Execution) (provider.Result, error)
}

func (*scripted) Name() string             { return "scripted" }
func (*scripted) Graphs() []provider.Graph { return []provider.Graph{{Name: "it"}} }

func (*scripted) Capabilities() provider.Capabilities { return provider.Capabilities{} }

func (s *scripted) Execute(_ context.Context, e provider.Execution) (provider.Result, error) {
	return s.execute(s.executed.Add(1), e)
}

func (*scripted) CheckAnswer(_ context.Context, _ provider.Run, _ string, answer json.RawMessage) (json.RawMessage, error) {
	return answer, nil
}

func (*scripted) Delete(context.Context, provider.Run) error { return nil }

var done = provider.Result{Outcome: provider.Completed{Content: "done"}}

func scriptedStart() executor.RunRequest {
	return executor.RunRequest{Account: "acme", StateKey: "x-1", Graph: "scripted:it", Input: json.RawMessage(`{}`), Wait: 1000 * time.Hour}
}

// asking is a provider that asks the requests of a list, one after the other.
func asking(rounds ...[]string) *scripted {
	seen := make(map[time.Time]bool)
	return &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
		var result provider.Result
		for _, a := range e.Answers {
			result.Applied, seen[a.At] = append(result.Applied, a.InterruptID), true
		}
		n := len(seen) + 1 // the same one if it is attempted again
		var questions []provider.Interrupt
		for _, id := range rounds[n-1] {
			questions = append(questions, provider.Interrupt{ID: id, Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`"` + id + `"`)}})
		}
		if questions == nil {
			result.Outcome = provider.Completed{Content: "done"}
			return result, nil
		}
		result.Outcome = provider.Waiting{Interrupts: questions}
		return result, nil
	}}
}

// answerTo is an answer to one of them.
func answerTo(id, resume string) executor.RunRequest {
	r := word("ann", "x-1", resume, id, `1`)
	r.Wait = time.Minute
	return r
}

// crowd is a provider that asks n requests at once.
func crowd(n int) *scripted {
	return &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
		var questions []provider.Interrupt
		for n := range n {
			questions = append(questions, provider.Interrupt{ID: fmt.Sprint(e.Run.ID, "-", n), Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`1`)}})
		}
		return provider.Result{Outcome: provider.Waiting{Interrupts: questions}}, nil
	}}
}

func TestExecute_ProviderDeterminesTheRetryDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried []time.Duration
		begin := time.Now()
		p := &scripted{execute: func(n int64, e provider.Execution) (provider.Result, error) {
			tried = append(tried, time.Since(begin))
			if int64(e.Attempt) != n-1 {
				t.Errorf("attempt %d is reported as %d", n-1, e.Attempt)
			}
			if n < 3 {
				return provider.Result{}, &fermata.RetryError{After: time.Hour, Err: errors.New("not now")}
			}
			return done, nil
		}}
		e := executorOf(t, memory.NewStore(nil), p, func(c *executor.Config) { c.Poll = time.Minute })
		e.StartWorkers()
		completed(t, mustRun(t, e, scriptedStart()))
		if len(tried) != 3 || tried[1] < time.Hour || tried[1] > time.Hour+2*time.Minute || tried[2] < 2*time.Hour {
			t.Errorf("attempts at %v", tried)
		}
	})
}

func TestExecute_ParkedRunWaitsForAnOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewStore(nil)
		p := &scripted{execute: func(n int64, _ provider.Execution) (provider.Result, error) {
			if n == 1 {
				return provider.Result{}, provider.ErrPark
			}
			return done, nil
		}}
		e := executorOf(t, runs, p, func(c *executor.Config) { c.Poll = time.Minute })
		e.StartWorkers()
		request := scriptedStart()
		request.Wait = time.Hour
		_, err := e.Run(t.Context(), request)
		if pending, ok := errors.AsType[*executor.PendingError](err); !ok || pending.StateKey != "x-1" || p.executed.Load() != 1 {
			t.Fatalf("%v, executed %d times", err, p.executed.Load())
		}
		if run, err := runs.Get(t.Context(), "acme", "x-1"); err != nil || run.Status != store.StatusParked {
			t.Errorf("the run is %s, %v", run.Status, err)
		}
		if err := e.Retry(t.Context(), "acme", "x-1", by("ops")); err != nil {
			t.Fatal(err)
		}
		completed(t, mustRun(t, e, scriptedStart()))
		if err := e.Retry(t.Context(), "acme", "x-1", by("ops")); !errors.Is(err, executor.ErrNotRetryable) {
			t.Errorf("a second retry: %v", err)
		}
	})
}

// Regression: a run that was cancelled while its provider was about to park it was reported as
// parked. The log had it after the end, and the metric paged an operator without need.
func TestExecute_EndedRunIsNotReportedAsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, hold := memory.NewStore(nil), make(chan struct{})
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
			<-hold
			return provider.Result{}, provider.ErrPark
		}}
		e := executorOf(t, runs, p, nil)
		request := scriptedStart()
		request.Wait = time.Second
		if _, err := e.Run(t.Context(), request); err == nil {
			t.Fatal("the run has an outcome")
		}
		if err := e.Cancel(t.Context(), "acme", "x-1", by("ann")); err != nil {
			t.Fatal(err)
		}
		close(hold)
		synctest.Wait()
		if got := lines(t, runs); slices.Contains(got, "run.parked") || e.Stats().Parked != 0 || statusOf(t, runs, "x-1") != store.StatusCancelled {
			t.Errorf("the run is %s, %d were counted as parked, audit lines %q", statusOf(t, runs, "x-1"), e.Stats().Parked, got)
		}
	})
}

func TestExecute_RunThatIsTakenOverRepeatedlyIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewStore(nil)
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) { return done, nil }}
		if _, err := runs.Create(t.Context(), store.NewRun{Account: "acme", ID: "r", StateKey: "x-1", Provider: "scripted", Graph: "it", Owner: "dead", Lease: time.Second}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(2 * time.Second)
			if work, err := runs.Claim(t.Context(), store.Claim{Owner: "dead", Lease: time.Second}); err != nil || work == nil || !work.TakenOver {
				t.Fatal(work, err)
			}
		}
		e := executorOf(t, runs, p, func(c *executor.Config) { c.MaxAttempts = 5 })
		e.StartWorkers()
		time.Sleep(time.Minute)
		if run, err := runs.Get(t.Context(), "acme", "x-1"); err != nil || run.Status != store.StatusParked || p.executed.Load() != 0 {
			t.Errorf("the run is %s after %d more executions, %v", run.Status, p.executed.Load(), err)
		}
	})
}

func TestExecute_PanicOfAProviderIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{execute: func(n int64, _ provider.Execution) (provider.Result, error) {
			if n == 1 {
				panic("a secret")
			}
			return done, nil
		}}
		e := executorOf(t, memory.NewStore(nil), p, nil)
		e.StartWorkers()
		completed(t, mustRun(t, e, scriptedStart()))
	})
}

func TestExecute_InvalidRequestsOfAProviderAreReported(t *testing.T) {
	ask := func(q provider.Interrupt) provider.Result {
		return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{q}}}
	}
	large := json.RawMessage(`"` + strings.Repeat("x", limits.MaxDataBytes) + `"`)
	for code, result := range map[string]provider.Result{
		"data_too_large": ask(provider.Interrupt{ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: large}}),
		"bad_question":   ask(provider.Interrupt{ID: "q~2", Envelope: fermata.Envelope{Kind: "k"}}),
		"bad_provider":   {},
	} {
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) { return result, nil }}
		failedWith(t, mustRun(t, executorOf(t, memory.NewStore(nil), p, nil), scriptedStart()), code)
	}
	p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
		return provider.Result{Outcome: provider.Waiting{}}, nil
	}}
	failedWith(t, mustRun(t, executorOf(t, memory.NewStore(nil), p, nil), scriptedStart()), "bad_question")
}

// A request may have its own deadline, but not a longer one than the maximum.
func TestExecute_ShorterDeadlineApplies(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{0: 24 * time.Hour, time.Hour: time.Hour, 48 * time.Hour: 24 * time.Hour} {
		runs := memory.NewStore(nil)
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
			return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{ID: "q", Envelope: fermata.Envelope{Kind: "k"}, Timeout: own}}}}, nil
		}}
		waits(t, mustRun(t, executorOf(t, runs, p, nil), scriptedStart()))
		if i := known(t, runs, "x-1").Interrupts[0]; i.Deadline.Sub(i.Created).Round(time.Second) != want {
			t.Errorf("own deadline %v: %v", own, i.Deadline.Sub(i.Created))
		}
	}
}

// The shorter timeout of a request applies even if the default route has a longer one.
func TestExecute_OwnTimeoutAppliesOnAnyRoute(t *testing.T) {
	s := memory.NewStore(nil)
	p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
		return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{ID: "q", Envelope: fermata.Envelope{Kind: "k"}, Timeout: time.Minute}}}}, nil
	}}
	e := executorOf(t, s, p, func(c *executor.Config) {
		c.Desk.Routes = map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{{Notify: []string{"inbox"}}, {At: timespan.Duration(72 * time.Hour), Expire: "stale"}}}}
	})
	waits(t, mustRun(t, e, scriptedStart()))
	if i := known(t, s, "x-1").Interrupts[0]; i.Deadline.Sub(i.Created).Round(time.Second) != time.Minute {
		t.Errorf("the request has a timeout of a minute, the installation a maximum of 24 h; the deadline is %v", i.Deadline.Sub(i.Created))
	}
}

// The maximum of the installation counts in business hours on a route that counts these, whatever
// the cap. Regression: with a cap, a route longer than the maximum had that many hours of wall
// time. A request of Friday evening expired on Saturday.
func TestExecute_MaximumTimeoutUsesTheClockOfTheRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // synctest starts on a Saturday at midnight
		s := memory.NewStore(nil)
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
			return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{ID: "q", Envelope: fermata.Envelope{Kind: "k"}}}}}, nil
		}}
		office := hours.Region{Name: "office", Zone: "UTC", Channel: "inbox", Windows: []hours.Window{{Days: hours.Weekdays(), From: hours.At(9, 0), To: hours.At(18, 0)}}}
		e := executorOf(t, s, p, func(c *executor.Config) {
			c.Desk.Routes = map[string]desk.Route{"default": {
				Name: "default", Clock: desk.BusinessClock, Regions: []hours.Region{office}, Cap: timespan.Duration(240 * time.Hour),
				Steps: []desk.Step{{Notify: []string{"inbox"}}, {At: timespan.Duration(40 * time.Hour), Expire: "stale"}},
			}}
		})
		waits(t, mustRun(t, e, scriptedStart()))
		if i := known(t, s, "x-1").Interrupts[0]; i.Deadline.Sub(i.Created).Round(time.Second) != 4*24*time.Hour+15*time.Hour {
			t.Errorf("24 business hours end after %v, want Wednesday at 15:00", i.Deadline.Sub(i.Created))
		}
	})
}

// Without a delivery, a deadline that counts from delivery is the cap. A request with a timeout of
// an hour does not wait for days because a channel is down.
func TestExecute_OwnTimeoutAppliesWithoutADelivery(t *testing.T) {
	s := memory.NewStore(nil)
	p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
		return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{ID: "q", Envelope: fermata.Envelope{Kind: "k"}, Timeout: time.Hour}}}}, nil
	}}
	e := executorOf(t, s, p, func(c *executor.Config) {
		c.Desk.Routes = map[string]desk.Route{"default": {
			Name: "default", DeadlineFrom: desk.DeadlineFromDelivered, Cap: timespan.Duration(96 * time.Hour),
			Steps: []desk.Step{{Notify: []string{"inbox"}}, {At: timespan.Duration(30 * time.Minute), Expire: "stale"}},
		}}
		c.Desk.Channels = []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error { return errors.New("the channel is down") })}
	})
	waits(t, mustRun(t, e, scriptedStart()))
	if i := known(t, s, "x-1").Interrupts[0]; i.Deadline.Sub(i.Created).Round(time.Second) != time.Hour {
		t.Errorf("the timeout is an hour, the deadline %v", i.Deadline.Sub(i.Created))
	}
}

// Business hours may be days away. A request with a timeout of an hour does not wait for them. The
// maximum of the installation counts in business hours.
func TestExecute_OwnTimeoutAppliesOutsideBusinessHours(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 0: 57*time.Hour + 30*time.Minute} {
		synctest.Test(t, func(t *testing.T) { // synctest starts on a Saturday at midnight
			s := memory.NewStore(nil)
			p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
				return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{ID: "q", Envelope: fermata.Envelope{Kind: "k"}, Timeout: own}}}}, nil
			}}
			office := hours.Region{Name: "office", Zone: "UTC", Channel: "inbox", Windows: []hours.Window{{Days: hours.Weekdays(), From: hours.At(9, 0), To: hours.At(18, 0)}}}
			e := executorOf(t, s, p, func(c *executor.Config) {
				c.Desk.Routes = map[string]desk.Route{"default": {
					Name: "default", Clock: desk.BusinessClock, Regions: []hours.Region{office},
					Steps: []desk.Step{{Notify: []string{"inbox"}}, {At: timespan.Duration(30 * time.Minute), Expire: "stale"}},
				}}
			})
			waits(t, mustRun(t, e, scriptedStart()))
			if i := known(t, s, "x-1").Interrupts[0]; i.Deadline.Sub(i.Created).Round(time.Second) != want {
				t.Errorf("timeout %v: the deadline is %v, want %v", own, i.Deadline.Sub(i.Created), want)
			}
		})
	}
}
