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

// A resume id has one answer for ever. The store keeps what it said of a decision. What never came to be one has a paper: it was counted, or the
// desk refused it. A word on something that is over is the store's to refuse, and has a paper that says so beforehand: of two processes that have
// the same id in hand, one before and one after the end of a request, only one can write it, and the other looks again.

// resumeName is the paper of a resume id.
func resumeName(d store.Decision) string { return ident.Derive("res", d.Actor, d.ResumeID) }

// resumeFacts is what a resume id was answered with.
type resumeFacts struct {
	Body      string       `json:"body"`
	Interrupt string       `json:"interrupt,omitempty"`
	Result    store.Result `json:"result,omitempty"` // of the desk; "" if it was counted
	Code      string       `json:"code,omitempty"`   // why, in the desk's words
	// Store says that the store refuses it, or will, Logged that the audit log has it.
	Store  bool `json:"store,omitempty"`
	Logged bool `json:"logged,omitempty"`
}

// change makes the paper what it has to be.
func (f resumeFacts) change(d store.Decision, base int64) store.PaperChange {
	facts, _ := json.Marshal(f) // strings always have a JSON
	return store.PaperChange{Kind: resumePaper, ID: resumeName(d), Run: d.Run, Base: base, Facts: facts}
}

// counted is the paper of a word that counts and has decided nothing yet.
func counted(d store.Decision) store.PaperChange { return resumeFacts{Body: d.Body}.change(d, 0) }

// keptAnswer is the paper of a resume id; its revision is 0 if there is none.
type keptAnswer struct {
	resumeFacts
	run      string
	revision int64
}

func (e *Executor) keptAnswer(ctx context.Context, d store.Decision) (kept keptAnswer, err error) {
	paper, err := e.store.Paper(ctx, d.Account, resumePaper, resumeName(d))
	if errors.Is(err, store.ErrNotFound) {
		return keptAnswer{}, nil
	}
	if err == nil {
		err = json.Unmarshal(paper.Facts, &kept.resumeFacts)
	}
	kept.run, kept.revision = paper.Run, paper.Revision
	return kept, err
}

// answeredBefore returns what a resume id was answered with as an error, if it was: errCounted, a refusal, or ErrReused if it was another word.
// What the store has to say is no error.
func (e *Executor) answeredBefore(ctx context.Context, d store.Decision) (keptAnswer, error) {
	before, err := e.keptAnswer(ctx, d)
	switch {
	case err != nil || before.revision == 0:
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

// leaveToStore writes down that the answer is the store's, unless that has it already. It returns ErrStale if somebody else keeps another.
func (e *Executor) leaveToStore(ctx context.Context, d store.Decision, before keptAnswer) error {
	if before.Store {
		return nil
	}
	if _, err := e.store.Resumed(ctx, d.Account, d.Actor, d.ResumeID); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	mark := resumeFacts{Body: d.Body, Store: true}.change(d, 0)
	return e.store.Amend(ctx, d.Account, store.Beside{Papers: []store.PaperChange{mark}})
}

// refuse notes in the audit log that the desk did not take somebody's word, and keeps that for who comes again. It returns nil if that is noted.
func (e *Executor) refuse(ctx context.Context, run store.Run, request Request, why error) error {
	refused, ok := errors.AsType[*RefusedError](why)
	if !ok {
		return nil // it was no word on anything
	}
	c, err := refusing(run, request, refused)
	if err != nil {
		return err
	}
	if refused.Err != nil {
		d := resumeOf(run, request)
		facts := resumeFacts{Body: d.Body, Interrupt: refused.Interrupt, Result: refused.Result, Code: desk.Code(refused.Err), Logged: true}
		c.Papers = append(c.Papers, facts.change(d, 0))
	}
	return e.noteRefusal(ctx, run.Account, c)
}

// noteRefusal writes down a refusal. If its run was forgotten meanwhile there is nobody to keep the answer for; the line is written all the same.
func (e *Executor) noteRefusal(ctx context.Context, account string, c *filing) error {
	err := e.store.Amend(ctx, account, c.Beside)
	if isNotFound(err) {
		c.Papers = nil
		err = e.store.Amend(ctx, account, c.Beside)
	}
	return err
}

// logRefusal notes in the audit log, once, that the store did not take somebody's word. Whoever died before they could note it was not heard, either:
// the word comes again, and is noted then.
func (e *Executor) logRefusal(ctx context.Context, run store.Run, request Request, why error) error {
	refused, ok := errors.AsType[*RefusedError](why)
	if !ok {
		return nil
	}
	d := resumeOf(run, request)
	return whileStale(ctx, func() error {
		kept, err := e.keptAnswer(ctx, d)
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

// resumeOf is a decision as far as its resume id goes.
func resumeOf(run store.Run, request Request) store.Decision {
	return store.Decision{Account: run.Account, Run: run.ID, Actor: request.Actor, ResumeID: request.ResumeID, Body: bodyDigest(request)}
}

// refusing begins what is written beside a refusal: its line.
func refusing(run store.Run, request Request, refused *RefusedError) (*filing, error) {
	c := &filing{run: run}
	place := c.place()
	place.Interrupt, place.Request = refused.Interrupt, refused.Interrupt
	actor := audit.Actor{Principal: cmp.Or(request.Actor, "somebody"), Kind: audit.Person, Via: request.Via, Auth: string(request.Auth)}
	return c, c.line(actor, place, audit.Refused{Why: refused.why(), ResumeID: request.ResumeID})
}
