package inproc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

// FlowConfig says how a graph is run by name.
type FlowConfig[S any] struct {
	// Name is what it is called by; by default that of the graph.
	Name        string
	Description string
	// Content makes the text of the outcome; by default there is none.
	Content func(S) string
	// Policy decides on actions that ask for approval; without one a person is asked about each.
	Policy fermata.Policy
	// Explain, if given, says what people want to know about a question before they decide on it, from the state as it is saved. It must do
	// nothing else: it may be asked the same again. Without it nobody but the one for whom the run runs can answer.
	Explain func(ctx context.Context, state S, back provider.Clarification) (string, error)
	// OnFailure, if given, is told what ended an execution before its end: see [FailureFunc].
	OnFailure FailureFunc
}

// Flow makes a graph that can be run by name. Its input is the state's JSON, of which anything may be left out and is zero then; its output is that of
// the final state.
func Flow[S any](flow *graph.Flow[S], config FlowConfig[S]) Graph {
	if config.Name == "" {
		config.Name = flow.Name()
	}
	g := &flowGraph[S]{flow: flow, config: config}
	if s, err := schema.ForPart[S](); err == nil && !s.Recursive {
		g.input = &s
	}
	return g
}

type flowGraph[S any] struct {
	flow   *graph.Flow[S]
	config FlowConfig[S]
	input  *schema.Schema // nil if only decoding can check it
}

func (g *flowGraph[S]) describe() (provider.Graph, error) {
	d := provider.Graph{Name: g.config.Name, Description: g.config.Description, Drawing: g.flow.Draw()}
	if g.input != nil {
		d.Input = g.input.Text
	}
	return d, nil
}

// begin reads what a run begins with.
func (g *flowGraph[S]) decodeInput(input json.RawMessage) (state S, err error) {
	if err = strictjson.Decode(input, &state); g.input != nil && (err == nil || inputProblem(err) == "") {
		err = cmp.Or(g.input.Validate(input), err) // it says where
	}
	if err != nil {
		return state, fmt.Errorf("%w: %w", errInput, err)
	}
	return state, nil
}

func (g *flowGraph[S]) options(run provider.Run) []graph.Option {
	list := []graph.Option{graph.WithStore(run.State), graph.WithAccount(run.Account)}
	if g.config.Policy != nil {
		list = append(list, graph.WithPolicy(g.config.Policy))
	}
	return list
}

func (g *flowGraph[S]) execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	ctx = agent.WithEvents(ctx, func(event *agent.Event) { reportEvent(e, event) })
	state, err := g.advance(ctx, e, append(g.options(e.Run), graph.WithLedger(e.Owner.Ledger()), graph.WithPolicy(policyOf(g.config.Policy, e)), stepOption(e)))
	g.config.OnFailure.call(ctx, e, err)
	return toResult(e, err, func() (provider.Completed, error) {
		output, err := json.Marshal(&state)
		done := provider.Completed{Output: output, FinishReason: "end", DiscardState: true}
		if g.config.Content != nil {
			done.Content = g.config.Content(state)
		}
		return done, err
	})
}

// policyOf is whom an execution asks about actions: the graph's own policy, that of the execution, or the stricter of both.
func policyOf(own fermata.Policy, e provider.Execution) fermata.Policy {
	switch {
	case e.Policy == nil:
		return own
	case own == nil:
		return e.Policy
	}
	return fermata.Strictest(own, e.Policy)
}

// advance starts the run, or goes on with it.
func (g *flowGraph[S]) advance(ctx context.Context, e provider.Execution, options []graph.Option) (S, error) {
	var state S
	saved, err := g.flow.Inspect(ctx, e.Run.ID, options...)
	switch {
	case errors.Is(err, graph.ErrUnknownRun):
		if state, err = g.decodeInput(e.Input); err != nil {
			return state, err
		}
		return g.flow.Run(ctx, state, append(options, graph.WithRun(e.Run.ID))...)
	case err != nil:
		return state, err
	case saved.Status == graph.StatusFinished: // whoever finished it died before it could say so
		return saved.State, nil
	}
	answers, err := openAnswers(e.Answers, saved.Interrupts)
	if err != nil {
		return state, err
	}
	options = append(options, graph.TakeOver()) // the executor's fence says that it may
	return resumeWith(answers, func(answers map[string]any) (S, error) {
		return g.flow.Resume(fermata.BatchResumeWithData(ctx, answers), e.Run.ID, options...)
	})
}

func (g *flowGraph[S]) answerChecks(ctx context.Context, run provider.Run) (func(string, any) (json.RawMessage, error), error) {
	return g.flow.CheckAnswers(ctx, run.ID, g.options(run)...)
}

func (g *flowGraph[S]) explain(ctx context.Context, run provider.Run, back provider.Clarification) (string, error) {
	if g.config.Explain == nil {
		return "", nil
	}
	saved, err := g.flow.Inspect(ctx, run.ID, g.options(run)...)
	if err != nil {
		return "", err
	}
	return g.config.Explain(ctx, saved.State, back)
}
