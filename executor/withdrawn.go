package executor

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// tellWithdrawn files a message to a run that is ended: that one of its questions was withdrawn. It is filed with the end of the run, and only if the
// provider wants to know.
func (e *Executor) tellWithdrawn(c *filing, interrupt, why string) error {
	p, err := e.providerOf(c.run)
	if _, hears := p.(provider.Withdrawer); err != nil || !hears {
		return nil
	}
	paper := store.PaperChange{Kind: backPaper, ID: interrupt + "/withdrawn", Run: c.run.ID, Next: c.now}
	return c.fileFacts(paper, backFacts{Request: interrupt, Why: why, Calls: p.Capabilities().Calls})
}

// withdrawLate withdraws the requests of a run that was ended which it made after they were listed for that, and before it: it came to rest in between. The store
// has withdrawn their questions, and knows neither what people see nor who has to be told. Those that were filed with the end are none of them. It does not
// give up at once if the store is away: nobody else does it.
func (e *Executor) withdrawLate(ctx context.Context, run store.Run, why string, filed []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := whileStale(ctx, func() error { return e.withdrawLeft(ctx, run, why, filed) })
		switch {
		case err == nil || isNotFound(err): // or the run was deleted meanwhile
			return nil
		case errors.Is(err, ErrUnreadable) || !e.pauses(ctx, pause):
			return err
		}
	}
}

// withdrawLeft is one try.
func (e *Executor) withdrawLeft(ctx context.Context, run store.Run, why string, filed []string) error {
	asked, err := e.store.Interrupts(ctx, run.Account, run.ID)
	if err != nil {
		return err
	}
	c := &filing{run: run}
	for _, i := range asked {
		if i.State != store.Withdrawn || slices.Contains(filed, i.ID) {
			continue
		}
		known, err := e.requestOf(ctx, run.Account, i.ID)
		if err == nil && known != nil && known.State == desk.Open {
			err = cmp.Or(e.withdraw(ctx, c, []string{i.ID}, why), e.tellWithdrawn(c, i.ID, why))
		}
		if err != nil {
			return err
		}
	}
	if c.IsEmpty() {
		return nil
	}
	return e.store.Amend(ctx, run.Account, c.Beside)
}

// tellGone delivers that message.
func (e *Executor) tellGone(ctx context.Context, paper store.Paper, back backFacts) (err error) {
	defer safely.Recover(&err)
	history, err := e.store.History(ctx, paper.Account, paper.Run) // another run may have the state key
	if isNotFound(err) {
		return nil // it was forgotten
	}
	if err != nil {
		return err
	}
	p, err := e.providerOf(history.Run)
	if err != nil {
		return err
	}
	withdrawer, hears := p.(provider.Withdrawer)
	if !hears {
		return nil
	}
	named, err := e.runOf(history.Run, e.stateOf())
	if err != nil {
		return err
	}
	gone := provider.Gone{Interrupt: questionID(back.Request), Why: back.Why, At: paper.Created, Attempt: back.Tries - 1}
	if gone.Input, err = e.open(paper.Account, store.SealedInput, history.Run.ID, history.Run.Input); err != nil {
		return err
	}
	return withdrawer.Withdrawn(ctx, named, gone)
}
