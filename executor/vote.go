package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/policy/replay"
	"github.com/fermata-go/fermata/store"
)

// errCounted says that a vote was counted, and that others have to agree before the question is decided.
var errCounted = errors.New("executor: counted")

// countedError is errCounted for a repeated resume id. run is the run that the vote was counted on.
type countedError struct{ run string }

func (e *countedError) Error() string { return errCounted.Error() }

// Is reports whether target is errCounted.
func (e *countedError) Is(target error) bool { return target == errCounted }

// decide records what somebody answered. If that settles the question it is recorded as the decision; if others have to agree first it is counted as a vote,
// and decide returns errCounted.
func (e *Executor) decide(ctx context.Context, l *looked, request Request) (store.Receipt, error) {
	for try := 0; ; try++ {
		receipt, err := e.weigh(ctx, l, request)
		if !errors.Is(err, store.ErrStale) {
			return receipt, err
		}
		if err := backOff(ctx, try); err != nil {
			return receipt, err
		}
		if err := e.lookAgain(ctx, l); err != nil {
			return receipt, err
		}
	}
}

// weigh is one try. It returns ErrStale if the run or a request was changed meanwhile.
func (e *Executor) weigh(ctx context.Context, l *looked, request Request) (store.Receipt, error) {
	run := l.Run
	decision := resumeOf(run, request)
	words, bad := e.words(ctx, l, request)
	if bad == nil {
		bad = e.ballot(ctx, l, request, words, &decision)
	}
	before, err := e.answeredBefore(ctx, decision)
	if err != nil {
		return store.Receipt{}, err
	}
	switch {
	case bad == nil && slices.ContainsFunc(words, func(w word) bool { return !w.open }):
		decision.Beside = store.Beside{} // one that is over stands for all
		if err := e.leaveToStore(ctx, decision, before); err != nil {
			return store.Receipt{}, err
		}
	case bad == nil: // also for the resume id: another process may have another answer for it
		//mutate:settling-submission-recorded
		decision.Beside.Papers = append(decision.Beside.Papers, resumeFacts{Body: decision.Body, Store: true}.change(decision, before.revision))
	default:
		if _, err := e.store.Resumed(ctx, request.Account, request.Actor, request.ResumeID); errors.Is(err, store.ErrNotFound) {
			return store.Receipt{}, cmp.Or(e.unsettled(ctx, run, request, decision, before, bad), bad)
		} else if err != nil {
			return store.Receipt{}, err // it is unknown whether this is a repetition
		}
		decision.Answers, decision.Beside = nil, store.Beside{}
	}
	if !e.closing() { // the run is claimed with the decision, if nobody owns it
		decision.Claim = &store.Claim{Owner: e.config.Owner, Lease: e.config.Lease}
	}
	// If the caller hangs up now, the run must not stay claimed without being executed.
	//mutate:vote-ignores-disconnect
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	// Also for a resume id that is known: the store says whether this is the same decision, and answers the same again.
	return e.store.Decide(ctx, decision)
}

// ballot applies the answers to their requests. Those that settle a question are added to the decision; it returns errCounted if none does.
func (e *Executor) ballot(ctx context.Context, l *looked, request Request, words []word, decision *store.Decision) error {
	c := &filing{run: l.Run, now: l.At, resume: request.ResumeID}
	yeses := 0
	for _, w := range words {
		yeses += w.yeses()
	}
	for n := range words {
		w := &words[n]
		if !w.open {
			decision.Answers = append(decision.Answers, w.Answer) // the store says why it cannot be answered
			continue
		}
		known, err := l.requestOf(e, w.Interrupt)
		if err != nil {
			return err
		}
		if c.dossier.Salt == nil {
			if c.dossier, err = l.dossierOf(ctx, e); err != nil {
				return err
			}
		}
		if c.approved = nil; yeses > w.yeses() {
			c.approved = []string{request.Actor} // in whatever order they are looked at
		}
		if err := e.cast(ctx, c, request, w, known, decision); err != nil {
			return err
		}
	}
	if err := c.fileCounters(); err != nil {
		return err
	}
	decision.Beside = c.Beside
	if len(decision.Answers) == 0 {
		return errCounted
	}
	return nil
}

// cast applies one answer to its request.
func (e *Executor) cast(ctx context.Context, c *filing, request Request, w *word, known *requested, decision *store.Decision) error {
	env := e.env(c.now)
	c.edit = nil
	if w.question != nil {
		address, err := fermata.ParseAddress(w.asked.Address)
		if err != nil {
			return err
		}
		if c.key, err = e.chargedAs(ctx, c, address, w.Interrupt); err != nil {
			return err
		}
		env.Args, env.Policy = w.question.Args, e.edited(ctx, c, address, w.question.Action)
	}
	var err error
	if env.PriorApprovers, err = e.elsewhere(ctx, c, known, w.decision != nil && w.decision.Args != nil); err != nil {
		return err
	}
	change, err := desk.Apply(known.Request, w.act(request), env)
	if _, over := errors.AsType[*desk.OverError](err); over {
		// The store says how it ended, and remembers that for the resume id. If the store finds it open, ErrStale makes us look again.
		w.open = false
		decision.Answers = append(decision.Answers, w.Answer)
		return nil
	}
	if err != nil {
		return refusal(w.asked, err)
	}
	if !change.Changed() {
		return nil // the same vote was cast before
	}
	if err := e.keepEdit(ctx, c, w.Interrupt); err != nil {
		return err
	}
	if err := e.file(c, change, known.revision); err != nil {
		return err
	}
	if change.Final == nil {
		return nil
	}
	answer, err := e.settled(*w, *change.Final)
	if err == nil {
		err = e.chargeFor(ctx, c, *w, *change.Final)
	}
	if err == nil {
		decision.Answers = append(decision.Answers, answer)
	}
	return err
}

// keepEdit files the ruling on edited arguments, if there are any.
func (e *Executor) keepEdit(ctx context.Context, c *filing, interrupt string) error {
	if c.edit == nil {
		return nil
	}
	return e.keepRuling(ctx, c, c.edit, replay.Edited, c.ruledKey(replay.Edited, interrupt, c.edit.in.Args), interrupt)
}

// elsewhere finds those who have approved something else in the same run, if that excludes them here: also in requests that are still open, and in the same
// decision. It is needed for edits as well, because the rules for the edited arguments may exclude them.
func (e *Executor) elsewhere(ctx context.Context, c *filing, known *requested, edits bool) ([]string, error) {
	//mutate:edit-excludes-prior-approver
	if !edits && !slices.Contains(known.Need.Exclude, desk.PriorApprover) {
		return nil, nil
	}
	if err := e.noticeApprovals(ctx, c); err != nil { //mutate:prior-approvals-locked-first
		return nil, err
	}
	return e.approversBeside(ctx, c, known)
}

// noticeApprovals makes one of two approvals in a run that come at the same moment stale, so that it is weighed again. It has to be called before it is
// looked up who has approved: an approval that comes in between must not be missed by both.
func (e *Executor) noticeApprovals(ctx context.Context, c *filing) error {
	if slices.ContainsFunc(c.Papers, func(p store.PaperChange) bool { return p.Kind == approversPaper }) {
		return nil
	}
	paper, err := e.store.Paper(ctx, c.run.Account, approversPaper, c.run.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	c.Papers = append(c.Papers, store.PaperChange{Kind: approversPaper, ID: c.run.ID, Run: c.run.ID, Base: paper.Revision})
	return nil
}

// envFor is what package desk needs for an act that decides nothing. The exclusion of prior approvers holds for these acts, too.
func (e *Executor) envFor(ctx context.Context, c *filing, known *requested) (env desk.Env, err error) {
	env = e.env(c.now)
	if slices.Contains(known.Need.Exclude, desk.PriorApprover) {
		env.PriorApprovers, err = e.approversBeside(ctx, c, known)
	}
	return env, err
}

// approversBeside are those who have approved, or edited and thereby approved, something else in the same run.
func (e *Executor) approversBeside(ctx context.Context, c *filing, known *requested) ([]string, error) {
	docs, err := e.requestsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	same, err := e.aboutTheSame(ctx, c, known.Request)
	prior := slices.Clone(c.approved)
	for _, doc := range docs {
		if slices.Contains(same, doc.ID) {
			continue
		}
		for _, vote := range doc.Votes {
			if vote.Verb == desk.VerbApprove {
				prior = append(prior, vote.By)
			}
		}
		if doc.Edit != nil {
			prior = append(prior, doc.Edit.By)
		}
	}
	return prior, err
}

// yeses is 1 if it is a yes to an action that waits for one.
func (w *word) yeses() int {
	if w.open && w.decision != nil && w.decision.Verb == fermata.VerbApprove {
		return 1
	}
	return 0
}

// noReason is the code of a rejection without a reason: package desk requires a reason or a code.
const noReason = "unspecified"

// act is the act of package desk for a word.
func (w word) act(request Request) desk.Act {
	from := desk.From{Actor: desk.Person(cmp.Or(request.Actor, "somebody"), request.Auth), Via: request.Via, Seen: desk.Seen{Digest: w.shown}}
	switch {
	case w.decision == nil:
		return desk.Respond{From: from, Value: w.value, Word: w.countedBy()}
	case w.decision.Verb == fermata.VerbReject:
		act := desk.Reject{From: from, Codes: w.decision.Codes, Reason: w.decision.Reason}
		if act.Reason == "" && len(act.Codes) == 0 {
			act.Codes = []string{noReason}
		}
		return act
	case w.decision.Args != nil:
		return desk.ApproveEdited{From: from, Args: w.decision.Args}
	}
	return desk.Approve{From: from}
}

// settled is the answer that the run gets when its request is settled by this vote.
func (e *Executor) settled(w word, final desk.Final) (store.Answer, error) {
	answer := store.Answer{Interrupt: w.Interrupt}
	said := fermata.Decision{By: strings.Join(final.By, ", "), Reason: final.Reason}
	value := final.Value
	var err error
	switch final.Outcome {
	case desk.Approved:
		answer.Verdict, answer.Final = store.Approve, final.Digest
		said.Verb, said.Args, said.Reason = fermata.VerbApprove, final.Args, w.decision.Reason
		value, err = json.Marshal(said)
	case desk.Rejected:
		answer.Verdict, said.Verb = store.Reject, fermata.VerbReject
		said.Codes = slices.DeleteFunc(slices.Clone(final.Codes), func(c string) bool { return c == noReason })
		value, err = json.Marshal(said)
	case desk.Responded:
		answer.Verdict = store.Answered
	default:
		return answer, fmt.Errorf("executor: %s is no answer", final.Outcome)
	}
	answer.Data = e.seal(w.asked.Account, store.SealedAnswer, w.Interrupt, value)
	return answer, err
}

// refusal turns an error of package desk into the error that the caller gets.
func refusal(i store.Interrupt, err error) error {
	refused := &RefusedError{Interrupt: i.ID, Err: err}
	if over, ok := errors.AsType[*desk.OverError](err); ok {
		refused.By, refused.At, refused.Verdict = strings.Join(over.By, ", "), over.At, store.Verdict(over.Outcome)
	}
	switch {
	case errors.Is(err, desk.ErrDirectory), errors.Is(err, desk.ErrPolicy):
		return err // it could not be found out whether the vote counts
	case errors.Is(err, desk.ErrEdit), errors.Is(err, desk.ErrValue), errors.Is(err, desk.ErrText):
		return &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: err}
	case errors.Is(err, desk.ErrExpired):
		refused.Result = store.TooLate
	case errors.Is(err, desk.ErrWithdrawn):
		refused.Result = store.Gone
	case errors.Is(err, desk.ErrAnswered):
		refused.Result = store.AlreadyDecided
	case errors.Is(err, desk.ErrChanged):
		refused.Result = store.Mismatch
	default:
		refused.Result = Forbidden
	}
	return refused
}
