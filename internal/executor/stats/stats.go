// Package stats counts what one executor does.
package stats

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/store"
)

// Stats is what this executor has done since it was made, for operators.
type Stats struct {
	// Running is how many runs it executes now, each under a lease; Executions how many it began.
	Running, Executions int64
	// TakenOver counts those that it took over from an owner that had not renewed its lease.
	TakenOver int64
	// Unfinished counts those that could not be finished, Fenced the ones among them that another
	// process took over, Parked the ones that were parked for an operator.
	Unfinished, Fenced, Parked int64
	// Unreadable counts how often a sealed value could not be opened.
	Unreadable int64
	// KeysUnread says that the keys of the box cannot be read again: see Renewer.
	KeyReloadFailing bool
	// Missed counts progress that listeners were too slow for.
	DroppedProgress int64
	// Delivered counts notices that were sent, DeliveryFailed tries that failed and are repeated.
	Delivered, DeliveryFailed int64
	// Deliveries counts by channel.
	Deliveries map[string]DeliveryCount
	// Stale counts the questions that this process let expire for the reason "stale": without
	// a decision in time. LapsedOtherwise counts those that expired for a reason that their route
	// gives.
	ExpiredUndecided, ExpiredOtherwise int64
	// Decided says how long questions were open before they were decided, by verdict. Each is
	// counted once, where it was applied.
	DecisionWaits map[store.Verdict]WaitHistogram
}

// WaitBounds are the upper bounds of the counts in [WaitHistogram], in seconds.
var WaitBounds = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600, 168 * 3600}

// WaitHistogram are how long some questions were open.
type WaitHistogram struct {
	Count   uint64
	Seconds float64
	// Within counts, for each of WaitBounds, those that were open no longer.
	Within []uint64
}

// Snapshot returns the counts so far.
func (s *Counter) Snapshot() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Stats
	now.Deliveries = s.deliveries(time.Now())
	now.DecisionWaits = make(map[store.Verdict]WaitHistogram)
	for verdict, waits := range s.DecisionWaits {
		waits.Within = slices.Clone(waits.Within)
		now.DecisionWaits[verdict] = waits
	}
	return now
}

// Counter counts.
type Counter struct {
	mu sync.Mutex
	Stats
	failing map[string]failing // by the id of the delivery
}

// ReasonStale is the reason of an expiry if the route gives none.
const ReasonStale = "stale"

// RequestKey names one of any account.
type RequestKey struct{ Account, ID string }

// NoteExpired counts questions that have expired, by the reasons in their requests.
func (s *Counter) NoteExpired(over []store.Interrupt, otherwise map[RequestKey]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range over {
		if otherwise[RequestKey{i.Account, i.ID}] {
			s.ExpiredOtherwise++
		} else {
			s.ExpiredUndecided++
		}
	}
}

// NoteStarted counts an execution, until the function that it returns is called.
func (s *Counter) NoteStarted(work *store.ClaimedRun) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Executions++
	s.Running++
	if work.TakenOver {
		s.TakenOver++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Running--
	}
}

// NoteEnded counts how an execution ended: the decisions that it applied, or why it could not be
// finished.
func (s *Counter) NoteEnded(work *store.ClaimedRun, applied []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.Unfinished++
		if errors.Is(err, store.ErrFenced) {
			s.Fenced++
		}
		return
	}
	for _, i := range work.Decided {
		if slices.Contains(applied, ids.ProviderID(i.ID)) {
			s.addWait(i.Verdict, i.DecidedAt.Sub(i.Created))
		}
	}
}

// NoteParked counts a run that is parked.
func (s *Counter) NoteParked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Parked++
}

// addWait is called with the lock held.
func (s *Counter) addWait(verdict store.Verdict, open time.Duration) {
	if s.DecisionWaits == nil {
		s.DecisionWaits = make(map[store.Verdict]WaitHistogram)
	}
	w := s.DecisionWaits[verdict]
	if w.Within == nil {
		w.Within = make([]uint64, len(WaitBounds))
	}
	w.Count++
	w.Seconds += open.Seconds()
	for n, bound := range WaitBounds {
		if open.Seconds() <= bound {
			w.Within[n]++
		}
	}
	s.DecisionWaits[verdict] = w
}
