package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/storeclock"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
)

// retentionPerPass is how many runs are listed at a time.
const retentionPerPass = 100

// RetentionLoop deletes runs that ended longer than Config.Retention ago. A waiting run is never
// among them.
func (ad *Admin) RetentionLoop() {
	var guard storeclock.Guard
	for !ad.background.IsStopping() {
		now, err := ad.store.Now(ad.background.Ctx)
		// what is deleted because a clock has jumped does not come back
		if err == nil && guard.IsTrusted(now) {
			err = ad.deleteOldRuns(ad.background.Ctx, now.Add(-ad.config.Retention)) //mutate:retention-cutoff
		}
		ad.background.LogRepeated("forgetting old runs", err)
		ad.background.Sleep(max(ad.config.Poll, min(ad.config.Retention/10, time.Minute)))
	}
}

// deleteOldRuns deletes the runs that ended before a time. A run that cannot be deleted stays, and
// does not hold up the others.
func (ad *Admin) deleteOldRuns(ctx context.Context, before time.Time) error {
	var first error
	left := 0
	for from := (time.Time{}); !ad.background.IsStopping(); {
		old, err := ad.store.FinishedRuns(ctx, from, before, retentionPerPass)
		if err != nil {
			return err
		}
		for _, run := range old {
			if err := ad.deleteRun(ctx, run, reasonRetention); err != nil {
				first, left = cmp.Or(first, err), left+1
			}
		}
		if len(old) < retentionPerPass {
			break
		}
		last := old[len(old)-1].Updated
		if !last.After(from) {
			// a whole page ended at the same time and could not be deleted
			last = from.Add(time.Microsecond)
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

// deleteRun deletes a run, first at its provider and then in the store. If this process does not
// have the provider, the run stays. Of several concurrent processes the one that deletes it writes
// the audit line.
func (ad *Admin) deleteRun(ctx context.Context, run store.Run, why string) error {
	p, err := ad.providers.Of(run)
	if err != nil {
		return err
	}
	named, err := ad.providers.RunView(run, ad.store)
	if err != nil {
		return err
	}
	if err := p.Delete(ctx, named); err != nil {
		return fmt.Errorf("executor: deleting %s: %w", run.ID, err)
	}
	c := txn.New(run, docs.RunMeta{}, time.Time{})
	if err := c.AddAudit(auditrec.SystemActor, audit.Location{Run: run.ID}, audit.PayloadsErased{Payloads: []string{run.ID}, Order: why}); err != nil {
		return err
	}
	err = ad.store.DeleteRun(ctx, run.Account, run.ID, c.Writes)
	//mutate:salt-dropped-with-run
	// last: another goroutine may have cached it in between
	ad.docs.MetaCache.Drop(store.Key{Account: run.Account, Run: run.ID})
	return err
}

// EraseAccount ends all runs of an account and deletes everything that is known of them, and the
// grants and counters of the account. It returns how many runs it deleted, also after an error; it
// may be called again then. Unreadable values are deleted as well, except for a run whose provider
// ref is unreadable. The audit log stays. It returns ErrAccountActive if the account goes on
// starting runs.
func (ad *Admin) EraseAccount(ctx context.Context, account string) (int, error) {
	count, failure := 0, errs.ErrAccountActive
	for range maxErasePasses {
		erased, err := ad.eraseRuns(ctx, account)
		count += erased
		if err != nil || erased == 0 { // otherwise repeat: runs may have been started in between
			failure = err
			break
		}
	}
	for _, kind := range append([]store.DocumentKind{docs.GrantKind, docs.CounterKind}, docs.ConversationKinds...) {
		failure = errors.Join(failure, ad.eraseDocuments(ctx, account, kind))
	}
	return count, failure
}

// maxErasePasses is how often is looked for runs that have begun since.
const maxErasePasses = 10

// eraseRuns erases the runs that an account has now, as far as it can.
func (ad *Admin) eraseRuns(ctx context.Context, account string) (count int, err error) {
	var first error
	left := 0
	for run, err := range ad.docs.EachRun(ctx, account, store.RunFilter{}) {
		if err != nil {
			return count, err
		}
		if err := ad.eraseRun(ctx, run); err != nil {
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

func (ad *Admin) eraseRun(ctx context.Context, run store.Run) error {
	if run.Status.Active() {
		if err := retry.WhileStale(ctx, func() error { return ad.endWithoutMessages(ctx, run) }); err != nil && !docs.IsNotFound(err) {
			return err
		}
	}
	history, err := ad.store.History(ctx, run.Account, run.ID) // a list has not what is sealed
	if docs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return ad.deleteRun(ctx, history.Run, reasonErasure)
}

// endWithoutMessages ends a run without a message to its provider: the message would be deleted at
// once, and some would have been delivered by then.
func (ad *Admin) endWithoutMessages(ctx context.Context, run store.Run) error {
	waits, beside, err := ad.requests.EndWrites(ctx, run, desk.From{}, store.StatusCancelled)
	if errors.Is(err, errs.ErrUnreadable) {
		return ad.endUnreadable(ctx, run)
	}
	if err != nil {
		return err
	}
	beside.Documents = slices.DeleteFunc(beside.Documents, func(p store.DocumentChange) bool { return p.Kind == docs.RunMessageKind })
	_, err = ad.store.Cancel(ctx, run.Account, run.ID, store.StatusCancelled, waits, beside)
	return err
}

// endUnreadable ends a run with a request that cannot be decrypted. The store withdraws the
// interrupt by itself, and the request stays as it is.
func (ad *Admin) endUnreadable(ctx context.Context, run store.Run) error {
	c := txn.New(run, docs.RunMeta{}, time.Time{})
	waits, err := ad.requests.OpenInterrupts(ctx, run)
	if err != nil {
		return err
	}
	for _, id := range waits {
		if err := c.AddAudit(auditrec.SystemActor, c.RequestPlace(id), audit.RequestWithdrawn{Why: string(store.StatusCancelled)}); err != nil {
			return err
		}
	}
	if err := c.AddAudit(auditrec.SystemActor, c.AuditPlace(), audit.RunEnded{Status: string(store.StatusCancelled)}); err != nil {
		return err
	}
	_, err = ad.store.Cancel(ctx, run.Account, run.ID, store.StatusCancelled, waits, c.Writes)
	return err
}

// eraseDocuments empties the documents of a kind. Their ids stay, which say nothing about the
// account. For each grant there is an audit line.
func (ad *Admin) eraseDocuments(ctx context.Context, account string, kind store.DocumentKind) error {
	for after, try := "", 0; ; {
		papers, err := ad.store.Documents(ctx, account, kind, store.DocumentFilter{After: after, Limit: docs.DocumentsPerPage})
		if err != nil || len(papers) == 0 {
			return err
		}
		c := txn.New(store.Run{Account: account}, docs.RunMeta{}, time.Time{})
		for _, paper := range papers {
			if paper.Body == nil && string(paper.Index) == emptyIndex {
				continue
			}
			c.Documents = append(c.Documents, store.DocumentChange{Kind: kind, ID: paper.ID, BaseRevision: paper.Revision, Index: []byte(emptyIndex)})
			if kind == docs.GrantKind {
				if err := c.AddAudit(auditrec.SystemActor, audit.Location{}, audit.GrantRevoked{Grant: paper.ID}); err != nil {
					return err
				}
			}
		}
		switch err := ad.store.CommitWrites(ctx, account, c.Writes); {
		case errors.Is(err, store.ErrStale): // another process uses one of them
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

// emptyIndex is the index of an erased document.
const emptyIndex = "{}"
