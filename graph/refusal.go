package graph

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
)

var errPlainRefusal = errors.New("an interrupt without a kind cannot be returned or rejected: its code would take the refusal for an answer")

// refusalFor checks a refusal and returns its JSON. An approval has it as its answer.
func refusalFor(r *activation.Record, refusal fermata.Refusal, by fermata.Attestation) (json.RawMessage, error) {
	if by.By != "" {
		refusal.By, refusal.At, refusal.Auth, refusal.Rule = by.By, by.At, by.Auth, by.Rule
	}
	err := refusal.Check()
	if err == nil && r.Kind == "" {
		err = errPlainRefusal
	}
	if err != nil {
		return nil, &fermata.AnswerError{ID: r.ID, Kind: r.Kind, Err: err}
	}
	return json.Marshal(refusal.Decision)
}

// refuseTask ends a held task whose hold was rejected or returned for redesign. The run continues
// at the node that the graph declares for it; without one the run fails. The lock must be held.
func (inst *instance) refuseTask(t *task, r *activation.Record) error {
	var refusal fermata.Refusal
	if err := json.Unmarshal(r.Answer, &refusal.Decision); err != nil {
		return err
	}
	to, declared := inst.flow.refusalTo[refusal.Verb]
	if !declared {
		return refusal.Err(inst.flow.nodes[t.node].name)
	}
	if to.note != nil {
		noted, err := inst.noteRefusal(t, to, refusal)
		if err == nil {
			_, err = inst.mergeEdited(t, r, noted)
		}
		if err != nil {
			return err
		}
	}
	inst.settleInterrupt(r, activation.StatusAnswered)
	inst.endTask(t)
	inst.trigger(t.node, []int{inst.flow.index[to.node]})
	return nil
}

// noteRefusal returns a copy of the held state with the note of the program.
func (inst *instance) noteRefusal(t *task, to refusalTarget, refusal fermata.Refusal) (state statePtr, err error) {
	defer recovery.Recover(&err)
	own, err := inst.flow.stateType.copyIfShared(t.base)
	if err != nil {
		return nil, err
	}
	state = inst.flow.stateType.pointerTo(reflect.ValueOf(own).Elem())
	to.note(state, refusal)
	return inst.flow.stateType.normalizedCopy(state)
}
