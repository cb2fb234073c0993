package executor_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/internal/timespan"
)

// followTheSun is a route with a channel for each region. It moves on if no approver opens the
// request, and pages.
func followTheSun() desk.Route {
	region := func(name, zone string, from, to int) hours.Region {
		return hours.Region{Name: name, Zone: zone, Channel: "slack:" + name, Windows: []hours.Window{{Days: hours.Weekdays(), From: hours.At(from, 0), To: hours.At(to, 0)}}}
	}
	viewed := []desk.SkipCondition{desk.SkipIfViewed}
	return desk.Route{
		Name: "default", MinRemaining: timespan.Duration(30 * time.Minute), DeadlineFrom: desk.DeadlineFromDelivered, Cap: timespan.Duration(120 * time.Hour),
		Regions: []hours.Region{region("emea", "Europe/Zurich", 9, 18), region("apac", "Australia/Sydney", 9, 18), region("amer", "America/New_York", 9, 17)},
		Steps: []desk.Step{
			{Notify: []string{"region", "inbox"}},
			{At: timespan.Duration(30 * time.Minute), Remind: []string{"region"}, SkipIf: viewed},
			{At: timespan.Duration(2 * time.Hour), Page: []string{"pagerduty:dba"}, Severity: "error"},
			{At: timespan.Duration(9 * time.Hour), Notify: []string{"region"}, SkipIf: viewed},
			{At: timespan.Duration(24 * time.Hour), Expire: "stale"},
		},
	}
}

// sentStep is a notice to a target.
type sentStep struct {
	at     time.Time
	kind   desk.NoticeKind
	target string
}

func (s sentStep) String() string {
	return fmt.Sprintf("%s %s %s", s.at.Format("Mon 2006-01-02 15:04"), s.kind, s.target)
}

const sunPoll = time.Minute

// interruptAt starts a run at a time, and returns its notices until it has expired. It must be
// called in a bubble. opened is when an approver opens the request; 0 for never.
func interruptAt(t *testing.T, at time.Time, opened time.Duration) (sent []sentStep, created time.Time) {
	t.Helper()
	var mu sync.Mutex
	time.Sleep(time.Until(at))
	e := new(dropper).executor(t, memory.NewStore(nil), func(c *executor.Config) {
		c.Poll, c.RequestTimeout, c.Log = sunPoll, 200*time.Hour, slog.New(slog.DiscardHandler)
		c.Desk.Routes = map[string]desk.Route{"default": followTheSun()}
		c.Desk.Channels = []channel.Channel{channel.Notify(func(_ context.Context, _ string, n desk.Notice) error {
			if n.Step > 0 && n.Kind != desk.NoticeRerender {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, sentStep{time.Now().UTC(), n.Kind, n.Targets[0]})
			}
			return nil
		})}
	})
	id := startDrop(t, e).Interrupts[0].ID
	e.StartWorkers()
	if opened > 0 {
		time.Sleep(opened)
		acts(t, e, id, desk.View{From: by("ann")})
	}
	doc, err := e.RequestDocument(t.Context(), "acme", id)
	for range 124 {
		if err != nil || doc.State != desk.StateOpen {
			break
		}
		time.Sleep(time.Hour)
		doc, err = e.RequestDocument(t.Context(), "acme", id)
	}
	if err != nil || doc.State != desk.StateExpired {
		t.Fatalf("the request is %s, %v", doc.State, err)
	}
	mu.Lock()
	defer mu.Unlock()
	sent = append(sent, sentStep{doc.Decision.At, "expire", doc.Decision.Reason})
	slices.SortStableFunc(sent, func(a, b sentStep) int {
		return cmp.Or(a.at.Truncate(2*sunPoll).Compare(b.at.Truncate(2*sunPoll)), cmp.Compare(a.target, b.target))
	})
	return sent, doc.Created
}

// plannedFor is the output of the simulator in the same form.
func plannedFor(t *testing.T, created time.Time) (plan []sentStep) {
	t.Helper()
	steps, err := desk.Simulate(followTheSun(), created, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.Reason != "" {
			plan = append(plan, sentStep{s.At, desk.NoticeKind(s.Action), s.Reason})
		}
		for _, target := range s.Targets {
			plan = append(plan, sentStep{s.At, desk.NoticeKind(s.Action), target})
		}
	}
	return plan
}

// The simulator says what is sent, at random instants of a year: also at night, on weekends, and
// around the clock changes of each region.
func TestRoutes_SimulatorEqualsWhatIsSent(t *testing.T) {
	cases, seed := testtier.Count(0, 16, 1000), uint64(4) // in addition to the fixed instants
	if testtier.IsSoak() {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 7))
	fixed := []time.Time{
		time.Date(2000, 3, 26, 0, 30, 0, 0, time.UTC), time.Date(2000, 3, 25, 15, 30, 0, 0, time.UTC), time.Date(2000, 4, 2, 6, 30, 0, 0, time.UTC),
		time.Date(2000, 10, 29, 0, 30, 0, 0, time.UTC), time.Date(2000, 10, 27, 21, 30, 0, 0, time.UTC), time.Date(2000, 12, 31, 23, 0, 0, 0, time.UTC),
	}
	for n := range cases + len(fixed) {
		synctest.Test(t, func(t *testing.T) {
			at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rng.Int64N(int64(366 * 24 * time.Hour))).Truncate(time.Second))
			if n < len(fixed) {
				at = fixed[n]
			}
			sent, created := interruptAt(t, at, 0)
			plan := plannedFor(t, created)
			unsent := slices.Clone(plan)
			for _, s := range sent {
				i := slices.IndexFunc(unsent, func(p sentStep) bool {
					late := s.at.Sub(p.at)
					return p.kind == s.kind && p.target == s.target && late >= -time.Second && late <= 3*sunPoll
				})
				if i < 0 {
					t.Errorf("at %s: sent, but not planned: %s\nplan %s", at, s, plan)
					continue
				}
				unsent = slices.Delete(unsent, i, i+1)
			}
			if len(unsent) > 0 {
				t.Errorf("at %s: planned, but not sent: %s\nsent %s", at, unsent, sent)
			}
		})
	}
}

// A run that is interrupted at 23:00 UTC is posted to the region that is awake. It moves on to the
// next region if no approver opens it, and only then.
func TestSeed004_InterruptedAt2300MovesWithTheSun(t *testing.T) {
	monday := time.Date(2000, 1, 10, 23, 0, 0, 0, time.UTC) // 10:00 on Tuesday in Sydney
	for opened, want := range map[time.Duration][]string{
		0:                {"Mon 23:00 notify slack:apac", "Mon 23:30 remind slack:apac", "Tue 08:00 notify slack:emea"},
		10 * time.Minute: {"Mon 23:00 notify slack:apac"},
		2 * time.Hour:    {"Mon 23:00 notify slack:apac", "Mon 23:30 remind slack:apac"},
	} {
		synctest.Test(t, func(t *testing.T) {
			sent, _ := interruptAt(t, monday, opened)
			var got []string
			for _, s := range sent {
				if s.kind != "expire" && s.kind != desk.NoticePage && s.target != "inbox" {
					got = append(got, fmt.Sprintf("%s %s %s", s.at.Truncate(10*time.Minute).Format("Mon 15:04"), s.kind, s.target))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("opened after %s: sent %q, not %q", opened, got, want)
			}
		})
	}
}
