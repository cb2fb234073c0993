package store

import "time"

// RunSnapshot holds everything that is needed to prepare a decision on a run, read in one
// transaction. It may be outdated when the decision is recorded; that transaction checks everything
// again.
type RunSnapshot struct {
	// Run has neither its input nor its outcome.
	Run Run
	// Open lists the pending interrupts in the order in which they became visible.
	Open []Interrupt
	// Documents holds the requests of the open interrupts in the same order, followed by the
	// document of the run itself. Missing documents are left out.
	Documents []Document
	// ReadAt is the time of the store's clock.
	ReadAt time.Time
}

// Document returns a document of the snapshot, or nil if the snapshot does not contain it.
func (s RunSnapshot) Document(kind DocumentKind, id string) *Document {
	for i := range s.Documents {
		if doc := &s.Documents[i]; doc.Kind == kind && doc.ID == id {
			return doc
		}
	}
	return nil
}
