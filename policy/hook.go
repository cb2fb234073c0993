package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fermata-go/fermata"
)

// Hook puts rules behind [fermata.Approve]. It fetches what the rules need, asks them, and hands the whole decision on to
// be kept: the root package only takes allow, ask or deny, and why.
type Hook struct {
	// Rules must be set.
	Rules Source
	// Describe adds what the action itself does not tell: account, requester, environment, the time. The input comes with
	// tool, arguments, run, graph, node and agent. Without it rules see no more than that, at no time.
	//
	// What it does not say of effects, cost, risk and revision stays [Input.UnknownFields]: it tells one by any other value than the zero, effects also by an empty
	// list, and a zero by taking the name out of Untold.
	FillInput func(ctx context.Context, action fermata.ActionRequest, in *Input) error
	// Numbers returns a number for each demand, under its Key. Without it rules that look at the past cannot be judged.
	ReadCounters func(ctx context.Context, demands []CounterQuery) (map[string]int64, error)
	// Decided gets every decision before it counts, to keep it. It may make an ask into an allow if a grant covers it; what it
	// returns is what counts. The input is as it was judged, but for what the file says of its tool: a grant with a budget of the cost needs it as [Set.WithRating]
	// returns it.
	OnDecision func(ctx context.Context, in Input, decision Decision) (Decision, error)
}

var _ fermata.Policy = (*Hook)(nil)

// Decide asks the rules. Any error refuses the action.
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
		in.Tool, in.Args, in.Run = action.Action, action.Args, action.Run // what is judged is what will be done
		in.UnknownFields = slices.DeleteFunc(slices.Clone(in.UnknownFields), in.hasValue)
	}
	if err := h.readCounters(ctx, set, &in); err != nil {
		return fermata.Ruling{}, err
	}
	decision, err := set.Decide(in)
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

var errDenyOverridden = errors.New("policy: a deny was made into something else; nothing lifts a deny")

func (h *Hook) readCounters(ctx context.Context, set *Set, in *Input) error {
	demands := set.CounterQueries(*in)
	if len(demands) == 0 || h.ReadCounters == nil {
		return nil
	}
	numbers, err := h.ReadCounters(ctx, demands)
	if err != nil {
		return fmt.Errorf("policy: the numbers from the past: %w", err)
	}
	in.History = maps.Clone(numbers)
	return nil
}

// InputOf returns what an action tells of itself: tool, arguments and run, the outermost graph, the innermost node and agent. All else is [Input.UnknownFields].
func InputOf(action fermata.ActionRequest) Input {
	//mutate:unknown-inputs-listed
	in := Input{Tool: action.Action, Args: action.Args, Run: action.Run, UnknownFields: slices.Clone(OptionalFields)}
	for _, segment := range action.Address {
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
	return in
}
