package agent

import (
	"context"
	"encoding/json"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// Interrupt returns an event that makes the run wait at this agent. info is what the person sees. The agent yields the event
// and nothing after it.
//
// [fermata.Kind.Ask] is the better call wherever the answer has a type: yield the error that it returns.
func Interrupt(ctx context.Context, info any) *Event {
	return interruptEvent(ctx, fermata.Interrupt(ctx, info))
}

// StatefulInterrupt is [Interrupt] with a state that comes back in [ResumeInfo].
func StatefulInterrupt(ctx context.Context, info, state any) *Event {
	return interruptEvent(ctx, fermata.StatefulInterrupt(ctx, info, state))
}

// CompositeInterrupt bundles the interrupts of agents that this one runs by itself, as the events that they yielded, with an
// info and a state of its own. The bundled ones stay single places to answer.
func CompositeInterrupt(ctx context.Context, info, state any, subs ...*Event) *Event {
	errs := make([]error, 0, len(subs))
	for _, sub := range subs {
		if i, ok := sub.Body.(Interrupted); ok {
			errs = append(errs, i.signal)
		}
	}
	return interruptEvent(ctx, fermata.CompositeInterrupt(ctx, info, state, errs...))
}

func interruptEvent(ctx context.Context, err error) *Event {
	e := &Event{Body: interrupted(ctx, err)}
	if s := scopeOf(ctx); s != nil && s.agent != nil {
		e.Run, e.Agent, e.Path = s.run, s.agent.Name(), s.path
	}
	return e
}

// interrupted makes of the wish to wait what people see of it. Of an error that is no such wish it makes an interrupt that
// carries the error: whoever hears it fails with that.
func interrupted(ctx context.Context, err error) Interrupted {
	i := Interrupted{signal: err}
	scope := activation.FromContext(ctx)
	if scope == nil || !activation.IsWait(err) {
		return i
	}
	signals, _ := scope.Collect(err)
	i.Info = &fermata.InterruptInfo{Run: scope.Host.Run(), Interrupts: interruptContexts(signals)}
	i.Interrupts = userView(i.Info.Interrupts)
	return i
}

// interruptContexts lists the places that asked, with the composites around them.
func interruptContexts(signals []*activation.Signal) []*fermata.InterruptCtx {
	flat := activation.Flatten(signals)
	byID := make(map[string]*fermata.InterruptCtx, len(flat))
	for _, s := range flat {
		r := s.Record
		address, _ := fermata.ParseAddress(r.Address) // the runtime wrote it
		byID[r.ID] = &fermata.InterruptCtx{ID: r.ID, Address: address, Kind: r.Kind, Info: s.Info, Data: r.Data, IsRootCause: !r.Composite}
	}
	var causes []*fermata.InterruptCtx
	for _, s := range flat {
		ic := byID[s.Record.ID]
		ic.Parent = byID[s.Record.Parent]
		if ic.IsRootCause {
			causes = append(causes, ic)
		}
	}
	return causes
}

// ResumeInfo tells an agent with what it goes on.
type ResumeInfo struct {
	// Input is what Run was called with.
	Input *Input
	// EnableStreaming is the mode of the run, as it was when it began.
	EnableStreaming bool
	// WasInterrupted is true: only an agent that raised an interrupt is resumed.
	WasInterrupted bool
	// InterruptState is what the agent left with [StatefulInterrupt] or [CompositeInterrupt]; nil if nothing.
	// [fermata.GetInterruptState] gives it as a Go value.
	InterruptState json.RawMessage
	// IsResumeTarget says that the agent's own interrupt was answered, with ResumeData (nil for an answer without data).
	// [fermata.GetResumeContext] gives it as a Go value, and keeps the question open if it is not one.
	IsResumeTarget bool
	ResumeData     json.RawMessage
	// AnsweredBelow says that an interrupt which the agent bundled was answered.
	AnsweredBelow bool
}

func resumeInfo(ctx context.Context, input *Input) *ResumeInfo {
	scope, stage := activation.FromContext(ctx), scopeOf(ctx)
	last := scope.Last()
	return &ResumeInfo{
		Input: input, EnableStreaming: stage.streaming,
		WasInterrupted: true, InterruptState: last.State,
		IsResumeTarget: last.Status == activation.StatusAnswered, ResumeData: last.Answer,
		AnsweredBelow: last.Composite && scope.Host.HasNewAnswer(scope.Path()),
	}
}

// userView shows interrupts the way people think of them: as agents and tool calls. Places that several interrupts share are
// the same pointer.
func userView(full []*fermata.InterruptCtx) []*fermata.InterruptCtx {
	places := make(map[string]*fermata.InterruptCtx)
	view := make([]*fermata.InterruptCtx, len(full))
	for i, ic := range full {
		own := *ic
		own.Address = publicAddress(ic.Address)
		own.Parent = parentOf(places, ic.Parent, own.Address)
		view[i] = &own
	}
	return view
}

// parentOf is the agent or tool call that a place of that address is in. inner is the innermost place of the full view that
// contains it: if the two are the same, the one that people see has the other's id and info.
func parentOf(places map[string]*fermata.InterruptCtx, inner *fermata.InterruptCtx, address fermata.Address) *fermata.InterruptCtx {
	if len(address) < 2 {
		return nil
	}
	outer := address[:len(address)-1]
	text := outer.String()
	if known := places[text]; known != nil {
		return known
	}
	place := &fermata.InterruptCtx{Address: outer}
	for ; inner != nil && len(publicAddress(inner.Address)) >= len(outer); inner = inner.Parent {
		if publicAddress(inner.Address).Equal(outer) && inner.ID != "" {
			place.ID, place.Kind, place.Info, place.Data = inner.ID, inner.Kind, inner.Info, inner.Data
		}
	}
	places[text] = place
	place.Parent = parentOf(places, inner, outer)
	return place
}

// publicAddress is the part of an address that people see.
func publicAddress(address fermata.Address) fermata.Address {
	var path fermata.Address
	for _, segment := range address {
		if segment.Type == fermata.SegmentAgent || segment.Type == fermata.SegmentTool {
			path = append(path, segment)
		}
	}
	return path
}
