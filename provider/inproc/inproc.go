// Package inproc is the provider that executes runs with our own engine, in this process: graphs and agents.
//
//	p, err := inproc.New(
//		inproc.Flow(review, inproc.FlowConfig[Review]{Description: "Has a draft reviewed."}),
//		inproc.Agent(agent.RunnerConfig{Agent: clerk}),
//	)
package inproc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/tool"
)

// Name is the word before the colon of a graph id.
const Name = "inproc"

var (
	_ provider.Provider           = (*Provider)(nil)
	_ provider.Explainer          = (*Provider)(nil)
	_ provider.BatchAnswerChecker = (*Provider)(nil)
)

// Provider executes runs with our own engine. A run's ref is the executor's id of the run: there is nothing to map.
type Provider struct {
	graphs map[string]Graph
	list   []provider.Graph // what they say of themselves: a schema takes time to make
}

// Graph is a graph or an agent that can be run by name; [Flow] and [Agent] make one.
type Graph interface {
	describe() (provider.Graph, error)
	execute(ctx context.Context, e provider.Execution) (provider.Result, error)
	answerChecks(ctx context.Context, run provider.Run) (func(interrupt string, answer any) (json.RawMessage, error), error)
	explain(ctx context.Context, run provider.Run, back provider.Clarification) (string, error)
}

// New makes a provider of graphs, each with a name of its own.
func New(graphs ...Graph) (*Provider, error) {
	p := &Provider{graphs: make(map[string]Graph)}
	var errs []error
	for _, g := range graphs {
		d, err := g.describe()
		if err == nil && p.graphs[d.Name] != nil {
			err = fmt.Errorf("inproc: two graphs are named %s", d.Name)
		}
		if errs = append(errs, err); err == nil {
			p.graphs[d.Name] = g
			p.list = append(p.list, d)
		}
	}
	return p, errors.Join(errs...)
}

// Name is "inproc".
func (p *Provider) Name() string { return Name }

// Capabilities are all that there are.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{Parallel: true, Effects: true}
}

// Graphs lists the graphs, in the order in which they were given.
func (p *Provider) Graphs() []provider.Graph { return slices.Clone(p.list) }

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
	seen := &outageDetector{Checkpoints: e.Run.State, Owner: e.Owner, ledger: e.Owner.Ledger()}
	e.Run.State, e.Owner = seen, seen
	result, err := g.execute(ctx, e)
	if _, failed := result.Outcome.(provider.Failed); failed && seen.failure() != nil {
		return provider.Result{}, seen.failure() // whatever the run made of it
	}
	return result, err
}

// Check looks at an answer; see [provider.Provider].
func (p *Provider) CheckAnswer(ctx context.Context, run provider.Run, interrupt string, answer json.RawMessage) (json.RawMessage, error) {
	check, err := p.AnswerChecks(ctx, run)
	if err != nil {
		return nil, err
	}
	return check(interrupt, answer)
}

// Checks looks at many answers; see [provider.BatchAnswerChecker].
func (p *Provider) AnswerChecks(ctx context.Context, run provider.Run) (provider.AnswerCheck, error) {
	g, err := p.graph(run.Graph)
	if err != nil {
		return nil, err
	}
	check, err := g.answerChecks(ctx, run)
	if err != nil {
		return nil, err
	}
	return func(interrupt string, answer json.RawMessage) (json.RawMessage, error) {
		checked, err := check(interrupt, answer)
		if err == nil && checked == nil {
			return json.RawMessage("null"), nil // an answer without data, as the one that lets a hold go on, is an answer
		}
		return checked, err
	}, nil
}

// Explain has a graph say what somebody wants to know; see [provider.Explainer].
func (p *Provider) Explain(ctx context.Context, run provider.Run, back provider.Clarification) (string, error) {
	g, err := p.graph(run.Graph)
	if err != nil {
		return "", err
	}
	return g.explain(ctx, run, back)
}

// Delete has nothing to do: whatever is known of a run is in its state, which goes with it.
func (p *Provider) Delete(context.Context, provider.Run) error { return nil }

// errExpired says that a run waited for an answer which did not come, and has no way to go on without.
var errExpired = errors.New("inproc: nobody answered in time")

// errInput says that a run cannot begin with what it was given.
var errInput = errors.New("inproc: the input does not fit the graph")

// openAnswers keeps those answers whose questions are open. The others were taken by an execution that died before it could say so.
func openAnswers(answers []provider.Answer, waiting []*fermata.InterruptCtx) (map[string]any, error) {
	targets := make(map[string]any)
	for _, answer := range answers {
		for _, ic := range waiting {
			if ic.ID != answer.InterruptID {
				continue
			}
			data, err := answerPayload(answer, ic.Kind)
			if err != nil {
				return nil, err
			}
			targets[answer.InterruptID] = data
		}
	}
	return targets, nil
}

// resumeWith goes on with these answers, without those that this program does not take: another one did, before a deploy or beside this one. Their questions stay
// open, and are asked again. What code refuses comes beside something else, or with the questions, and the other answers are taken then.
func resumeWith[T any](answers map[string]any, resume func(map[string]any) (T, error)) (T, error) {
	for {
		end, err := resume(answers)
		bad, unfit := err.(*fermata.AnswerError) // not one inside of another
		if !unfit {                              //mutate:unfit-answer-parks
			return end, err
		}
		if _, given := answers[bad.ID]; !given {
			return end, err
		}
		delete(answers, bad.ID) // and nothing has run
	}
}

// answerPayload is an answer as it is delivered. The clock's word on an action is that nobody decided in time, which is neither a yes nor a no; on any
// other question there is none that could be given in the place of an answer.
func answerPayload(answer provider.Answer, kind string) (json.RawMessage, error) {
	if !answer.Expired {
		return answer.Data, nil
	}
	if kind != fermata.Approval.Name() {
		return nil, errExpired
	}
	return json.Marshal(fermata.Decision{Verb: fermata.VerbExpire, Reason: "stale", By: answer.By, At: answer.At})
}

// toResult says how far an execution has come.
func toResult(e provider.Execution, err error, completed func() (provider.Completed, error)) (provider.Result, error) {
	var result provider.Result
	for _, answer := range e.Answers {
		result.Applied = append(result.Applied, answer.InterruptID)
	}
	if info, waits := fermata.ExtractInterruptInfo(err); waits {
		questions, err := toInterrupts(info.Interrupts)
		result.Outcome = provider.Waiting{Interrupts: questions}
		return result, err
	}
	switch {
	case err == nil:
		done, err := completed()
		result.Outcome = done
		return result, err
	case retryable(err):
		return provider.Result{}, err
	}
	result.Outcome = provider.Failed{Code: failureCode(err), Message: failureMessage(err)}
	return result, nil
}

// retryable reports whether the execution, and not the run, has failed.
func retryable(err error) bool {
	if _, unsaved := errors.AsType[*graph.SaveError](err); unsaved {
		return true
	}
	if _, later := errors.AsType[*provider.RetryError](err); later {
		return true
	}
	if model, ok := errors.AsType[*agent.ModelError](err); ok && model.Temporary {
		return true
	}
	for _, known := range []error{graph.ErrStopped, graph.ErrTakenOver, graph.ErrRunning, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return true
		}
	}
	return isProgramMismatch(err) //mutate:missing-node-parks
}

// isProgramMismatch reports whether the program is not one for the run: another replica may have the one, or whoever deploys brings it back.
func isProgramMismatch(err error) bool {
	_, place := errors.AsType[*graph.ProgramChangedError](err)
	_, call := errors.AsType[*agent.ProgramChangedError](err)
	_, gate := errors.AsType[*tool.ProgramChangedError](err)
	return place || call || gate || errors.Is(err, fermata.ErrProgramChanged) || errors.Is(err, graph.ErrFormat) || errors.Is(err, graph.ErrWrongGraph)
}

// failureCode names what went wrong, for programs.
func failureCode(err error) string {
	if errors.Is(err, errInput) {
		return "invalid_input"
	}
	if _, panicked := errors.AsType[*graph.PanicError](err); panicked {
		return "panic"
	}
	if _, expired := errors.AsType[*fermata.ExpiredError](err); expired || errors.Is(err, errExpired) {
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

// failureMessage is the error for people. What a node's own error says may hold anything, so only its place is told.
func failureMessage(err error) string {
	if node, ok := errors.AsType[*graph.NodeError](err); ok {
		return "the run failed at " + node.Address.String()
	}
	for _, known := range []error{errExpired, errInput} {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "inproc: ") + inputProblem(err)
		}
	}
	return "the run failed"
}

// inputProblem says what is wrong with an input, as far as that can be said without anything of it.
func inputProblem(err error) string {
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && bad.Field != "" {
		return fmt.Sprintf(": %s should be a %s", bad.Field, bad.Type)
	}
	if text := err.Error(); strings.Contains(text, "unknown field") || strings.Contains(text, "unknown member") {
		return ": it has a member that the graph does not know"
	}
	if places := invalidInput.FindStringSubmatch(err.Error()); places != nil {
		return fmt.Sprintf(": it does not fit %s of its input schema", places[1])
	}
	return ""
}

// invalidInput finds the place in a schema that a value does not fit. What comes behind it may show the value.
var invalidInput = regexp.MustCompile(`^[^/]*validating root: (?:validating /\S+: )*validating (/\S+): `)

// toInterrupts is what people are asked.
func toInterrupts(waiting []*fermata.InterruptCtx) ([]provider.Interrupt, error) {
	list := make([]provider.Interrupt, 0, len(waiting))
	for _, ic := range waiting {
		q := provider.Interrupt{ID: ic.ID, Address: ic.Address, Envelope: fermata.Envelope{Kind: cmp.Or(ic.Kind, fermata.PlainKind), Data: ic.Data}}
		if q.Data == nil && ic.Info != nil { // a hold shows the state, which is stored elsewhere
			data, err := json.Marshal(roundtrip.Addressable(ic.Info))
			if err != nil {
				return nil, err
			}
			q.Data = data
		}
		if kind, ok := fermata.LookupKind(ic.Kind); ok {
			q.AnswerSchema = kind.HumanAnswerSchema()
		}
		list = append(list, q)
	}
	return list, nil
}
