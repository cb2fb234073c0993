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
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

// FlowConfig configures a graph.
type FlowConfig[S any] struct {
	// Name is the public name. The default is the name of the graph.
	Name        string
	Description string
	// Content returns the text of the outcome. By default there is none.
	Content func(S) string
	// Policy decides on actions that need approval. Without one a person is asked about each.
	Policy fermata.Policy
	// Explain, if set, replies to clarification requests, based on the saved state. It must have no
	// side effects, because it may be called again with the same clarification. Without it only the
	// requester can reply.
	Explain func(ctx context.Context, state S, clarification provider.Clarification) (string, error)
	// OnFailure, if set, receives the error of a failed execution: see [FailureFunc].
	OnFailure FailureFunc
}

// Flow registers a graph. The input is the JSON of the state, where missing fields are zero; the
// output is the JSON of the final state.
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
	input  *schema.Schema // nil if only decoding can validate it
}

func (g *flowGraph[S]) describe() (provider.Graph, error) {
	d := provider.Graph{Name: g.config.Name, Description: g.config.Description, Drawing: g.flow.Draw()}
	if g.input != nil {
		d.Input = g.input.Text
	}
	return d, nil
}

// decodeInput decodes the input of a run.
func (g *flowGraph[S]) decodeInput(input json.RawMessage) (state S, err error) {
	if err = strictjson.Decode(input, &state); g.input != nil && (err == nil || inputProblem(err) == "") {
		err = cmp.Or(g.input.Validate(input), err) // the error names the field
	}
	if err != nil {
		invalid := &inputError{err: err}
		if g.input != nil {
			invalid.expected = fieldsOf(g.input.Text)
		}
		return state, invalid
	}
	return state, nil
}

func (g *flowGraph[S]) checkInput(input json.RawMessage) error {
	_, err := g.decodeInput(input)
	return err
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
	options := append(g.options(e.Run), graph.WithLedger(e.Owner.Ledger()), graph.WithPolicy(policyOf(g.config.Policy, e)))
	state, err := g.advance(ctx, e, append(options, progressOptions(e)...))
	g.config.OnFailure.call(ctx, e, err)
	return toResult(e, err, func() (provider.Completed, error) {
		output, err := roundtrip.Marshal(state)
		done := provider.Completed{Output: output, FinishReason: "end", DiscardState: true}
		if g.config.Content != nil {
			done.Content = g.config.Content(state)
		}
		return done, err
	})
}

// policyOf returns the policy of an execution: that of the graph, that of the execution, or the
// stricter of both.
func policyOf(own fermata.Policy, e provider.Execution) fermata.Policy {
	switch {
	case e.Policy == nil:
		return own
	case own == nil:
		return e.Policy
	}
	return fermata.Strictest(own, e.Policy)
}

// advance starts or resumes the run.
func (g *flowGraph[S]) advance(ctx context.Context, e provider.Execution, options []graph.Option) (S, error) {
	var state S
	options = append(options, graph.TakeOver()) // the executor's fence permits it
	loaded, err := g.flow.Load(ctx, e.Run.ID, options...)
	if errors.Is(err, graph.ErrUnknownRun) {
		if state, err = g.decodeInput(e.Input); err != nil {
			return state, err
		}
		end, err := g.flow.Run(ctx, state, append(options, graph.WithRun(e.Run.ID))...)
		if errors.Is(err, fermata.ErrForgedIdentity) {
			err = fmt.Errorf("%w: %w", errInput, err)
		}
		return end, err
	}
	if err != nil {
		return state, err
	}
	saved, err := loaded.Inspect()
	if err != nil {
		return state, err
	}
	// the process that finished it died before it could report the result
	if saved.Status == graph.StatusFinished {
		return saved.State, nil
	}
	answers, err := openAnswers(e.Answers, saved.Interrupts)
	if err != nil {
		return state, err
	}
	return resumeWith(answers, func(answers map[string]any) (S, error) {
		return loaded.Resume(fermata.BatchResumeWithData(ctx, answers))
	})
}

func (g *flowGraph[S]) answerChecks(ctx context.Context, run provider.Run) (func(string, any) (json.RawMessage, error), error) {
	loaded, err := g.flow.Load(ctx, run.ID, g.options(run)...)
	if err != nil {
		return nil, err
	}
	return loaded.CheckAnswer, nil
}

func (g *flowGraph[S]) explain(ctx context.Context, run provider.Run, clarification provider.Clarification) (string, error) {
	if g.config.Explain == nil {
		return "", nil
	}
	saved, err := g.flow.Inspect(ctx, run.ID, g.options(run)...)
	if err != nil {
		return "", err
	}
	return g.config.Explain(ctx, saved.State, clarification)
}
