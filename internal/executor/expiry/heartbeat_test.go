package expiry

import (
	"log/slog"
	"slices"
	"testing"
	"time"
)

// A wrong clock can leave outages that end in the future. The part in the past is kept: requests
// may have been asked by such a clock and have expired by the next one.
func TestHeartbeat_CutsOffTheFuturePartOfAnOutage(t *testing.T) {
	noon := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	at := func(hours time.Duration) time.Time { return noon.Add(hours * time.Hour) }
	e := &Job{config: Config{OutageAfter: 2 * time.Minute, Log: slog.New(slog.DiscardHandler)}}
	next := e.nextHeartbeat(noon, heartbeat{At: at(-1), Outages: []outage{{at(-9), at(-8)}, {at(-7), at(1)}, {at(1), at(2)}}})
	want := []outage{{at(-9), at(-8)}, {at(-7), noon}, {at(-1), noon}}
	if !next.At.Equal(noon) || !slices.Equal(next.Outages, want) {
		t.Errorf("got %+v, want %v", next, want)
	}
}
