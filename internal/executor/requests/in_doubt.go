package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// inheritRequirement gives a request about an effect in doubt the requirement of the action itself:
// the answer that it did not happen executes it again. If a policy allowed the action without
// asking, it inherits nothing.
func inheritRequirement(ctx context.Context, ask *desk.RequestSpec, history *history.Run, data json.RawMessage) (inherited bool, err error) {
	var doubt fermata.InDoubtRequest
	if err := json.Unmarshal(data, &doubt); err != nil {
		return false, err
	}
	docs, err := history.AllRequests(ctx)
	if err != nil {
		return false, err
	}
	var last *desk.Request
	for _, doc := range docs {
		if doc.Decision == nil || doc.Decision.Outcome != desk.OutcomeApproved || doc.Decision.Digest != doubt.Digest {
			continue
		}
		if need := inheritedNeed(doc, &ask.Subject); last == nil {
			ask.Requirement = need //mutate:doubt-has-requirement
		} else {
			// it was approved more than once, and it is unknown which approval this effect is of
			ask.Requirement = ask.Requirement.Merge(need)
		}
		if last == nil || doc.Created.After(last.Created) {
			last = &doc
		}
	}
	if last == nil {
		return false, nil
	}
	ask.Route, ask.Subject.Risk = last.Route, last.Subject.Risk
	ask.Subject.Policy, ask.Subject.Rules, ask.Subject.Reason = last.Subject.Policy, last.Subject.Rules, last.Subject.Reason
	return true, nil
}

// inheritedNeed returns the requirement of an action, for the question whether it has happened. The
// actors who were involved in the action are added to asked. The last editor of its arguments
// counts as an author here, because they could not approve the action either.
func inheritedNeed(doc desk.Request, asked *desk.Subject) requirement.Requirement {
	need := doc.Requirement
	// this question is answered, not approved or rejected
	need.Verbs = append(slices.Clone(need.Verbs), requirement.VerbRespond)
	if slices.Contains(need.Exclude, requirement.DutyAuthor) {
		asked.Authors = append(asked.Authors, doc.Subject.Authors...)
	}
	if editor := doc.LastEditor(); slices.Contains(need.Exclude, requirement.DutyLastEditor) && editor != "" {
		need.Exclude = append(slices.Clone(need.Exclude), requirement.DutyAuthor)
		asked.Authors = append(asked.Authors, editor)
	}
	asked.PriorApprovers = append(asked.PriorApprovers, doc.Subject.PriorApprovers...)
	return need
}

// ErrEffectSucceeded says that the ledger has the receipt of an effect.
var ErrEffectSucceeded = errors.New("the effect ledger has a receipt: the effect has happened")

// LedgerHasReceipt reports whether the ledger has the receipt of the effect of an interrupt.
func (s *Service) LedgerHasReceipt(ctx context.Context, question store.Interrupt) (bool, error) {
	data, err := s.store.Data(question)
	if err != nil {
		return false, err
	}
	var doubt fermata.InDoubtRequest
	if err := json.Unmarshal(data, &doubt); err != nil {
		return false, err
	}
	history, err := s.store.History(ctx, question.Account, question.Run)
	if err != nil {
		return false, fmt.Errorf("executor: the ledger: %w", err)
	}
	return slices.ContainsFunc(history.Effects, func(line store.Effect) bool {
		//mutate:doubt-knows-receipt
		return line.IdempotencyKey == doubt.Key && line.ActionDigest == doubt.Digest && line.Attempt == doubt.Attempt && line.State == store.EffectSucceeded
	}), nil
}

// AnswerFromLedger returns the answer to an expired request about an effect in doubt that the
// ledger can answer by now; nil otherwise.
func (s *Service) AnswerFromLedger(ctx context.Context, question store.Interrupt) (json.RawMessage, error) {
	//mutate:expired-doubt-reads-ledger
	if question.Verdict != store.VerdictExpire || question.Kind != fermata.EffectInDoubt.Name() {
		return nil, nil
	}
	if happened, err := s.LedgerHasReceipt(ctx, question); err != nil || !happened {
		return nil, err
	}
	return json.Marshal(fermata.EffectResolution{Happened: true, Reason: ErrEffectSucceeded.Error()})
}
