package executor

import (
	"context"
	"errors"
	"iter"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/store"
)

// Reconcile compares what the audit log of an account says with what its runs know and which effects were begun, and returns where they do
// not agree, the worst first. Nothing is changed.
func (e *Executor) Reconcile(ctx context.Context, account string) ([]audit.Finding, error) {
	now, err := e.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	books := audit.Books{Now: now, Audit: audit.Records(audit.Over(e.store).Records(ctx, account, 0, 0)), Payload: e.payloads(ctx, account)}
	var effects []audit.EffectLine
	var interrupts []audit.InterruptLine
	for run, err := range e.allRuns(ctx, account) {
		if err != nil {
			return nil, err
		}
		history, err := e.store.History(ctx, account, run.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // it was forgotten meanwhile
		}
		if err != nil {
			return nil, err
		}
		for _, line := range history.Effects {
			effects = append(effects, audit.EffectLine{
				Run: line.Run, Interrupt: line.Interrupt, Number: line.Number, Digest: line.Digest, State: audit.EffectState(line.State), Begun: line.Started, Ended: line.Ended,
			})
		}
		for _, i := range history.Interrupts {
			if i.Source == store.Policy {
				continue // nobody was asked
			}
			over := i.State == store.Withdrawn || !history.Run.Status.Alive()
			interrupts = append(interrupts, audit.InterruptLine{Run: i.Run, Interrupt: i.ID, Outcome: audit.Outcome(i.Verdict), Applied: i.Applied, Over: over})
		}
	}
	books.Effects, books.Interrupts, books.Clicks = listed(effects), listed(interrupts), listed[audit.ClickLine](nil)
	return audit.Reconcile(books)
}

func listed[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// payloads finds the salt of a run, under which its digests stand in the log.
func (e *Executor) payloads(ctx context.Context, account string) func(id string) (audit.Payload, bool) {
	known := make(map[string]audit.Payload)
	return func(id string) (audit.Payload, bool) {
		if p, ok := known[id]; ok {
			return p, p.Salt != (audit.Salt{})
		}
		d, err := e.dossierOf(ctx, account, id)
		p := audit.Payload{ID: id}
		if err == nil {
			copy(p.Salt[:], d.Salt)
		}
		known[id] = p
		return p, p.Salt != (audit.Salt{})
	}
}

// allRuns goes through the runs of an account, the newest first.
func (e *Executor) allRuns(ctx context.Context, account string) iter.Seq2[store.Run, error] {
	return func(yield func(store.Run, error) bool) {
		filter := store.Filter{Limit: 1000}
		for {
			page, err := e.store.List(ctx, account, filter)
			if err != nil {
				yield(store.Run{}, err)
				return
			}
			for _, run := range page {
				if !yield(run, nil) {
					return
				}
				filter.Before = store.RunPlace{Created: run.Created, ID: run.ID}
			}
			if len(page) < filter.Limit {
				return
			}
		}
	}
}
