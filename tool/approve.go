package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// approvalConfig configures the approval before a call.
type approvalConfig struct {
	policies []fermata.Policy
	editable bool
	// whether fixed arguments are editable where the policy of the server allows it
	editableByPolicy bool
	summary          func(args json.RawMessage) string
	preview          func(ctx context.Context, args json.RawMessage) (any, error)
}

// AskOption configures the approval request of a call.
type AskOption func(*approvalConfig)

// Summary sets a function that summarizes the arguments in one line for the approver. The default
// is the tool's description.
func Summary(summary func(args json.RawMessage) string) AskOption {
	return func(g *approvalConfig) { g.summary = summary }
}

// Preview sets a function that shows the approver what the call would change, such as the rows that
// it would delete. It must only read. It runs before people are asked, and again before an approved
// call: if the result differs, the approval is void and they are asked again with the difference.
func Preview(read func(ctx context.Context, args json.RawMessage) (any, error)) AskOption {
	return func(g *approvalConfig) { g.preview = read }
}

// Approve makes the tool ask a person before every call. The interrupt is of kind
// [fermata.Approval]; the answer approves or rejects the call unchanged. Rejection, with its
// reason, and expiry are reported to the model.
//
// The approval is bound to the tool's name and to exactly these arguments. The call is an effect
// (see [fermata.Effect]): it happens once. After a crash, and after an error of the tool that is
// neither an [Error] nor marked with [fermata.NotDone], its outcome is unknown: a person is asked
// unless the tool is [Idempotent] or [Repeatable], or its [Lookup] knows the outcome. An Error is
// the result of the call, so return it only if the outcome is known.
func Approve(t *Tool, options ...AskOption) *Tool {
	checkWrapped(t, "Approve")
	return t.withApproval(fermata.AlwaysAsk, approvalConfig{}, options)
}

// Review is [Approve] with editable arguments. Edited arguments are validated like the model's, and
// are reported to the model.
func Review(t *Tool, options ...AskOption) *Tool {
	checkWrapped(t, "Review")
	return t.withApproval(fermata.AlwaysAsk, approvalConfig{editable: true}, options)
}

// Guard lets a policy decide on each call: allow, deny, or ask a person. The strictest ruling of
// all policies, including that of the run, counts. A failing policy blocks the call. With a nil
// policy only the policy of the run is evaluated; a run without one asks a person.
//
// An approver can edit the arguments where the policy of a server allows it, and nowhere else.
// Edited arguments are validated like the model's.
func Guard(t *Tool, policy fermata.Policy, options ...AskOption) *Tool {
	checkWrapped(t, "Guard")
	return t.withApproval(policy, approvalConfig{editableByPolicy: true}, options)
}

func (t *Tool) withApproval(policy fermata.Policy, g approvalConfig, options []AskOption) *Tool {
	return t.with(func(w *Tool) {
		g := g
		if t.approval != nil { // one request, regardless of the number of wrappers
			//mutate:wrapper-keeps-policies
			g = approvalConfig{policies: append([]fermata.Policy(nil), t.approval.policies...), editable: g.editable || t.approval.editable, editableByPolicy: g.editableByPolicy && t.approval.editableByPolicy, summary: t.approval.summary, preview: t.approval.preview}
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

// policy returns the combined policy of all wrappers.
func (g *approvalConfig) policy() fermata.Policy {
	switch len(g.policies) {
	case 0:
		return nil
	case 1:
		return g.policies[0]
	}
	return fermata.Strictest(g.policies...)
}

// callApproved requests approval and calls the tool with the approved arguments.
func (t *Tool) callApproved(ctx context.Context, args json.RawMessage) (Result, error) {
	action := fermata.Action[json.RawMessage]{
		Name: t.name, Args: args, Summary: t.description,
		ArgsSchema: t.args.Text, Fixed: !t.approval.editable, EditableByPolicy: t.approval.editableByPolicy, Policy: t.approval.policy(), Target: t.approval.preview,
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
		approver := approved.By()
		if approver == "" {
			approver = "a person"
		}
		result.Text = fmt.Sprintf("(Before the call %s changed the arguments to %s.)\n%s", approver, approved.Args(), result.Text)
	}
	return result, err
}

func (t *Tool) dispatch(ctx context.Context, approved fermata.Approved[json.RawMessage]) (Result, error) {
	if t.retry == retryFreely && approved.Conditions().IsZero() { //mutate:tool-call-is-effect
		return t.run(ctx, approved.Args())
	}
	options := slices.Clone(t.target)
	if t.retry != retryAskPerson { //mutate:tool-repeatable-with-key
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
