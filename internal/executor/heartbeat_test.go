package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
)

// quick is a route on which a request expires almost at once, with a grace period after an outage.
func quick(end, grace time.Duration) func(*executor.Config) {
	return func(c *executor.Config) {
		c.Desk.Routes = map[string]desk.Route{"default": {
			Name: "default", Grace: timespan.Duration(grace), Steps: []desk.Step{{Notify: []string{"inbox"}}, {At: timespan.Duration(end), Expire: "stale"}},
		}}
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// silence stores a heartbeat that is some time old.
func silence(t *testing.T, s store.Store, ago time.Duration) {
	t.Helper()
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	heard(t, s, map[string]any{"at": now.Add(-ago)})
}

func heard(t *testing.T, s store.Store, beat map[string]any) {
	t.Helper()
	facts, err := json.Marshal(beat)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CommitWrites(t.Context(), "", store.Writes{Documents: []store.DocumentChange{{Kind: "beat", ID: "clock", Index: facts}}}); err != nil {
		t.Fatal(err)
	}
}

// passed waits until the store's clock is after a time.
func passed(t *testing.T, s store.Store, at time.Time) {
	t.Helper()
	eventually(t, func() bool {
		now, err := s.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now.After(at)
	})
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition does not become true within a minute")
		}
	}
}

// asksMany starts runs that each ask one request, and returns the requests by state key.
func asksMany(t *testing.T, e *executor.Executor, s store.Store, count int) map[string]string {
	t.Helper()
	asked := make(map[string]string)
	for n := range count {
		key := fmt.Sprint("drop-", n+1)
		asked[key] = waits(t, began(t, e, key, "inproc:drop", `{"table":"users"}`)).Interrupts[0].ID
	}
	for _, id := range asked {
		i, err := s.InboxItem(t.Context(), "acme", id)
		if err != nil {
			t.Fatal(err)
		}
		passed(t, s, i.Deadline)
	}
	return asked
}

// People who could not decide during an outage get time for it, however many processes start at the
// same moment.
func TestI10_RequestThatExpiredInAnOutageStaysOpenForItsGracePeriod(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		s, d := open(), new(dropper)
		change := quick(10*time.Millisecond, time.Hour)
		asked := asksMany(t, d.executor(t, s, change), s, 3)
		silence(t, s, time.Hour)
		var replicas []*executor.Executor
		for range 3 {
			replicas = append(replicas, d.executor(t, open(), change))
		}
		var all sync.WaitGroup
		for _, e := range replicas {
			all.Go(e.StartWorkers)
		}
		all.Wait()
		for key, id := range asked {
			eventually(t, func() bool {
				q, err := s.InboxItem(t.Context(), "acme", id)
				if err != nil || q.State != store.InterruptPending {
					t.Fatalf("%s is %s, %v", key, q.State, err)
				}
				return time.Until(q.Deadline) > 50*time.Minute
			})
			doc, err := replicas[0].RequestDocument(t.Context(), "acme", id)
			if err != nil || doc.State != desk.StateOpen || time.Until(doc.Deadline) < 50*time.Minute {
				t.Fatalf("%s: %+v, %v", key, doc, err)
			}
			outages := slices.DeleteFunc(doc.Log, func(e desk.Event) bool { return e.Type != desk.EventOutage })
			if len(outages) != 1 {
				t.Errorf("%s got a grace period %d times", key, len(outages))
			}
			request := decision("yes to "+key, "approve")
			request.StateKey = key
			completed(t, mustRun(t, replicas[1], addressed(t, replicas[1], request)))
		}
		if got := lines(t, s); slices.Contains(got, "request.expired") || !slices.Contains(got, "request.changed") {
			t.Errorf("I12: audit lines %q", got)
		}
	})
}

// Regression: a process read the clock, and a moment later another process, which recorded the
// outage first. That outage ended in the future of the first process, which took it for a mistake
// and expired everything.
func TestI10_OutageRecordedByAnotherProcessAMomentLater(t *testing.T) {
	s, d := memory.NewStore(nil), new(dropper)
	e := d.executor(t, s, quick(10*time.Millisecond, time.Hour))
	id := asksMany(t, e, s, 1)["drop-1"]
	later := time.Now().Add(time.Second)
	heard(t, s, map[string]any{"at": later, "outages": []any{map[string]time.Time{"start": later.Add(-time.Hour), "end": later}}})
	e.StartWorkers()
	eventually(t, func() bool {
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.State != desk.StateOpen {
			t.Fatalf("request %+v, %v", doc, err)
		}
		return doc.Deadline.Equal(later.Add(time.Hour))
	})
}

// The grace period is for requests that an outage has covered, and it ends.
func TestI10_RequestNotCoveredByAnOutageExpires(t *testing.T) {
	for name, test := range map[string]struct {
		grace, silent time.Duration
		lines         []string
	}{
		"no outage":                    {time.Hour, 0, []string{"request.expired"}},
		"outage too short":             {time.Hour, 20 * time.Second, []string{"request.expired"}},
		"route without a grace period": {0, time.Hour, []string{"request.expired"}},
		"grace period is over":         {50 * time.Millisecond, time.Hour, []string{"request.changed", "request.expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := memory.NewStore(nil), new(dropper)
			e := d.executor(t, s, quick(10*time.Millisecond, test.grace))
			asksMany(t, e, s, 1)
			silence(t, s, test.silent)
			e.StartWorkers()
			settles(t, s, "drop-1")
			got := slices.DeleteFunc(lines(t, s), func(kind string) bool { return kind != "request.expired" && kind != "request.changed" })
			if !slices.Equal(got, test.lines) || d.dropped.Load() != 0 {
				t.Errorf("audit lines %q", got)
			}
		})
	}
}

// A service is stopped for a night. Requests that would have expired in the night can still be
// decided in the morning, for the grace period. A second outage before the grace period ended
// restarts it.
func TestI10_StoppedOvernight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := memory.NewStore(nil), new(dropper)
		day := func(hours time.Duration) {
			e := d.executor(t, s, func(c *executor.Config) {
				quick(24*time.Hour, time.Hour)(c)
				c.Poll = 10 * time.Second
			})
			e.StartWorkers()
			if hours == 0 {
				return
			}
			time.Sleep(hours)
			if err := e.Stop(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		status := func() store.Status {
			synctest.Wait()
			run, err := s.Get(t.Context(), "acme", "drop-1")
			if err != nil {
				t.Fatal(err)
			}
			return run.Status
		}
		startDrop(t, d.executor(t, s, quick(24*time.Hour, time.Hour)))
		day(20 * time.Hour)
		time.Sleep(8 * time.Hour)
		day(30 * time.Minute)
		if status() != store.StatusWaiting {
			t.Fatal("the request expired in the night")
		}
		time.Sleep(4 * time.Hour)
		day(59 * time.Minute)
		if status() != store.StatusWaiting {
			t.Fatal("the request expired in the second outage")
		}
		day(2 * time.Minute) // not an outage
		if status() != store.StatusFailed {
			t.Errorf("the grace period is over, but the run is %s", status())
		}
	})
}

// Notices that were due during an outage are sent once, with the last step only.
func TestI10_NoStormOfNoticesAfterAnOutage(t *testing.T) {
	s := memory.NewStore(nil)
	var mu sync.Mutex
	told := make(map[desk.NoticeKind]int)
	change := func(c *executor.Config) {
		ms := timespan.Duration(time.Millisecond)
		c.Desk.Routes = map[string]desk.Route{"default": {Name: "default", Grace: timespan.Duration(time.Hour), Steps: []desk.Step{
			{Notify: []string{"inbox"}}, {At: ms, Remind: []string{"inbox"}}, {At: 2 * ms, Remind: []string{"inbox"}}, {At: 3 * ms, Page: []string{"oncall:dba"}},
			{At: 4 * ms, Expire: "stale"},
		}}}
		c.Log = slog.New(slog.DiscardHandler)
		c.Desk.Channels = []channel.Channel{channel.Notify(func(_ context.Context, _ string, n desk.Notice) error {
			mu.Lock()
			defer mu.Unlock()
			told[n.Kind]++
			return nil
		})}
	}
	asksMany(t, new(dropper).executor(t, s, change), s, 1)
	silence(t, s, time.Hour)
	for range 2 {
		new(dropper).executor(t, s, change).StartWorkers()
	}
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		// in any order
		return told[desk.NoticeNotify] > 0 && told[desk.NoticePage] > 0
	})
	mu.Lock()
	defer mu.Unlock()
	if told[desk.NoticeNotify] != 1 || told[desk.NoticePage] != 1 || told[desk.NoticeRemind] != 0 {
		t.Errorf("notices %v", told)
	}
}

// outagesOf returns the outages in the heartbeat document.
func outagesOf(t *testing.T, s store.Store) (all []json.RawMessage) {
	t.Helper()
	paper, err := s.Document(t.Context(), "", "beat", "clock")
	var beat struct{ Outages []json.RawMessage }
	if err == nil {
		err = json.Unmarshal(paper.Index, &beat)
	}
	if err != nil {
		t.Fatal(err)
	}
	return beat.Outages
}

// Regression: the store's clock was hours ahead for a while, and a process that started then
// recorded an outage. After the clock was corrected, the outage ended in the future and was
// ignored, so nothing could expire until the clock got there again.
func TestI17_OutageOfAWrongClockDoesNotKeepRequestsOpen(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"by ten hours": 10 * time.Hour, "by a minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			s, d := memory.NewStore(nil), new(dropper)
			e := d.executor(t, s, quick(10*time.Millisecond, 50*time.Millisecond))
			id := asksMany(t, e, s, 1)["drop-1"]
			wrong := time.Now().Add(ahead)
			heard(t, s, map[string]any{"at": wrong, "outages": []any{map[string]time.Time{"start": wrong.Add(-time.Hour), "end": wrong}}})
			e.StartWorkers()
			eventually(t, func() bool {
				q, err := s.InboxItem(t.Context(), "acme", id)
				if err != nil {
					t.Fatal(err)
				}
				if q.Deadline.After(wrong) {
					t.Fatalf("the outage of a wrong clock extended the deadline to %v", q.Deadline)
				}
				return q.State != store.InterruptPending
			})
		})
	}
}

// Regression: the store's clock was days behind for a few minutes. Requests that were asked then
// had a deadline in those days, and expired as soon as the clock was right, without any time for a
// decision.
func TestI10_RequestAskedByAClockThatIsBehindHasItsGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var behind atomic.Int64
		s := memory.NewStore(func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) })
		d := new(dropper)
		change := func(c *executor.Config) {
			quick(24*time.Hour, time.Hour)(c)
			c.Poll = 10 * time.Second
		}
		e := d.executor(t, s, change)
		e.StartWorkers()
		time.Sleep(time.Minute)
		behind.Store(int64(48 * time.Hour))
		time.Sleep(time.Minute)
		startDrop(t, e)
		time.Sleep(time.Minute)
		if err := e.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		behind.Store(0)
		next := d.executor(t, s, change) // this process has not seen the wrong clock
		next.StartWorkers()
		time.Sleep(50 * time.Minute)
		completed(t, mustRun(t, next, addressed(t, next, decision("yes", "approve"))))
		if got := outagesOf(t, s); len(got) != 1 {
			t.Errorf("outages %s", got)
		}
	})
}

// sleepy is a store whose process is suspended when it is about to read the heartbeat.
type sleepy struct {
	store.Store
	sleeps atomic.Bool
}

func (s *sleepy) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	if kind == "beat" && s.sleeps.CompareAndSwap(true, false) {
		time.Sleep(10 * time.Minute)
	}
	return s.Store.Document(ctx, account, kind, id)
}

// A process that resumes with an old clock value must not set the heartbeat back. Other processes
// would take its sleep for an outage and grant grace periods without need.
func TestI10_SuspendedProcessIsNotAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		sleeps := &sleepy{Store: s}
		sleeps.sleeps.Store(true)
		for _, s := range []store.Store{sleeps, s} {
			new(dropper).executor(t, s, func(c *executor.Config) {
				c.Poll, c.Log = 10*time.Second, slog.New(slog.DiscardHandler)
			}).StartWorkers()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if sleeps.sleeps.Load() {
			t.Fatal("no process was suspended")
		}
		if got := outagesOf(t, s); len(got) != 0 {
			t.Errorf("a process was running all the time, but there are outages: %s", got)
		}
	})
}
