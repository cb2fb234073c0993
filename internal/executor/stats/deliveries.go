package stats

import (
	"maps"
	"slices"
	"time"
)

// DeliveryCount counts the deliveries of a channel in this process.
type DeliveryCount struct {
	// Sent counts messages that the channel accepted, Failed the attempts that failed, Dead the
	// deliveries that were given up.
	Sent, Failed, Dead int64
	// Retrying is the number of deliveries whose last attempt failed here and which are tried
	// again; FailingSince is when the first of them failed, zero if there is none.
	Retrying     int
	FailingSince time.Time
	// Calls are how long the channel took for the messages that it accepted.
	Calls CallHistogram
}

// CallBounds are the upper bounds of the counts in [CallHistogram], in seconds.
var CallBounds = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// CallHistogram is a distribution of durations.
type CallHistogram struct {
	Count   uint64
	Seconds float64
	// Within counts, for each of CallBounds, the calls that were not longer.
	Within []uint64
}

func (h *CallHistogram) add(took time.Duration) {
	if h.Within == nil {
		h.Within = make([]uint64, len(CallBounds))
	}
	h.Count++
	h.Seconds += took.Seconds()
	for n, bound := range CallBounds {
		if took.Seconds() <= bound {
			h.Within[n]++
		}
	}
}

// maxRetrying bounds the deliveries that are remembered because they failed.
const maxRetrying = 10_000

// failing is a delivery that failed. After until another process has taken it over.
type failing struct {
	channel      string
	since, until time.Time
}

// NoteChannels sets the channels that are counted from the start.
func (s *Counter) NoteChannels(kinds []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Deliveries, s.failing = make(map[string]DeliveryCount), make(map[string]failing)
	for _, kind := range kinds {
		s.Deliveries[kind] = DeliveryCount{}
	}
}

// NoteDelivery counts a message that a channel accepted after some time, or an attempt that failed.
func (s *Counter) NoteDelivery(channel string, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := s.Deliveries[channel]
	if err != nil {
		s.DeliveryFailed++
		count.Failed++
	} else {
		s.Delivered++
		count.Sent++
		count.Calls.Within = slices.Clone(count.Calls.Within) // a snapshot may have the old one
		count.Calls.add(took)
	}
	s.Deliveries[channel] = count
}

// NoteRetry remembers that a delivery failed and is tried again by until.
func (s *Counter) NoteRetry(channel, id string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, known := s.failing[id]
	if !known {
		if len(s.failing) >= maxRetrying {
			return
		}
		f = failing{channel: channel, since: time.Now()}
	}
	f.until = until
	s.failing[id] = f
}

// NoteSettled forgets a delivery that was sent, is obsolete or was given up.
func (s *Counter) NoteSettled(channel, id string, dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failing, id)
	if dead {
		count := s.Deliveries[channel]
		count.Dead++
		s.Deliveries[channel] = count
	}
}

// deliveries is called with the lock held.
func (s *Counter) deliveries(now time.Time) map[string]DeliveryCount {
	all := maps.Clone(s.Deliveries)
	for id, f := range s.failing {
		if now.After(f.until) {
			delete(s.failing, id)
			continue
		}
		count := all[f.channel]
		if count.Retrying++; count.FailingSince.IsZero() || f.since.Before(count.FailingSince) {
			count.FailingSince = f.since
		}
		all[f.channel] = count
	}
	return all
}
