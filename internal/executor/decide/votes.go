package decide

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// ErrVoteCounted says that a vote was counted and others have to agree before the request is
// decided.
var ErrVoteCounted = errors.New("executor: counted")

// VoteCountedError is ErrVoteCounted for a repeated resume id. Run is the run of the vote.
type VoteCountedError struct{ Run string }

func (e *VoteCountedError) Error() string { return ErrVoteCounted.Error() }

// Is reports whether target is ErrVoteCounted.
func (e *VoteCountedError) Is(target error) bool { return target == ErrVoteCounted }

// Record records the answers of a request. If they settle their requests they are recorded as the
// decision; if others have to agree first they are counted as votes, and Record returns
// ErrVoteCounted.
func (dc *Decider) Record(ctx context.Context, l *runSnapshot, request Request) (store.DecisionReceipt, error) {
	ctx, end := dc.tracing.TraceDecision(ctx, l.Run, request.Via)
	receipt, err := store.DecisionReceipt{}, dc.recordProbes(ctx, request)
	if err == nil {
		receipt, err = dc.decideWhileStale(ctx, l, request)
	}
	end(traceResult(receipt, err), err != nil && !errors.Is(err, ErrVoteCounted))
	if err == nil && receipt.Result != store.ResultAccepted {
		err = dc.storeRefusal(ctx, l.Run, receipt)
		// a caller who got the refusal does not repeat the request
		err = cmp.Or(dc.logStoreRefusal(ctx, l.Run, request, err), err)
	}
	return receipt, err
}

// recordProbes records which conditions of the answers tell the actor something about masked
// values.
func (dc *Decider) recordProbes(ctx context.Context, request Request) error {
	for _, id := range slices.Sorted(maps.Keys(request.Targets)) {
		var answer struct {
			Conditions struct{ OnlyIf string } `json:"conditions"`
		}
		if json.Unmarshal(request.Targets[id].Value, &answer) != nil || answer.Conditions.OnlyIf == "" {
			continue // invalid answers are refused later, without evaluating anything
		}
		if err := dc.requests.RecordProbe(ctx, request.Account, id, request.from(), answer.Conditions.OnlyIf); err != nil {
			return err
		}
	}
	return nil
}

// from returns the actor of the request.
func (r Request) from() desk.From {
	return desk.From{Actor: desk.PersonActor(cmp.Or(r.Actor, "somebody"), r.Auth), Via: r.Via}
}

// traceResult is the result of a decision as traces show it.
func traceResult(receipt store.DecisionReceipt, err error) string {
	refused, isRefused := errors.AsType[*RefusedError](err)
	switch {
	case errors.Is(err, ErrVoteCounted):
		return "counted"
	case isRefused:
		return string(refused.Result)
	case err != nil:
		return "refused"
	}
	return string(receipt.Result)
}

// decideWhileStale tries to decide until neither the run nor a request was changed in between.
func (dc *Decider) decideWhileStale(ctx context.Context, l *runSnapshot, request Request) (store.DecisionReceipt, error) {
	for try := 0; ; try++ {
		receipt, err := dc.tryDecide(ctx, l, request)
		if !errors.Is(err, store.ErrStale) {
			return receipt, err
		}
		if err := retry.BackOff(ctx, try); err != nil {
			return receipt, err
		}
		if err := dc.reloadSnapshot(ctx, l); err != nil {
			return receipt, err
		}
	}
}

// tryDecide tries once. It returns ErrStale if the run or a request was changed in the meantime.
func (dc *Decider) tryDecide(ctx context.Context, l *runSnapshot, request Request) (store.DecisionReceipt, error) {
	run := l.Run
	decision := newDecision(run, request)
	words, bad := dc.submissions(ctx, l, request)
	if bad == nil {
		bad = dc.applySubmissions(ctx, l, request, words, &decision)
	}
	before, err := dc.previousAnswer(ctx, decision)
	if err != nil {
		return store.DecisionReceipt{}, err
	}
	switch {
	case bad == nil && slices.ContainsFunc(words, func(w submission) bool { return !w.open }):
		decision.Writes = store.Writes{} // one request that is over decides for all
		if err := dc.deferToStore(ctx, decision, before); err != nil {
			return store.DecisionReceipt{}, err
		}
	case bad == nil: // also for the resume id: another process may have another answer for it
		//mutate:settling-submission-recorded
		decision.Writes.Documents = append(decision.Writes.Documents, resumeIndex{Body: decision.BodyDigest, Store: true}.toChange(decision, before.revision))
	default:
		if _, err := dc.store.Receipt(ctx, request.Account, request.Actor, request.ResumeID); errors.Is(err, store.ErrNotFound) {
			return store.DecisionReceipt{}, cmp.Or(dc.recordUndecided(ctx, run, request, decision, before, bad), bad)
		} else if err != nil {
			return store.DecisionReceipt{}, err // it is unknown whether this is a repetition
		}
		decision.Answers, decision.Writes = nil, store.Writes{}
	}
	if !dc.background.IsStopping() { // the run is claimed with the decision, if it has no owner
		decision.Claim = &store.Claim{Owner: dc.config.Owner, Lease: dc.config.Lease}
	}
	// If the caller hangs up now, the run must not stay claimed without being executed.
	//mutate:vote-ignores-disconnect
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer cancel()
	// Also for a resume id that is known: the store says whether this is the same decision, and
	// answers the same again.
	return dc.store.Decide(ctx, decision)
}

// applySubmissions applies the answers to their requests. Those that settle a request are added to
// the decision; it returns ErrVoteCounted if none does.
func (dc *Decider) applySubmissions(ctx context.Context, l *runSnapshot, request Request, words []submission, decision *store.Decision) error {
	approvals := 0
	var meta docs.RunMeta
	for _, w := range words {
		approvals += w.approvals()
		if w.open && meta.Salt == nil {
			var err error
			if meta, err = l.metaOf(ctx, dc); err != nil {
				return err
			}
		}
	}
	tx := txn.NewDecision(l.Run, meta, l.ReadAt, request.ResumeID)
	session := dc.governor.NewSession(tx, history.New(dc.docs, l.Run))
	for n := range words {
		w := &words[n]
		if !w.open {
			// the store says why it cannot be answered
			decision.Answers = append(decision.Answers, w.Answer)
			continue
		}
		stored, err := l.requestDoc(dc, w.Interrupt)
		if err != nil {
			return err
		}
		var approvedHere []string // by the same decision, in whatever order its answers are applied
		if approvals > w.approvals() {
			approvedHere = []string{request.Actor}
		}
		if err := dc.applySubmission(ctx, session, request, w.toAct(request), w, stored, approvedHere, decision); err != nil {
			return err
		}
	}
	if err := session.AddCounters(); err != nil {
		return err
	}
	decision.Writes = tx.Writes
	if len(decision.Answers) == 0 {
		return ErrVoteCounted
	}
	return nil
}

// applySubmission applies one answer to its request: with act, which is that of the answer, or the
// tick that ends its undo window. approvedHere are the actors who approve something else of the run
// in the same decision.
func (dc *Decider) applySubmission(ctx context.Context, session *govern.Session, request Request, act desk.Command, w *submission, stored *docs.Request, approvedHere []string, decision *store.Decision) error {
	tx := session.Tx
	env := dc.requests.DeskEnv(tx.Now)
	chargeKey, edit := "", func() *govern.Evaluation { return nil }
	if w.approval != nil {
		address, err := fermata.ParseAddress(w.interrupt.Address)
		if err != nil {
			return err
		}
		if chargeKey, err = session.History.ChargeKeyFor(ctx, address, w.Interrupt); err != nil {
			return err
		}
		env.Args = w.approval.Args
		env.Policy, edit = session.EditPolicy(ctx, chargeKey, address, w.approval.Action)
		env.CheckCondition = func(onlyIf string, args json.RawMessage) error {
			return session.CheckCondition(ctx, address, w.approval.Action, args, onlyIf)
		}
	}
	var err error
	if env.PriorApprovers, err = dc.lockPriorApprovers(ctx, session, stored, approvedHere, w.decision != nil && w.decision.Args != nil); err != nil {
		return err
	}
	change, err := desk.Apply(stored.Request, act, env)
	if _, over := errors.AsType[*desk.ClosedError](err); over {
		// The store says how it ended, and remembers that for the resume id. If the store finds it
		// open, ErrStale makes us look again.
		w.open = false
		decision.Answers = append(decision.Answers, w.Answer)
		return nil
	}
	if err != nil {
		return toRefusedError(w.interrupt, err)
	}
	if err := dc.checkEditedHold(request, w, stored.Request); err != nil {
		return err
	}
	if !change.Changed() {
		return nil // the same vote was cast before
	}
	if err := session.AddEditRuling(ctx, edit(), w.Interrupt); err != nil {
		return err
	}
	if err := dc.requests.AddChange(tx, change, stored.Revision); err != nil {
		return err
	}
	if change.Decision == nil {
		return nil
	}
	answer, err := dc.toStoreAnswer(*w, change.Request)
	if err == nil && w.approval != nil {
		err = session.ChargeApproved(ctx, chargeKey, w.interrupt, *w.approval, *change.Decision)
	}
	if denied, ok := errors.AsType[*desk.RefusedError](err); ok {
		err = toRefusedError(w.interrupt, denied)
	}
	if err == nil {
		decision.Answers = append(decision.Answers, answer)
	}
	return err
}

// checkEditedHold checks that the rules that asked allow the edits of a held state.
func (dc *Decider) checkEditedHold(request Request, w *submission, before desk.Request) error {
	if w.value == nil || w.returned != nil || w.interrupt.Kind != docs.HoldKind || before.Subject.Policy == "" || string(w.value) == "null" {
		return nil
	}
	shown, err := dc.store.Data(w.interrupt)
	if err != nil {
		return err
	}
	if err = desk.CheckEditable(before.Requirement, shown, w.value); errors.Is(err, desk.ErrInvalidEdit) {
		err = toRefusedError(w.interrupt, &desk.RefusedError{Command: desk.CommandRespond, Actor: request.Actor, Err: err})
	}
	return err
}

// lockPriorApprovers returns the actors who approved something else in the same run, if that
// excludes them here: also in requests that are open, and in the same decision. Edits need it as
// well, because the policy for edited arguments may exclude them.
func (dc *Decider) lockPriorApprovers(ctx context.Context, session *govern.Session, stored *docs.Request, approvedHere []string, edits bool) ([]string, error) {
	//mutate:edit-excludes-prior-approver
	if !edits && !slices.Contains(stored.Requirement.Exclude, requirement.DutyPriorApprover) {
		return nil, nil
	}
	if err := dc.touchApprovers(ctx, session.Tx); err != nil { //mutate:prior-approvals-locked-first
		return nil, err
	}
	return session.History.PriorApprovers(ctx, stored.Request, approvedHere)
}

// touchApprovers makes one of two concurrent approvals in a run stale, so that it is tried again.
// It must be called before the approvers are read: an approval in between must not be missed by
// both.
func (dc *Decider) touchApprovers(ctx context.Context, c *txn.Tx) error {
	if slices.ContainsFunc(c.Documents, func(p store.DocumentChange) bool { return p.Kind == docs.ApproversKind }) {
		return nil
	}
	document, err := dc.store.Document(ctx, c.Run.Account, docs.ApproversKind, c.Run.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	c.Documents = append(c.Documents, store.DocumentChange{Kind: docs.ApproversKind, ID: c.Run.ID, Run: c.Run.ID, BaseRevision: document.Revision})
	return nil
}

// approvals returns 1 if the submission approves an action, else 0.
func (w *submission) approvals() int {
	if w.open && (w.decision != nil && w.decision.Verb == fermata.VerbApprove || w.decision == nil && w.returned == nil && w.interrupt.Kind == docs.HoldKind) {
		return 1
	}
	return 0
}

// toAct converts a submission to a command of package desk.
func (w submission) toAct(request Request) desk.Command {
	from := request.from()
	from.Seen, from.Confirm = desk.Seen{Digest: w.shownDigest, Rendering: w.rendering}, w.confirm
	switch {
	case w.returned != nil:
		return desk.Escalate{From: from, Reason: w.returned.Reason}
	case w.decision == nil:
		return desk.Respond{From: from, Value: w.value, Choice: w.voteKey(), Reason: w.said.Reason, Codes: w.said.Codes}
	case w.decision.Verb == fermata.VerbReject:
		act := desk.Reject{From: from, Codes: w.decision.Codes, Reason: w.decision.Reason}
		if act.Reason == "" && len(act.Codes) == 0 {
			act.Codes = []string{docs.UnspecifiedReason}
		}
		return act
	case w.decision.Args != nil:
		return desk.ApproveEdited{From: from, Args: w.decision.Args, Codes: w.decision.Codes, Conditions: w.decision.Conditions, Reason: w.decision.Reason}
	}
	return desk.Approve{From: from, Conditions: w.decision.Conditions, Reason: w.decision.Reason}
}

// toStoreAnswer returns the answer that the run gets when this vote settles its request.
func (dc *Decider) toStoreAnswer(w submission, decided desk.Request) (store.Answer, error) {
	final := *decided.Decision
	answer := store.Answer{Interrupt: w.Interrupt}
	by := fermata.Attestation{By: strings.Join(final.By, ", "), Auth: string(docs.WeakestAuth(decided))}
	decision := fermata.Decision{By: by.By, Auth: by.Auth, Reason: final.Reason}
	value := final.Value
	var err error
	switch final.Outcome {
	case desk.OutcomeApproved:
		answer.Verdict, answer.ApprovedDigest = store.VerdictApprove, final.Digest
		if w.approval == nil {
			value, err = w.approvedValue(by)
			break
		}
		decision.Verb, decision.Args, decision.Codes, decision.Reason = fermata.VerbApprove, final.Args, final.Codes, w.decision.Reason
		decision.Conditions = final.Conditions
		value, err = json.Marshal(decision)
	case desk.OutcomeRejected:
		answer.Verdict, decision.Verb = store.VerdictReject, fermata.VerbReject
		decision.Codes = slices.DeleteFunc(slices.Clone(final.Codes), func(c string) bool { return c == docs.UnspecifiedReason })
		value, err = json.Marshal(decision)
	case desk.OutcomeReturned:
		answer.Verdict, decision.Verb = store.VerdictReject, fermata.VerbReturn
		value, err = json.Marshal(decision)
	case desk.OutcomeAnswered:
		answer.Verdict = store.VerdictAnswer
		value, err = by.Write(docs.AttestedFields(w.interrupt.Kind), value)
	default:
		return answer, fmt.Errorf("executor: %s is not an answer", final.Outcome)
	}
	answer.Data = value
	return answer, err
}

// toRefusedError converts an error of package desk to the error that the caller gets.
func toRefusedError(i store.Interrupt, err error) error {
	refused := &RefusedError{Interrupt: i.ID, Err: err}
	if over, ok := errors.AsType[*desk.ClosedError](err); ok {
		refused.By, refused.At, refused.Verdict = strings.Join(over.By, ", "), over.At, store.Verdict(over.Outcome)
	}
	switch {
	case errors.Is(err, desk.ErrDirectoryUnavailable), errors.Is(err, desk.ErrPolicyUnavailable):
		return err // it could not be found out whether the vote counts
	case errors.Is(err, desk.ErrInvalidEdit), errors.Is(err, desk.ErrInvalidValue), errors.Is(err, desk.ErrInvalidText), errors.Is(err, desk.ErrInvalidConditions):
		return &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: err}
	case errors.Is(err, desk.ErrExpired):
		refused.Result = store.ResultExpired
	case errors.Is(err, desk.ErrWithdrawn):
		refused.Result = store.ResultWithdrawn
	case errors.Is(err, desk.ErrDecided):
		refused.Result = store.ResultAlreadyDecided
	case errors.Is(err, desk.ErrChanged):
		refused.Result = store.ResultDigestMismatch
	default:
		refused.Result = Forbidden
	}
	return refused
}
