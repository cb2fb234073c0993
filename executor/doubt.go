package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/store"
)

// asStrong makes a question about an effect in doubt need all that the action itself needed: whoever says that it did not happen has it done
// again. What a policy allowed without asking anybody is for any one person to settle.
func (e *Executor) asStrong(ctx context.Context, ask *desk.Ask, c *filing, data json.RawMessage) error {
	var doubt fermata.DoubtfulEffect
	if err := json.Unmarshal(data, &doubt); err != nil {
		return err
	}
	docs, err := e.requestsOf(ctx, c.run)
	if err != nil {
		return err
	}
	var last *desk.Request
	for _, doc := range docs {
		if doc.Final == nil || doc.Final.Outcome != desk.Approved || doc.Final.Digest != doubt.Digest {
			continue
		}
		if need := doubtNeed(doc, &ask.Asked); last == nil {
			ask.Need = need
		} else {
			ask.Need = ask.Need.Merge(need) // it was approved more than once, and nobody knows for which this stands
		}
		if last == nil || doc.Created.After(last.Created) {
			last = &doc
		}
	}
	if last == nil {
		return nil
	}
	ask.Route = last.Route
	ask.Asked.Policy, ask.Asked.Rules, ask.Asked.Reason = last.Asked.Policy, last.Asked.Rules, last.Asked.Reason
	return nil
}

// doubtNeed is what an action needed, for the question whether it has happened; asked gets those who had a part in it. Who changed its arguments
// last could not approve it, and can no more say that it has to be done again: they are an author of it.
func doubtNeed(doc desk.Request, asked *desk.Asked) desk.Requirement {
	need := doc.Need
	need.Verbs = append(slices.Clone(need.Verbs), desk.VerbRespond) // those that are about an action count for nothing here
	if slices.Contains(need.Exclude, desk.Author) {
		asked.Authors = append(asked.Authors, doc.Asked.Authors...)
	}
	if slices.Contains(need.Exclude, desk.LastEditor) && doc.Edit != nil {
		need.Exclude = append(slices.Clone(need.Exclude), desk.Author)
		asked.Authors = append(asked.Authors, doc.Edit.By)
	}
	asked.PriorApprovers = append(asked.PriorApprovers, doc.Asked.PriorApprovers...)
	return need
}

// countedBy is what votes on a question are counted by, if that is not the very answer: of an effect in doubt, whether it happened and with
// which receipt, and not who says so and why.
func (w word) countedBy() string {
	if w.asked.Kind != fermata.InDoubt.Name() {
		return ""
	}
	var said fermata.WhatHappened
	if json.Unmarshal(w.value, &said) != nil {
		return ""
	}
	if !said.Happened {
		return "it did not happen"
	}
	receipt, err := strictjson.Canonical(said.Receipt)
	if said.Receipt == nil || err != nil {
		return "it happened"
	}
	return "it happened: " + digest("receipt", receipt)
}

var errHappened = errors.New("the ledger has its receipt: it has happened")

// contradicts refuses to hear that an effect did not happen when its owner, who was thought dead, has said by now that it did.
func (e *Executor) contradicts(ctx context.Context, w *word) error {
	var said fermata.WhatHappened
	if err := json.Unmarshal(w.value, &said); err != nil || said.Happened {
		return err
	}
	data, err := e.open(w.asked.Account, store.SealedData, w.asked.ID, w.asked.Data)
	if err != nil {
		return err
	}
	var doubt fermata.DoubtfulEffect
	if err := json.Unmarshal(data, &doubt); err != nil {
		return err
	}
	history, err := e.store.History(ctx, w.asked.Account, w.asked.Run)
	if err != nil {
		return fmt.Errorf("executor: the ledger: %w", err)
	}
	for _, line := range history.Effects {
		if line.Key == doubt.Key && line.Digest == doubt.Digest && line.Number == doubt.Try && line.State == store.Succeeded {
			return &fermata.AnswerError{ID: w.asked.ID, Kind: w.asked.Kind, Err: errHappened}
		}
	}
	return nil
}
