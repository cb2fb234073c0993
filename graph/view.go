package graph

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/few"
	"github.com/fermata-go/fermata/internal/visit"
)

// viewer makes of stored interrupts what people see. Places that several interrupts share are the same pointer.
type viewer struct {
	session *session
	root    subgraph
	seen    few.Map[string, *fermata.InterruptCtx] // by interrupt id or, for a graph, by address
}

func (v *viewer) interrupt(r *visit.Record) *fermata.InterruptCtx {
	if ic := v.seen.Get(r.ID); ic != nil {
		return ic
	}
	address, err := fermata.ParseAddress(r.Address)
	if err != nil {
		address = nil // a corrupt address does not hide the question
	}
	ic := &fermata.InterruptCtx{ID: r.ID, Address: address, Kind: r.Kind, Info: r.Info, Data: bytes.Clone(r.Data), IsRootCause: !r.Composite}
	if ic.Info == nil {
		ic.Info = v.stored(r)
	}
	v.seen.Set(r.ID, ic)
	if parent := v.session.records.Get(r.Parent); parent != nil {
		ic.Parent = v.interrupt(parent)
	} else {
		ic.Parent = v.around(address, r.Address)
	}
	return ic
}

// stored is what an interrupt of an earlier process shows. It is never the only form: Data has the question, and the state
// that a hold shows is the run's.
func (v *viewer) stored(r *visit.Record) (info any) {
	if r.Kind == KindHold {
		if place, err := fermata.ParseAddress(r.Visit); err == nil {
			return v.root.heldState(v.session.loaded, "", place)
		}
		return nil
	}
	if r.Data != nil {
		dec := json.NewDecoder(bytes.NewReader(r.Data))
		dec.UseNumber()
		_ = dec.Decode(&info)
	}
	return info
}

// around is the graph that a place is in: the address up to the node that holds the graph, or the outermost graph itself. text
// is the address as a text.
func (v *viewer) around(address fermata.Address, text string) *fermata.InterruptCtx {
	last := len(address) - 1
	for last >= 0 && address[last].Type != fermata.SegmentNode && address[last].Type != fermata.SegmentHold {
		last--
		text, _ = cutPlace(text)
	}
	if last <= 0 {
		return nil
	}
	outer := slices.Clip(address[:last])
	text, _ = cutPlace(text)
	if ic := v.seen.Get(text); ic != nil {
		return ic
	}
	ic := &fermata.InterruptCtx{Address: outer}
	v.seen.Set(text, ic)
	ic.Parent = v.around(outer, text)
	return ic
}
