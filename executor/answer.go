package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// word is what somebody answers to one question. If others have to agree it is a vote, and decides nothing yet.
type word struct {
	store.Answer // the answer that it would be if nobody else had to agree, without Data
	asked        store.Interrupt
	open         bool            // the question was open when it was read
	shown        string          // the digest of what the person saw
	value        json.RawMessage // as the provider has checked it
	// question and decision are set if it is about an action.
	question *fermata.ApprovalRequest
	decision *fermata.Decision
}

// words checks the answers of a request against the questions. It changes nothing.
func (e *Executor) words(ctx context.Context, l *looked, request Request) ([]word, error) {
	targets := request.Targets
	if request.Value != nil {
		var err error
		if targets, err = onlyOpen(l.Open, targets, request.Value); err != nil {
			return nil, err
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("%w: a resume needs an answer", ErrInvalid)
	}
	check := sync.OnceValues(func() (provider.Check, error) { return e.checks(ctx, l) })
	var words []word
	for _, id := range slices.Sorted(maps.Keys(targets)) { // or of several that are refused, another one would be named each time
		said := targets[id]
		w := word{Answer: store.Answer{Interrupt: id, Verdict: store.Answered, Shown: said.Shown}, shown: said.Shown}
		i := slices.IndexFunc(l.Open, func(i store.Interrupt) bool { return i.ID == id })
		if i >= 0 { // otherwise the store says why it cannot be answered
			w.asked, w.open = l.Open[i], true
			if err := e.answer(ctx, check, request.Actor, said, &w); err != nil {
				return nil, err
			}
		}
		words = append(words, w)
	}
	return words, nil
}

// checks is what checks the answers to a run. A provider that can reads the run once for all of them.
func (e *Executor) checks(ctx context.Context, l *looked) (provider.Check, error) {
	p, err := e.providerOf(l.Run)
	if err != nil {
		return nil, err
	}
	named, err := e.runOf(l.Run, l.state)
	if err != nil {
		return nil, err
	}
	if batch, ok := p.(provider.BatchChecker); ok {
		return batch.Checks(ctx, named)
	}
	return func(interrupt string, answer json.RawMessage) (json.RawMessage, error) {
		return p.Check(ctx, named, interrupt, answer)
	}, nil
}

// gateKind is the kind of the questions of package gate. They decide on an action, like fermata.Approval.
const gateKind = "approval-gate"

// onlyOpen makes a value the answer to the one open question.
func onlyOpen(open []store.Interrupt, targets map[string]Answer, value json.RawMessage) (map[string]Answer, error) {
	switch {
	case len(targets) > 0:
		return nil, fmt.Errorf("%w: it has a value and targets: which one counts?", ErrInvalid)
	case len(open) == 0:
		return nil, &RefusedError{Result: store.Gone}
	case len(open) > 1: //mutate:ambiguous-answer
		return nil, fmt.Errorf("%w: %d questions are open: say which one is answered", ErrInvalid, len(open))
	case open[0].Kind == fermata.Approval.Name() || open[0].Kind == fermata.InDoubt.Name() || open[0].Kind == gateKind:
		return nil, fmt.Errorf("%w: a decision on an action names its question, in Targets (over HTTP: resumeTargets)", ErrInvalid)
	}
	return map[string]Answer{open[0].ID: {Value: value}}, nil
}

// answer checks one answer and fills in the rest of its word.
func (e *Executor) answer(ctx context.Context, checks func() (provider.Check, error), actor string, said Answer, w *word) error {
	i := w.asked
	if err := checkJSON("the answer", said.Value, fermata.MaxAnswer); err != nil {
		return err
	}
	check, err := checks()
	if err == nil {
		w.value, err = check(questionID(i.ID), said.Value) //mutate:answer-checked-by-provider
	}
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		return &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: bad.Err}
	}
	if err != nil {
		now, failure := e.store.Question(ctx, i.Account, i.ID)
		switch {
		case failure == nil && now.State != store.Pending:
			w.open = false // the run has gone on meanwhile; the store says why it cannot be answered
			return nil
		case isNotFound(failure):
			return failure // the run was deleted meanwhile
		}
	}
	if err == nil && i.Kind == fermata.Approval.Name() {
		err = e.approval(actor, w)
	}
	if err == nil && i.Kind == fermata.InDoubt.Name() {
		err = e.contradicts(ctx, w)
	}
	if field, signed := signatures[i.Kind]; err == nil && signed {
		err = w.sign(field, actor)
	}
	return err
}

// signatures are, by kind, the member of an answer that says who gave it.
var signatures = map[string]string{gateKind: "approvedBy", fermata.InDoubt.Name(): "by"}

// sign overwrites the member of the answer that says who gave it, if the answer has it, with who that is.
func (w *word) sign(field, actor string) error {
	var said map[string]json.RawMessage
	err := json.Unmarshal(w.value, &said)
	if _, signed := said[field]; err != nil || !signed {
		return err
	}
	if said[field], err = json.Marshal(actor); err == nil {
		w.value, err = json.Marshal(said)
	}
	return err
}

var errClockOnly = errors.New("only the clock lets a question expire")

// approval fills in what a decision on an action approves: the digest of the action, perhaps with edited arguments. By is overwritten with the actor.
func (e *Executor) approval(actor string, w *word) error {
	i := w.asked
	question, err := e.open(i.Account, store.SealedData, i.ID, i.Data)
	if err != nil {
		return err
	}
	var asked fermata.ApprovalRequest
	var decision fermata.Decision
	if err := errors.Join(json.Unmarshal(question, &asked), json.Unmarshal(w.value, &decision)); err != nil {
		return err
	}
	if decision.Verb == fermata.VerbExpire { //mutate:expire-verb-reserved
		return &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: errClockOnly}
	}
	w.Verdict = store.Reject
	if w.Final, err = asked.Approves(decision); w.Final != "" {
		w.Verdict = store.Approve
	}
	if err != nil {
		return err
	}
	//mutate:actor-from-session
	decision.By, decision.At = actor, time.Time{} // the store knows when
	w.question, w.decision = &asked, &decision
	w.value, err = json.Marshal(decision)
	return err
}

// refused is the error for a decision that the store did not accept.
func (e *Executor) refused(ctx context.Context, run store.Run, receipt store.Receipt) error {
	refused := &RefusedError{Result: receipt.Result, Interrupt: receipt.Interrupt}
	if receipt.Result != store.AlreadyDecided {
		return refused
	}
	asked, err := e.store.Interrupts(ctx, run.Account, receipt.Run) // which may be older than the one that has the state key now
	for _, i := range asked {
		if i.ID == receipt.Interrupt {
			refused.By, refused.At, refused.Verdict = i.By, i.At, i.Verdict
		}
	}
	return errors.Join(refused, err)
}
