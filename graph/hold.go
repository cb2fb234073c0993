package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/internal/savable"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/internal/visit"
)

const (
	holdBefore = "before"
	holdAfter  = "after"
)

// hold stops a task before or after its node. The address is that of the graph, whose state it shows, with one segment more:
// several holds of one graph may be open at once. It is called with the lock held.
func (f *frame) hold(t *task, status taskStatus, when string) error {
	name := f.flow.nodes[t.node].name
	r := &visit.Record{
		ID:      ident.Derive("int", f.sess.Run(), f.placeOf(t), fermataHold, when),
		Address: visit.Join(f.names.Address, fermata.Segment{Type: fermata.SegmentHold, ID: when, SubID: name}.String()),
		Visit:   f.placeOf(t), Rel: fermata.Segment{Type: fermata.SegmentHold, ID: when}.String(), Key: KindHold,
		Kind: KindHold, Status: visit.Open,
	}
	t.at, t.base = f.clock, f.state
	clear(f.merged) // from here on somebody else has this state, too
	shown, err := f.flow.shape.shown(t.base)
	if err != nil {
		return f.unsavable(err)
	}
	f.keep(r, shown)
	t.status, t.signals = status, []*visit.Signal{{Record: r, Info: shown}}
	f.touchTask(t)
	return nil
}

const fermataHold = string(fermata.SegmentHold)

// release goes on with every hold that has been answered.
func (f *frame) release() error {
	for _, t := range f.tasks {
		if t.status != taskHeld && t.status != taskResting {
			continue
		}
		for _, r := range f.sess.loaded.at(t.place).records {
			if r.Kind == KindHold && r.Status == visit.Answered && isHoldOf(r, t.status) {
				if err := f.releaseTask(t, r); err != nil {
					return err
				}
			}
		}
	}
	f.tasks = slices.DeleteFunc(f.tasks, func(t *task) bool { return t.status == taskOver })
	return nil
}

func isHoldOf(r *visit.Record, status taskStatus) bool {
	return strings.HasSuffix(r.Rel, holdAfter) == (status == taskResting)
}

func (f *frame) releaseTask(t *task, r *visit.Record) error {
	f.lock()
	defer f.unlock()
	if r.Answer != nil {
		if err := f.edit(t, r); err != nil {
			return f.reopen(t, r, err) //mutate:hold-conflict-reopens
		}
	}
	f.settle(r, visit.Answered)
	t.at, t.base = f.clock, f.state
	f.touchTask(t)
	if t.status == taskHeld {
		t.status = taskReady
		return nil
	}
	targets, err := f.follow(t.node, f.state)
	if err != nil {
		return err
	}
	f.end(t)
	f.lead(t.node, targets)
	return nil
}

// edit merges the state that somebody handed back. It is called with the lock held.
func (f *frame) edit(t *task, r *visit.Record) error {
	edited, err := decodeState(f.flow.shape, r.Answer)
	if err != nil {
		return err
	}
	changed, err := f.editedFields(t.base, edited)
	if err != nil {
		return err
	}
	clear(f.merged)
	return f.apply(&contribution{by: r.Rel, base: t.base, at: t.at, result: edited, changed: changed, rev: f.nextRev()})
}

// editedFields compares by what was shown, which is JSON: a time in another form of the same zone is not an edit.
func (f *frame) editedFields(base, edited statePtr) (changed []int, err error) {
	for i := range f.flow.shape.fields {
		fd := &f.flow.shape.fields[i]
		was, err := encodeField(f.flow.shape, fd, base)
		if err != nil {
			return nil, err
		}
		is, err := encodeField(f.flow.shape, fd, edited)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(was, is) {
			changed = append(changed, i)
		}
	}
	return changed, nil
}

// reopen leaves a hold open whose answer could not be used, and shows the newest state with it: an edit of that one cannot
// meet the same conflict again. It is called with the lock held.
func (f *frame) reopen(t *task, r *visit.Record, err error) error {
	f.sess.refused([]*visit.BadAnswer{{ID: r.ID, Err: err}})
	r.Status, r.Answer, r.Fresh = visit.Open, nil, false
	t.at, t.base = f.clock, f.state
	f.touchTask(t)
	shown, err := f.flow.shape.shown(t.base)
	if err != nil {
		return f.unsavable(err)
	}
	t.signals = []*visit.Signal{{Record: r, Info: shown}}
	f.keep(r, shown)
	return nil
}

// decodeState reads a whole state that somebody hands back. A field that is missing would be lost, so it is an error.
func decodeState(sh *shape, data []byte) (state statePtr, err error) {
	defer safely.Recover(&err) // a type may have JSON methods that panic
	state = sh.fresh()
	if err := strictjson.Decode(data, state); err != nil {
		return state, err
	}
	if sh.whole {
		return state, nil
	}
	var present map[string]json.RawMessage
	if err := json.Unmarshal(data, &present); err != nil {
		return state, err
	}
	var missing []string
	for i := range sh.fields {
		if _, ok := present[sh.fields[i].name]; !ok && !sh.fields[i].optional {
			missing = append(missing, sh.fields[i].name)
		}
	}
	if len(missing) > 0 { //mutate:hold-needs-whole-state
		return state, fmt.Errorf("the state lacks %s: hand back all of it, edited", strings.Join(missing, ", "))
	}
	return state, nil
}

// encodeState returns the JSON of a state that somebody hands back as a Go value or as JSON.
func encodeState(sh *shape, answer any) ([]byte, error) {
	if answer == nil {
		return nil, nil
	}
	switch v := reflect.ValueOf(answer); {
	case v.Type() == reflect.PointerTo(sh.typ):
		if v.IsNil() {
			return nil, errors.New("the state is a nil pointer")
		}
		return savable.Encode(answer)
	case v.Type() == sh.typ, sh.typ.Kind() == reflect.Interface:
		return savable.Encode(sh.pointer(v))
	}
	data, err := savable.Encode(answer)
	if err != nil || bytes.Equal(data, jsonNull) {
		return nil, err
	}
	if _, err := decodeState(sh, data); err != nil {
		return nil, err
	}
	return data, nil
}
