package executor

import (
	"errors"

	"github.com/fermata-go/fermata/internal/executor/admin"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/periodic"
	"github.com/fermata-go/fermata/internal/store"
)

// The periodic jobs, for tests.
const (
	SignJob     = admin.SignJob
	CheckJob    = admin.CheckJob
	JobDocument = docs.JobKind
	JobLease    = periodic.JobLease
)

// Turn runs a periodic job if it is due, without waiting for the clock. It returns the result.
func (e *Executor) Turn(name string) (JobResult, error) {
	for _, c := range e.admin.AuditJobs() {
		if c.Name == name {
			if _, err := e.periodic.RunIfDue(c); err != nil {
				return JobResult{}, err
			}
			var pass JobResult
			_, err := e.docs.ReadIndex(e.background.Ctx, "", docs.JobKind, name, &pass)
			return pass, err
		}
	}
	return JobResult{}, errors.New("no such job")
}

// Hurry makes a periodic job due.
func (e *Executor) Hurry(name string) error {
	var pass JobResult
	paper, err := e.docs.ReadIndex(e.background.Ctx, "", docs.JobKind, name, &pass)
	if err != nil || paper.Revision == 0 { // then it is due anyway
		return err
	}
	now, err := e.store.Now(e.background.Ctx)
	if err != nil {
		return err
	}
	return e.docs.UpdateIndex(e.background.Ctx, &paper, pass, now)
}

// AtHand reports whether the metadata of a run is in memory, for tests.
func (e *Executor) AtHand(account, run string) bool {
	_, ok := e.docs.MetaCache.Get(store.Key{Account: account, Run: run})
	return ok
}
