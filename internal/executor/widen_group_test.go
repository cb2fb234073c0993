package executor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
)

// If the asked people do not decide, a step of the route adds the groups that the rules permit, and
// no others.
func TestWiden_ManagersVoteCountsAfterTheRouteAddsTheGroup(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		let := make(chan struct{})
		once := sync.OnceFunc(func() { close(let) })
		d := new(dropper)
		e := office(t, s, d, func(c *executor.Config) {
			c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann"}, "group:managers": {"max"}, "group:interns": {"ian"}}
			c.Desk.Policy = loadRules(t, `
default: deny
rules:
- id: drop
  when: 'true'
  then: ask
  ask: {groups: [{from: ["group:dba"], widen: ["group:managers"]}], deadline: 1h, route: up}
`)
			c.Desk.Routes = map[string]desk.Route{"up": {Name: "up", Cap: timespan.Duration(2 * time.Hour), Steps: []desk.Step{
				{Notify: []string{"inbox"}},
				{At: timespan.Duration(time.Millisecond), Notify: []string{"group:managers"}, Widen: []string{"group:managers", "group:interns"}},
				{At: timespan.Duration(time.Hour), Expire: "stale"},
			}}}
			c.Desk.Channels = []channel.Channel{channel.Notify(func(_ context.Context, _ string, n desk.Notice) error {
				if slices.Contains(n.Targets, "group:managers") {
					once()
				}
				return nil
			})}
		})
		startAs(t, e, "req")
		if _, err := says(t, e, "max", "early", yes); !errors.Is(err, desk.ErrNotMember) {
			t.Fatalf("a vote before the step: %v", err)
		}
		e.StartWorkers() // takes the due steps
		<-let
		if _, err := says(t, e, "ian", "never", yes); !errors.Is(err, desk.ErrNotMember) {
			t.Fatalf("a vote of a group that the route adds, but the rules do not permit: %v", err)
		}
		outcome, err := says(t, e, "max", "now", yes)
		if err != nil {
			t.Fatal(err)
		}
		completed(t, outcome)
		if d.dropped.Load() != 1 {
			t.Errorf("dropped %d times", d.dropped.Load())
		}
	})
}

// The rules can restrict the verbs of a request.
func TestVerbs_VerbThatTheRulesDoNotAllowIsRefused(t *testing.T) {
	d := new(dropper)
	e := office(t, memory.NewStore(nil), d, func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, `
default: deny
rules:
- {id: drop, when: 'true', then: ask, ask: {groups: [{from: ["group:dba"]}], deadline: 1h, verbs: [approve, reject, claim], editable: [""]}}
`)
	})
	id := startAs(t, e, "req").Interrupts[0].ID
	from := by("ann")
	until := time.Now().Add(time.Minute)
	for _, act := range []desk.Command{
		desk.Delegate{From: from, To: "bob"}, desk.Snooze{From: from, Until: until}, desk.AskClarification{From: from, Question: "why?"},
		desk.Escalate{From: from}, desk.Extend{From: from, Until: until},
	} {
		if _, err := e.Act(t.Context(), "acme", id, act); !errors.Is(err, desk.ErrNotAllowed) {
			t.Errorf("%T: %v", act, err)
		}
	}
	if err := e.Abandon(t.Context(), "acme", id, desk.Abandon{From: from}); !errors.Is(err, desk.ErrNotAllowed) {
		t.Errorf("abandon: %v", err)
	}
	if _, err := says(t, e, "ann", "r1", `{"verb":"approve","args":"other"}`); !errors.Is(err, desk.ErrNotAllowed) {
		t.Errorf("approve with edits: %v", err)
	}
	if _, err := e.Act(t.Context(), "acme", id, desk.Claim{From: from}); err != nil {
		t.Errorf("claim, which the rules allow: %v", err)
	}
	outcome, err := says(t, e, "ann", "r2", yes)
	if err != nil {
		t.Fatal(err)
	}
	completed(t, outcome)
}
