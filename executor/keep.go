package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/store"
)

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

// retainAtOnce is how many runs are forgotten before the next look.
const retainAtOnce = 100

// retain forgets runs that were kept long enough after they were over. A run that waits is never among them, however long it does.
func (e *Executor) retain() {
	var guard clockGuard
	for !e.closing() {
		now, err := e.store.Now(e.life)
		if err == nil && guard.trusts(now, time.Now()) { // what is forgotten because a clock has jumped does not come back
			err = e.forgetOld(e.life, now.Add(-e.config.Retention))
		}
		if err != nil && e.life.Err() == nil {
			e.config.Log.Error("forgetting old runs", "err", err)
		}
		e.rests(max(e.config.Poll, min(e.config.Retention/10, time.Minute)))
	}
}

// forgetOld forgets what was over before a time. What cannot be forgotten stays, and holds up nothing else.
func (e *Executor) forgetOld(ctx context.Context, before time.Time) error {
	var first error
	left := 0
	for from := (time.Time{}); !e.closing(); {
		old, err := e.store.Finished(ctx, from, before, retainAtOnce)
		if err != nil {
			return err
		}
		for _, run := range old {
			if err := e.forget(ctx, run, byRetention); err != nil {
				first, left = cmp.Or(first, err), left+1
			}
		}
		if len(old) < retainAtOnce {
			break
		}
		last := old[len(old)-1].Updated
		if !last.After(from) {
			last = from.Add(time.Microsecond) // all of them were over at the same time, and stay
		}
		from = last
	}
	if first != nil {
		return fmt.Errorf("%d are left; the first: %w", left, first)
	}
	return nil
}

// Why a run is forgotten, as the log says it.
const (
	byRetention = "retention" // it was kept long enough
	byErasure   = "erasure"   // somebody wants the account gone
)

// forget deletes a run, first where its provider keeps it. A provider that this process does not have may know more; then it stays. The log says so just
// before: whoever dies in between says it once more.
func (e *Executor) forget(ctx context.Context, run store.Run, why string) error {
	p, err := e.providerOf(run)
	if err != nil {
		return err
	}
	named, err := e.runOf(run, e.stateOf())
	if err != nil {
		return err
	}
	if err := p.Delete(ctx, named); err != nil {
		return fmt.Errorf("executor: deleting %s: %w", run.ID, err)
	}
	c := &filing{run: run}
	if err := c.line(theSystem, audit.Place{Run: run.ID}, audit.Erased{Payloads: []string{run.ID}, Order: why}); err != nil {
		return err
	}
	if err := e.store.Amend(ctx, run.Account, c.Beside); err != nil {
		return err
	}
	err = e.store.Forget(ctx, run.Account, run.ID)
	e.dossiers.drop(store.Key{Account: run.Account, Run: run.ID}) // not before: somebody may have looked at it in between
	return err
}

// Erase ends all runs of an account and deletes everything that is known of them, and what the account had remembered and counted. It returns how
// many runs there were, also after an error; it may be called again then. A run that cannot be deleted holds up nothing else. The audit log stays.
func (e *Executor) Erase(ctx context.Context, account string) (int, error) {
	count := 0
	for {
		erased, err := e.eraseRuns(ctx, account)
		count += erased
		if err != nil || erased == 0 { // or others began meanwhile
			return count, errors.Join(err, e.erasePapers(ctx, account, grantPaper), e.erasePapers(ctx, account, counterPaper))
		}
	}
}

// eraseRuns erases the runs that an account has now, as far as it can.
func (e *Executor) eraseRuns(ctx context.Context, account string) (count int, err error) {
	var first error
	left := 0
	for filter := (store.Filter{}); ; {
		runs, err := e.store.List(ctx, account, filter)
		if err != nil {
			return count, err
		}
		if len(runs) == 0 {
			break
		}
		for _, run := range runs {
			if err := e.erase(ctx, run); err != nil {
				first, left = cmp.Or(first, err), left+1
				continue
			}
			count++
		}
		last := runs[len(runs)-1]
		filter.Before = store.RunPlace{Created: last.Created, ID: last.ID}
	}
	if first != nil {
		err = fmt.Errorf("executor: %d runs are left; the first: %w", left, first)
	}
	return count, err
}

func (e *Executor) erase(ctx context.Context, run store.Run) error {
	if run.Status.Alive() {
		if err := e.end(ctx, run, "", store.Cancelled); err != nil && !isNotFound(err) {
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
	return e.forget(ctx, history.Run, byErasure)
}

// erasePapers leaves nothing of the papers of a kind but their ids, which say nothing. That a grant ends by it is for the log to say.
func (e *Executor) erasePapers(ctx context.Context, account string, kind store.PaperKind) error {
	for after, try := "", 0; ; {
		papers, err := e.store.Papers(ctx, account, kind, store.PaperFilter{After: after, Limit: 1000})
		if err != nil || len(papers) == 0 {
			return err
		}
		c := &filing{run: store.Run{Account: account}}
		for _, paper := range papers {
			if paper.Body == nil && string(paper.Facts) == nothing {
				continue
			}
			c.Papers = append(c.Papers, store.PaperChange{Kind: kind, ID: paper.ID, Base: paper.Revision, Facts: []byte(nothing)})
			if kind == grantPaper {
				if err := c.line(theSystem, audit.Place{}, audit.GrantRevoked{Grant: paper.ID}); err != nil {
					return err
				}
			}
		}
		switch err := e.store.Amend(ctx, account, c.Beside); {
		case errors.Is(err, store.ErrStale): // somebody uses one of them
			if err := backOff(ctx, try); err != nil {
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

// nothing is the facts of a paper that was erased.
const nothing = "{}"
