package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/slackfake"
	port "github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
)

// storeClock is a clock that a test moves.
type storeClock struct {
	start time.Time
	moved atomic.Int64 // nanoseconds

	mu     sync.Mutex
	passes map[port.DocumentKind]int // of the loops of the executor, by what they look for
}

func (c *storeClock) now() time.Time { return c.start.Add(c.passed()) }

func (c *storeClock) passed() time.Duration { return time.Duration(c.moved.Load()) }

// watchedStore counts the passes of the loops.
type watchedStore struct {
	*memory.Store
	clock *storeClock
}

func (s watchedStore) DueDocuments(ctx context.Context, kind port.DocumentKind, limit int) ([]port.Document, error) {
	s.clock.mu.Lock()
	s.clock.passes[kind]++
	s.clock.mu.Unlock()
	return s.Store.DueDocuments(ctx, kind, limit)
}

// count returns the passes of the loops for requests, notices and deliveries.
func (c *storeClock) count() (all [3]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return [3]int{c.passes["request"], c.passes["notice"], c.passes["delivery"]}
}

// move moves the clock by a step, and waits until each loop has made two passes.
func (c *storeClock) move(step time.Duration) {
	c.moved.Add(int64(step))
	for before := c.count(); ; time.Sleep(time.Millisecond) {
		if now := c.count(); now[0] > before[0]+1 && now[1] > before[1]+1 && now[2] > before[2]+1 {
			return
		}
	}
}

// Slack is down for an hour, by the clock of the store. The route pages at its step, each request
// names the target that failed, and half a minute after the outage every copy shows the truth: what
// was decided has no buttons, and what is open can be decided.
func TestOutage_OneHourPagesAndEveryCopyIsReplacedAfterwards(t *testing.T) {
	clock, p := &storeClock{start: time.Now(), passes: make(map[port.DocumentKind]int)}, new(pager)
	o := openOfficeAt(t, clock, func(c *slack.Config) { c.Now = clock.now }, func(o *office, c *executor.DeskConfig) {
		c.Channels = []channel.Channel{current{o}, p}
		c.Routes = map[string]desk.Route{"default": {Name: "default", DeadlineFrom: desk.DeadlineFromCreated, Steps: []desk.Step{
			{Notify: []string{"slack:" + o.ops}}, {At: timespan.Duration(30 * time.Minute), Page: []string{"pager:oncall"}}, {At: timespan.Duration(50 * time.Minute), Expire: "stale"},
		}}}
	})
	refund := func(order string) string {
		return o.create(api.CreateRequest{Kind: "approval", Data: json.RawMessage(`{"action":"refund","args":{"amount":120,"order":"` + order + `"}}`)})
	}
	// of returns the copies of a request
	of := func(order string) (all []slackfake.Message) {
		for _, m := range o.Messages(o.ops) {
			if strings.Contains(string(m.Blocks), `\n`+order+`"`) {
				all = append(all, m)
			}
		}
		return all
	}
	live := func(order string) bool {
		return slices.ContainsFunc(of(order), func(m slackfake.Message) bool { return slices.Contains(labels(t, m.Blocks), "Approve") })
	}
	decided, open := refund("decided"), refund("open")
	until(t, "both are posted", func() bool { return live("decided") && live("open") })

	o.SetDown(true)
	unposted := refund("unposted")
	if _, err := o.as("bob", authn.RoleApprover).Decide(t.Context(), decided, api.Decide{Answer: json.RawMessage(`{"verb":"reject","reason":"no"}`)}); err != nil {
		t.Fatal(err)
	}
	paged := time.Duration(0)
	for clock.passed() < time.Hour {
		if clock.move(20 * time.Second); paged == 0 && p.pages() > 0 {
			paged = clock.passed()
		}
		if clock.passed() == 40*time.Minute { // the others are about to expire
			for _, id := range []string{open, unposted} {
				until(t, "the route of "+id+" has paged", func() bool { return len(p.of(id)) == 1 })
				if got := fmt.Sprint(o.request(id).Activity.History); id == unposted && !strings.Contains(got, "could not reach slack:") {
					t.Errorf("the request does not name the target that failed: %s", got)
				}
			}
		}
	}
	if paged < 30*time.Minute || paged > 32*time.Minute {
		t.Errorf("the route paged after %v", paged)
	}
	if len(p.of(decided)) > 0 {
		t.Error("a decided request paged")
	}
	late := refund("late") // posted for the first time after the outage
	if !live("decided") || len(of("unposted"))+len(of("late")) > 0 {
		t.Fatal("Slack was not down")
	}

	o.SetDown(false)
	for began := clock.passed(); live("decided") || live("open") || !live("late"); clock.move(time.Second) {
		if clock.passed()-began > time.Minute {
			t.Fatalf("a minute after the outage: decided %v, open %v, late %v", live("decided"), live("open"), live("late"))
		}
	}
	for order, outcome := range map[string]string{"decided": "rejected by bob", "open": "expired"} {
		if all := of(order); len(all) != 1 || !strings.Contains(string(all[0].Blocks), outcome) {
			t.Errorf("%s has the copies %+v; want %q", order, all, outcome)
		}
	}
	if all := of("unposted"); len(all) > 0 {
		t.Errorf("a request that expired during the outage was posted: %+v", all)
	}
	m := of("late")[0]
	if _, err := o.Click(t.Context(), o.alice, o.ops, m.TS, "approve"); err != nil {
		t.Fatal(err)
	}
	o.process()
	o.wantDecision(late, "approve", "ann")
	until(t, "the last copy has no buttons", func() bool { return !live("late") })
}
