package agent

import (
	"context"
	"encoding/json"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// Interrupt returns an event that makes the run wait at this agent. info is shown to the person.
// The agent yields the event and nothing after it.
//
// Prefer [fermata.Kind.Ask] if the answer has a type: yield the error that it returns.
func Interrupt(ctx context.Context, info any) *Event {
	return interruptEvent(ctx, fermata.Interrupt(ctx, info))
}

// StatefulInterrupt is [Interrupt] with a state that [ResumeInfo] returns later.
func StatefulInterrupt(ctx context.Context, info, state any) *Event {
	return interruptEvent(ctx, fermata.StatefulInterrupt(ctx, info, state))
}

// CompositeInterrupt combines the interrupt events of agents that this agent runs itself, with its
// own info and state. The combined interrupts can be answered separately.
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

// interrupted converts an interrupt error to its public form. Another error is carried by the
// interrupt and returned to the receiver.
func interrupted(ctx context.Context, err error) Interrupted {
	i := Interrupted{signal: err}
	scope := activation.FromContext(ctx)
	if scope == nil || !activation.IsWait(err) {
		return i
	}
	signals, _ := scope.Collect(err)
	i.Info = &fermata.InterruptInfo{Run: scope.Host.Run(), Interrupts: interruptContexts(signals)}
	i.Info.Data = legacyData(i.Info.Interrupts)
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

// ResumeInfo describes the resume of an agent.
type ResumeInfo struct {
	// Input is the input of Run.
	Input *Input
	// EnableStreaming is the mode that the run started with.
	EnableStreaming bool
	// WasInterrupted is true: only an agent that raised an interrupt is resumed.
	WasInterrupted bool
	// InterruptState is the state that the agent passed to [StatefulInterrupt] or
	// [CompositeInterrupt]; nil if none. [fermata.GetInterruptState] returns it as a Go value.
	InterruptState json.RawMessage
	// IsResumeTarget reports that the agent's own interrupt was answered, with ResumeData (nil for
	// an answer without data). [fermata.GetResumeContext] returns it as a Go value, and keeps the
	// interrupt open if it has the wrong type.
	IsResumeTarget bool
	ResumeData     json.RawMessage
	// AnsweredBelow reports that an interrupt that the agent combined was answered.
	AnsweredBelow bool
	// InterruptInfo describes the agent's own interrupt, for agents of the older form.
	*fermata.InterruptInfo
}

func resumeInfo(ctx context.Context, input *Input) *ResumeInfo {
	scope, stage := activation.FromContext(ctx), scopeOf(ctx)
	last := scope.Last()
	return &ResumeInfo{
		Input: input, EnableStreaming: stage.streaming,
		WasInterrupted: true, InterruptState: last.State,
		IsResumeTarget: last.Status == activation.StatusAnswered, ResumeData: last.Answer,
		AnsweredBelow: last.Composite && scope.Host.HasNewAnswer(scope.Path()),
		InterruptInfo: legacyInfo(stage.run, last),
	}
}

// userView shows interrupts in the simplified form: as agents and tool calls. Places that several
// interrupts share are the same pointer.
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

// parentOf returns the agent or tool call that contains the address. inner is the innermost place
// of the full view that contains it: if both are the same place, the simplified one has its id and
// info.
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

// publicAddress returns the agents and tool calls of an address.
func publicAddress(address fermata.Address) fermata.Address {
	var path fermata.Address
	for _, segment := range address {
		if segment.Type == fermata.SegmentAgent || segment.Type == fermata.SegmentTool {
			path = append(path, segment)
		}
	}
	return path
}
