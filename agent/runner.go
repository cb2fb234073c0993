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
	"github.com/fermata-go/fermata/internal/eventstream"
	"github.com/fermata-go/fermata/internal/store"
)

// RunnerConfig configures a [Runner].
type RunnerConfig struct {
	Agent Agent
	// Store stores the runs. Without one a run cannot wait.
	Store store.Checkpoints
	// Account is the account of the runs. The default is "".
	Account string
	// EnableStreaming lets models stream their answers as [Token] events. A run keeps the mode that
	// it started with.
	EnableStreaming bool
	// Policy decides on actions that need approval. Without one a person is asked about each.
	Policy fermata.Policy
	// Ledger records effects in addition to the run's journal; see [fermata.Ledger].
	Ledger fermata.Ledger
	// Limits is the usage that a run may reach before a person is asked.
	Limits Limits
	// Price is required for a cost limit.
	Price Price
	// Clock replaces time.Now, for tests.
	Clock func() time.Time
}

// Runner starts and resumes runs of an agent and yields their events. It is safe for concurrent
// use.
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

// NewRunner creates a runner.
func NewRunner(config RunnerConfig) (*Runner, error) {
	if config.Agent == nil {
		return nil, errors.New("agent: a runner needs an agent")
	}
	if config.Limits.Cost > 0 && config.Price == nil {
		return nil, errors.New("agent: a cost limit needs a Price")
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

// RunOption configures one start or resume.
type RunOption func(*runOptions)

type runOptions struct {
	run      string
	values   map[string]any
	edit     HistoryEdit
	takeOver bool
	// resumeAll answers the interrupts that need no data.
	resumeAll bool
	answers   map[string]any
	twice     string // an interrupt that was answered twice
}

// Answer answers one interrupt, in a resume. [fermata.Yes] and [fermata.No] answer an approval.
// Answering an interrupt twice is an error, and so is an answer for [Runner.Run].
func Answer(interruptID string, answer any) RunOption {
	return func(o *runOptions) {
		if o.answers == nil {
			o.answers = make(map[string]any)
		}
		if _, known := o.answers[interruptID]; known {
			o.twice = interruptID
		}
		o.answers[interruptID] = answer
	}
}

// WithRun sets the id of a new run. The default is a random id, which every event carries. For a
// resume another id is an error.
func WithRun(id string) RunOption { return func(o *runOptions) { o.run = id } }

// WithSessionValues sets session values for a start or a resume; [Value] reads them.
func WithSessionValues(values map[string]any) RunOption {
	return func(o *runOptions) { o.values = values }
}

// WithHistoryEdit changes, in a resume, the history that models see. The edit is called for each
// chat agent before its first model call in this resume.
func WithHistoryEdit(edit HistoryEdit) RunOption { return func(o *runOptions) { o.edit = edit } }

// TakeOver resumes a run that is marked as running. Use it only if the other process is known to be
// dead; see [graph.TakeOver].
func TakeOver() RunOption { return func(o *runOptions) { o.takeOver = true } }

// ResumeParams contains the answers for a resume.
type ResumeParams struct {
	// Targets are the answers by interrupt id. A nil answer has no data.
	Targets map[string]any
}

// Query starts a run with one user message.
func (r *Runner) Query(ctx context.Context, text string, options ...RunOption) iter.Seq2[*Event, error] {
	return r.Run(ctx, []Message{User(text)}, options...)
}

// Run starts a run when the iteration begins, and yields events as they happen. The last one is
// [Finished] or [Interrupted], unless there is an error, after which the run can be resumed.
// Leaving the loop cancels the run immediately; it can be resumed as well.
func (r *Runner) Run(ctx context.Context, messages []Message, options ...RunOption) iter.Seq2[*Event, error] {
	o := collectOptions(options)
	// The initial session values are part of the state.
	return r.stream(ctx, execution{run: o.run}, func(ctx context.Context) (runState, error) {
		values, err := encodeValues(o.values)
		if err != nil {
			return runState{}, err
		}
		ctx = withAnswers(ctx, o.answers) // an error of the graph
		input := runState{Messages: slices.Clone(messages), Streaming: r.config.EnableStreaming, Values: values}
		return r.flow.Run(ctx, input, append(slices.Clip(r.options), graph.WithRun(o.run))...)
	})
}

// Resume continues a run with the answers in the options ([Answer]) and in ctx
// ([fermata.ResumeWithData]), or without answers after a failure, a cancel or a crash.
//
// If the run waits and there are no answers, the call itself is the answer, without data, to every
// interrupt that was raised with [Interrupt], [StatefulInterrupt] or a similar call. Questions with
// a [fermata.Kind], approvals and holds stay open until they are answered; the run yields its
// [Interrupted] event again. [Runner.ResumeWithParams] without targets answers nothing.
func (r *Runner) Resume(ctx context.Context, run string, options ...RunOption) iter.Seq2[*Event, error] {
	o := collectOptions(options)
	targets, _ := activation.TakeResumeTargets(ctx)
	o.resumeAll = targets == nil && o.answers == nil
	return r.resume(ctx, run, o, func(ctx context.Context) (*graph.LoadedRun[runState], error) { return r.load(ctx, run, o) })
}

func (r *Runner) resume(ctx context.Context, run string, o *runOptions, load func(context.Context) (*graph.LoadedRun[runState], error)) iter.Seq2[*Event, error] {
	return r.stream(ctx, execution{run: run, edit: o.edit, values: o.values}, func(ctx context.Context) (runState, error) {
		if _, err := encodeValues(o.values); err != nil {
			return runState{}, err // before any answer is saved
		}
		if o.run != "" && o.run != run {
			return runState{}, fmt.Errorf("agent: WithRun(%q) is for a new run; this call resumes run %q", o.run, run)
		}
		if o.twice != "" {
			return runState{}, &fermata.AnswerError{ID: o.twice, Err: errors.New("it is answered twice in one call")}
		}
		ctx = withAnswers(ctx, o.answers)
		saved, err := load(ctx)
		if err != nil {
			return runState{}, err
		}
		if o.resumeAll {
			plain, err := plainInterrupts(saved)
			if err != nil {
				return runState{}, err
			}
			ctx = fermata.Resume(ctx, plain...)
		}
		return saved.Resume(ctx)
	})
}

func (r *Runner) load(ctx context.Context, run string, o *runOptions) (*graph.LoadedRun[runState], error) {
	list := slices.Clip(r.options)
	if o.takeOver {
		list = append(list, graph.TakeOver())
	}
	return r.flow.Load(ctx, run, list...)
}

// ResumeWithParams continues a run with the given answers. If any of them is invalid, unknown or
// late, nothing runs and nothing changes. Unanswered interrupts stay open with the same id.
func (r *Runner) ResumeWithParams(ctx context.Context, run string, params *ResumeParams, options ...RunOption) iter.Seq2[*Event, error] {
	o := collectOptions(options)
	return r.resume(withTargets(ctx, params), run, o, func(ctx context.Context) (*graph.LoadedRun[runState], error) { return r.load(ctx, run, o) })
}

func withTargets(ctx context.Context, params *ResumeParams) context.Context {
	if params == nil {
		return ctx
	}
	return withAnswers(ctx, params.Targets)
}

func withAnswers(ctx context.Context, answers map[string]any) context.Context {
	if len(answers) == 0 {
		return ctx
	}
	return fermata.BatchResumeWithData(ctx, answers)
}

func collectOptions(options []RunOption) *runOptions {
	o := new(runOptions)
	for _, option := range options {
		option(o)
	}
	return o
}

// Snapshot is a read-only view of a saved run.
type Snapshot struct {
	Run    string
	Status graph.Status
	// Error is why the run failed or was stopped.
	Error string
	// Interrupts are the open interrupts, as in [Interrupted].
	Interrupts []*fermata.InterruptCtx
	// Messages is the initial conversation; Output is the agent's output once the run is finished.
	Messages []Message
	Output   *Output
	// Spent is the usage, once the run is finished.
	Spent Spent
}

// LoadedRun is a saved run in memory. The checkpoint is loaded and decoded once, by [Runner.Load],
// for all methods. It is not safe for concurrent use.
type LoadedRun struct {
	runner  *Runner
	run     string
	options *runOptions
	saved   *graph.LoadedRun[runState]
}

// Load loads a saved run without running or changing anything. The options are those of
// [Runner.Resume].
func (r *Runner) Load(ctx context.Context, run string, options ...RunOption) (*LoadedRun, error) {
	o := collectOptions(options)
	saved, err := r.load(ctx, run, o)
	if err != nil {
		return nil, err
	}
	return &LoadedRun{runner: r, run: run, options: o, saved: saved}, nil
}

// Inspect returns a view of the run as it was loaded.
func (l *LoadedRun) Inspect() (*Snapshot, error) {
	saved, err := l.saved.Inspect()
	if err != nil {
		return nil, err
	}
	return &Snapshot{
		Run: l.run, Status: saved.Status, Error: saved.Error, Interrupts: userView(saved.Interrupts),
		Messages: saved.State.Messages, Output: saved.State.Output, Spent: saved.State.Spent,
	}, nil
}

// CheckAnswer validates an answer; see [Runner.CheckAnswer].
func (l *LoadedRun) CheckAnswer(interruptID string, answer any) (json.RawMessage, error) {
	return l.saved.CheckAnswer(interruptID, answer)
}

// ResumeWithParams continues the run; see [Runner.ResumeWithParams]. After an event stream that
// ended with a [*fermata.AnswerError] it may be called again with other answers, otherwise once.
func (l *LoadedRun) ResumeWithParams(ctx context.Context, params *ResumeParams) iter.Seq2[*Event, error] {
	return l.runner.resume(withTargets(ctx, params), l.run, l.options, func(context.Context) (*graph.LoadedRun[runState], error) { return l.saved, nil })
}

// Inspect reads a saved run.
func (r *Runner) Inspect(ctx context.Context, run string) (*Snapshot, error) {
	loaded, err := r.Load(ctx, run)
	if err != nil {
		return nil, err
	}
	return loaded.Inspect()
}

// CheckAnswer validates an answer without running or changing anything. It returns the answer as
// JSON, or the error that a resume would yield.
func (r *Runner) CheckAnswer(ctx context.Context, run, interruptID string, answer any) (json.RawMessage, error) {
	return r.flow.CheckAnswer(ctx, run, interruptID, answer, r.options...)
}

type executionKey struct{}

// execution contains the parameters of one start or resume for the node that runs the agent.
type execution struct {
	edit   HistoryEdit
	values map[string]any
	emit   func(*Event)
	run    string
}

// stream runs the graph and yields its events.
func (r *Runner) stream(ctx context.Context, x execution, start func(context.Context) (runState, error)) iter.Seq2[*Event, error] {
	return eventstream.New(ctx, func(ctx context.Context, emit func(*Event)) error {
		own := x // the iterator may be used twice
		x := &own
		x.emit = emit
		c := cancellerOf(ctx).take()
		defer c.settle(false) // in any case, unless it was already settled
		if err := c.checkStart(ctx); err != nil {
			return cancelled(c, x.run, err)
		}
		ctx = context.WithValue(context.WithValue(ctx, cancelKey{}, c), executionKey{}, x)
		final, err := start(ctx)
		if waiting, ok := errors.AsType[*fermata.InterruptError](err); ok {
			c.settle(false)
			waiting.Info.Data = legacyData(waiting.Info.Interrupts)
			emit(&Event{Run: waiting.Info.Run, Agent: r.config.Agent.Name(), Body: Interrupted{
				Interrupts: userView(waiting.Info.Interrupts), Info: waiting.Info, BadAnswers: waiting.BadAnswers,
			}})
			return nil
		}
		if finished, ok := errors.AsType[*graph.FinishedError](err); ok {
			if state, ok := finished.State.(runState); ok {
				err = &FinishedError{Run: finished.Run, Output: state.Output, Err: err}
			}
		}
		if err != nil {
			return cancelled(c, x.run, err)
		}
		c.settle(false)
		emit(&Event{Run: x.run, Agent: r.config.Agent.Name(), Body: Finished{Output: final.Output, Usage: final.Spent.Usage}})
		return nil
	})
}

// cancelled converts the error of a cancelled run.
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

// runAgent is the function of the node that runs the agent.
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
