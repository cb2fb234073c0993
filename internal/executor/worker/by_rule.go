package worker

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// continueByRule answers the interrupts that the policy allows, and lets the provider continue,
// until the run ends or waits for people only. Each interrupt is answered once in an execution: if
// the run does not accept the answer, people are asked. For a provider without partial resume, the
// answers are kept until people have answered the other interrupts.
func (w *Worker) continueByRule(ctx context.Context, p provider.Provider, x provider.Execution, run store.Run, meta docs.RunMeta, flush func(context.Context) error, result provider.Result, kept *collection) (provider.Result, error) {
	answered := make(map[string]bool)
	for range maxRounds {
		x.Answers = nil
		waiting, ok := result.Outcome.(provider.Waiting)
		if !ok || x.Policy == nil {
			return result, nil
		}
		fresh, err := w.newInterrupts(run, waiting.Interrupts, result.Applied)
		if err != nil {
			return result, err
		}
		for _, q := range fresh {
			if !w.canAnswerByRule(p, q) || answered[q.ID] {
				continue
			}
			answered[q.ID] = true
			allowed, err := w.governor.AllowInterrupt(ctx, run, meta, flush, q)
			if err != nil {
				return result, err
			}
			if allowed == nil {
				continue
			}
			answer, err := answerByRule(ctx, p, x.Run, q, *allowed)
			if err != nil {
				return result, err
			}
			x.Answers = append(x.Answers, answer)
		}
		if len(x.Answers) == 0 {
			return result, nil
		}
		if others := withoutAnswered(waiting.Interrupts, x.Answers); collects(p) && len(others) > 0 {
			kept.add(x.Answers) // the provider gets them with the answers of people
			waiting.Interrupts = others
			result.Outcome = waiting
			return result, nil
		}
		applied := result.Applied
		if result, err = p.Execute(ctx, x); err != nil {
			return result, err
		}
		result.Applied = append(applied, result.Applied...)
	}
	return result, nil
}

// maxRounds is how often an execution continues by rule. A loop in which a rule passes the gate
// every time would never end; after that, people are asked.
const maxRounds = 100

// newInterrupts returns the valid interrupts that people have not been asked yet, with their
// visible ids.
func (w *Worker) newInterrupts(run store.Run, raised []provider.Interrupt, applied []string) ([]provider.Interrupt, error) {
	before, err := w.lastOpenInterrupts(run)
	if err != nil {
		return nil, err
	}
	var answered, open []string
	for _, known := range before {
		open = append(open, known.ID)
		if slices.Contains(applied, ids.ProviderID(known.ID)) {
			answered = append(answered, known.ID)
		}
	}
	var fresh []provider.Interrupt
	for _, q := range raised {
		if code, _ := normalizeInterrupt(&q); code != "" {
			continue // the run fails with it
		}
		if q.ID = visibleID(q, before, answered); !slices.Contains(open, q.ID) {
			fresh = append(fresh, q)
		}
	}
	return fresh, nil
}

// canAnswerByRule reports whether a rule can answer an interrupt. A rule can approve; it cannot
// answer a question. A provider that evaluates the policy itself raises only approvals that need
// people.
func (w *Worker) canAnswerByRule(p provider.Provider, q provider.Interrupt) bool {
	switch q.Kind {
	case fermata.Approval.Name():
		return !p.Capabilities().Policy
	case docs.GateKind, docs.HoldKind:
		return true
	}
	return false
}

// answerByRule returns the approval of an interrupt as its provider accepts it.
func answerByRule(ctx context.Context, p provider.Provider, run provider.Run, q provider.Interrupt, allowed govern.AnswerByRule) (provider.Answer, error) {
	answer := provider.Answer{InterruptID: ids.ProviderID(q.ID), By: allowed.By, At: allowed.At, Rule: allowed.Rule}
	value := json.RawMessage("null") // a hold continues with the state as it is
	switch q.Kind {
	case fermata.Approval.Name():
		value = json.RawMessage(`{"verb":"approve"}`)
	case docs.GateKind:
		value = json.RawMessage(`{"approved":true}`)
	}
	data, err := p.CheckAnswer(ctx, run, answer.InterruptID, value)
	if err == nil {
		answer.Data, err = answer.Attestation().Write(docs.AttestedFields(q.Kind), data)
	}
	return answer, err
}
