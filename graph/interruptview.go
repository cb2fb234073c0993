package graph

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/smallmap"
)

// interruptView makes of stored interrupts what people see. Places that several interrupts share are the same pointer.
type interruptView struct {
	session *execution
	root    *compiled
	seen    smallmap.Map[string, *fermata.InterruptCtx] // by interrupt id or, for a graph, by address
}

func (v *interruptView) interrupt(r *activation.Record) *fermata.InterruptCtx {
	if ic := v.seen.Get(r.ID); ic != nil {
		return ic
	}
	address, err := fermata.ParseAddress(r.Address)
	if err != nil {
		address = nil // a corrupt address does not hide the question
	}
	ic := &fermata.InterruptCtx{ID: r.ID, Address: address, Kind: r.Kind, Info: r.Info, Data: bytes.Clone(r.Data), IsRootCause: !r.Composite}
	if ic.Info == nil {
		ic.Info = v.storedInfo(r)
	}
	v.seen.Set(r.ID, ic)
	if parent := v.session.records.Get(r.Parent); parent != nil {
		ic.Parent = v.interrupt(parent)
	} else {
		ic.Parent = v.parentOf(address, r.Address)
	}
	return ic
}

// stored is what an interrupt of an earlier process shows. It is never the only form: Data has the question, and the state
// that a hold shows is the run's.
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

// heldFields is the state that a hold shows, as JSON makes it, where the type of the state is not known: in a graph that the code of a
// node runs by itself. Showing nothing would be worse: who edits nothing and hands it back has emptied the state.
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
			return nil // corrupt: loading says so
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

// around is the graph that a place is in: the address up to the node that holds the graph, or the outermost graph itself. text
// is the address as a text.
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
