package graph

import (
	"fmt"
	"reflect"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
)

// callModifiers calls the caller's state modifiers for the graph at a place, and for the graphs
// inside it that get an answer. It is called before the answers are saved: a modifier that fails
// leaves the questions open. Other graphs are modified when they are restored.
func (fl *compiled) callModifiers(exec *execution, place, address string, answers []checkedAnswer) error {
	if len(exec.modifiers) == 0 || exec.loaded.at(place).instance.Done {
		return nil
	}
	loader, err := fl.newStateLoader(exec.loaded, place)
	if err != nil {
		return err
	}
	edited, err := fl.modify(exec, address, loader.instance.state)
	if err != nil {
		return err
	}
	changed := len(changedFields(fl.stateType, loader.instance.state, edited, nil)) > 0
	for _, task := range exec.loaded.at(place).tasks {
		n, ok := fl.find(task.Node)
		if !ok {
			continue // restoring the instance reports it
		}
		base, err := loader.stateAt(task.BaseClock)
		if err == nil && changed {
			err = fl.checkListUnchanged(exec, fl.nodes[n], task.place, base, edited)
		}
		if err != nil {
			return modifyError(address, err)
		}
		for _, inner := range innerInstances(exec.loaded, task.place) {
			if fl.nodes[n].sub == nil || !answeredBelow(answers, inner) {
				continue
			}
			_, last := splitPlace(inner)
			at := activation.Join(address, nodeSegment(fl.nodes[n].name))
			if inner != task.place {
				at = activation.Join(at, last)
			}
			if err := fl.nodes[n].sub.callModifiers(exec, inner, at, answers); err != nil {
				return err
			}
		}
	}
	if exec.modified == nil {
		exec.modified = make(map[string]statePtr)
	}
	exec.modified[place] = edited
	return nil
}

func answeredBelow(answers []checkedAnswer, place string) bool {
	for _, a := range answers {
		if activation.Below(a.record.Activation, place) {
			return true
		}
	}
	return false
}

// modify returns a copy of a state, changed by the caller's state modifiers.
func (fl *compiled) modify(exec *execution, at string, state statePtr) (statePtr, error) {
	address, err := fermata.ParseAddress(at)
	if err != nil {
		return nil, err
	}
	edited, err := fl.stateType.clone(state)
	if err != nil {
		return nil, &fermata.EncodeError{Value: "the state of " + at, Err: err}
	}
	for _, modifier := range exec.modifiers {
		if err := callModifier(modifier, address, edited); err != nil {
			return nil, modifyError(at, err)
		}
	}
	if _, err := fl.stateType.normalize(edited, changedFields(fl.stateType, state, edited, nil), nil); err != nil {
		return nil, &fermata.EncodeError{Value: "the state of " + at, Err: err}
	}
	return edited, nil
}

func modifyError(at string, err error) error {
	return fmt.Errorf("graph: modifying the state of %s: %w", at, err)
}

// applyModifiers applies the caller's state modifiers. Waiting nodes also see the changes.
func (inst *instance) applyModifiers() error {
	if len(inst.exec.modifiers) == 0 {
		return nil
	}
	edited, err := inst.modifiedState()
	if err != nil {
		inst.exec.reopenBelow(inst.location.Place)
		return err
	}
	changed := changedFields(inst.flow.stateType, inst.state, edited, nil)
	if len(changed) == 0 {
		return nil
	}
	inst.modified = true
	err = inst.applyUpdate(&stateUpdate{
		by: "state modifier", base: inst.state, baseClock: inst.clock, result: edited, changed: changed, version: inst.nextVersion(),
	})
	if err != nil {
		return err
	}
	for _, t := range inst.tasks {
		if t.status != taskReady && t.status != taskWaiting {
			continue // a hold keeps the state that it showed, until its answer is merged
		}
		t.baseClock, t.base = inst.clock, inst.state
		inst.markTaskDirty(t)
	}
	inst.prune()
	return nil
}

// modifiedState returns the state as the modifiers changed it.
func (inst *instance) modifiedState() (statePtr, error) {
	if edited, done := inst.exec.takeModified(inst.location.Place); done {
		return edited, nil
	}
	edited, err := inst.flow.modify(inst.exec, inst.location.Address, inst.state)
	if err != nil {
		return nil, err
	}
	if len(changedFields(inst.flow.stateType, inst.state, edited, nil)) == 0 {
		return inst.state, nil
	}
	for _, t := range inst.tasks {
		if err := inst.flow.checkListUnchanged(inst.exec, inst.flow.nodes[t.node], t.place, t.base, edited); err != nil {
			return nil, modifyError(inst.location.Address, err)
		}
	}
	return edited, nil
}

// takeModified returns the state of a graph that was modified before the answers were saved.
func (exec *execution) takeModified(place string) (statePtr, bool) {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	edited, done := exec.modified[place]
	return edited, done
}

// reopenBelow reopens the interrupts inside a graph whose answers no node has read, because a state
// modifier failed.
func (exec *execution) reopenBelow(place string) {
	var changes []partChange
	for _, r := range exec.unreadBelow(place) {
		exec.mu.Lock()
		r.Status, r.Answer, r.AnswerType, r.Undelivered, r.Attestation = activation.StatusOpen, nil, "", false, activation.Attestation{}
		exec.mu.Unlock()
		changes = append(changes, exec.recordInterrupt(r, nil))
	}
	exec.stage(changes...)
}

// checkListUnchanged returns an error if the list of an active fan-out would change: an item could
// get the result of another one and bypass its interrupt.
func (fl *compiled) checkListUnchanged(exec *execution, n *node, place string, base, edited statePtr) (err error) {
	defer recovery.Recover(&err)
	saved := exec.loaded.at(place)
	if n.items == nil || len(saved.journal)+len(saved.records)+len(saved.below) == 0 {
		return nil
	}
	before, err := fl.stateType.copyIfShared(base)
	if err != nil {
		return err
	}
	after, err := fl.stateType.copyIfShared(edited)
	if err != nil {
		return err
	}
	oldItems, newItems := n.items(before), n.items(after)
	if !reflect.DeepEqual(oldItems, newItems) && !sameJSON(oldItems, newItems) {
		return fmt.Errorf("node %q is processing a list that would change: change it before the node begins or after it has finished", n.name)
	}
	return nil
}

func callModifier(modifier StateModifier, at fermata.Address, state any) (err error) {
	defer recovery.Recover(&err)
	return modifier(at, state)
}
