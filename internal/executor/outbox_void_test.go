package executor_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
)

// broken is a channel that rejects notices of one kind while it is down, as it is at first.
func broken(kind desk.NoticeKind) (*fakeChannel, *atomic.Bool) {
	down := new(atomic.Bool)
	down.Store(true)
	return &fakeChannel{fail: func(n desk.Notice) error {
		if n.Kind == kind && down.Load() {
			return errors.New("the channel is down")
		}
		return nil
	}}, down
}

// A failed page is void after its request is snoozed: it is not sent before the snooze ends.
func TestI10_UndeliveredStepIsVoidWhenTheRouteRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ch, down := broken(desk.NoticePage)
		route := ch.on(inboxAndChat, desk.Step{At: timespan.Duration(time.Minute), Page: []string{"oncall:dba"}})
		e := new(dropper).executor(t, memory.NewStore(nil), func(c *executor.Config) { route(c); c.Poll = time.Second })
		id := startDrop(t, e).Interrupts[0].ID
		e.StartWorkers()
		time.Sleep(90 * time.Second) // the delivery was attempted, and failed
		acts(t, e, id, desk.Snooze{From: by("ann"), Until: time.Now().Add(30 * time.Minute)})
		down.Store(false)
		time.Sleep(29 * time.Minute)
		if pages := ch.of(desk.NoticePage); len(pages) > 0 {
			t.Errorf("the request is snoozed, but a page was sent: %+v", pages)
		}
		time.Sleep(4 * time.Minute)
		if pages := ch.of(desk.NoticePage); len(pages) != 1 || pages[0].Epoch != 2 {
			t.Errorf("pages after the snooze: %+v", pages)
		}
	})
}

// Extending a deadline does not drop the first notice of the request.
func TestI10_UndeliveredNoticeIsSentAfterTheDeadlineIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ch, down := broken(desk.NoticeNotify)
		route := ch.on(chat)
		e := new(dropper).executor(t, memory.NewStore(nil), func(c *executor.Config) {
			route(c)
			c.Poll = time.Second
			c.Desk.Routes["default"] = desk.Route{Name: "default", Cap: timespan.Duration(5 * time.Hour), Steps: c.Desk.Routes["default"].Steps}
		})
		id := startDrop(t, e).Interrupts[0].ID
		e.StartWorkers()
		time.Sleep(time.Minute)
		acts(t, e, id, desk.Extend{From: by("ann"), Until: time.Now().Add(2 * time.Hour)})
		down.Store(false)
		time.Sleep(10 * time.Minute)
		if told := ch.of(desk.NoticeNotify); len(told) != 1 || told[0].Epoch != 1 {
			t.Errorf("notices %+v", told)
		}
	})
}

// A failed page of a request that was withdrawn and is asked again belongs to an incident that
// already has its all-clear.
func TestI10_EveryIncidentEndsWithAnAllClearIfARequestIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ch, down := broken(desk.NoticePage)
		route := ch.on(desk.Step{Page: []string{"oncall:dba"}})
		p := asking([]string{"a", "b"}, []string{"c"}, []string{"a"}, nil)
		e := executorOf(t, memory.NewStore(nil), p, func(c *executor.Config) { route(c); c.Poll = time.Second })
		e.StartWorkers()
		waits(t, mustRun(t, e, scriptedStart()))
		time.Sleep(20 * time.Second) // the next attempt is some seconds away
		waits(t, mustRun(t, e, answerTo("b", "r1")))
		time.Sleep(2 * time.Second) // the all-clear is sent
		waits(t, mustRun(t, e, answerTo("c", "r2")))
		down.Store(false)
		time.Sleep(10 * time.Minute)
		completed(t, mustRun(t, e, answerTo("a", "r3")))
		time.Sleep(10 * time.Minute)
		open := make(map[string]bool)
		ch.mu.Lock()
		defer ch.mu.Unlock()
		for _, n := range ch.told {
			if n.Incident != "" {
				open[n.Incident] = n.Kind == desk.NoticePage
			}
		}
		if len(open) == 0 {
			t.Error("no page was sent")
		}
		for incident, still := range open {
			if still {
				t.Errorf("incident %s stays open", incident)
			}
		}
	})
}
