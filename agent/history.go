package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// HistoryEdit changes the history that a model sees. at is the simplified address of the agent in
// the run. The result replaces the history from now on, also in later resumes; nil keeps it. The
// messages are copies. Parallel agents call it concurrently.
type HistoryEdit func(at fermata.Address, history []Message) ([]Message, error)

const entryHistory = "history"

// editPlace returns the scope where an edit made before this turn is recorded.
func (v *conversation) editPlace(turn int) *activation.Scope {
	return v.activation.Child(fermata.Segment{Type: "turn", ID: strconv.Itoa(turn)}.String())
}

// recallEdit continues with the history that an edit of an earlier resume recorded.
func (v *conversation) recallEdit(turn int) error {
	data, ok := v.editPlace(turn).Recorded(entryHistory)
	if !ok {
		return nil
	}
	var history []Message
	if err := json.Unmarshal(data, &history); err != nil {
		return fmt.Errorf("agent: edited history of %s cannot be decoded: %w", v.activation.FullAddress(), err)
	}
	v.history, v.replaced = history, true
	return nil
}

// applyEdit makes the history edit of the run, before the first request of this execution. It is
// recorded by the agent and not by the model call, which keeps only the answer.
func (v *conversation) applyEdit(ctx context.Context, turn int) error {
	if v.scope.edit == nil || v.edited {
		return nil
	}
	v.edited = true
	changed, err := v.scope.edit(slices.Clone(v.scope.path), cloneMessages(v.history))
	if err != nil || changed == nil {
		return err
	}
	if err := checkHistory(changed); err != nil {
		return err
	}
	data, err := json.Marshal(changed)
	if err != nil {
		return &fermata.EncodeError{Value: "the edited history", Err: err}
	}
	v.history, v.replaced = cloneMessages(changed), true
	return v.editPlace(turn).Record(ctx, entryHistory, data, activation.SaveWithNext)
}

// cloneMessages returns copies that others may change.
func cloneMessages(messages []Message) []Message {
	own := slices.Clone(messages)
	for i := range own {
		own[i].ToolCalls, own[i].Opaque = slices.Clone(own[i].ToolCalls), slices.Clone(own[i].Opaque)
	}
	return own
}

// checkHistory checks that calls and results belong together.
func checkHistory(history []Message) error {
	if len(history) == 0 {
		return fmt.Errorf("%w: it is empty", ErrHistory)
	}
	open := make(map[string]bool)
	for i, m := range history {
		if len(open) > 0 && m.Role != RoleTool {
			return fmt.Errorf("%w: message %d is between a call and its result", ErrHistory, i+1)
		}
		switch m.Role {
		case RoleAssistant:
			for _, call := range m.ToolCalls {
				open[call.ID] = true
			}
		case RoleTool:
			if !open[m.CallID] {
				return fmt.Errorf("%w: message %d is the result of call %q, which is not open", ErrHistory, i+1, m.CallID)
			}
			delete(open, m.CallID)
		case RoleUser, RoleSystem:
		default:
			return fmt.Errorf("%w: message %d has the role %q", ErrHistory, i+1, m.Role)
		}
	}
	for id := range open {
		return fmt.Errorf("%w: call %q has no result", ErrHistory, id)
	}
	return nil
}
