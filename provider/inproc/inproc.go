// Package inproc is the provider that executes runs with our own engine, in this process: graphs and agents.
//
//	p, err := inproc.New(checkpoints,
//		inproc.Flow(review, inproc.FlowConfig[Review]{Description: "Has a draft reviewed."}),
//		inproc.Agent(agent.RunnerConfig{Agent: clerk}),
//	)
package inproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Name is the word before the colon of a graph id.
const Name = "inproc"

var _ provider.Provider = (*Provider)(nil)

// Provider executes runs with our own engine. A run's ref is the executor's id of the run: there is nothing to map.
type Provider struct {
	checkpoints store.Checkpoints
	graphs      map[string]Graph
	order       []string
}

// Graph is a graph or an agent that can be run by name; [Flow] and [Agent] make one.
type Graph interface {
	describe() (provider.Graph, error)
	execute(ctx context.Context, e provider.Execution, o place) (provider.Result, error)
	check(ctx context.Context, interrupt string, answer json.RawMessage, o place) (json.RawMessage, error)
}

// place is where the state of a run is.
type place struct {
	checkpoints store.Checkpoints
	run         provider.Run
}

// New makes a provider. checkpoints is where runs are read from when nobody executes them; whoever does writes through its
// right to the run.
func New(checkpoints store.Checkpoints, graphs ...Graph) (*Provider, error) {
	p := &Provider{checkpoints: checkpoints, graphs: make(map[string]Graph)}
	var errs []error
	for _, g := range graphs {
		d, err := g.describe()
		if err == nil && p.graphs[d.Name] != nil {
			err = fmt.Errorf("inproc: two graphs are named %s", d.Name)
		}
		if errs = append(errs, err); err == nil {
			p.graphs[d.Name] = g
			p.order = append(p.order, d.Name)
		}
	}
	return p, errors.Join(errs...)
}

// Name is "inproc".
func (p *Provider) Name() string { return Name }

// Graphs lists the graphs, in the order in which they were given.
func (p *Provider) Graphs() []provider.Graph {
	var list []provider.Graph
	for _, name := range p.order {
		if d, err := p.graphs[name].describe(); err == nil { // New has seen to it
			list = append(list, d)
		}
	}
	return list
}

func (p *Provider) graph(name string) (Graph, error) {
	if g := p.graphs[name]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("inproc: this program has no graph %q", name)
}

// Execute takes a run as far as it gets; see [provider.Provider].
func (p *Provider) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	g, err := p.graph(e.Run.Graph)
	if err != nil {
		return provider.Result{}, err
	}
	return g.execute(ctx, e, place{e.Owner.Checkpoints(), e.Run})
}

// Check looks at an answer; see [provider.Provider].
func (p *Provider) Check(ctx context.Context, run provider.Run, interrupt string, answer json.RawMessage) (json.RawMessage, error) {
	g, err := p.graph(run.Graph)
	if err != nil {
		return nil, err
	}
	return g.check(ctx, interrupt, answer, place{p.checkpoints, run})
}

// Delete forgets a run; see [provider.Provider].
func (p *Provider) Delete(ctx context.Context, run provider.Run) error {
	return p.checkpoints.Delete(ctx, store.Key{Account: run.Account, Run: run.ID})
}

// open keeps those answers whose questions are open. The others were taken by an execution that died before it could say so.
func open(answers []provider.Answer, waiting []*fermata.InterruptCtx) map[string]any {
	targets := make(map[string]any)
	for _, answer := range answers {
		for _, ic := range waiting {
			if ic.ID == answer.Interrupt {
				targets[answer.Interrupt] = answer.Data
			}
		}
	}
	return targets
}

// rest says how far an execution has come.
func rest(e provider.Execution, err error, completed func() (provider.Completed, error)) (provider.Result, error) {
	var result provider.Result
	for _, answer := range e.Answers {
		result.Applied = append(result.Applied, answer.Interrupt)
	}
	if info, waits := fermata.ExtractInterruptInfo(err); waits {
		questions, err := questions(info.Interrupts)
		result.Rest = provider.Waiting{Questions: questions}
		return result, err
	}
	switch {
	case err == nil:
		done, err := completed()
		result.Rest = done
		return result, err
	case retryable(err):
		return provider.Result{}, err
	}
	result.Rest = provider.Failed{Code: code(err), Message: message(err)}
	return result, nil
}

// retryable reports whether the execution, and not the run, has failed.
func retryable(err error) bool {
	if _, unsaved := errors.AsType[*graph.SaveError](err); unsaved {
		return true
	}
	for _, known := range []error{graph.ErrStopped, graph.ErrTakenOver, graph.ErrRunning, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// code names what went wrong, for programs.
func code(err error) string {
	if _, changed := errors.AsType[*graph.ChangedError](err); changed {
		return "program_changed"
	}
	if _, panicked := errors.AsType[*graph.PanicError](err); panicked {
		return "panic"
	}
	if _, expired := errors.AsType[*fermata.ExpiredError](err); expired {
		return "expired"
	}
	if _, rejected := errors.AsType[*fermata.RejectedError](err); rejected {
		return "rejected"
	}
	if errors.Is(err, graph.ErrCorrupt) {
		return "corrupt_state"
	}
	return "node_failed"
}

// message is the error for people. What a node's own error says may hold anything, so only its place is told.
func message(err error) string {
	if node, ok := errors.AsType[*graph.NodeError](err); ok {
		return "the run failed at " + node.Address.String()
	}
	return "the run failed"
}

// questions is what people are asked.
func questions(waiting []*fermata.InterruptCtx) ([]provider.Question, error) {
	list := make([]provider.Question, 0, len(waiting))
	for _, ic := range waiting {
		q := provider.Question{ID: ic.ID, Address: ic.Address, Envelope: fermata.Envelope{Kind: ic.Kind, Data: ic.Data}}
		if q.Data == nil && ic.Info != nil { // a hold shows the state, which is stored elsewhere
			data, err := json.Marshal(ic.Info)
			if err != nil {
				return nil, err
			}
			q.Data = data
		}
		if kind, ok := fermata.LookupKind(ic.Kind); ok {
			q.AnswerSchema = kind.AnswerSchema()
		}
		list = append(list, q)
	}
	return list, nil
}
