package agent

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// maxDepth is the maximum nesting depth of agents. Agents that hand over to each other endlessly
// fail here.
const maxDepth = 50

// agentScope is the context of a running agent: the data that all agents of the run share, and the
// path to the agent.
type agentScope struct {
	*runShared
	agent    Agent
	outer    *agentScope // nil for the outermost agent
	path     fermata.Address
	emitFunc func(*Event) // nil without a listener
	// handedOver reports that the outer agent handed the conversation over to this one.
	handedOver bool
	// received is the conversation that the agent was called with, before messages of other agents
	// are narrated.
	received []Message
	// history returns the conversation of the agent for agents that it calls; nil if it has none.
	history func() []Message
	// pendingEvents are emitted when the agent's output is saved.
	pendingEvents []Body
}

// runShared is the data that all agents of a run share.
type runShared struct {
	run       string
	streaming bool
	root      *activation.Scope // scope for journal entries of the run
	values    map[string]rawValue
	meter     *meter
	cancel    *canceller // nil if the run cannot be cancelled
	edit      HistoryEdit
}

type scopeKey struct{}

func withScope(ctx context.Context, s *agentScope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// scopeOf returns the scope of code that runs in an agent.
func scopeOf(ctx context.Context) *agentScope {
	s, _ := ctx.Value(scopeKey{}).(*agentScope)
	return s
}

// scopeFor returns the scope of ctx, or a new one if ctx is part of a run without an active agent.
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

// enterAgent returns the scope of an agent that is called from this one.
func (s *agentScope) enterAgent(a Agent, segment fermata.Segment) (*agentScope, error) {
	if s.depth() >= maxDepth {
		return nil, fmt.Errorf("%w: %s would be nested %d levels deep: %s", ErrTooDeep, a.Name(), maxDepth, s.path)
	}
	inner := &agentScope{runShared: s.runShared, agent: a, path: appended(s.path, segment), emitFunc: s.emitFunc}
	if s.agent != nil {
		inner.outer = s
	}
	return inner, s.cancel.checkEntry(s.path)
}

// forTool returns the scope of a tool that the agent calls.
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

// emit sends an event to the listener.
func (s *agentScope) emit(body Body) { s.forward(&Event{Body: body}) }

// emitWhenSaved sends an event when the agent's output is saved.
func (s *agentScope) emitWhenSaved(body Body) { s.pendingEvents = append(s.pendingEvents, body) }

// forward sends an event. An event of an inner agent keeps its own path.
func (s *agentScope) forward(event *Event) {
	if s.emitFunc == nil {
		return
	}
	if event.Path == nil {
		// a copy: an agent may yield the same event again
		event = &Event{Run: s.run, Path: s.path, Body: event.Body}
		if s.agent != nil {
			event.Agent = s.agent.Name()
		}
	}
	s.emitFunc(event)
}

type eventsKey struct{}

// WithEvents returns a context that sends the events of agents run with [Run] to fn, for agents in
// the nodes of a graph without a [Runner]. fn may be called concurrently.
func WithEvents(ctx context.Context, fn func(*Event)) context.Context {
	return context.WithValue(ctx, eventsKey{}, fn)
}

func listenerOf(ctx context.Context) func(*Event) {
	fn, _ := ctx.Value(eventsKey{}).(func(*Event))
	return fn
}

// withEmit returns a context that sends the events of agents to emit.
func withEmit(ctx context.Context, emit func(*Event)) context.Context {
	s, err := scopeFor(ctx)
	if err != nil {
		return ctx // the caller that runs an agent with it gets the error
	}
	own := *s
	own.emitFunc = emit
	return withScope(ctx, &own)
}
