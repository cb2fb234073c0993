package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/store"
)

// A resume id has one answer for ever, in the store or in a paper:
//
//	the word settled the question                       the store keeps the receipt; the paper, written with it, only says so
//	the vote was counted, and others have to agree      the paper has no result
//	the rules for people refused it                     the paper has the refusal
//	the question is over                                the store refuses it; the paper, written before, only says so
//
// So of several processes that have the same resume id at the same time, before and after the end of the question, or with other people in its groups, only
// one can write the paper, and the others start again. A question without a request needs no paper: nobody but the store has an answer for it.

// resumeName is the id of the paper of a resume id.
func resumeName(d store.Decision) string { return ident.Derive("res", d.Actor, d.ResumeID) }

// resumeFacts is what a resume id was answered with.
type resumeFacts struct {
	Body      string       `json:"body"`
	Interrupt string       `json:"interrupt,omitempty"`
	Result    store.Result `json:"result,omitempty"` // of a refusal by the rules for people; "" if the vote was counted
	Code      string       `json:"code,omitempty"`   // the desk.Code of that refusal
	// Store says that the store has the answer, or will have; Logged that a refusal is in the audit log.
	Store  bool `json:"store,omitempty"`
	Logged bool `json:"logged,omitempty"`
}

// change is the change of the paper.
func (f resumeFacts) change(d store.Decision, base int64) store.PaperChange {
	facts, _ := json.Marshal(f) // strings always have a JSON
	return store.PaperChange{Kind: resumePaper, ID: resumeName(d), Run: d.Run, Base: base, Facts: facts}
}

// keptAnswer is the paper of a resume id; its revision is 0 if there is none.
type keptAnswer struct {
	resumeFacts
	run      string
	revision int64
}

func (e *Executor) keptAnswer(ctx context.Context, d store.Decision) (kept keptAnswer, err error) {
	paper, err := e.readFacts(ctx, d.Account, resumePaper, resumeName(d), &kept.resumeFacts)
	kept.run, kept.revision = paper.Run, paper.Revision
	return kept, err
}

// answeredBefore returns the answer that a resume id got before, as an error: errCounted, a refusal, or ErrReused if it belongs to another decision. It is
// nil if there is none, or if the store has it.
func (e *Executor) answeredBefore(ctx context.Context, d store.Decision) (keptAnswer, error) {
	before, err := e.keptAnswer(ctx, d)
	switch {
	case err != nil || before.revision == 0: //mutate:resume-result-looked-up
		return before, err
	case before.Body != d.Body:
		return before, store.ErrReused
	case before.Store:
		return before, nil
	case before.Result != "":
		return before, &RefusedError{Result: before.Result, Interrupt: before.Interrupt, Err: deskError(before.Code)}
	}
	return before, &countedError{before.run}
}

// leaveToStore writes the paper which says that the store answers, unless the store has answered already. It returns ErrStale if another process wrote
// the paper.
func (e *Executor) leaveToStore(ctx context.Context, d store.Decision, before keptAnswer) error {
	if before.Store { //mutate:resume-result-by-store
		return nil
	}
	if _, err := e.store.Resumed(ctx, d.Account, d.Actor, d.ResumeID); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	mark := resumeFacts{Body: d.Body, Store: true}.change(d, 0)
	return e.amend(ctx, d.Account, mark)
}

// unsettled writes down that a word was counted and settles nothing, or else that it was refused.
func (e *Executor) unsettled(ctx context.Context, run store.Run, request Request, d store.Decision, before keptAnswer, why error) error {
	if !errors.Is(why, errCounted) {
		return e.refuse(ctx, run, request, before, why)
	}
	d.Beside.Papers = append(d.Beside.Papers, resumeFacts{Body: d.Body}.change(d, before.revision))
	return e.store.Amend(ctx, run.Account, d.Beside)
}

// refuse writes down that the rules for people refused a decision: in the audit log, and as the answer of its resume id.
func (e *Executor) refuse(ctx context.Context, run store.Run, request Request, before keptAnswer, why error) error {
	refused, ok := errors.AsType[*RefusedError](why)
	if bad, edits := refusedEdit(why); edits { // the resume id is not used up: what does not fit can be mended
		c, err := refusing(run, request, &RefusedError{Interrupt: bad.ID, Err: bad.Err})
		return cmp.Or(err, e.noteRefusal(ctx, run.Account, c))
	}
	if !ok {
		return nil // the request was invalid, and nothing was refused
	}
	if before.Store {
		if err := e.stillOpen(ctx, run.Account, refused.Interrupt); err != nil {
			return err
		}
	}
	c, err := refusing(run, request, refused)
	if err != nil {
		return err
	}
	if refused.Err != nil {
		d := resumeOf(run, request)
		facts := resumeFacts{Body: d.Body, Interrupt: refused.Interrupt, Result: refused.Result, Code: desk.Code(refused.Err), Logged: true}
		c.Papers = append(c.Papers, facts.change(d, before.revision))
	}
	return e.noteRefusal(ctx, run.Account, c)
}

// stillOpen returns ErrStale if a question is over. Another replica that found it so has left the answer to the store, which may not have it yet: the refusal of
// one that read the question before must not take its place.
func (e *Executor) stillOpen(ctx context.Context, account, interrupt string) error {
	now, err := e.store.Question(ctx, account, interrupt)
	switch {
	case isNotFound(err):
		return nil // the run was deleted, and all answers with it
	case err == nil && now.State != store.Pending: //mutate:resume-conflict-still-pending
		return store.ErrStale
	}
	return err
}

// noteRefusal writes a refusal. If the run was deleted meanwhile only the audit line is written.
func (e *Executor) noteRefusal(ctx context.Context, account string, c *filing) error {
	err := e.store.Amend(ctx, account, c.Beside)
	if isNotFound(err) {
		c.Papers = nil
		err = e.store.Amend(ctx, account, c.Beside)
	}
	return err
}

// logRefusal writes into the audit log, once, that the store refused a decision. If the process dies before that, the caller had no answer, and repeats
// the decision. It returns the answer that another process has for the resume id, if it wrote the paper meanwhile: the deadline may have been moved after the
// word was too late here.
func (e *Executor) logRefusal(ctx context.Context, run store.Run, request Request, why error) error {
	refused, ok := errors.AsType[*RefusedError](why)
	if !ok {
		return nil
	}
	d := resumeOf(run, request)
	return whileStale(ctx, func() error {
		kept, err := e.answeredBefore(ctx, d) //mutate:resume-result-of-others
		if err != nil || kept.Logged {
			return err
		}
		c, err := refusing(run, request, refused)
		if err != nil {
			return err
		}
		c.Papers = append(c.Papers, resumeFacts{Body: d.Body, Store: true, Logged: true}.change(d, kept.revision))
		return e.noteRefusal(ctx, run.Account, c)
	})
}

// resumeOf is a decision without answers.
func resumeOf(run store.Run, request Request) store.Decision {
	return store.Decision{Account: run.Account, Run: run.ID, Actor: request.Actor, Via: request.Via, ResumeID: request.ResumeID, Body: bodyDigest(request)}
}

// refusing begins the filing of a refusal, with its audit line.
func refusing(run store.Run, request Request, refused *RefusedError) (*filing, error) {
	c := &filing{run: run}
	actor := personOf(desk.From{Actor: desk.Person(cmp.Or(request.Actor, "somebody"), request.Auth), Via: request.Via})
	return c, c.line(actor, c.placeOf(refused.Interrupt), audit.Refused{Verb: wouldSay(request, refused), Why: refused.why(), ResumeID: request.ResumeID})
}
