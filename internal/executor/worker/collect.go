package worker

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// collection has the answers of a run whose provider has several interrupts and no partial resume.
// An execution that would deliver only some answers adds them to the collection instead, and the
// run waits for the others. The execution with the last answer delivers all of them. The collection
// is written in the transaction that ends an execution, and is empty for other providers.
type collection struct {
	answers  []provider.Answer
	revision int64
	changed  bool
}

// collects reports whether answers are collected for a provider.
func collects(p provider.Provider) bool {
	can := p.Capabilities()
	return can.Parallel && !can.PartialResume
}

// load reads the collection of a run.
func (a *collection) load(ctx context.Context, d *docs.Docs, run store.Run) error {
	document, err := d.Store.Document(ctx, run.Account, docs.CollectedKind, run.ID)
	if docs.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = d.DecodeBody(document, &a.answers)
	}
	a.revision = document.Revision
	return err
}

// add adds answers that the provider does not get yet.
func (a *collection) add(answers []provider.Answer) {
	a.answers, a.changed = append(a.answers, answers...), true
}

// delivered removes the answers that the provider has applied.
func (a *collection) delivered(applied []string) {
	before := len(a.answers)
	a.answers = slices.DeleteFunc(a.answers, func(answer provider.Answer) bool { return slices.Contains(applied, answer.InterruptID) })
	a.changed = a.changed || len(a.answers) != before
}

// addTo adds the changed collection to the transaction that ends the execution.
func (a *collection) addTo(c *txn.Tx) error {
	if !a.changed {
		return nil
	}
	body, err := json.Marshal(a.answers)
	c.Documents = append(c.Documents, store.DocumentChange{Kind: docs.CollectedKind, ID: c.Run.ID, Run: c.Run.ID, BaseRevision: a.revision, Body: body})
	return err
}

// waitsForOthers returns the result of an execution that does not call the provider, because the
// run has open interrupts next to the given answers. ok is false if it has none.
func (w *Worker) waitsForOthers(run store.Run, answers []provider.Answer) (result provider.Result, ok bool, err error) {
	if run.Outcome == nil || len(answers) == 0 {
		return result, false, nil
	}
	data, err := w.store.Outcome(run.Account, run.ID, run.Outcome)
	if err != nil {
		return result, false, err
	}
	var before struct {
		Interrupts []fermata.OpenInterrupt `json:"interrupts"`
		Failure    *fermata.Failure        `json:"failure"`
	}
	if err := json.Unmarshal(data, &before); err != nil {
		return result, false, err
	}
	for _, answer := range answers {
		result.Applied = append(result.Applied, answer.InterruptID)
	}
	var waiting provider.Waiting
	if before.Failure != nil {
		waiting.Failure = &provider.Failed{Code: before.Failure.Code, Message: before.Failure.Message}
	}
	for _, q := range before.Interrupts {
		if slices.Contains(result.Applied, ids.ProviderID(q.ID)) {
			continue
		}
		waiting.Interrupts = append(waiting.Interrupts, provider.Interrupt{
			ID: ids.ProviderID(q.ID), Address: q.Address, Envelope: q.Envelope, AnswerSchema: q.AnswerSchema,
			Supersedes: q.Supersedes, Changed: q.Changed, Refused: q.Refused,
		})
	}
	result.Outcome = waiting
	return result, len(waiting.Interrupts) > 0, nil
}

// withoutAnswered returns the interrupts that have none of the answers.
func withoutAnswered(interrupts []provider.Interrupt, answers []provider.Answer) []provider.Interrupt {
	return slices.DeleteFunc(slices.Clone(interrupts), func(q provider.Interrupt) bool {
		return slices.ContainsFunc(answers, func(a provider.Answer) bool { return a.InterruptID == q.ID })
	})
}
