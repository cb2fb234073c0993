package store

import "time"

// Standing is everything that is needed to prepare a decision on a run, read at one moment. It may be outdated when the decision is recorded: that
// transaction checks everything again.
type Standing struct {
	// Run is without its input and its outcome.
	Run Run
	// Open are its pending interrupts, in the order in which they became visible.
	Open []Interrupt
	// Papers are the requests of the open interrupts, in the same order, and then the run's own paper, as far as there are any.
	Papers []Paper
	// At is the time of the store's clock.
	At time.Time
}

// Paper returns one of the papers, or nil if it is not among them.
func (s Standing) Paper(kind PaperKind, id string) *Paper {
	for i := range s.Papers {
		if p := &s.Papers[i]; p.Kind == kind && p.ID == id {
			return p
		}
	}
	return nil
}
