package executor

import (
	"errors"

	"github.com/fermata-go/fermata/store"
)

// The chores, for tests.
const (
	SignChore  = signJob
	CheckChore = checkJob
	ChorePaper = jobKind
	ChoreLease = jobLease
)

// Turn does a chore if it is due, without waiting for the clock. It reports what it came to.
func (e *Executor) Turn(name string) (JobResult, error) {
	for _, c := range e.auditJobs() {
		if c.name == name {
			if _, err := e.runIfDue(c); err != nil {
				return JobResult{}, err
			}
			var pass JobResult
			_, err := e.readIndex(e.background.Ctx, "", jobKind, name, &pass)
			return pass, err
		}
	}
	return JobResult{}, errors.New("there is no such chore")
}

// Hurry makes a chore due.
func (e *Executor) Hurry(name string) error {
	var pass JobResult
	paper, err := e.readIndex(e.background.Ctx, "", jobKind, name, &pass)
	if err != nil || paper.Revision == 0 { // then it is due anyway
		return err
	}
	now, err := e.store.Now(e.background.Ctx)
	if err != nil {
		return err
	}
	return e.updateIndex(e.background.Ctx, &paper, pass, now)
}

// AtHand reports whether the dossier of a run is in memory, for tests.
func (e *Executor) AtHand(account, run string) bool {
	_, ok := e.metaCache.get(store.Key{Account: account, Run: run})
	return ok
}
