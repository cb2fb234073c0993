package graph

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/jsondiff"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/smallmap"
)

// interruptView converts stored interrupts to the public form. Places that several interrupts share
// are the same pointer.
type interruptView struct {
	session *execution
	root    *compiled
	// by interrupt id or, for a graph, by address
	seen smallmap.Map[string, *fermata.InterruptCtx]
}

func (v *interruptView) interrupt(r *activation.Record) *fermata.InterruptCtx {
	if ic := v.seen.Get(r.ID); ic != nil {
		return ic
	}
	address, err := fermata.ParseAddress(r.Address)
	if err != nil {
		address = nil // a corrupt address does not hide the interrupt
	}
	ic := &fermata.InterruptCtx{ID: r.ID, Address: address, Kind: r.Kind, Info: r.Info, Data: bytes.Clone(r.Data), IsRootCause: !r.Composite}
	if ic.Info == nil {
		ic.Info = v.storedInfo(r)
	}
	ic.Supersedes, ic.Refused = r.Supersedes, r.Refused
	ic.Changes = changesOf(r, ic)
	v.seen.Set(r.ID, ic)
	if parent := v.session.records.Get(r.Parent); parent != nil {
		ic.Parent = v.interrupt(parent)
	} else {
		ic.Parent = v.parentOf(address, r.Address)
	}
	return ic
}

// changesOf returns the differences between what an interrupt shows and what the one that it
// supersedes showed.
func changesOf(r *activation.Record, ic *fermata.InterruptCtx) []fermata.Change {
	if r.Supersedes == "" {
		return nil
	}
	now := ic.Data
	if r.Kind == KindHold {
		var err error
		if now, err = roundtrip.Marshal(ic.Info); err != nil {
			return nil
		}
	}
	changes, err := jsondiff.Diff(orNull(r.Before), orNull(now))
	if err != nil {
		return nil
	}
	return changes
}

func orNull(data json.RawMessage) json.RawMessage {
	if data == nil {
		return jsonNull
	}
	return data
}

// storedInfo returns the info of an interrupt of an earlier process. It is never the only form:
// Data has the question, and a hold shows the run's state.
func (v *interruptView) storedInfo(r *activation.Record) (info any) {
	if r.Kind == KindHold {
		if place, err := fermata.ParseAddress(r.Activation); err == nil {
			info = v.root.heldState(v.session.loaded, "", place)
		}
		if info == nil && v.session.loaded != nil {
			info = v.session.loaded.heldFields(r.Activation)
		}
		return info
	}
	if r.Data != nil {
		info = decodeAny(r.Data)
	}
	return info
}

func decodeAny(data []byte) (value any) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	_ = dec.Decode(&value)
	return value
}

// heldFields returns the state that a hold shows in its JSON form, for a graph that a node's own
// code runs: its state type is unknown here. Showing nothing would be worse: an unedited answer
// would empty the state.
func (c *checkpoint) heldFields(place string) any {
	outer, _ := splitPlace(place)
	frame, task := c.at(outer).instance, c.at(place).task
	if frame == nil || task == nil {
		return nil
	}
	fields := make(map[string]any, len(frame.Fields))
	for i := range frame.Fields {
		sf := &frame.Fields[i]
		if len(sf.Versions) == 0 {
			return nil // corrupt: loading reports it
		}
		rev := sf.at(task.BaseClock)
		if rev.data == nil {
			rev.data, _ = c.part((&field{partPrefix: fieldPart(sf.Name)}).partName(rev.clock, outer))
		}
		fields[sf.Name] = decodeAny(rev.data)
	}
	if frame.SingleField {
		return fields[singleFieldName]
	}
	return fields
}

// parentOf returns the graph that contains a place: the address up to the node that contains the
// graph, or the outermost graph. text is the address as text.
func (v *interruptView) parentOf(address fermata.Address, text string) *fermata.InterruptCtx {
	last := len(address) - 1
	for last >= 0 && address[last].Type != fermata.SegmentNode && address[last].Type != fermata.SegmentHold {
		last--
		text, _ = splitPlace(text)
	}
	if last <= 0 {
		return nil
	}
	outer := slices.Clip(address[:last])
	text, _ = splitPlace(text)
	if ic := v.seen.Get(text); ic != nil {
		return ic
	}
	ic := &fermata.InterruptCtx{Address: outer}
	v.seen.Set(text, ic)
	ic.Parent = v.parentOf(outer, text)
	return ic
}
