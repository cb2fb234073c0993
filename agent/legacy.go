package agent

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/activation"
)

// Agents of the older form build their interrupts themselves, with Data and without an address, and
// read Data back when they are resumed.

// raiseLegacy raises the interrupt of an agent that built the event itself.
func raiseLegacy(ctx context.Context, name string, body Interrupted) error {
	if body.Info == nil || body.Info.Data == nil {
		return fmt.Errorf("agent: %s yielded an interrupt that was not created by agent.Interrupt and has no Info.Data", name)
	}
	return fermata.Interrupt(ctx, body.Info.Data)
}

// legacyData returns the info of the interrupts as one value: that of the only interrupt, or of the
// composite that contains all of them, else a list.
func legacyData(interrupts []*fermata.InterruptCtx) any {
	if len(interrupts) == 0 {
		return nil
	}
	whole := outermost(interrupts[0])
	list := make([]any, len(interrupts))
	for i, ic := range interrupts {
		list[i] = ic.Info
		if outermost(ic) != whole {
			whole = nil
		}
	}
	switch {
	case len(list) == 1 && (whole == nil || whole.Info == nil):
		return list[0]
	case whole == nil || whole.Info == nil:
		return list
	}
	return whole.Info
}

// outermost returns the outermost interrupt that contains this one.
func outermost(ic *fermata.InterruptCtx) *fermata.InterruptCtx {
	found := ic
	for ; ic != nil; ic = ic.Parent {
		if ic.ID != "" {
			found = ic
		}
	}
	return found
}

// legacyInfo describes the own interrupt of an agent that is resumed.
func legacyInfo(run string, own *activation.Record) *fermata.InterruptInfo {
	info := &fermata.InterruptInfo{Run: run}
	address, _ := fermata.ParseAddress(own.Address) // the runtime wrote it
	ic := &fermata.InterruptCtx{ID: own.ID, Address: address, Kind: own.Kind, Data: own.Data, IsRootCause: !own.Composite}
	if own.Data != nil {
		ic.Info, info.Data = own.Data, own.Data
	}
	info.Interrupts = []*fermata.InterruptCtx{ic}
	return info
}

// plainInterrupts returns the ids of the open interrupts that need no data, if the run waits.
func plainInterrupts(saved *graph.LoadedRun[runState]) ([]string, error) {
	view, err := saved.Inspect()
	if err != nil || view.Status != graph.StatusWaiting {
		return nil, err
	}
	var ids []string
	for _, ic := range view.Interrupts {
		if ic.Kind == "" {
			ids = append(ids, ic.ID)
		}
	}
	return ids, nil
}
