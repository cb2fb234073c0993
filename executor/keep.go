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
	"github.com/fermata-go/fermata/store"
)

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

// retainAtOnce is how many runs are listed at a time.
const retainAtOnce = 100

// retain deletes runs that ended longer than Config.Retention ago. A run that waits is never among them, however long it does.
func (e *Executor) retain() {
	var guard clockGuard
	for !e.closing() {
		now, err := e.store.Now(e.life)
		if err == nil && guard.trusts(now) { // what is deleted because a clock has jumped does not come back
			err = e.forgetOld(e.life, now.Add(-e.config.Retention)) //mutate:retention-cutoff
		}
		e.complain("forgetting old runs", err)
		e.rests(max(e.config.Poll, min(e.config.Retention/10, time.Minute)))
	}
}

// forgetOld deletes the runs that ended before a time. A run that cannot be deleted stays, and does not hold up the others.
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
	byRetention = "retention" // it was kept long enough
	byErasure   = "erasure"   // the account is erased
)

// forget deletes a run, first at its provider and then in the store. If this process does not have the provider, the run stays. Of several processes that do
// so at the same time one says it in the audit log: the one that deletes it.
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
	err = e.store.Forget(ctx, run.Account, run.ID, c.Beside)
	//mutate:salt-dropped-with-run
	e.dossiers.drop(store.Key{Account: run.Account, Run: run.ID}) // last: somebody may have read it into the cache in between
	return err
}

// Erase ends all runs of an account and deletes everything that is known of them, and the grants and counters of the account. It returns how many runs it
// deleted, also after an error; it may be called again then. A run that cannot be deleted does not hold up the others. What cannot be opened goes as
// well, but for a run whose ref at its provider cannot. The audit log stays. It returns ErrGrows if the account goes on starting runs meanwhile.
func (e *Executor) Erase(ctx context.Context, account string) (int, error) {
	count, failure := 0, ErrGrows
	for range eraseLooks {
		erased, err := e.eraseRuns(ctx, account)
		count += erased
		if err != nil || erased == 0 { // otherwise look again: runs may have begun meanwhile
			failure = err
			break
		}
	}
	return count, errors.Join(failure, e.erasePapers(ctx, account, grantPaper), e.erasePapers(ctx, account, counterPaper))
}

// eraseLooks is how often is looked for runs that have begun since.
const eraseLooks = 10

// eraseRuns erases the runs that an account has now, as far as it can.
func (e *Executor) eraseRuns(ctx context.Context, account string) (count int, err error) {
	var first error
	left := 0
	for run, err := range e.runs(ctx, account, store.Filter{}) {
		if err != nil {
			return count, err
		}
		if err := e.erase(ctx, run); err != nil {
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

func (e *Executor) erase(ctx context.Context, run store.Run) error {
	if run.Status.Alive() {
		if err := whileStale(ctx, func() error { return e.endSilently(ctx, run) }); err != nil && !isNotFound(err) {
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

// endSilently ends a run, and files no message to whoever asked: it would be deleted a moment later, and some would have heard of it by then.
func (e *Executor) endSilently(ctx context.Context, run store.Run) error {
	waits, beside, err := e.ending(ctx, run, desk.From{}, store.Cancelled)
	if errors.Is(err, ErrUnreadable) {
		return e.endUnread(ctx, run)
	}
	if err != nil {
		return err
	}
	beside.Papers = slices.DeleteFunc(beside.Papers, func(p store.PaperChange) bool { return p.Kind == backPaper })
	_, err = e.store.Cancel(ctx, run.Account, run.ID, store.Cancelled, waits, beside)
	return err
}

// endUnread ends a run with a request that cannot be opened. The store withdraws the question by itself, and the request stays as it is.
func (e *Executor) endUnread(ctx context.Context, run store.Run) error {
	c := &filing{run: run}
	waits, err := e.waitsFor(ctx, run)
	if err != nil {
		return err
	}
	for _, id := range waits {
		if err := c.line(theSystem, c.placeOf(id), audit.Withdrawn{Why: string(store.Cancelled)}); err != nil {
			return err
		}
	}
	if err := c.line(theSystem, c.place(), audit.RunEnded{Status: string(store.Cancelled)}); err != nil {
		return err
	}
	_, err = e.store.Cancel(ctx, run.Account, run.ID, store.Cancelled, waits, c.Beside)
	return err
}

// erasePapers empties the papers of a kind. Their ids stay, which say nothing about the account. For each grant there is a line in the audit log.
func (e *Executor) erasePapers(ctx context.Context, account string, kind store.PaperKind) error {
	for after, try := "", 0; ; {
		papers, err := e.store.Papers(ctx, account, kind, store.PaperFilter{After: after, Limit: papersAtOnce})
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
