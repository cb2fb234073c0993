package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
)

// fakeChannel is a notification channel that records deliveries and can fail.
type fakeChannel struct {
	mu   sync.Mutex
	told []desk.Notice
	fail func(desk.Notice) error // called if not nil
}

func (ch *fakeChannel) notify(_ context.Context, _ string, n desk.Notice) error {
	ch.mu.Lock()
	fail := ch.fail
	ch.mu.Unlock()
	if fail != nil {
		if err := fail(n); err != nil {
			return err
		}
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.told = append(ch.told, n)
	return nil
}

func (ch *fakeChannel) of(kind desk.NoticeKind) (all []desk.Notice) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for _, n := range ch.told {
		if n.Kind == kind {
			all = append(all, n)
		}
	}
	return all
}

// on returns a config with the channel and a route of these steps, after which a request is open
// for one more hour.
func (ch *fakeChannel) on(steps ...desk.Step) func(*executor.Config) {
	return func(c *executor.Config) {
		c.Desk.Routes = map[string]desk.Route{"default": {
			Name: "default", DeadlineFrom: desk.DeadlineFromDelivered, Cap: timespan.Duration(5 * time.Hour), Steps: append(steps, desk.Step{At: timespan.Duration(time.Hour), Expire: "stale"}),
		}}
		c.Desk.Channels = []channel.Channel{channel.Notify(ch.notify)}
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// became returns the index of a delivery.
func became(t *testing.T, s store.Store, id string) (index struct {
	Sent  int
	State string
}) {
	t.Helper()
	document, err := s.Document(t.Context(), "acme", "delivery", id)
	if err == nil {
		err = json.Unmarshal(document.Index, &index)
	}
	if err != nil {
		t.Fatal(err)
	}
	return index
}

var chat = desk.Step{Notify: []string{"slack:C1"}}

var inboxAndChat = desk.Step{Notify: []string{"inbox", "slack:C1"}}

// A deadline that counts from delivery starts when the notice was delivered.
func TestDelivered_DeadlineCountsFromDelivery(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var tries atomic.Int64
		ch := &fakeChannel{fail: func(desk.Notice) error {
			if tries.Add(1) == 1 {
				return errors.New("the channel is down")
			}
			return nil
		}}
		e := new(dropper).executor(t, s, ch.on(chat))
		id := startDrop(t, e).Interrupts[0].ID
		if doc, err := e.RequestDocument(t.Context(), "acme", id); err != nil || !doc.Deadline.Equal(doc.Created.Add(5*time.Hour)) {
			t.Fatalf("deadline before the delivery: %v, %v", doc.Deadline, err)
		}
		e.StartWorkers()
		var doc desk.Request
		eventually(t, func() (told bool) {
			var err error
			if doc, err = e.RequestDocument(t.Context(), "acme", id); err != nil {
				t.Fatal(err)
			}
			return len(doc.Deliveries) == 1
		})
		if !doc.Deadline.Equal(doc.Deliveries[0].At.Add(time.Hour)) || doc.Deliveries[0].Target != "slack:C1" {
			t.Errorf("delivered %+v, deadline %v", doc.Deliveries, doc.Deadline)
		}
		if q, err := s.InboxItem(t.Context(), "acme", id); err != nil || q.Deadline.Sub(doc.Deadline).Abs() > time.Millisecond {
			t.Errorf("the interrupt's deadline is %v, %v", q.Deadline, err)
		}
		want := []audit.RequestDelivered{
			{Surface: "slack:C1", State: audit.DeliveryFailed, Attempt: 1, Error: "failed"}, {Surface: "slack:C1", State: audit.DeliveryPosted},
		}
		if told := recorded[audit.RequestDelivered](t, s); !slices.Equal(told, want) {
			t.Errorf("deliveries in the log: %+v", told)
		}
		if moved := recorded[audit.RequestChanged](t, s); len(moved) != 1 || !moved[0].Deadline.Equal(audit.TimestampOf(doc.Deadline).Time) {
			t.Errorf("deadline changes in the log: %+v", moved)
		}
		if got := became(t, s, ch.of(desk.NoticeNotify)[0].Key); got.Sent != 1 || got.State != "sent" {
			t.Errorf("the index of the delivery is %+v", got)
		}
		if stats := e.Stats(); stats.Delivered != 1 || stats.DeliveryFailed != 1 {
			t.Errorf("counted %d delivered and %d failed", stats.Delivered, stats.DeliveryFailed)
		}
	})
}

// A request does not expire because its channel fails. The cap of the route holds.
func TestDelivered_FailingChannelLeavesTheCap(t *testing.T) {
	s := memory.NewStore(nil)
	ch := &fakeChannel{fail: func(desk.Notice) error { return errors.New("the channel is down") }}
	e := new(dropper).executor(t, s, ch.on(inboxAndChat))
	id := startDrop(t, e).Interrupts[0].ID
	e.StartWorkers()
	eventually(t, func() bool { return e.Stats().DeliveryFailed > 0 })
	doc, err := e.RequestDocument(t.Context(), "acme", id)
	if err != nil || !doc.Deadline.Equal(doc.Created.Add(5*time.Hour)) || len(doc.Deliveries) > 0 {
		t.Errorf("deadline %v, delivered %v, %v", doc.Deadline, doc.Deliveries, err)
	}
}

// meddler lets another caller change a request just before a delivery is recorded.
type meddler struct {
	store.Store
	meddle func()
	once   sync.Once
}

func (m *meddler) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	if notice := slices.ContainsFunc(beside.Documents, func(p store.DocumentChange) bool { return p.Kind == "delivery" }); notice && len(beside.RequestIDs()) > 0 {
		m.once.Do(m.meddle)
	}
	return m.Store.CommitWrites(ctx, account, beside)
}

func TestDelivered_IsRecordedDespiteAConcurrentAct(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		s, ch, d := open(), new(fakeChannel), new(dropper)
		asking := d.executor(t, s, ch.on(chat))
		id := startDrop(t, asking).Interrupts[0].ID
		m := &meddler{Store: open(), meddle: func() {
			if _, err := asking.Act(t.Context(), "acme", id, desk.Claim{From: by("ann")}); err != nil {
				t.Error(err)
			}
		}}
		d.executor(t, m, ch.on(chat)).StartWorkers()
		eventually(t, func() bool {
			doc, err := asking.RequestDocument(t.Context(), "acme", id)
			if err != nil {
				t.Fatal(err)
			}
			return len(doc.Deliveries) == 1 && doc.Claim != nil
		})
		if told := ch.of(desk.NoticeNotify); len(told) != 1 {
			t.Errorf("deliveries %+v", told)
		}
	})
}

// A pager uses the keys of notices for deduplication. A request that is asked again is notified
// again, with new keys.
func TestNotices_RequestAskedAgainHasNewKeys(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		ch := new(fakeChannel)
		p := asking([]string{"a", "b"}, []string{"c"}, []string{"a"}, nil)
		e := executorOf(t, s, p, ch.on(chat))
		e.StartWorkers()
		waits(t, mustRun(t, e, scriptedStart()))
		of := func(id string) (keys []string) {
			for _, n := range ch.of(desk.NoticeNotify) {
				if n.Request == id {
					keys = append(keys, n.Key)
				}
			}
			return keys
		}
		eventually(t, func() bool { return len(of("a")) == 1 })
		waits(t, mustRun(t, e, answerTo("b", "r1")))
		waits(t, mustRun(t, e, answerTo("c", "r2")))
		eventually(t, func() bool { return len(of("a")) == 2 })
		if keys := of("a"); keys[0] == keys[1] {
			t.Errorf("both keys are %s", keys[0])
		}
		completed(t, mustRun(t, e, answerTo("a", "r3")))
	})
}

// No page is sent for a decided request.
func TestI10_FailedPageIsNotRepeatedAfterTheDecision(t *testing.T) {
	s := memory.NewStore(nil)
	var key atomic.Value
	ch := &fakeChannel{fail: func(n desk.Notice) error {
		if n.Kind != desk.NoticePage {
			return nil
		}
		key.Store(n.Key)
		return errors.New("the pager is down")
	}}
	e := new(dropper).executor(t, s, ch.on(inboxAndChat, desk.Step{At: timespan.Duration(time.Millisecond), Page: []string{"oncall:dba"}}))
	startDrop(t, e)
	e.StartWorkers()
	eventually(t, func() bool { return key.Load() != nil })
	completed(t, mustRun(t, e, addressed(t, e, decision("1", "approve"))))
	ch.mu.Lock()
	ch.fail = nil // the pager works again
	ch.mu.Unlock()
	eventually(t, func() bool { return became(t, s, key.Load().(string)).State == "obsolete" })
	if pages := ch.of(desk.NoticePage); len(pages) > 0 {
		t.Errorf("pages: %+v", pages)
	}
}

// A page that was in flight when the request was decided may reach the pager after the all-clear.
// So a second all-clear is sent.
func TestI10_PageInFlightIsFollowedByAnAllClear(t *testing.T) {
	s := memory.NewStore(nil)
	entered, release := make(chan struct{}), make(chan struct{})
	ch := &fakeChannel{fail: func(n desk.Notice) error {
		if n.Kind == desk.NoticePage {
			close(entered)
			<-release
		}
		return nil
	}}
	change := ch.on(inboxAndChat, desk.Step{At: timespan.Duration(time.Millisecond), Page: []string{"oncall:dba"}})
	e := new(dropper).executor(t, s, change)
	startDrop(t, e)
	e.StartWorkers()
	<-entered
	other := new(dropper).executor(t, s, change) // the first process is busy with its page
	other.StartWorkers()
	completed(t, mustRun(t, other, addressed(t, other, decision("1", "approve"))))
	eventually(t, func() bool { return len(ch.of(desk.NoticeResolve)) == 1 })
	close(release)
	eventually(t, func() bool { return len(ch.of(desk.NoticeResolve)) == 2 })
	page, clear := ch.of(desk.NoticePage)[0], ch.of(desk.NoticeResolve)
	if page.Incident == "" || clear[0].Incident != page.Incident || clear[1].Incident != page.Incident || clear[0].Key == clear[1].Key {
		t.Errorf("page %+v\nall-clears %+v", page, clear)
	}
}

// A process that is suspended while it delivers a page may continue after another process has taken
// over, found the request finished, and sent the all-clear.
func TestI10_PageAfterItsAllClearIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		var asleep atomic.Bool
		ch := &fakeChannel{fail: func(n desk.Notice) error {
			if n.Kind == desk.NoticePage && asleep.CompareAndSwap(false, true) {
				time.Sleep(3 * time.Minute) // longer than the claim of the notice
			}
			return nil
		}}
		route := ch.on(inboxAndChat, desk.Step{At: timespan.Duration(time.Millisecond), Page: []string{"oncall:dba"}})
		change := func(c *executor.Config) { route(c); c.Poll = time.Second }
		e := new(dropper).executor(t, s, change)
		startDrop(t, e)
		e.StartWorkers()
		time.Sleep(10 * time.Second)
		if !asleep.Load() {
			t.Fatal("no page was sent")
		}
		other := new(dropper).executor(t, s, change)
		other.StartWorkers()
		completed(t, mustRun(t, other, addressed(t, other, decision("1", "approve"))))
		time.Sleep(2 * time.Minute)
		if pages, clear := ch.of(desk.NoticePage), ch.of(desk.NoticeResolve); len(pages) != 0 || len(clear) != 2 {
			t.Fatalf("before the process continues there are the pages %+v and the all-clears %+v", pages, clear)
		}
		time.Sleep(2 * time.Minute)
		pages, clear := ch.of(desk.NoticePage), ch.of(desk.NoticeResolve)
		if len(pages) != 1 || len(clear) != 3 || clear[2].Incident != pages[0].Incident || clear[2].Key == clear[1].Key {
			t.Errorf("pages %+v, all-clears %+v", pages, clear)
		}
	})
}

func TestI7_ErrorTextOfAChannelIsNotLogged(t *testing.T) {
	var log syncBuffer
	told := make(chan struct{}, 100)
	e := executorOf(t, memory.NewStore(nil), asking([]string{"a"}, nil), func(c *executor.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Desk.Channels = []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error {
			told <- struct{}{}
			return errors.New(`Post "https://hooks.example.com/services/T1/s3cr3t": connection refused`)
		})}
	})
	waits(t, mustRun(t, e, scriptedStart()))
	e.StartWorkers()
	<-told
	<-told
	if strings.Contains(log.String(), "s3cr3t") {
		t.Errorf("I7: the log contains the error text: %s", log.String())
	}
}

func TestNotices_DeadChannelDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan time.Duration, 1)
		begin := time.Now()
		p := crowd(40)
		e := executorOf(t, memory.NewStore(nil), p, func(c *executor.Config) {
			c.RequestTimeout = -1
			c.Log = slog.New(slog.DiscardHandler)
			c.Desk.Channels = []channel.Channel{channel.Notify(func(ctx context.Context, account string, n desk.Notice) error {
				if account == "other" {
					select {
					case told <- time.Since(begin):
					default:
					}
					return nil
				}
				<-ctx.Done() // the channel of this account hangs
				return ctx.Err()
			})}
		})
		waits(t, mustRun(t, e, scriptedStart()))
		r := scriptedStart()
		r.Account = "other"
		waits(t, mustRun(t, e, r))
		e.StartWorkers()
		if d := <-told; d > time.Minute {
			t.Errorf("the notice of another account is delivered after %v", d)
		}
		stop := time.Now()
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if d := time.Since(stop); d > time.Minute {
			t.Errorf("stopping took %v", d)
		}
	})
}

// full is a store that rejects all writes once it is on.
type full struct {
	store.Store
	on    atomic.Bool
	looks atomic.Int64
}

func (f *full) DueDocuments(ctx context.Context, kind store.DocumentKind, limit int) ([]store.Document, error) {
	if kind == "delivery" {
		f.looks.Add(1)
	}
	return f.Store.DueDocuments(ctx, kind, limit)
}

func (f *full) CommitWrites(ctx context.Context, account string, b store.Writes) error {
	if f.on.Load() {
		return errors.New("the disk is full")
	}
	return f.Store.CommitWrites(ctx, account, b)
}

func TestNotices_AreNotRetriedWithoutPauseIfNothingCanBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &full{Store: memory.NewStore(nil)}
		e := executorOf(t, s, crowd(100), func(c *executor.Config) {
			c.Poll = time.Hour
			c.Log = slog.New(slog.DiscardHandler)
			c.Desk.Channels = []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error { return nil })}
		})
		waits(t, mustRun(t, e, scriptedStart()))
		s.on.Store(true)
		e.StartWorkers()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := s.looks.Load(); n == 0 || n > 3 {
			t.Errorf("%d polls in a second, with an interval of an hour", n)
		}
	})
}

// A channel that hangs does not delay later notices either.
func TestNotices_HangingChannelDoesNotDelayLaterNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan time.Time, 1)
		e := executorOf(t, memory.NewStore(nil), crowd(1), func(c *executor.Config) {
			c.RequestTimeout, c.Poll = -1, time.Second
			c.Log = slog.New(slog.DiscardHandler)
			c.Desk.Channels = []channel.Channel{channel.Notify(func(ctx context.Context, account string, _ desk.Notice) error {
				if account == "other" {
					told <- time.Now()
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			})}
		})
		e.StartWorkers()
		waits(t, mustRun(t, e, scriptedStart()))
		time.Sleep(3 * time.Second) // now the channel hangs
		asked := time.Now()
		r := scriptedStart()
		r.Account = "other"
		waits(t, mustRun(t, e, r))
		if d := (<-told).Sub(asked); d > 3*time.Second {
			t.Errorf("the notice of another account is delivered after %v", d)
		}
	})
}

// The pause between attempts does not depend on how long a channel takes to fail.
func TestNotices_SlowlyFailingChannelIsRetriedWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var failed time.Time
		var pauses []time.Duration
		e := executorOf(t, memory.NewStore(nil), crowd(1), func(c *executor.Config) {
			c.RequestTimeout, c.Poll = -1, time.Second
			c.Log = slog.New(slog.DiscardHandler)
			c.Desk.Channels = []channel.Channel{channel.Notify(func(ctx context.Context, _ string, _ desk.Notice) error {
				mu.Lock()
				defer mu.Unlock()
				if !failed.IsZero() {
					pauses = append(pauses, time.Since(failed))
				}
				<-ctx.Done()
				failed = time.Now()
				return ctx.Err()
			})}
		})
		waits(t, mustRun(t, e, scriptedStart()))
		e.StartWorkers()
		time.Sleep(4 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(pauses) < 4 {
			t.Errorf("pauses %v", pauses)
		}
		for n, pause := range pauses {
			if want := time.Second << n; pause < want {
				t.Errorf("pause %d is %v, want %v", n+1, pause, want)
			}
		}
	})
}

// A notice of a finished request that no channel accepts is not retried for as long as its run is
// kept.
func TestNotices_UndeliverableNoticeIsDroppedAfterTheRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		var tries atomic.Int64
		ch := &fakeChannel{fail: func(n desk.Notice) error {
			if n.Kind != desk.NoticeRerender {
				return nil
			}
			tries.Add(1)
			return errors.New("no such channel")
		}}
		route := ch.on(chat)
		e := new(dropper).executor(t, memory.NewStore(nil), func(c *executor.Config) {
			route(c)
			c.Poll, c.Log = 10*time.Minute, slog.New(slog.NewTextHandler(&log, nil))
		})
		startDrop(t, e)
		e.StartWorkers()
		time.Sleep(15 * time.Minute)
		completed(t, mustRun(t, e, addressed(t, e, decision("1", "approve"))))
		time.Sleep(2 * 24 * time.Hour)
		soon := tries.Load()
		time.Sleep(8 * 24 * time.Hour)
		last := tries.Load()
		time.Sleep(24 * time.Hour)
		if now := tries.Load(); soon < 20 || last <= soon || now != last {
			t.Errorf("%d attempts in two days, %d in ten and %d in eleven", soon, last, now)
		}
		if !strings.Contains(log.String(), "again=false") {
			t.Error("no log line says that the notice was dropped")
		}
	})
}

// A request whose notice could not be delivered says so, without the text of the channel's error.
func TestDelivered_FailureIsInTheRequest(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		ch := &fakeChannel{fail: func(desk.Notice) error {
			return &desk.NoticeError{Code: "channel_not_found", Err: errors.New("token xoxb-secret")}
		}}
		e := new(dropper).executor(t, s, ch.on(inboxAndChat))
		id := startDrop(t, e).Interrupts[0].ID
		e.StartWorkers()
		var failed []desk.Event
		eventually(t, func() bool {
			doc, err := e.RequestDocument(t.Context(), "acme", id)
			if err != nil {
				t.Fatal(err)
			}
			failed = slices.DeleteFunc(slices.Clone(doc.Log), func(e desk.Event) bool { return e.Type != desk.EventNoticeFailed })
			return len(failed) == 2 && e.Stats().DeliveryFailed > 1 // later attempts add nothing
		})
		slices.SortFunc(failed, func(a, b desk.Event) int { return strings.Compare(a.Detail["target"], b.Detail["target"]) })
		for i, target := range inboxAndChat.Notify {
			event := failed[i]
			if event.Detail["target"] != target || event.Detail["code"] != "channel_not_found" || event.Detail["next"] == "" || !strings.Contains(event.Text, target) || strings.Contains(fmt.Sprint(event), "xoxb") {
				t.Errorf("event %+v", event)
			}
		}
		if n := len(ch.of(desk.NoticeRerender)); n != 0 {
			t.Errorf("%d notices about the failed one", n)
		}
	})
}

// A notice about the end of a request that was given up is in the closed request too.
func TestDelivered_GivenUpIsInTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		ch := &fakeChannel{fail: func(n desk.Notice) error {
			if n.Kind == desk.NoticeResolve {
				return context.DeadlineExceeded
			}
			return nil
		}}
		e := new(dropper).executor(t, s, func(c *executor.Config) {
			ch.on(desk.Step{Page: []string{"pagerduty:dba"}})(c)
			c.Poll = time.Minute
		})
		id := startDrop(t, e).Interrupts[0].ID
		e.StartWorkers()
		time.Sleep(10 * 24 * time.Hour)
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.State != desk.StateExpired {
			t.Fatal(doc.State, err)
		}
		var attempts []string
		for _, event := range doc.Log {
			if event.Type == desk.EventNoticeFailed && event.Detail["code"] == "timeout" && event.Detail["target"] == "pagerduty:dba" {
				attempts = append(attempts, event.Detail["attempt"]+" "+fmt.Sprint(event.Detail["next"] != ""))
			}
		}
		if !slices.Equal(attempts, []string{"1 true", "84 false"}) {
			t.Errorf("failures in the request: %q", attempts)
		}
	})
}
