package expiry

import (
	"log/slog"
	"slices"
	"testing"
	"time"
)

// Clocks that were wrong leave outages in the future behind. What of them has been stays: questions were asked by such a clock, and were over by the next.
func TestBeat_CutsOffWhatOfAnOutageIsStillToCome(t *testing.T) {
	noon := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	at := func(hours time.Duration) time.Time { return noon.Add(hours * time.Hour) }
	e := &Job{config: Config{OutageAfter: 2 * time.Minute, Log: slog.New(slog.DiscardHandler)}}
	next := e.nextHeartbeat(noon, heartbeat{At: at(-1), Outages: []outage{{at(-9), at(-8)}, {at(-7), at(1)}, {at(1), at(2)}}})
	want := []outage{{at(-9), at(-8)}, {at(-7), noon}, {at(-1), noon}}
	if !next.At.Equal(noon) || !slices.Equal(next.Outages, want) {
		t.Errorf("got %+v, want %v", next, want)
	}
}
