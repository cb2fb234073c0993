package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor/internal/errs"
	"github.com/fermata-go/fermata/executor/internal/retry"
	"github.com/fermata-go/fermata/executor/internal/storeclock"
	"github.com/fermata-go/fermata/store"
)

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

// retentionPerPass is how many runs are listed at a time.
const retentionPerPass = 100

// retain deletes runs that ended longer than Config.Retention ago. A run that waits is never among them, however long it does.
func (e *Executor) retentionLoop() {
	var guard storeclock.Guard
	for !e.background.IsStopping() {
		now, err := e.store.Now(e.background.Ctx)
		if err == nil && guard.IsTrusted(now) { // what is deleted because a clock has jumped does not come back
			err = e.deleteOldRuns(e.background.Ctx, now.Add(-e.config.Retention)) //mutate:retention-cutoff
		}
		e.background.LogRepeated("forgetting old runs", err)
		e.background.Sleep(max(e.config.Poll, min(e.config.Retention/10, time.Minute)))
	}
}

// forgetOld deletes the runs that ended before a time. A run that cannot be deleted stays, and does not hold up the others.
func (e *Executor) deleteOldRuns(ctx context.Context, before time.Time) error {
	var first error
	left := 0
	for from := (time.Time{}); !e.background.IsStopping(); {
		old, err := e.store.FinishedRuns(ctx, from, before, retentionPerPass)
		if err != nil {
			return err
		}
		for _, run := range old {
			if err := e.deleteRun(ctx, run, reasonRetention); err != nil {
				first, left = cmp.Or(first, err), left+1
			}
		}
		if len(old) < retentionPerPass {
			break
		}
		last := old[len(old)-1].Updated
		if !last.After(from) {
			last = from.Add(time.Microsecond) // a whole page ended at the same time and could not be deleted
		}
		from = last
	}
	if first != nil {
		return fmt.Errorf("%d are left; the first: %w", left, first)
	}
	return nil
}

// Why a run is forgotten, as the audit log says it.
const (
	reasonRetention = "retention" // it was kept long enough
	reasonErasure   = "erasure"   // the account is erased
)

// forget deletes a run, first at its provider and then in the store. If this process does not have the provider, the run stays. Of several processes that do
// so at the same time one says it in the audit log: the one that deletes it.
func (e *Executor) deleteRun(ctx context.Context, run store.Run, why string) error {
	p, err := e.providerOf(run)
	if err != nil {
		return err
	}
	named, err := e.providerRun(run, e.store)
	if err != nil {
		return err
	}
	if err := p.Delete(ctx, named); err != nil {
		return fmt.Errorf("executor: deleting %s: %w", run.ID, err)
	}
	c := newTx(run, runMeta{}, time.Time{})
	if err := c.addAudit(systemActor, audit.Location{Run: run.ID}, audit.PayloadsErased{Payloads: []string{run.ID}, Order: why}); err != nil {
		return err
	}
	err = e.store.DeleteRun(ctx, run.Account, run.ID, c.Writes)
	//mutate:salt-dropped-with-run
	e.metaCache.drop(store.Key{Account: run.Account, Run: run.ID}) // last: somebody may have read it into the cache in between
	return err
}

// Erase ends all runs of an account and deletes everything that is known of them, and the grants and counters of the account. It returns how many runs it
// deleted, also after an error; it may be called again then. A run that cannot be deleted does not hold up the others. What cannot be opened goes as
// well, but for a run whose ref at its provider cannot. The audit log stays. It returns ErrAccountActive if the account goes on starting runs meanwhile.
func (e *Executor) EraseAccount(ctx context.Context, account string) (int, error) {
	count, failure := 0, errs.ErrAccountActive
	for range maxErasePasses {
		erased, err := e.eraseRuns(ctx, account)
		count += erased
		if err != nil || erased == 0 { // otherwise look again: runs may have begun meanwhile
			failure = err
			break
		}
	}
	return count, errors.Join(failure, e.eraseDocuments(ctx, account, grantKind), e.eraseDocuments(ctx, account, counterKind))
}

// maxErasePasses is how often is looked for runs that have begun since.
const maxErasePasses = 10

// eraseRuns erases the runs that an account has now, as far as it can.
func (e *Executor) eraseRuns(ctx context.Context, account string) (count int, err error) {
	var first error
	left := 0
	for run, err := range e.eachRun(ctx, account, store.RunFilter{}) {
		if err != nil {
			return count, err
		}
		if err := e.eraseRun(ctx, run); err != nil {
			first, left = cmp.Or(first, err), left+1
			continue
		}
		count++
	}
	if first != nil {
		err = fmt.Errorf("executor: %d runs are left; the first: %w", left, first)
	}
	return count, err
}

func (e *Executor) eraseRun(ctx context.Context, run store.Run) error {
	if run.Status.Active() {
		if err := retry.WhileStale(ctx, func() error { return e.endWithoutMessages(ctx, run) }); err != nil && !isNotFound(err) {
			return err
		}
	}
	history, err := e.store.History(ctx, run.Account, run.ID) // a list has not what is sealed
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.deleteRun(ctx, history.Run, reasonErasure)
}

// endSilently ends a run, and files no message to whoever asked: it would be deleted a moment later, and some would have heard of it by then.
func (e *Executor) endWithoutMessages(ctx context.Context, run store.Run) error {
	waits, beside, err := e.endWrites(ctx, run, desk.From{}, store.StatusCancelled)
	if errors.Is(err, errs.ErrUnreadable) {
		return e.endUnreadable(ctx, run)
	}
	if err != nil {
		return err
	}
	beside.Documents = slices.DeleteFunc(beside.Documents, func(p store.DocumentChange) bool { return p.Kind == runMessageKind })
	_, err = e.store.Cancel(ctx, run.Account, run.ID, store.StatusCancelled, waits, beside)
	return err
}

// endUnread ends a run with a request that cannot be opened. The store withdraws the question by itself, and the request stays as it is.
func (e *Executor) endUnreadable(ctx context.Context, run store.Run) error {
	c := newTx(run, runMeta{}, time.Time{})
	waits, err := e.openInterrupts(ctx, run)
	if err != nil {
		return err
	}
	for _, id := range waits {
		if err := c.addAudit(systemActor, c.requestPlace(id), audit.RequestWithdrawn{Why: string(store.StatusCancelled)}); err != nil {
			return err
		}
	}
	if err := c.addAudit(systemActor, c.auditPlace(), audit.RunEnded{Status: string(store.StatusCancelled)}); err != nil {
		return err
	}
	_, err = e.store.Cancel(ctx, run.Account, run.ID, store.StatusCancelled, waits, c.Writes)
	return err
}

// erasePapers empties the papers of a kind. Their ids stay, which say nothing about the account. For each grant there is a line in the audit log.
func (e *Executor) eraseDocuments(ctx context.Context, account string, kind store.DocumentKind) error {
	for after, try := "", 0; ; {
		papers, err := e.store.Documents(ctx, account, kind, store.DocumentFilter{After: after, Limit: documentsPerPage})
		if err != nil || len(papers) == 0 {
			return err
		}
		c := newTx(store.Run{Account: account}, runMeta{}, time.Time{})
		for _, paper := range papers {
			if paper.Body == nil && string(paper.Index) == emptyIndex {
				continue
			}
			c.Documents = append(c.Documents, store.DocumentChange{Kind: kind, ID: paper.ID, BaseRevision: paper.Revision, Index: []byte(emptyIndex)})
			if kind == grantKind {
				if err := c.addAudit(systemActor, audit.Location{}, audit.GrantRevoked{Grant: paper.ID}); err != nil {
					return err
				}
			}
		}
		switch err := e.store.CommitWrites(ctx, account, c.Writes); {
		case errors.Is(err, store.ErrStale): // somebody uses one of them
			if err := retry.BackOff(ctx, try); err != nil {
				return err
			}
			try++
		case err != nil:
			return err
		default:
			after, try = papers[len(papers)-1].ID, 0
		}
	}
}

// emptyIndex is the facts of a paper that was erased.
const emptyIndex = "{}"
