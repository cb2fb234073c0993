package graph

import (
	"context"
	"iter"
	"slices"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/eventstream"
)

// Event is an event of [Flow.Stream]: one of [Step], [Output] and [Finished].
//
//sumtype:decl
type Event interface{ event() }

// Output is a chunk of a node's output; see [Emit].
type Output struct {
	// Address is the address of the code that wrote it.
	Address string
	Text    string
}

// Finished is the last event of a run that has ended.
type Finished[S any] struct{ State S }

func (Step) event()        {}
func (Output) event()      {}
func (Finished[S]) event() {}

// Emit sends a chunk of output to the observer of the run ([Flow.Stream], [OnOutput], and the event
// streams of a server) while the node still runs. Output is not stored. A node that is entered
// again writes it again, except in finished work ([fermata.Do]). Outside a run and without an
// observer Emit does nothing.
func Emit(ctx context.Context, text string) {
	scope := activation.FromContext(ctx)
	if scope == nil {
		return
	}
	if exec, ok := scope.Host.(*execution); ok && exec.onOutput != nil {
		exec.onOutput(Output{Address: scope.FullAddress(), Text: text})
	}
}

// OnOutput calls fn for the output of nodes, including those of inner graphs. fn may be called
// concurrently, and nodes wait for it.
func OnOutput(fn func(Output)) Option { return func(o *options) { o.onOutput = fn } }

// Stream is [Flow.Run] as a stream of events: it starts the run when the iteration begins, and
// yields steps and output as they happen and [Finished] at the end. If the run waits or fails, the
// error of Run comes last instead. Leaving the loop cancels the run; it can be resumed.
//
// For a run that is part of another one, output goes to the observer of the outer run.
func (fl *Flow[S]) Stream(ctx context.Context, input S, list ...Option) iter.Seq2[Event, error] {
	return stream(ctx, list, func(ctx context.Context, list []Option) (S, error) { return fl.Run(ctx, input, list...) })
}

// StreamResume is [Flow.Resume] as a stream of events; see [Flow.Stream].
func (fl *Flow[S]) StreamResume(ctx context.Context, run string, list ...Option) iter.Seq2[Event, error] {
	return stream(ctx, list, func(ctx context.Context, list []Option) (S, error) { return fl.Resume(ctx, run, list...) })
}

func stream[S any](ctx context.Context, list []Option, start func(context.Context, []Option) (S, error)) iter.Seq2[Event, error] {
	return eventstream.New(ctx, func(ctx context.Context, emit func(Event)) error {
		state, err := start(ctx, append(slices.Clip(list), func(o *options) {
			o.onStep = both(o.onStep, func(s Step) { emit(s) })
			o.onOutput = both(o.onOutput, func(c Output) { emit(c) })
		}))
		if err != nil {
			return err
		}
		emit(Finished[S]{State: state})
		return nil
	})
}

// both calls two observers; the first may be nil.
func both[T any](first, second func(T)) func(T) {
	if first == nil {
		return second
	}
	return func(v T) { first(v); second(v) }
}
