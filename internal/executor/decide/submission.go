package decide

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// Request records answers to open requests.
type Request struct {
	Account string
	// StateKey names the run; if it is empty, the requests in Targets do.
	StateKey string
	// ResumeID is chosen by the caller. The same request with the same id can be repeated at will,
	// and counts once. It is unique for an actor in the account, not for each run.
	ResumeID string
	// Actor decides. Via is the channel of the request, Auth how strongly the actor was
	// authenticated.
	Actor, Via string
	Auth       requirement.Auth
	// Targets answers requests by id. Value answers the one request of the run that is open; a
	// decision on an action needs an id: otherwise a person who looked at one action could approve
	// the next one, if the first was decided in the meantime.
	Targets map[string]Answer
	Value   json.RawMessage
	// Wait is how long to wait for the outcome; 0 is Config.Wait, and a negative one does not wait.
	Wait time.Duration
}

// Answer is the answer of a person to one request.
type Answer struct {
	Value json.RawMessage
	// Shown is the digest of what the person saw; "" if they cannot tell.
	Shown string
	// Rendering is the hash of the recorded rendering that the person saw; "" if none is named. A
	// repetition may name another one.
	Rendering string `json:"-"`
	// Confirm is the text that the person typed to confirm an approval; see
	// [desk.Request.ConfirmText].
	Confirm string `json:",omitempty"`
}

// resumeDigest returns a digest that is the same for all repetitions of a request, and for nothing
// else.
func resumeDigest(r Request) string {
	body, err := json.Marshal(struct { //mutate:resume-body-compared
		StateKey string
		Value    json.RawMessage
		Targets  map[string]Answer
	}{r.StateKey, r.Value, r.Targets})
	if err != nil { // no JSON: its bytes will do, and it will be refused
		body = append([]byte(r.StateKey), r.Value...)
	}
	return ids.Hash("resume", body)
}

// submission is an answer to one request that was sent and is not applied yet. If others have to
// agree it becomes a vote.
type submission struct {
	store.Answer // the answer if no other vote is needed, without Data
	interrupt    store.Interrupt
	open         bool            // the question was open when it was read
	shownDigest  string          // the digest of what the person saw
	rendering    string          // the hash of the rendering that the person saw
	confirm      string          // the text that the person typed
	said         verbAnswer      // the answer to a gate or a hold, if it has a verb
	value        json.RawMessage // as the provider has checked it
	// decision is set if the submission approves or rejects an action, a gate or a hold. approval
	// is set if it is an action.
	approval *fermata.ApprovalRequest
	decision *fermata.Decision
	// returned is set if the request is returned for redesign.
	returned *fermata.Decision
}

// submissions checks the answers of a request against the open interrupts. It changes nothing.
func (dc *Decider) submissions(ctx context.Context, l *runSnapshot, request Request) ([]submission, error) {
	targets := request.Targets
	if request.Value != nil {
		var err error
		if targets, err = resolveSingle(l.Open, targets, request.Value); err != nil {
			return nil, err
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("%w: a resume needs an answer", errs.ErrInvalid)
	}
	check := sync.OnceValues(func() (provider.AnswerCheck, error) { return dc.answerChecker(ctx, l) })
	var words []submission
	// or of several that are refused, another one would be named each time
	for _, id := range slices.Sorted(maps.Keys(targets)) {
		submitted := targets[id]
		w := submission{Answer: store.Answer{Interrupt: id, Verdict: store.VerdictAnswer, ShownDigest: submitted.Shown}, shownDigest: submitted.Shown, rendering: submitted.Rendering, confirm: submitted.Confirm}
		i := slices.IndexFunc(l.Open, func(i store.Interrupt) bool { return i.ID == id })
		if i >= 0 { // otherwise the store says why it cannot be answered
			w.interrupt, w.open = l.Open[i], true
			if err := dc.checkNotMasked(l, w.interrupt, submitted.Value); err != nil {
				return nil, err
			}
			if err := dc.readVerb(l, &submitted, &w); err != nil {
				return nil, err
			}
			if isReturn, err := dc.checkReturn(l, submitted, &w); err != nil {
				return nil, err
			} else if !isReturn && submitted.Value != nil {
				if err := dc.checkAnswer(ctx, check, request, l.ReadAt, submitted, &w); err != nil {
					return nil, err
				}
			}
		}
		words = append(words, w)
	}
	return words, nil
}

// checkNotMasked rejects an answer with a masked value, before its schema is checked: the mask
// would only be reported as a value of another type. [desk.Apply] checks again.
func (dc *Decider) checkNotMasked(l *runSnapshot, i store.Interrupt, answer json.RawMessage) error {
	if !bytes.Contains(answer, []byte(desk.Masked)) {
		return nil
	}
	stored, err := l.requestDoc(dc, i.ID)
	if err != nil {
		return err
	}
	if err := stored.CheckNotMasked(answer); err != nil {
		return &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: err}
	}
	return nil
}

// answerChecker returns the function that checks answers to a run. A [provider.BatchAnswerChecker]
// reads the run once for all of them.
func (dc *Decider) answerChecker(ctx context.Context, l *runSnapshot) (provider.AnswerCheck, error) {
	p, err := dc.providers.Of(l.Run)
	if err != nil {
		return nil, err
	}
	named, err := dc.providers.RunView(l.Run, l.state)
	if err != nil {
		return nil, err
	}
	if batch, ok := p.(provider.BatchAnswerChecker); ok {
		return batch.AnswerChecks(ctx, named)
	}
	return func(interrupt string, answer json.RawMessage) (json.RawMessage, error) {
		return p.CheckAnswer(ctx, named, interrupt, answer)
	}, nil
}

// resolveSingle makes a value the answer to the only open request.
func resolveSingle(open []store.Interrupt, targets map[string]Answer, value json.RawMessage) (map[string]Answer, error) {
	switch {
	case len(targets) > 0:
		return nil, fmt.Errorf("%w: it has a value and targets: which one counts?", errs.ErrInvalid)
	case len(open) == 0:
		return nil, &RefusedError{Result: store.ResultWithdrawn}
	case len(open) > 1: //mutate:ambiguous-answer
		return nil, fmt.Errorf("%w: %d requests are open; name the one that is answered", errs.ErrInvalid, len(open))
	case open[0].Kind == fermata.Approval.Name() || open[0].Kind == fermata.EffectInDoubt.Name() || open[0].Kind == docs.GateKind || open[0].Kind == docs.HoldKind:
		return nil, &errs.UnnamedInterruptError{Interrupt: open[0].ID, Kind: open[0].Kind}
	}
	return map[string]Answer{open[0].ID: {Value: value}}, nil
}

// checkAnswer checks one answer and completes its submission.
func (dc *Decider) checkAnswer(ctx context.Context, checks func() (provider.AnswerCheck, error), request Request, now time.Time, submitted Answer, w *submission) error {
	i := w.interrupt
	if err := errs.ValidateJSON("the answer", submitted.Value, limits.MaxAnswerBytes); err != nil {
		return err
	}
	sent, err := dc.checkIdentity(i, request, now, submitted.Value)
	if err != nil {
		return err
	}
	check, err := checks()
	if err == nil {
		w.value, err = check(ids.ProviderID(i.ID), sent) //mutate:answer-checked-by-provider
	}
	if errors.Is(err, fermata.ErrForgedIdentity) { // a hold: the state has a record of decisions
		return forged(i, request, "the record of decisions cannot be edited")
	}
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		if rest, detail := withoutConditions(i, sent); rest != nil {
			if _, invalid := check(ids.ProviderID(i.ID), rest); invalid == nil {
				bad.Err = &desk.RefusedError{Command: desk.CommandApprove, Actor: request.Actor, Err: desk.ErrInvalidConditions, Detail: detail}
			}
		}
		return &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: bad.Err}
	}
	if err != nil {
		now, failure := dc.store.InboxItem(ctx, i.Account, i.ID)
		switch {
		case failure == nil && now.State != store.InterruptPending:
			w.open = false // the run has continued; the store says why it cannot be answered
			return nil
		case docs.IsNotFound(failure):
			return failure // the run was deleted
		}
	}
	if err == nil { // added again when the answer is delivered: only the store knows the time
		w.value, err = fermata.Attestation{}.Write(docs.AttestedFields(i.Kind), w.value)
	}
	if err == nil && i.Kind == fermata.Approval.Name() {
		err = dc.resolveApproval(w)
	}
	switch {
	case err != nil:
	case i.Kind == fermata.EffectInDoubt.Name():
		err = dc.checkAgainstLedger(ctx, w)
	case i.Kind == docs.GateKind:
		err = w.readSignal()
	case i.Kind == docs.HoldKind:
		err = dc.readState(w)
	}
	return err
}

// maxOnlyIf is the maximum size of a condition in bytes, as package fermata checks it.
const maxOnlyIf = 1000

// withoutConditions returns the decision on an action without its conditions, and what can be wrong
// with them; nil if there are none. The detail has no values.
func withoutConditions(i store.Interrupt, answer json.RawMessage) (rest json.RawMessage, detail string) {
	var members, conditions map[string]json.RawMessage
	if i.Kind != fermata.Approval.Name() || json.Unmarshal(answer, &members) != nil || members["conditions"] == nil {
		return nil, ""
	}
	detail = "they do not match the schema"
	if json.Unmarshal(members["conditions"], &conditions) == nil {
		var onlyIf string
		var until time.Time
		switch {
		case string(members["verb"]) != `"`+string(fermata.VerbApprove)+`"`:
			detail = "only an approval has conditions"
		case conditions["onlyIf"] != nil && json.Unmarshal(conditions["onlyIf"], &onlyIf) != nil:
			detail = "onlyIf is not a text"
		case conditions["until"] != nil && json.Unmarshal(conditions["until"], &until) != nil:
			detail = "until is not a time, such as 2026-11-18T18:00:00Z"
		case len(onlyIf) > maxOnlyIf:
			detail = fmt.Sprintf("onlyIf has %d bytes; %d are allowed", len(onlyIf), maxOnlyIf)
		}
	}
	delete(members, "conditions")
	rest, _ = json.Marshal(members) // was decoded from JSON
	return rest, detail
}

// resolveApproval sets what a decision on an action approves: the digest of the action, perhaps
// with edited arguments.
func (dc *Decider) resolveApproval(w *submission) error {
	i := w.interrupt
	question, err := dc.store.Data(i)
	if err != nil {
		return err
	}
	var asked fermata.ApprovalRequest
	var decision fermata.Decision
	if err := errors.Join(json.Unmarshal(question, &asked), json.Unmarshal(w.value, &decision)); err != nil {
		return err
	}
	if decision.Verb == fermata.VerbExpire { //mutate:expire-verb-reserved
		return &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: errExpireVerb}
	}
	if decision.Verb == fermata.VerbReturn {
		return &fermata.AnswerError{ID: i.ID, Kind: i.Kind, Err: errNoReturn}
	}
	w.Verdict = store.VerdictReject
	if w.ApprovedDigest, err = asked.ApprovedDigest(decision); w.ApprovedDigest != "" {
		w.Verdict = store.VerdictApprove
	}
	if err != nil {
		return err
	}
	w.approval, w.decision = &asked, &decision
	return nil
}

// storeRefusal returns the error for a decision that the store did not accept.
func (dc *Decider) storeRefusal(ctx context.Context, run store.Run, receipt store.DecisionReceipt) error {
	refused := &RefusedError{Result: receipt.Result, Interrupt: receipt.Interrupt}
	if receipt.Result != store.ResultAlreadyDecided {
		return refused
	}
	// which may be older than the one that has the state key now
	asked, err := dc.store.Interrupts(ctx, run.Account, receipt.Run)
	for _, i := range asked {
		if i.ID == receipt.Interrupt {
			refused.By, refused.At, refused.Verdict = i.DecidedBy, i.DecidedAt, i.Verdict
		}
	}
	return errors.Join(refused, err)
}
