package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/store"
)

// RunnerConfig says how a [Runner] runs its agent.
type RunnerConfig struct {
	Agent Agent
	// Store keeps the runs. Without one a run cannot wait.
	Store store.Checkpoints
	// Account says whose runs these are. The default is "".
	Account string
	// EnableStreaming has models give their answers in pieces, as [Token] events. A run keeps the mode that it began with.
	EnableStreaming bool
	// Policy decides on actions that ask for approval. Without one a person is asked about each.
	Policy fermata.Policy
	// Ledger is where effects are begun, beside the run's own journal; see [fermata.Ledger].
	Ledger fermata.Ledger
	// Limits are what a run may use before a person is asked.
	Limits Limits
	// Price is needed for a limit of the cost.
	Price Price
	// Clock replaces time.Now, for tests.
	Clock func() time.Time
}

// Runner runs an agent: it starts runs, shows what happens in them, and resumes them. It may be used by several goroutines.
type Runner struct {
	config  RunnerConfig
	flow    *graph.Flow[runState]
	options []graph.Option
}

// runState is the state of the graph that an agent runs in.
type runState struct {
	Messages  []Message           `json:"messages"`
	Streaming bool                `json:"streaming,omitempty"`
	Values    map[string]rawValue `json:"values,omitempty"`
	Output    *Output             `json:"output,omitempty"`
	Spent     Spent               `json:"spent"`
}

// NewRunner makes a runner.
func NewRunner(config RunnerConfig) (*Runner, error) {
	if config.Agent == nil {
		return nil, errors.New("agent: a runner needs an agent")
	}
	if config.Limits.Cost > 0 && config.Price == nil {
		return nil, errors.New("agent: a limit of the cost needs a Price")
	}
	r := &Runner{config: config, options: []graph.Option{graph.WithAccount(config.Account)}}
	if config.Store != nil {
		r.options = append(r.options, graph.WithStore(config.Store))
	}
	if config.Policy != nil {
		r.options = append(r.options, graph.WithPolicy(config.Policy))
	}
	if config.Ledger != nil {
		r.options = append(r.options, graph.WithLedger(config.Ledger))
	}
	if config.Clock != nil {
		r.options = append(r.options, graph.WithClock(config.Clock))
	}
	g := graph.New[runState](config.Agent.Name())
	g.Node(nodeName, r.runAgent)
	g.Edge(graph.Start, nodeName)
	g.Edge(nodeName, graph.End)
	var err error
	r.flow, err = g.Compile()
	return r, err
}

const nodeName = "agent"

// RunOption changes one run, or one resume.
type RunOption func(*runOptions)

type runOptions struct {
	run      string
	values   map[string]any
	edit     HistoryEdit
	takeOver bool
}

// WithRun names a new run. The default is a random id, which every event carries.
func WithRun(id string) RunOption { return func(o *runOptions) { o.run = id } }

// WithSessionValues gives the agents values to start with, or new ones to go on with; [Value] reads them.
func WithSessionValues(values map[string]any) RunOption {
	return func(o *runOptions) { o.values = values }
}

// WithHistoryEdit changes, in a resume, what models get to see. The edit is called for each chat agent before it asks its
// model for the first time in this resume.
func WithHistoryEdit(edit HistoryEdit) RunOption { return func(o *runOptions) { o.edit = edit } }

// TakeOver resumes a run that is marked as being run. Only for a caller who knows that whoever ran it is dead; see [graph.TakeOver].
func TakeOver() RunOption { return func(o *runOptions) { o.takeOver = true } }

// ResumeParams are the answers with which a run goes on.
type ResumeParams struct {
	// Targets are the answers by interrupt id. A nil answer is one without data.
	Targets map[string]any
}

// Query starts a run with one message of a user.
func (r *Runner) Query(ctx context.Context, text string, options ...RunOption) iter.Seq2[*Event, error] {
	return r.Run(ctx, []Message{User(text)}, options...)
}

// Run starts a run when the events are asked for, and yields them as they happen. The last one is [Finished] or [Interrupted];
// or there is an error, after which the run can be resumed. To stop listening is to cancel the run at once; it can be resumed then,
// too.
func (r *Runner) Run(ctx context.Context, messages []Message, options ...RunOption) iter.Seq2[*Event, error] {
	o := collectOptions(options)
	// The values that a run begins with are in its state.
	return r.stream(ctx, execution{run: o.run}, func(ctx context.Context) (runState, error) {
		values, err := encodeValues(o.values)
		if err != nil {
			return runState{}, err
		}
		input := runState{Messages: slices.Clone(messages), Streaming: r.config.EnableStreaming, Values: values}
		return r.flow.Run(ctx, input, append(slices.Clip(r.options), graph.WithRun(o.run))...)
	})
}

// Resume goes on with a run: with the answers that ctx carries ([fermata.ResumeWithData]), or with none after a failure, a
// cancel or a crash. A run that waits and gets no answer says again what it waits for.
func (r *Runner) Resume(ctx context.Context, run string, options ...RunOption) iter.Seq2[*Event, error] {
	o := collectOptions(options)
	return r.stream(ctx, execution{run: run, edit: o.edit, values: o.values}, func(ctx context.Context) (runState, error) {
		if _, err := encodeValues(o.values); err != nil {
			return runState{}, err // before any answer is taken
		}
		list := slices.Clip(r.options)
		if o.takeOver {
			list = append(list, graph.TakeOver())
		}
		return r.flow.Resume(ctx, run, list...)
	})
}

// ResumeWithParams goes on with a run and the given answers. If any of them is wrong, unknown or late, nothing runs and all stays as
// it is. What is not answered stays open, under the same id.
func (r *Runner) ResumeWithParams(ctx context.Context, run string, params *ResumeParams, options ...RunOption) iter.Seq2[*Event, error] {
	if params != nil && len(params.Targets) > 0 {
		ctx = fermata.BatchResumeWithData(ctx, params.Targets)
	}
	return r.Resume(ctx, run, options...)
}

func collectOptions(options []RunOption) *runOptions {
	o := new(runOptions)
	for _, option := range options {
		option(o)
	}
	return o
}

// Snapshot is a saved run, looked at and not touched.
type Snapshot struct {
	Run    string
	Status graph.Status
	// Error is why it failed or was stopped.
	Error string
	// Interrupts are what it waits for, as [Interrupted] has them.
	Interrupts []*fermata.InterruptCtx
	// Messages is what it began with, Output what the agent added, once it is finished.
	Messages []Message
	Output   *Output
	// Spent is what it used, once it is finished.
	Spent Spent
}

// Inspect looks at a saved run.
func (r *Runner) Inspect(ctx context.Context, run string) (*Snapshot, error) {
	saved, err := r.flow.Inspect(ctx, run, r.options...)
	if err != nil {
		return nil, err
	}
	return &Snapshot{
		Run: run, Status: saved.Status, Error: saved.Error, Interrupts: userView(saved.Interrupts),
		Messages: saved.State.Messages, Output: saved.State.Output, Spent: saved.State.Spent,
	}, nil
}

// CheckAnswer says whether an answer would be taken: it returns it as JSON, or the error that a resume would yield. It runs and changes
// nothing.
func (r *Runner) CheckAnswer(ctx context.Context, run, interruptID string, answer any) (json.RawMessage, error) {
	return r.flow.CheckAnswer(ctx, run, interruptID, answer, r.options...)
}

// CheckAnswers reads a run for checking many answers to it: what it returns does for each what [Runner.CheckAnswer] does, without reading the run again.
func (r *Runner) CheckAnswers(ctx context.Context, run string) (func(interruptID string, answer any) (json.RawMessage, error), error) {
	return r.flow.CheckAnswers(ctx, run, r.options...)
}

type executionKey struct{}

// execution is what one start or resume brings along for the node that the agent runs in.
type execution struct {
	edit   HistoryEdit
	values map[string]any
	emit   func(*Event)
	run    string
}

// stream runs the graph and yields what happens in it.
func (r *Runner) stream(ctx context.Context, x execution, start func(context.Context) (runState, error)) iter.Seq2[*Event, error] {
	return stream(ctx, func(ctx context.Context, emit func(*Event)) error {
		own := x // the iterator may be used twice
		x := &own
		x.emit = emit
		c := cancellerOf(ctx).take()
		defer c.settle(false) // whatever becomes of it, and only if nothing else was said
		if err := c.checkStart(ctx); err != nil {
			return cancelled(c, x.run, err)
		}
		ctx = context.WithValue(context.WithValue(ctx, cancelKey{}, c), executionKey{}, x)
		final, err := start(ctx)
		if waiting, ok := errors.AsType[*fermata.InterruptError](err); ok {
			c.settle(false)
			emit(&Event{Run: waiting.Info.Run, Agent: r.config.Agent.Name(), Body: Interrupted{
				Interrupts: userView(waiting.Info.Interrupts), Info: waiting.Info, BadAnswers: waiting.BadAnswers,
			}})
			return nil
		}
		if err != nil {
			return cancelled(c, x.run, err)
		}
		c.settle(false)
		emit(&Event{Run: x.run, Agent: r.config.Agent.Name(), Body: Finished{Output: final.Output, Usage: final.Spent.Usage}})
		return nil
	})
}

// cancelled makes the error of a run that was to be cancelled what it is.
func cancelled(c *canceller, run string, err error) error {
	if c == nil {
		return err
	}
	_, unsaved := errors.AsType[*graph.SaveError](err)
	stopped := c.isRequested() && !unsaved && (errors.Is(err, graph.ErrStopped) || errors.Is(err, context.Canceled))
	escalated := c.settle(stopped)
	if !stopped {
		return err
	}
	return &CancelError{Run: run, Escalated: escalated, Err: err}
}

// work is the node that the agent runs in.
func (r *Runner) runAgent(ctx context.Context, state runState) (runState, error) {
	x, ok := ctx.Value(executionKey{}).(*execution)
	if !ok {
		return state, fmt.Errorf("%w: %s", fermata.ErrNoRun, r.config.Agent.Name())
	}
	scope := activation.FromContext(ctx)
	x.run = scope.Host.Run()
	e := &runShared{run: x.run, streaming: state.Streaming, root: scope, values: state.Values, cancel: cancellerOf(ctx), edit: x.edit}
	var err error
	if e.meter, err = newMeter(scope, r.config.Limits, r.config.Price); err != nil {
		return state, err
	}
	outer := &agentScope{runShared: e, emitFunc: x.emit}
	ctx = withScope(ctx, outer)
	for key, value := range x.values {
		if err := SetValue(ctx, key, value); err != nil {
			return state, err
		}
	}
	output, err := Run(ctx, r.config.Agent, &Input{Messages: state.Messages})
	if err != nil {
		return state, errors.Join(err, e.meter.addUsage(ctx, func(*usageRecord) {}))
	}
	state.Output, state.Spent = output, e.meter.spent()
	return state, nil
}
