package executor

import (
	"errors"

	"github.com/fermata-go/fermata/store"
)

// The periodic jobs, for tests.
const (
	SignChore  = signJob
	CheckChore = checkJob
	ChorePaper = jobKind
	ChoreLease = jobLease
)

// Turn runs a periodic job if it is due, without waiting for the clock. It returns the result.
func (e *Executor) Turn(name string) (JobResult, error) {
	for _, c := range e.auditJobs() {
		if c.name == name {
			if _, err := e.runIfDue(c); err != nil {
				return JobResult{}, err
			}
			var pass JobResult
			_, err := e.readIndex(e.ctx, "", jobKind, name, &pass)
			return pass, err
		}
	}
	return JobResult{}, errors.New("no such job")
}

// Hurry makes a periodic job due.
func (e *Executor) Hurry(name string) error {
	var pass JobResult
	paper, err := e.readIndex(e.ctx, "", jobKind, name, &pass)
	if err != nil || paper.Revision == 0 { // then it is due anyway
		return err
	}
	now, err := e.store.Now(e.ctx)
	if err != nil {
		return err
	}
	return e.updateIndex(e.ctx, &paper, pass, now)
}

// AtHand reports whether the metadata of a run is in memory, for tests.
func (e *Executor) AtHand(account, run string) bool {
	_, ok := e.metaCache.get(store.Key{Account: account, Run: run})
	return ok
}
