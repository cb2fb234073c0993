package storeclock

import (
	"testing"
	"time"
)

// Regression: after a laptop was asleep for a night, nothing was notified, reminded or expired for
// an hour, and an approval of an open request was too late.
func TestClockGuard_SleepIsNotAJump(t *testing.T) {
	begin, night := time.Now(), 10*time.Hour
	var guard Guard
	if !guard.check(begin.Round(0), begin, time.Minute) || !guard.check(begin.Add(time.Hour+night).Round(0), begin.Add(time.Hour), time.Minute+night) {
		t.Error("a night of sleep is taken for a clock jump")
	}
	if guard.check(begin.Add(time.Hour+2*night).Round(0), begin.Add(time.Hour), time.Minute+night) {
		t.Error("a clock jump is taken for sleep")
	}
}

func TestClockGuard_TrustsAClockThatAgreesWithElapsedTime(t *testing.T) {
	begin := time.Now()
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	type look struct {
		here, store time.Duration // since the start
		trusts      bool
	}
	for name, looks := range map[string][]look{
		"steady":                  {{0, 0, true}, {time.Hour, time.Hour, true}},
		"a bit off":               {{0, 30 * time.Second, true}, {time.Hour, time.Hour + 30*time.Second, true}},
		"far off from the start":  {{0, time.Hour, false}, {time.Minute, time.Hour + time.Minute, false}, {2 * time.Hour, 3 * time.Hour, true}},
		"drifts":                  {{0, 0, true}, {time.Hour, time.Hour + 4*time.Second, true}, {2 * time.Hour, 2*time.Hour + 8*time.Second, true}},
		"stopped clock":           {{0, 0, true}, {time.Minute, 100 * time.Second, true}},
		"jumps ahead, stays":      {{0, 0, true}, {time.Minute, 25 * time.Hour, false}, {2 * time.Minute, 25*time.Hour + time.Minute, false}, {2 * time.Hour, 27*time.Hour - time.Minute, true}},
		"jumps ahead, comes back": {{0, 0, true}, {time.Minute, 25 * time.Hour, false}, {2 * time.Minute, 2 * time.Minute, true}},
		"jumps back":              {{0, 0, true}, {time.Minute, -time.Hour, false}},
		"jumps again and again":   {{0, 0, true}, {time.Minute, 25 * time.Hour, false}, {59 * time.Minute, 50 * time.Hour, false}, {90 * time.Minute, 75 * time.Hour, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var guard Guard
			for _, l := range looks {
				if got := guard.check(at(l.store).Round(0), at(l.here), 0); got != l.trusts {
					t.Errorf("after %v the store's clock shows %v: trusted %v", l.here, l.store, got)
				}
			}
		})
	}
}
