package claude

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// Execute runs one process of the CLI, until it ends or a person has to decide about a call; see
// [provider.Provider]. Without a new answer it starts none.
func (p *Provider) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	g, err := p.graph(e.Run.Graph)
	if err != nil {
		return provider.Result{}, err
	}
	s, err := load(ctx, e.Run)
	if err != nil {
		return provider.Result{}, err
	}
	x := &execution{Execution: e, provider: p, graph: g, state: s}
	outcome, err := x.advance(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	result := provider.Result{Outcome: outcome}
	for _, answer := range e.Answers {
		if slices.Contains(s.Answered, answer.InterruptID) {
			result.Applied = append(result.Applied, answer.InterruptID)
		}
	}
	return result, nil
}

// execution is one execution of a run.
type execution struct {
	provider.Execution
	provider *Provider
	graph    *Graph
	state    *state
}

func (x *execution) advance(ctx context.Context) (provider.Outcome, error) {
	s := x.state
	switch {
	case s.Ended != nil:
		return s.Ended.result(s.Usage)
	case !s.begun():
		return x.begin(ctx)
	}
	answer := x.answer(s.interruptID(x.Run))
	if answer == nil {
		return x.wait()
	}
	s.applied(answer.InterruptID)
	if answer.Expired {
		return x.end(ctx, &ended{Code: "expired", Message: "the request expired"})
	}
	return x.resume(ctx, answer)
}

// answer returns the answer to an interrupt; nil if there is none.
func (x *execution) answer(id string) *provider.Answer {
	for i := range x.Answers {
		if x.Answers[i].InterruptID == id {
			return &x.Answers[i]
		}
	}
	return nil
}

// wait returns the open interrupt.
func (x *execution) wait() (provider.Outcome, error) {
	q, err := x.state.interrupt(x.Run, x.graph)
	if err != nil {
		return nil, err
	}
	return provider.Waiting{Interrupts: []provider.Interrupt{q}}, nil
}

// begin starts the session. Its id is stored before the process starts.
func (x *execution) begin(ctx context.Context) (provider.Outcome, error) {
	in, err := decodeInput(x.Input)
	if wrong, ok := errors.AsType[*provider.InputError](err); ok {
		return provider.Failed{Code: wrong.Code, Message: wrong.Error(), Final: true}, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if x.Run.Ref == "" {
		session := newSession()
		if err := x.Owner.SetRef(ctx, session); err != nil {
			return nil, err
		}
		x.Run.Ref = session
	}
	return x.run(ctx, &turn{graph: x.graph, prompt: in.Prompt})
}

// resume continues the session with an answer.
func (x *execution) resume(ctx context.Context, answer *provider.Answer) (provider.Outcome, error) {
	t := &turn{graph: x.graph, resumes: true, call: x.state.Pending.Call}
	var err error
	switch {
	case x.graph.rule(t.call.Tool) == ruleQuestion:
		t.decide, err = x.answerQuestion(t, answer)
	case x.state.Pending.InDoubt:
		err = x.resolve(answer)
		t.decide = x.perform(t)
	default:
		t.decide, err = x.decideApproval(t, answer)
	}
	if err != nil {
		return nil, err
	}
	return x.run(ctx, t)
}

// deny returns the reply that denies a call.
func deny(reason string) func(context.Context) (reply, error) {
	return func(context.Context) (reply, error) {
		return reply{Decision: decisionDeny, Reason: reason}, nil
	}
}

// answerQuestion returns the reply about a call that asks people.
func (x *execution) answerQuestion(t *turn, answer *provider.Answer) (func(context.Context) (reply, error), error) {
	if answer.Refusal != nil {
		return deny(refusalText(fermata.Decision{Verb: answer.Refusal.Verb, Reason: answer.Refusal.Reason, By: answer.By})), nil
	}
	allow := reply{Decision: decisionAllow}
	if x.graph.question(t.call.Tool) != nil {
		t.answer = answer.Data // the tool returns it
	} else {
		questions, err := decodeAsked(t.call.Input)
		if err != nil {
			return nil, err
		}
		answers, err := questions.answers(answer.Data)
		if err != nil {
			return nil, err
		}
		var input map[string]any
		if err := json.Unmarshal(t.call.Input, &input); err != nil {
			return nil, err
		}
		input["answers"] = answers
		if allow.Input, err = json.Marshal(input); err != nil {
			return nil, err
		}
	}
	return func(context.Context) (reply, error) { return allow, nil }, nil
}

// decideApproval returns the reply about a call after the decision on its approval.
func (x *execution) decideApproval(t *turn, answer *provider.Answer) (func(context.Context) (reply, error), error) {
	d, err := decision(*answer)
	if err != nil {
		return nil, err
	}
	if d.Verb != fermata.VerbApprove {
		return deny(refusalText(d)), nil
	}
	q, err := x.state.Pending.approval()
	if err != nil {
		return nil, err
	}
	given := &approved{Args: q.Args, Digest: q.Digest, Conditions: d.Conditions, At: answer.At.UTC()}
	if d.Args != nil {
		if given.Digest, err = q.ApprovedDigest(d); err != nil {
			return nil, err
		}
		given.Args, given.Edited = d.Args, given.Digest != q.Digest
	}
	x.state.Pending.Approved, x.state.Pending.Attempt = given, 1
	return x.perform(t), nil
}

// resolve applies a person's answer about a call in doubt.
func (x *execution) resolve(answer *provider.Answer) error {
	p := x.state.Pending
	var resolution fermata.EffectResolution
	if answer.Refusal != nil {
		return errors.New("claude: a call in doubt cannot be refused")
	}
	if err := json.Unmarshal(answer.Data, &resolution); err != nil {
		return err
	}
	p.InDoubt = false
	if resolution.Happened {
		p.Approved.Resolved = &resolution
	} else {
		p.Attempt++
	}
	return nil
}

// intent describes the approved call for the ledger.
func (x *execution) intent() fermata.Intent {
	p, id := x.state.Pending, x.state.approvalID(x.Run)
	intent := fermata.Intent{InterruptID: id, Attempt: p.Attempt, Action: p.Call.Tool, Digest: p.Approved.Digest, Key: effectKey(x.Run, id)}
	if !p.Approved.Conditions.IsZero() && p.Attempt == 1 {
		intent.Conditional = &fermata.ConditionalAction{Conditions: p.Approved.Conditions, Args: p.Approved.Args, Address: x.address()}
	}
	return intent
}

func (x *execution) address() string {
	q, err := x.state.interrupt(x.Run, x.graph)
	if err != nil {
		return ""
	}
	return q.Address.String()
}

// perform returns the reply about an approved call. The ledger records it before the CLI is allowed
// to make it. If it was begun before, it is not made again.
func (x *execution) perform(t *turn) func(context.Context) (reply, error) {
	p := x.state.Pending
	if r := p.Approved.Resolved; r != nil {
		return deny(madeBefore("A person confirmed that this call was made.", r.Receipt))
	}
	return func(ctx context.Context) (reply, error) {
		for {
			line, begun, err := x.Owner.Ledger().Begin(ctx, x.intent())
			switch {
			case err != nil:
				return reply{}, err
			case begun:
				t.performs = true
				allow := reply{Decision: decisionAllow}
				if p.Approved.Edited {
					allow.Input = p.Approved.Args
				}
				return allow, nil
			case line.State == fermata.EffectSucceeded:
				return reply{Decision: decisionDeny, Reason: madeBefore("This call was made before the session was restored.", line.Receipt)}, nil
			case line.State == fermata.EffectFailed: // it was not made
				p.Attempt++
			default:
				return reply{}, errInDoubt
			}
		}
	}
}

// errInDoubt ends a process because the outcome of its call is unknown.
var errInDoubt = errors.New("claude: the call is in doubt")

// madeBefore tells the model the result of a call that is not made again.
func madeBefore(text string, receipt json.RawMessage) string {
	text = "This is not an error. " + text + " Do not make it again."
	if len(receipt) > 0 {
		text += " Its result: " + string(receipt)
	}
	return text
}

// finished records the end of an approved call.
func (x *execution) finished(ctx context.Context, t *turn, result json.RawMessage, failed bool) error {
	if !t.performs {
		return nil
	}
	t.performs = false
	receipt, err := json.Marshal(struct {
		Result json.RawMessage `json:"result"`
		Failed bool            `json:"failed,omitempty"`
	}{limited(result), failed})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return x.Owner.Ledger().End(ctx, x.intent(), fermata.LedgerEntry{State: fermata.EffectSucceeded, Receipt: receipt})
}

// maxReceipt is the maximum size of the result of a call in the ledger. The session has all of it.
const maxReceipt = 16 << 10

// limited returns a result, or a note if it is too large for the ledger.
func limited(result json.RawMessage) json.RawMessage {
	if len(result) <= maxReceipt {
		return result
	}
	note, err := json.Marshal(fmt.Sprintf("(%d bytes)", len(result)))
	if err != nil {
		return nil
	}
	return note
}

// run runs one process and saves its outcome.
func (x *execution) run(ctx context.Context, t *turn) (provider.Outcome, error) {
	t.session, t.owner = x.Run.Ref, x
	delta, err := x.provider.process(ctx, x.state, t)
	void, isVoid := errors.AsType[*fermata.VoidApprovalError](err)
	switch {
	case errors.Is(err, errInDoubt):
		x.state.Pending.InDoubt = true
		return x.saveWaiting(ctx, store.Delta{})
	case isVoid:
		p := x.state.Pending
		p.Voided, p.Reason, p.Approved, p.Attempt = p.Voided+1, void.Reason, nil, 0
		return x.saveWaiting(ctx, store.Delta{})
	case err != nil:
		return nil, err
	case t.performs: // allowed, but no result was seen
		return nil, &CLIError{Problem: "the process ended without the result of an approved call"}
	}
	x.state.Usage.Input += t.last.Usage.Input + t.last.Usage.CacheRead + t.last.Usage.CacheCreated
	x.state.Usage.Output += t.last.Usage.Output
	if t.deferred == nil {
		return x.end(ctx, t.ended())
	}
	x.state.Round++
	x.state.Pending = &pending{Call: *t.deferred}
	return x.saveWaiting(ctx, delta)
}

// saveWaiting saves the state and returns the open interrupt.
func (x *execution) saveWaiting(ctx context.Context, delta store.Delta) (provider.Outcome, error) {
	if err := x.state.save(ctx, x.Run, delta); err != nil {
		return nil, err
	}
	return x.wait()
}

// end saves the end of the run.
func (x *execution) end(ctx context.Context, how *ended) (provider.Outcome, error) {
	x.state.Ended, x.state.Pending = how, nil
	if err := x.state.save(ctx, x.Run, x.state.drop()); err != nil {
		return nil, err
	}
	return how.result(x.state.Usage)
}

// newSession returns a random session id. The CLI requires a UUID.
func newSession() string {
	var raw [16]byte
	rand.Read(raw[:]) // never fails: it crashes the program instead
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}
