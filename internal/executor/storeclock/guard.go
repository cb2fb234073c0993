// Package storeclock judges the clock of the store and the contact to it: jumps of the clock, and
// outages in which leases could not be renewed.
package storeclock

import (
	"time"

	"github.com/fermata-go/fermata/internal/suspend"
)

// Guard says whether the store's clock can be trusted. It is compared with the time that has passed
// here, and at first with the wall clock. After a jump it is trusted again when it has jumped back,
// or when the jump has lasted so long that operators will have noticed.
type Guard struct {
	startedAt        time.Time     // of the first look, here
	suspendedAtStart time.Duration // how long this machine had slept by then
	offset           time.Duration // how far the store is ahead of here, as far as it is believed
	Jump             time.Duration // how far it is ahead after a jump
	jumpSeenAt       time.Time     // when that jump was seen; zero if there was none
}

const (
	// how far the two clocks may differ in the beginning, and drift apart between two looks: a
	// machine that was moved was suspended for seconds
	maxClockSkew      = time.Minute
	jumpAcceptedAfter = time.Hour // how long a jump is not believed
)

// IsTrusted reports whether the store's clock can be trusted now.
func (g *Guard) IsTrusted(store time.Time) bool {
	return g.check(store, time.Now(), suspend.Total())
}

func (g *Guard) check(store, here time.Time, slept time.Duration) bool {
	if g.startedAt.IsZero() {
		g.startedAt, g.suspendedAtStart = here, slept
	}
	// the wall clock as it was, and the time since, which is monotonic
	offset := store.Sub(g.startedAt.Round(0)) - here.Sub(g.startedAt) - (slept - g.suspendedAtStart)
	switch {
	case (offset - g.offset).Abs() <= maxClockSkew:
		g.offset, g.jumpSeenAt = offset, time.Time{}
	case g.jumpSeenAt.IsZero() || (offset-g.Jump).Abs() > maxClockSkew:
		g.Jump, g.jumpSeenAt = offset, here
	case here.Sub(g.jumpSeenAt) >= jumpAcceptedAfter:
		g.offset, g.jumpSeenAt = offset, time.Time{}
	}
	return g.jumpSeenAt.IsZero()
}

// IsBehind reports whether a clock that is not trusted was set back.
func (g *Guard) IsBehind() bool { return g.Jump < g.offset }
