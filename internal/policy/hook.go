package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fermata-go/fermata"
)

// Hook connects rules to [fermata.Approve]. It reads the counters that the rules need, evaluates
// the rules, and passes the full decision to OnDecision. The root package gets only the verdict and
// the reason.
type Hook struct {
	// Rules is required.
	Rules Source
	// FillInput adds what the action itself does not contain: account, requester, environment and
	// time. The input already has tool, arguments, run, graph, node and agent. Without FillInput,
	// rules see only these, and no time.
	//
	// Effects, cost, risk and revision stay in [Input.UnknownFields] unless FillInput sets them. A
	// field counts as set if its value is not zero, effects also if it is an empty list. To set a
	// zero, remove the name from UnknownFields.
	FillInput func(ctx context.Context, action fermata.ActionRequest, in *Input) error
	// ReadCounters returns a value for each query, under its Key. Without it, rules that use
	// counters fail.
	ReadCounters func(ctx context.Context, demands []CounterQuery) (map[string]int64, error)
	// OnDecision gets every decision before it takes effect, for example to store it. It may turn
	// an ask into an allow if a grant covers the action. The returned decision takes effect. The
	// input does not include the tool rating of the file; a grant with a cost budget needs it, as
	// [Set.WithRating] returns it.
	OnDecision func(ctx context.Context, in Input, decision Decision) (Decision, error)
}

var _ fermata.Policy = (*Hook)(nil)

// Decide evaluates the rules. Any error refuses the action.
func (h *Hook) Decide(ctx context.Context, action fermata.ActionRequest) (fermata.Ruling, error) {
	set := h.Rules.Current()
	if set == nil {
		return fermata.Ruling{}, ErrNoSet
	}
	in := InputOf(action)
	if h.FillInput != nil {
		if err := h.FillInput(ctx, action, &in); err != nil {
			return fermata.Ruling{}, fmt.Errorf("policy: %w", err)
		}
		// evaluate exactly what will be executed
		in.Tool, in.Args, in.Run = action.Action, action.Args, action.Run
		in.UnknownFields = slices.DeleteFunc(slices.Clone(in.UnknownFields), in.hasValue)
	}
	if err := h.readCounters(ctx, set, &in); err != nil {
		return fermata.Ruling{}, err
	}
	decision, err := set.DecideContext(ctx, in)
	if err != nil {
		return fermata.Ruling{}, err
	}
	if h.OnDecision == nil {
		return decision.Ruling(), nil
	}
	kept, err := h.OnDecision(ctx, in, decision)
	if err != nil {
		return fermata.Ruling{}, fmt.Errorf("policy: %w", err)
	}
	if decision.Verdict == Deny && kept.Verdict != Deny {
		return fermata.Ruling{}, errDenyOverridden
	}
	return kept.Ruling(), nil
}

var errDenyOverridden = errors.New("policy: OnDecision changed a deny; a deny cannot be lifted")

func (h *Hook) readCounters(ctx context.Context, set *Set, in *Input) error {
	demands := set.CounterQueries(*in)
	if len(demands) == 0 || h.ReadCounters == nil {
		return nil
	}
	numbers, err := h.ReadCounters(ctx, demands)
	if err != nil {
		return fmt.Errorf("policy: read counters: %w", err)
	}
	in.History = maps.Clone(numbers)
	return nil
}

// InputOf returns the input that an action defines itself: tool, arguments and run, the outermost
// graph, the innermost node and agent. All other fields are in [Input.UnknownFields].
func InputOf(action fermata.ActionRequest) Input {
	//mutate:unknown-inputs-listed
	in := Input{Tool: action.Action, Args: action.Args, Run: action.Run, UnknownFields: slices.Clone(OptionalFields)}
	in.setPlace(action.Address)
	return in
}

// The kinds of gates and holds. Their packages are above this one.
const (
	kindGate = "approval-gate"
	kindHold = "hold"
)

// InputOfRequest returns the input that a request defines itself, like [InputOf] for any kind. The
// tool of a question is the tool that asks it.
func InputOfRequest(run string, address fermata.Address, question fermata.Envelope) (Input, error) {
	in := Input{Kind: question.Kind, Run: run, UnknownFields: slices.Clone(OptionalFields)}
	in.setPlace(address)
	var err error
	switch question.Kind {
	case fermata.Approval.Name():
		var asked fermata.ApprovalRequest
		err = json.Unmarshal(question.Data, &asked)
		in.Kind, in.Tool, in.Args = "", asked.Action, asked.Args
	case fermata.EffectInDoubt.Name():
		var asked fermata.InDoubtRequest
		err = json.Unmarshal(question.Data, &asked)
		in.Tool, in.Args = asked.Action, asked.Args
	case kindGate:
		var asked struct{ Gate string }
		err = json.Unmarshal(question.Data, &asked)
		in.Gate, in.Data = asked.Gate, question.Data
	default:
		in.Data = question.Data
	}
	if err != nil {
		return in, fmt.Errorf("%w: data of the request: %w", ErrInput, err)
	}
	if !in.isAction() {
		in.setTool(address)
	}
	if !in.isAction() && in.Kind != kindGate && in.Kind != kindHold { // a question has no effects
		in.UnknownFields = nil
	}
	return in, nil
}

// setPlace sets the outermost graph, the innermost node and agent.
func (in *Input) setPlace(address fermata.Address) {
	for _, segment := range address {
		switch segment.Type {
		case fermata.SegmentRunnable:
			if in.Graph == "" {
				in.Graph = segment.ID
			}
		case fermata.SegmentNode:
			in.Node = segment.ID
		case fermata.SegmentAgent:
			in.Agent = segment.ID
		}
	}
}

// setTool sets the tool that asks, and the node that a hold stops.
func (in *Input) setTool(address fermata.Address) {
	for _, segment := range address {
		switch segment.Type {
		case fermata.SegmentTool:
			in.Tool = segment.ID
		case fermata.SegmentHold:
			in.Node = segment.SubID
		}
	}
}
