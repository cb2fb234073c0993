package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// approvalConfig is what stands between the arguments of a call and the call.
type approvalConfig struct {
	policies []fermata.Policy
	editable bool
	summary  func(args json.RawMessage) string
}

// AskOption changes what the person sees who decides on a call.
type AskOption func(*approvalConfig)

// Summary makes one line of the arguments, for the person who decides. The default is the tool's description.
func Summary(summary func(args json.RawMessage) string) AskOption {
	return func(g *approvalConfig) { g.summary = summary }
}

// Approve makes the tool ask a person before every call. The question is of kind [fermata.Approval]; the answer approves or
// rejects the call as it is. A rejection reaches the model, with its reason, and so does a lapse.
//
// The yes is bound to the tool's name and to exactly these arguments. The call is an effect (see [fermata.Effect]): it
// happens once, and if a crash leaves open whether it happened, a person is asked unless the tool is [Idempotent] or
// [Repeatable].
func Approve(t *Tool, options ...AskOption) *Tool {
	return t.withApproval(fermata.AlwaysAsk, false, options)
}

// Review is [Approve] for a person who may also change the arguments. Changed arguments are checked like the model's own,
// and the model is told of them.
func Review(t *Tool, options ...AskOption) *Tool {
	return t.withApproval(fermata.AlwaysAsk, true, options)
}

// Guard lets a policy decide on each call: whether it runs, is refused, or a person is asked. Of several policies, that of
// the run among them, the strictest word counts. A policy that fails lets nothing through. With a nil policy only that of
// the run is asked; a run without one asks a person.
func Guard(t *Tool, policy fermata.Policy, options ...AskOption) *Tool {
	return t.withApproval(policy, false, options)
}

func (t *Tool) withApproval(policy fermata.Policy, editable bool, options []AskOption) *Tool {
	return t.with(func(w *Tool) {
		g := approvalConfig{editable: editable}
		if t.approval != nil { // one question, however many wrappers want it asked
			//mutate:wrapper-keeps-policies
			g = approvalConfig{policies: append([]fermata.Policy(nil), t.approval.policies...), editable: editable || t.approval.editable, summary: t.approval.summary}
		}
		if policy != nil {
			g.policies = append(g.policies, policy)
		}
		for _, option := range options {
			option(&g)
		}
		w.approval = &g
	})
}

// policy is that of all wrappers.
func (g *approvalConfig) policy() fermata.Policy {
	switch len(g.policies) {
	case 0:
		return nil
	case 1:
		return g.policies[0]
	}
	return fermata.Strictest(g.policies...)
}

// approved asks, and calls the tool with what was approved.
func (t *Tool) callApproved(ctx context.Context, args json.RawMessage) (Result, error) {
	action := fermata.Action[json.RawMessage]{
		Name: t.name, Args: args, Summary: t.description,
		ArgsSchema: t.args.Text, Fixed: !t.approval.editable, Policy: t.approval.policy(),
	}
	if t.approval.summary != nil {
		action.Summary = t.approval.summary(bytes.Clone(args))
	}
	action.Args = bytes.Clone(args)
	approved, err := fermata.Approve(activation.WithEditCheck(fermata.AppendAddressSegment(ctx, segmentApproval, t.name), t.checkDecodable), action)
	if err != nil {
		return Result{}, err
	}
	result, err := t.dispatch(ctx, approved)
	if err == nil && approved.Edited() {
		who := approved.By()
		if who == "" {
			who = "a person"
		}
		result.Text = fmt.Sprintf("(Before the call %s changed the arguments to %s.)\n%s", who, approved.Args(), result.Text)
	}
	return result, err
}

func (t *Tool) dispatch(ctx context.Context, approved fermata.Approved[json.RawMessage]) (Result, error) {
	if t.retry == retryFreely { //mutate:tool-call-is-effect
		return t.run(ctx, approved.Args())
	}
	var options []fermata.EffectOption
	if t.retry == retryWithKey { //mutate:tool-repeatable-with-key
		options = append(options, fermata.Idempotent())
	}
	return fermata.Effect(ctx, approved, func(ctx context.Context, args json.RawMessage, key string) (Result, error) {
		return t.run(context.WithValue(ctx, keyKey{}, key), args)
	}, options...)
}

func reportErrors(call func(context.Context, json.RawMessage) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, args json.RawMessage) (string, error) {
		text, err := call(ctx, args)
		if err == nil || ctx.Err() != nil || activation.IsWait(err) || activation.IsRunError(err) || isAlwaysReported(err) {
			return text, err
		}
		return "", &Error{err.Error()}
	}
}
