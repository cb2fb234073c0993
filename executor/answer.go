package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/store"
)

// answers checks what was said against what was asked. Nothing is changed by it.
func (e *Executor) answers(ctx context.Context, run store.Run, request Request) ([]store.Answer, error) {
	asked, err := e.store.Interrupts(ctx, run.Account, run.ID)
	if err != nil {
		return nil, err
	}
	targets := request.Targets
	if request.Value != nil {
		if targets, err = onlyOpen(asked, targets, request.Value); err != nil {
			return nil, err
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("%w: a resume needs an answer", ErrInvalid)
	}
	var answers []store.Answer
	for id, said := range targets {
		answer := store.Answer{Interrupt: id, Verdict: store.Answered, Shown: said.Shown}
		i := slices.IndexFunc(asked, func(i store.Interrupt) bool { return i.ID == id })
		if i >= 0 && asked[i].State == store.Pending { // or the store says what is the matter with it
			if answer, err = e.answer(ctx, run, asked[i], request.Actor, said); err != nil {
				return nil, err
			}
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// onlyOpen makes a value the answer to the one open question.
func onlyOpen(asked []store.Interrupt, targets map[string]Answer, value json.RawMessage) (map[string]Answer, error) {
	if len(targets) > 0 {
		return nil, fmt.Errorf("%w: it has a value and targets: which one counts?", ErrInvalid)
	}
	var open []store.Interrupt
	for _, i := range asked {
		if i.State == store.Pending {
			open = append(open, i)
		}
	}
	switch {
	case len(open) == 0:
		return nil, &RefusedError{Result: store.Gone}
	case len(open) > 1:
		return nil, fmt.Errorf("%w: %d questions are open: say which one is answered", ErrInvalid, len(open))
	case open[0].Kind == fermata.Approval.Name() || open[0].Kind == fermata.InDoubt.Name():
		return nil, fmt.Errorf("%w: a decision on an action names the question: use targets", ErrInvalid)
	}
	return map[string]Answer{open[0].ID: {Value: value}}, nil
}

// answer checks one answer, and finds out what it says.
func (e *Executor) answer(ctx context.Context, run store.Run, i store.Interrupt, actor string, said Answer) (store.Answer, error) {
	answer := store.Answer{Interrupt: i.ID, Verdict: store.Answered, Shown: said.Shown}
	if err := checkJSON("the answer", said.Value, fermata.MaxAnswer); err != nil {
		return answer, err
	}
	p, err := e.providerOf(run)
	if err != nil {
		return answer, err
	}
	named, err := e.runOf(run, e.store)
	if err != nil {
		return answer, err
	}
	value, err := p.Check(ctx, named, questionID(i.ID), said.Value)
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		return answer, &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: bad.Err}
	}
	if err == nil && i.Kind == fermata.Approval.Name() {
		value, err = e.approval(&answer, i, actor, value)
	}
	answer.Data = e.seal(run.Account, store.SealedAnswer, i.ID, value)
	return answer, err
}

var errClockOnly = errors.New("only the clock lets a question expire")

// approval says what a decision on an action approves. Who decided is who we know it to be, whatever the answer says.
func (e *Executor) approval(answer *store.Answer, i store.Interrupt, actor string, value json.RawMessage) (json.RawMessage, error) {
	question, err := e.open(i.Account, store.SealedData, i.ID, i.Data)
	if err != nil {
		return nil, err
	}
	var asked fermata.ApprovalRequest
	var decision fermata.Decision
	if err := errors.Join(json.Unmarshal(question, &asked), json.Unmarshal(value, &decision)); err != nil {
		return nil, err
	}
	if decision.Verb == fermata.VerbExpire {
		return nil, &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: errClockOnly}
	}
	answer.Verdict = store.Reject
	if answer.Final, err = asked.Approves(decision); answer.Final != "" {
		answer.Verdict = store.Approve
	}
	if err != nil {
		return nil, err
	}
	decision.By, decision.At = actor, time.Time{} // when, the store says
	return json.Marshal(decision)
}

// refused says why a decision was not taken, and by whom something was decided before.
func (e *Executor) refused(ctx context.Context, run store.Run, receipt store.Receipt) error {
	refused := &RefusedError{Result: receipt.Result, Interrupt: receipt.Interrupt}
	if receipt.Result != store.AlreadyDecided {
		return refused
	}
	asked, err := e.store.Interrupts(ctx, run.Account, run.ID)
	for _, i := range asked {
		if i.ID == receipt.Interrupt {
			refused.By, refused.At, refused.Verdict = i.By, i.At, i.Verdict
		}
	}
	return errors.Join(refused, err)
}
