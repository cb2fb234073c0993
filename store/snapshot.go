package store

import "time"

// RunSnapshot is everything that is needed to prepare a decision on a run, read at one moment. It may be outdated when the decision is recorded: that
// transaction checks everything again.
type RunSnapshot struct {
	// Run is without its input and its outcome.
	Run Run
	// Open are its pending interrupts, in the order in which they became visible.
	Open []Interrupt
	// Papers are the requests of the open interrupts, in the same order, and then the run's own paper, as far as there are any.
	Documents []Document
	// At is the time of the store's clock.
	ReadAt time.Time
}

// Document returns one of the papers, or nil if it is not among them.
func (s RunSnapshot) Document(kind DocumentKind, id string) *Document {
	for i := range s.Documents {
		if p := &s.Documents[i]; p.Kind == kind && p.ID == id {
			return p
		}
	}
	return nil
}
