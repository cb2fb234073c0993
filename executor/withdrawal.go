package executor

import (
	"context"

	"github.com/fermata-go/fermata/executor/internal/ids"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// tellWithdrawn files a message to a run that is ended: that one of its questions was withdrawn. It is filed with the end of the run, and only if the
// provider wants to know.
func (e *Executor) addWithdrawal(c *unitOfWork, interrupt, why string) error {
	p, err := e.providerOf(c.run)
	if _, hears := p.(provider.Withdrawer); err != nil || !hears {
		return nil
	}
	paper := store.DocumentChange{Kind: runMessageKind, ID: interrupt + "/withdrawn", Run: c.run.ID, DueAt: c.now}
	return c.addIndexed(paper, runMessage{Request: interrupt, Withdrawn: why, Remote: p.Capabilities().Remote})
}

// tellGone delivers that message.
func (e *Executor) deliverWithdrawal(ctx context.Context, paper store.Document, back runMessage) (err error) {
	defer recovery.Recover(&err)
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
	named, err := e.providerRun(history.Run, e.store)
	if err != nil {
		return err
	}
	gone := provider.Withdrawal{InterruptID: ids.ProviderID(back.Request), Reason: back.Withdrawn, At: paper.Created, Attempt: back.Attempts - 1}
	if gone.Input, err = e.store.Input(history.Run); err != nil {
		return err
	}
	return withdrawer.NotifyWithdrawn(ctx, named, gone)
}
