// Package inproc is the provider that executes graphs and agents in this process, with Fermata's
// own engine.
//
//	p, err := inproc.New(
//		inproc.Flow(review, inproc.FlowConfig[Review]{Description: "Reviews a draft."}),
//		inproc.Agent(agent.RunnerConfig{Agent: clerk}),
//	)
package inproc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/enduser"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/tool"
)

// Name is the provider part of a graph id, before the colon.
const Name = "inproc"

var (
	_ provider.Provider           = (*Provider)(nil)
	_ provider.Explainer          = (*Provider)(nil)
	_ provider.BatchAnswerChecker = (*Provider)(nil)
	_ provider.InputChecker       = (*Provider)(nil)
)

// Provider executes runs with Fermata's engine. The provider ref of a run is its run id.
type Provider struct {
	graphs map[string]Graph
	list   []provider.Graph // cached descriptions: deriving a schema takes time
}

// Graph is a graph or an agent that can be run by name; see [Flow] and [Agent].
type Graph interface {
	describe() (provider.Graph, error)
	checkInput(input json.RawMessage) error
	execute(ctx context.Context, e provider.Execution) (provider.Result, error)
	answerChecks(ctx context.Context, run provider.Run) (func(interrupt string, answer any) (json.RawMessage, error), error)
	explain(ctx context.Context, run provider.Run, clarification provider.Clarification) (string, error)
}

// New creates a provider for these graphs. Their names must be unique.
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

// Name returns "inproc".
func (p *Provider) Name() string { return Name }

// Capabilities returns all capabilities.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Parallel: true, PartialResume: true, Edit: true, Cancel: true, Streaming: true, Receipts: true, Once: provider.OnceEffects,
		Effects: true, Policy: true,
	}
}

// Graphs lists the graphs in the order of New.
func (p *Provider) Graphs() []provider.Graph { return slices.Clone(p.list) }

func (p *Provider) graph(name string) (Graph, error) {
	if g := p.graphs[name]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("inproc: this program has no graph %q", name)
}

// Execute starts or resumes a run; see [provider.Provider].
func (p *Provider) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	g, err := p.graph(e.Run.Graph)
	if err != nil {
		return provider.Result{}, err
	}
	seen := &outageDetector{Checkpoints: e.Run.State, Owner: e.Owner, ledger: e.Owner.Ledger()}
	e.Run.State, e.Owner = seen, seen
	result, err := g.execute(enduser.With(ctx, e.EndUser), e)
	if _, failed := result.Outcome.(provider.Failed); failed && seen.failure() != nil {
		return provider.Result{}, seen.failure() // regardless of the run's result
	}
	return result, err
}

// CheckInput validates an input before its run exists; see [provider.InputChecker].
func (p *Provider) CheckInput(_ context.Context, _, graph string, input json.RawMessage) error {
	g, err := p.graph(graph)
	if err != nil {
		return err
	}
	if err := g.checkInput(input); err != nil {
		return &provider.InputError{Code: failureCode(err), Problem: failureMessage(err)}
	}
	return nil
}

// CheckAnswer validates an answer; see [provider.Provider].
func (p *Provider) CheckAnswer(ctx context.Context, run provider.Run, interrupt string, answer json.RawMessage) (json.RawMessage, error) {
	check, err := p.AnswerChecks(ctx, run)
	if err != nil {
		return nil, err
	}
	return check(interrupt, answer)
}

// AnswerChecks validates many answers; see [provider.BatchAnswerChecker].
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
			// an answer without data, for example to release a hold, is valid
			return json.RawMessage("null"), nil
		}
		return checked, err
	}, nil
}

// Explain replies to a clarification request; see [provider.Explainer].
func (p *Provider) Explain(ctx context.Context, run provider.Run, clarification provider.Clarification) (string, error) {
	g, err := p.graph(run.Graph)
	if err != nil {
		return "", err
	}
	return g.explain(ctx, run, clarification)
}

// Delete does nothing: all data of a run is in its state, which the executor deletes.
func (p *Provider) Delete(context.Context, provider.Run) error { return nil }

// errExpired reports that an interrupt expired and the run cannot continue without its answer.
var errExpired = errors.New("inproc: interrupt expired")

// errInput reports that the input of a run is invalid.
var errInput = errors.New("inproc: the input does not match the graph")

// openAnswers returns the answers whose interrupts are open. The others were used by an execution
// that died before it could report that.
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
			if answer.Refusal != nil {
				if ic.Kind == "" { // the code would take the refusal for an answer
					return nil, answer.Refusal.Err(fermata.PlainKind)
				}
				targets[answer.InterruptID] = fermata.AttestedAnswer{Answer: *answer.Refusal, Attestation: answer.Attestation()}
				continue
			}
			targets[answer.InterruptID] = fermata.AttestedAnswer{Answer: data, Attestation: answer.Attestation()}
		}
	}
	return targets, nil
}

// resumeWith resumes with these answers, without those that this program rejects: another version
// of the program accepted them, before a deployment or in another replica. Their interrupts stay
// open. Answers that node code rejects are reported together with other results or with the
// interrupts; the other answers are then used.
func resumeWith[T any](answers map[string]any, resume func(map[string]any) (T, error)) (T, error) {
	for {
		end, err := resume(answers)
		bad, unfit := err.(*fermata.AnswerError) // not one inside another error
		if !unfit {                              //mutate:unfit-answer-parks
			return end, err
		}
		if _, ours := answers[bad.ID]; !ours {
			return end, err
		}
		delete(answers, bad.ID) // and nothing has run
	}
}

// answerPayload returns an answer as it is delivered. For an approval, expiry is a decision with
// the verb expire, neither an approval nor a rejection. Other kinds have no answer for expiry.
func answerPayload(answer provider.Answer, kind string) (json.RawMessage, error) {
	if !answer.Expired {
		return answer.Data, nil
	}
	if kind != fermata.Approval.Name() {
		return nil, errExpired
	}
	return json.Marshal(fermata.Decision{Verb: fermata.VerbExpire, Reason: "stale", By: answer.By, At: answer.At})
}

// toResult converts the end of an execution to a result.
func toResult(e provider.Execution, err error, completed func() (provider.Completed, error)) (provider.Result, error) {
	var result provider.Result
	for _, answer := range e.Answers {
		result.Applied = append(result.Applied, answer.InterruptID)
	}
	if waiting, waits := errors.AsType[*fermata.InterruptError](err); waits {
		questions, err := toInterrupts(waiting.Info.Interrupts)
		result.Outcome = provider.Waiting{Interrupts: questions, Unused: unusedAnswers(waiting.BadAnswers)}
		return result, err
	}
	switch {
	case err == nil:
		done, err := completed()
		result.Outcome = done
		return result, err
	case retryable(err):
		if retry := retryRequest(err); retry != nil {
			return provider.Result{}, &fermata.RetryError{After: retry.After, Err: err}
		}
		return provider.Result{}, err
	}
	failure := provider.Failed{Code: failureCode(err), Message: failureMessage(err), Detail: failureDetail(err)}
	failure.Final = slices.Contains(finalCodes, failure.Code)
	// a person's refusal ends the run; another failure does not withdraw the questions next to it
	if open := fermata.OpenInterrupts(err); len(open) > 0 && (failure.Code == codeNodeFailed || failure.Code == codePanic) {
		questions, err := toInterrupts(open)
		result.Outcome = provider.Waiting{Interrupts: questions, Failure: &failure}
		return result, err
	}
	result.Outcome = failure
	return result, nil
}

const (
	codeNodeFailed   = "node_failed"
	codePanic        = "panic"
	codeInvalidInput = "invalid_input"
	codeExpired      = "expired"
	codeRejected     = "rejected"
	codeReturned     = "returned"
	codeCorrupt      = "corrupt_state"
)

// finalCodes are the codes of failures that a retry cannot change: the input and the decisions are
// recorded and stay.
var finalCodes = []string{codeInvalidInput, codeExpired, codeRejected, codeReturned, codeCorrupt}

// unusedAnswers returns the answers that a run did not use. Their errors may contain parts of the
// answers, so only the kind of problem is reported.
func unusedAnswers(bad []*fermata.AnswerError) []fermata.UnusedAnswer {
	var list []fermata.UnusedAnswer
	for _, b := range bad {
		reason := "the run could not use the answer"
		switch {
		case errors.Is(b, graph.ErrWithdrawn):
			reason = "what was shown has changed"
		case errors.Is(b, fermata.ErrAnswerRefused):
			reason = b.Err.Error()
		}
		list = append(list, fermata.UnusedAnswer{ID: b.ID, Reason: reason})
	}
	return list
}

// retryable reports whether the execution, and not the run, has failed.
func retryable(err error) bool {
	if _, unsaved := errors.AsType[*graph.SaveError](err); unsaved {
		return true
	}
	if retryRequest(err) != nil {
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

// isProgramMismatch reports whether this program cannot execute the run: another replica, or a
// later deployment, may have the right program.
func isProgramMismatch(err error) bool {
	_, place := errors.AsType[*graph.ProgramChangedError](err)
	_, call := errors.AsType[*agent.ProgramChangedError](err)
	_, gate := errors.AsType[*tool.ProgramChangedError](err)
	return place || call || gate || errors.Is(err, fermata.ErrProgramChanged) || errors.Is(err, graph.ErrFormat) || errors.Is(err, graph.ErrWrongGraph)
}

// failureCode returns the machine-readable code of an error.
func failureCode(err error) string {
	if errors.Is(err, errInput) {
		return codeInvalidInput
	}
	if _, panicked := errors.AsType[*graph.PanicError](err); panicked {
		return codePanic
	}
	if _, expired := errors.AsType[*fermata.ExpiredError](err); expired || errors.Is(err, errExpired) {
		return codeExpired
	}
	if _, rejected := errors.AsType[*fermata.RejectedError](err); rejected {
		return codeRejected
	}
	if _, returned := errors.AsType[*fermata.ReturnedError](err); returned {
		return codeReturned
	}
	if _, large := errors.AsType[*fermata.DataSizeError](err); large {
		return provider.CodeDataTooLarge
	}
	if errors.Is(err, graph.ErrCorrupt) {
		return codeCorrupt
	}
	return codeNodeFailed
}

// failureMessage returns the message for people. A node's error may contain any data, so only its
// address is included.
func failureMessage(err error) string {
	// the reason is for whoever redesigns it, and a person wrote it for them
	if returned, ok := errors.AsType[*fermata.ReturnedError](err); ok {
		return strings.TrimPrefix(returned.Error(), "fermata: ")
	}
	if node, ok := errors.AsType[*graph.NodeError](err); ok {
		return "the run failed at " + node.Address.String()
	}
	for _, known := range []error{errExpired, errInput} {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "inproc: ") + inputProblem(err) + expectedInput(err)
		}
	}
	return "the run failed"
}

// failureDetail returns the complete error, with the stack of a panic.
func failureDetail(err error) string {
	if panicked, ok := errors.AsType[*graph.PanicError](err); ok {
		return err.Error() + "\n\n" + string(panicked.Stack)
	}
	return err.Error()
}

// inputError is an invalid input. expected describes a valid one.
type inputError struct {
	expected string
	err      error
}

func (e *inputError) Error() string   { return fmt.Sprintf("%v: %v", errInput, e.err) }
func (e *inputError) Unwrap() []error { return []error{errInput, e.err} }

// expectedInput describes a valid input, unless the error names the invalid field.
func expectedInput(err error) string {
	invalid, ok := errors.AsType[*inputError](err)
	if problem := inputProblem(err); !ok || invalid.expected == "" || problem != "" && problem != unknownField {
		return ""
	}
	return "; expected is " + invalid.expected
}

// fieldsOf describes the objects of a schema.
func fieldsOf(schema json.RawMessage) string {
	var known struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &known) != nil || len(known.Properties) == 0 {
		return ""
	}
	return "an object with the fields " + strings.Join(slices.Sorted(maps.Keys(known.Properties)), ", ")
}

// unknownField is the problem of an input with a field that the graph does not know.
const unknownField = ": it has an unknown field"

// inputProblem describes why an input is invalid, without any data of the input.
func inputProblem(err error) string {
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && bad.Field != "" {
		return fmt.Sprintf(": %s must be of type %s", bad.Field, bad.Type)
	}
	if text := err.Error(); strings.Contains(text, "unknown field") || strings.Contains(text, "unknown member") {
		return unknownField
	}
	if places := invalidInput.FindStringSubmatch(err.Error()); places != nil {
		return fmt.Sprintf(": it does not match %s of the input schema", places[1])
	}
	return ""
}

// invalidInput finds the schema location of a validation error. The text after it may contain the
// value.
var invalidInput = regexp.MustCompile(`^[^/]*validating root: (?:validating /\S+: )*validating (/\S+): `)

// toInterrupts converts open interrupts for the executor.
func toInterrupts(waiting []*fermata.InterruptCtx) ([]provider.Interrupt, error) {
	list := make([]provider.Interrupt, 0, len(waiting))
	for _, ic := range waiting {
		q := provider.Interrupt{ID: ic.ID, Address: ic.Address, Envelope: fermata.Envelope{Kind: cmp.Or(ic.Kind, fermata.PlainKind), Data: ic.Data}}
		if q.Data == nil && ic.Info != nil { // a hold shows the state, which is stored separately
			data, err := roundtrip.Marshal(ic.Info)
			if err != nil {
				return nil, err
			}
			q.Data = data
		}
		q.Supersedes, q.Refused = ic.Supersedes, ic.Refused
		for _, change := range ic.Changes {
			q.Changed = append(q.Changed, change.Pointer)
		}
		if kind, ok := fermata.LookupKind(ic.Kind); ok {
			q.AnswerSchema = kind.HumanAnswerSchema()
			if defaults, ok := kind.(interface {
				DefaultAnswerFor(question json.RawMessage) json.RawMessage
			}); ok {
				q.DefaultAnswer = defaults.DefaultAnswerFor(q.Data)
			}
		}
		list = append(list, q)
	}
	return list, nil
}
