package agent

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// maxDepth is how deep agents may call each other. Two agents that hand over to one another for ever end here.
const maxDepth = 50

// agentScope is where an agent works: what it shares with all others of the run, and the way that led to it.
type agentScope struct {
	*runShared
	agent    Agent
	outer    *agentScope // nil for the outermost agent
	path     fermata.Address
	emitFunc func(*Event) // nil if nobody listens
	// handedOver says that the outer agent has handed the conversation over to this one.
	handedOver bool
	// history is the conversation of the agent, for those that it calls; nil if it has none.
	history func() []Message
	// saved is what is shown when the agent's output is saved.
	pendingEvents []Body
}

// runShared is what all agents of a run share.
type runShared struct {
	run       string
	streaming bool
	root      *activation.Scope // where the run's own notes are kept
	values    map[string]rawValue
	meter     *meter
	cancel    *canceller // nil if nobody can cancel
	edit      HistoryEdit
}

type scopeKey struct{}

func withScope(ctx context.Context, s *agentScope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// scopeOf is the stage of code that runs in an agent.
func scopeOf(ctx context.Context) *agentScope {
	s, _ := ctx.Value(scopeKey{}).(*agentScope)
	return s
}

// scopeFor is the stage of ctx, or a new one if ctx is part of a run in which no agent is at work yet.
func scopeFor(ctx context.Context) (*agentScope, error) {
	if s := scopeOf(ctx); s != nil {
		return s, nil
	}
	scope := activation.FromContext(ctx)
	if scope == nil {
		return nil, fmt.Errorf("%w: run agents with a Runner, or in a node of a graph", fermata.ErrNoRun)
	}
	e := &runShared{run: scope.Host.Run(), root: scope, cancel: cancellerOf(ctx)}
	var err error
	e.meter, err = newMeter(scope, Limits{}, nil)
	return &agentScope{runShared: e, emitFunc: listenerOf(ctx)}, err
}

// enter is the stage of an agent that is called from this one.
func (s *agentScope) enterAgent(a Agent, segment fermata.Segment) (*agentScope, error) {
	if s.depth() >= maxDepth {
		return nil, fmt.Errorf("%w: %s would be the %dth agent below another: %s", ErrTooDeep, a.Name(), maxDepth, s.path)
	}
	inner := &agentScope{runShared: s.runShared, agent: a, path: appended(s.path, segment), emitFunc: s.emitFunc}
	if s.agent != nil {
		inner.outer = s
	}
	return inner, s.cancel.checkEntry(s.path)
}

// inTool is the stage of a tool that the agent calls.
func (s *agentScope) forTool(segment fermata.Segment) *agentScope {
	inner := *s
	inner.path = appended(s.path, segment)
	return &inner
}

func appended(path fermata.Address, segment fermata.Segment) fermata.Address {
	return append(path[:len(path):len(path)], segment)
}

func (s *agentScope) depth() int {
	n := 0
	for ; s != nil && s.agent != nil; s = s.outer {
		n++
	}
	return n
}

// emit shows what happened to whoever listens.
func (s *agentScope) emit(body Body) { s.forward(&Event{Body: body}) }

// emitSaved does so when the agent's output is saved.
func (s *agentScope) emitWhenSaved(body Body) { s.pendingEvents = append(s.pendingEvents, body) }

// pass shows an event. One that comes from inside knows where it happened.
func (s *agentScope) forward(event *Event) {
	if s.emitFunc == nil {
		return
	}
	if event.Path == nil {
		event = &Event{Run: s.run, Path: s.path, Body: event.Body} // a new one: an agent may yield the same again
		if s.agent != nil {
			event.Agent = s.agent.Name()
		}
	}
	s.emitFunc(event)
}

type eventsKey struct{}

// WithEvents returns a context in which the events of agents that are run with [Run] go to fn: for agents in the nodes of a graph,
// where there is no [Runner]. Several goroutines may call fn at once.
func WithEvents(ctx context.Context, fn func(*Event)) context.Context {
	return context.WithValue(ctx, eventsKey{}, fn)
}

func listenerOf(ctx context.Context) func(*Event) {
	fn, _ := ctx.Value(eventsKey{}).(func(*Event))
	return fn
}

// withEmit returns a context in which the events of the agents go to emit.
func withEmit(ctx context.Context, emit func(*Event)) context.Context {
	s, err := scopeFor(ctx)
	if err != nil {
		return ctx // whoever runs an agent with it gets the error
	}
	own := *s
	own.emitFunc = emit
	return withScope(ctx, &own)
}
