package executor_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// outagesOf are the outages that the heartbeat remembers.
func outagesOf(t *testing.T, s store.Store) (all []json.RawMessage) {
	t.Helper()
	paper, err := s.Paper(t.Context(), "", "beat", "clock")
	var beat struct{ Outages []json.RawMessage }
	if err == nil {
		err = json.Unmarshal(paper.Facts, &beat)
	}
	if err != nil {
		t.Fatal(err)
	}
	return beat.Outages
}

// The story: the clock of the store was hours ahead for a while, and whoever came up then noted an outage. The clock was set right, and the outage
// ended in the future: no rule takes such a one, so that nothing could expire until the clock had come there again.
func TestI17_AnOutageOfAWrongClockDoesNotKeepQuestionsOpen(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"by ten hours": 10 * time.Hour, "by a minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			s, d := memory.NewRuns(nil), new(dropper)
			e := d.executor(t, s, quick(10*time.Millisecond, time.Hour))
			id := asksMany(t, e, s, 1)["drop-1"]
			wrong := time.Now().Add(ahead)
			heard(t, s, map[string]any{"at": wrong, "outages": []any{map[string]time.Time{"start": wrong.Add(-time.Hour), "end": wrong}}})
			e.Start()
			eventually(t, func() bool {
				q, err := s.Question(t.Context(), "acme", id)
				if err != nil {
					t.Fatal(err)
				}
				if q.Deadline.After(wrong) {
					t.Fatalf("the outage of a wrong clock gave it time until %v", q.Deadline)
				}
				return q.State != store.Pending
			})
		})
	}
}

// sleepy is a store whose process falls asleep when it is about to read the heartbeat.
type sleepy struct {
	store.Store
	sleeps atomic.Bool
}

func (s *sleepy) Paper(ctx context.Context, account string, kind store.PaperKind, id string) (store.Paper, error) {
	if kind == "beat" && s.sleeps.CompareAndSwap(true, false) {
		time.Sleep(10 * time.Minute)
	}
	return s.Store.Paper(ctx, account, kind, id)
}

// A process that wakes up with an old look at the clock must not set the heartbeat back: the others would take its sleep for an outage, and give
// time to what nobody has missed.
func TestI10_AProcessThatSleptIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewRuns(nil)
		sleeps := &sleepy{Store: s}
		sleeps.sleeps.Store(true)
		for _, s := range []store.Store{sleeps, s} {
			new(dropper).executor(t, s, func(c *executor.Config) {
				c.Poll, c.Log = 10*time.Second, slog.New(slog.DiscardHandler)
			}).Start()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if sleeps.sleeps.Load() {
			t.Fatal("nobody slept")
		}
		if got := outagesOf(t, s); len(got) != 0 {
			t.Errorf("somebody was there all the time, and there were outages: %s", got)
		}
	})
}
