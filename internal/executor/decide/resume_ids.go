package decide

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
)

// A resume id has one answer, in the store or in a document:
//
//	the submission decided the request                 the store has the receipt; the document only points to it
//	the vote was counted, and others have to agree      the document has no result
//	the rules for people refused it                     the document has the refusal, unless it is temporary
//	the request is closed                               the store refuses it; the document, written before, only points to it
//
// Several processes may have the same resume id at the same time, before and after the request is
// closed, or with other people in its groups. Only one of them can write the document, and the
// others start again. A question without a request needs no document: only the store answers it.

// resumeDocID returns the id of the document of a resume id.
func resumeDocID(d store.Decision) string { return ident.Derive("res", d.Actor, d.ResumeID) }

// resumeIndex is the answer that a resume id got.
type resumeIndex struct {
	Body      string `json:"body"`
	Interrupt string `json:"interrupt,omitempty"`
	// of a refusal by the rules for people; "" if the vote was counted
	Result store.DecisionResult `json:"result,omitempty"`
	Code   string               `json:"code,omitempty"` // the desk.Code of that refusal
	// Store says that the store has the answer, or will have; Logged that a refusal is in the audit
	// log.
	Store  bool `json:"store,omitempty"`
	Logged bool `json:"logged,omitempty"`
}

// toChange returns the change of the document.
func (f resumeIndex) toChange(d store.Decision, base int64) store.DocumentChange {
	facts, _ := json.Marshal(f) // strings always have a JSON
	return store.DocumentChange{Kind: docs.ResumeKind, ID: resumeDocID(d), Run: d.Run, BaseRevision: base, Index: facts}
}

// resumeRecord is the document of a resume id; its revision is 0 if there is none.
type resumeRecord struct {
	resumeIndex
	run      string
	revision int64
}

func (dc *Decider) resumeRecord(ctx context.Context, d store.Decision) (kept resumeRecord, err error) {
	document, err := dc.docs.ReadIndex(ctx, d.Account, docs.ResumeKind, resumeDocID(d), &kept.resumeIndex)
	kept.run, kept.revision = document.Run, document.Revision
	return kept, err
}

// previousAnswer returns the answer that a resume id got before, as an error: ErrVoteCounted, a
// refusal, or ErrResumeIDReused if it belongs to another decision. It is nil if there is none, or
// if the store has it.
func (dc *Decider) previousAnswer(ctx context.Context, d store.Decision) (resumeRecord, error) {
	before, err := dc.resumeRecord(ctx, d)
	switch {
	case err != nil || before.revision == 0: //mutate:resume-result-looked-up
		return before, err
	case before.Body != d.BodyDigest:
		return before, store.ErrResumeIDReused
	case before.Store:
		return before, nil
	case before.Result != "":
		return before, &RefusedError{Result: before.Result, Interrupt: before.Interrupt, Err: deskErrorByCode(before.Code)}
	}
	return before, &VoteCountedError{before.run}
}

// deferToStore writes the document which says that the store answers, unless the store has answered
// already. It returns ErrStale if another process wrote the document.
func (dc *Decider) deferToStore(ctx context.Context, d store.Decision, before resumeRecord) error {
	if before.Store { //mutate:resume-result-by-store
		return nil
	}
	if _, err := dc.store.Receipt(ctx, d.Account, d.Actor, d.ResumeID); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	mark := resumeIndex{Body: d.BodyDigest, Store: true}.toChange(d, 0)
	return dc.docs.WriteDocument(ctx, d.Account, mark)
}

// recordUndecided records that a vote was counted and decides nothing, or that it was refused.
func (dc *Decider) recordUndecided(ctx context.Context, run store.Run, request Request, d store.Decision, before resumeRecord, why error) error {
	if !errors.Is(why, ErrVoteCounted) {
		return dc.recordRefusal(ctx, run, request, before, why)
	}
	d.Writes.Documents = append(d.Writes.Documents, resumeIndex{Body: d.BodyDigest}.toChange(d, before.revision))
	return dc.store.CommitWrites(ctx, run.Account, d.Writes)
}

// recordRefusal records that the rules for people refused a decision: in the audit log, and as the
// answer of its resume id.
func (dc *Decider) recordRefusal(ctx context.Context, run store.Run, request Request, before resumeRecord, why error) error {
	refused, ok := errors.AsType[*RefusedError](why)
	// the resume id is not used up: the answer can be corrected
	if bad, edits := asRefusedEdit(why); edits {
		c, err := refusalWork(run, request, &RefusedError{Interrupt: bad.ID, Err: bad.Err})
		return cmp.Or(err, dc.writeRefusal(ctx, run.Account, c))
	}
	if !ok {
		return nil // the request was invalid, and nothing was refused
	}
	if before.Store {
		if err := dc.checkStillOpen(ctx, run.Account, refused.Interrupt); err != nil {
			return err
		}
	}
	c, err := refusalWork(run, request, refused)
	if err != nil {
		return err
	}
	if refused.Err != nil && !isTemporary(refused.Err) {
		d := newDecision(run, request)
		facts := resumeIndex{Body: d.BodyDigest, Interrupt: refused.Interrupt, Result: refused.Result, Code: desk.Code(refused.Err), Logged: true}
		c.Documents = append(c.Documents, facts.toChange(d, before.revision))
	}
	return dc.writeRefusal(ctx, run.Account, c)
}

// isTemporary reports whether the same answer can count later: with a stronger authentication or
// the typed name of the object, when its stage is open, or after a pending decision was withdrawn.
// Its resume id is not used up.
func isTemporary(err error) bool {
	return errors.Is(err, desk.ErrWeakAuth) || errors.Is(err, desk.ErrNotConfirmed) || errors.Is(err, desk.ErrEarlierStage) || errors.Is(err, desk.ErrDecisionPending)
}

// checkStillOpen returns ErrStale if a request is over. Another process that found it so has left
// the answer to the store, which may not have it yet. A refusal based on an older read must not
// replace it.
func (dc *Decider) checkStillOpen(ctx context.Context, account, interrupt string) error {
	now, err := dc.store.InboxItem(ctx, account, interrupt)
	switch {
	case docs.IsNotFound(err):
		return nil // the run was deleted, and all answers with it
	case err == nil && now.State != store.InterruptPending: //mutate:resume-conflict-still-pending
		return store.ErrStale
	}
	return err
}

// writeRefusal writes a refusal. If the run was deleted in the meantime only the audit line is
// written.
func (dc *Decider) writeRefusal(ctx context.Context, account string, c *txn.Tx) error {
	err := dc.store.CommitWrites(ctx, account, c.Writes)
	if docs.IsNotFound(err) {
		c.Documents = nil
		err = dc.store.CommitWrites(ctx, account, c.Writes)
	}
	return err
}

// logStoreRefusal records in the audit log, once, that the store refused a decision. If the process
// fails before that, the caller got no answer and repeats the decision. It returns the answer that
// another process recorded for the resume id in the meantime: the deadline may have been moved
// after the decision was too late here.
func (dc *Decider) logStoreRefusal(ctx context.Context, run store.Run, request Request, why error) error {
	refused, ok := errors.AsType[*RefusedError](why)
	if !ok {
		return nil
	}
	d := newDecision(run, request)
	return retry.WhileStale(ctx, func() error {
		kept, err := dc.previousAnswer(ctx, d) //mutate:resume-result-of-others
		if err != nil || kept.Logged {
			return err
		}
		c, err := refusalWork(run, request, refused)
		if err != nil {
			return err
		}
		c.Documents = append(c.Documents, resumeIndex{Body: d.BodyDigest, Store: true, Logged: true}.toChange(d, kept.revision))
		return dc.writeRefusal(ctx, run.Account, c)
	})
}

// newDecision returns a decision without answers.
func newDecision(run store.Run, request Request) store.Decision {
	return store.Decision{Account: run.Account, Run: run.ID, Actor: request.Actor, Via: request.Via, ResumeID: request.ResumeID, BodyDigest: resumeDigest(request)}
}

// refusalWork begins the unit of work of a refusal, with its audit line.
func refusalWork(run store.Run, request Request, refused *RefusedError) (*txn.Tx, error) {
	c := txn.New(run, docs.RunMeta{}, time.Time{})
	actor := auditrec.AuditActor(request.from())
	return c, c.AddAudit(actor, c.RequestPlace(refused.Interrupt), audit.RequestRefused{Verb: refusedVerb(request, refused), Why: refused.auditReason(), ResumeID: request.ResumeID})
}
