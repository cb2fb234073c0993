package govern

import (
	"testing"

	"pgregory.net/rapid"
)

// minutes converts minutes to a time; counters have minute resolution.
const (
	hour = int64(60)
	day  = 24 * hour
)

// A counter never returns less than was charged within a window. It returns too much by at most the
// hour before a window of more than a day. A repeated charge replaces the first one completely.
func TestProperty_CounterIsCompleteWithinAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c counter
		var made []charge
		now := rapid.Int64Range(1, 1<<30).Draw(t, "now")
		for range rapid.IntRange(1, 60).Draw(t, "charges") {
			now += rapid.SampledFrom([]int64{0, 0, 1, 7, hour, day - 1, day, day + 1, 3 * day}).Draw(t, "pause")
			was, ch := charge{}, charge{now, rapid.Int64Range(0, 100).Draw(t, "amount")}
			if n := len(made); n > 0 && rapid.Bool().Draw(t, "again") {
				n = rapid.IntRange(0, n-1).Draw(t, "which")
				was, made[n] = made[n], ch
			} else {
				made = append(made, ch)
			}
			c.replaceCharge(was, ch)
		}
		for _, window := range []int64{1, hour, day - 1, day, day + 1, 2 * day, 30 * day} {
			low, high := int64(0), int64(0)
			for _, ch := range made {
				if ch.Minute >= now-window {
					low += ch.Amount
				}
				if ch.Minute >= now-window-hour && window > day || ch.Minute >= now-window {
					high += ch.Amount
				}
			}
			if got := c.since(now - window); got < low || got > high {
				t.Fatalf("within %d minutes the counter is %d, but %d to %d were charged: %v of %v", window, got, low, high, c.Charges, made)
			}
		}
	})
}

func (c *counter) since(minute int64) (sum int64) {
	for _, ch := range c.Charges {
		if ch.Minute >= minute {
			sum += ch.Amount
		}
	}
	return sum
}

// The size of a counter is bounded, because each charge reads and writes all of it.
func TestCounter_StaysSmall(t *testing.T) {
	var c counter
	now, total := int64(30_000_000), int64(0)
	spend := func(times, pause int64) {
		for range times {
			now += pause
			c.replaceCharge(charge{}, charge{now, 1})
			c.replaceCharge(charge{}, charge{now, 1})
			total += 2
		}
	}
	spend(40*24*2, hour/2)        // for longer than a rule can look back
	spend(2*day/5, 5)             // and then more often
	kept := int64(len(c.Charges)) // one for each of the last minutes, and one for an hour before
	if most := (day+hour)/5 + 31*24 + 2; kept > most {
		t.Errorf("%d sums are kept of %d charges, want at most %d", kept, total, most)
	}
	if sum := c.since(now - 30*day); sum < 2*(2*day/5+28*48) || sum >= total {
		t.Errorf("%d of %d charges are kept", sum, total)
	}
}
