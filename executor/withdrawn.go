package executor

import (
	"context"

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
