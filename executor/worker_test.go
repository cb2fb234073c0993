package executor

import (
	"testing"
	"time"
)

func TestClockGuard_BelievesAClockThatAgreesWithTheTimeThatPassed(t *testing.T) {
	begin := time.Now()
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	type look struct {
		here, store time.Duration // since the beginning
		trusts      bool
	}
	for name, looks := range map[string][]look{
		"steady":                  {{0, 0, true}, {time.Hour, time.Hour, true}},
		"a bit off":               {{0, 30 * time.Second, true}, {time.Hour, time.Hour + 30*time.Second, true}},
		"far off from the start":  {{0, time.Hour, false}, {time.Minute, time.Hour + time.Minute, false}, {2 * time.Hour, 3 * time.Hour, true}},
		"drifts":                  {{0, 0, true}, {time.Hour, time.Hour + 4*time.Second, true}, {2 * time.Hour, 2*time.Hour + 8*time.Second, true}},
		"stands still":            {{0, 0, true}, {time.Minute, 100 * time.Second, true}},
		"jumps ahead, stays":      {{0, 0, true}, {time.Minute, 25 * time.Hour, false}, {2 * time.Minute, 25*time.Hour + time.Minute, false}, {2 * time.Hour, 27*time.Hour - time.Minute, true}},
		"jumps ahead, comes back": {{0, 0, true}, {time.Minute, 25 * time.Hour, false}, {2 * time.Minute, 2 * time.Minute, true}},
		"jumps back":              {{0, 0, true}, {time.Minute, -time.Hour, false}},
		"jumps again and again":   {{0, 0, true}, {time.Minute, 25 * time.Hour, false}, {59 * time.Minute, 50 * time.Hour, false}, {90 * time.Minute, 75 * time.Hour, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var guard clockGuard
			for _, l := range looks {
				if got := guard.trusts(at(l.store).Round(0), at(l.here)); got != l.trusts {
					t.Errorf("after %v the store says %v: trusted %v", l.here, l.store, got)
				}
			}
		})
	}
}
