package fermata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/jsondiff"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// InterruptCtx is a place where a run waits.
type InterruptCtx struct {
	// ID identifies the interrupt for [ResumeWithData]. It is the same in every process while the
	// interrupt is open. It is empty for a place that cannot be answered itself, such as the graph
	// around a node.
	ID      string
	Address Address
	// Kind is the name of the [Kind]; "" for an interrupt raised with [Interrupt] ([PlainKind] on a
	// server).
	Kind string
	// Info is the value that the asking code passed. In the process that asked it is the Go value;
	// read from a store it is its JSON form (see [InfoAs] and [Kind.Question]). For a hold it is
	// the graph's state.
	Info any
	// Data is Info as JSON. It is empty if Info is nil, and for a hold, whose state is stored
	// separately.
	Data json.RawMessage
	// IsRootCause is true for a place that asked and false for one that only contains such places.
	IsRootCause bool
	// Parent is the composite or graph that contains this place; nil for the outermost graph of the
	// run.
	Parent *InterruptCtx
	// Supersedes is the id of the interrupt that this one replaces, because what it showed has
	// changed; "" if there is none. An answer to that id is rejected. Changes are the differences
	// between what the two show.
	Supersedes string
	Changes    []Change
	// Refused is the reason why the last answer was not used; "" if there is none. See
	// [RefuseAnswer].
	Refused string
}

// Change is one difference between what two interrupts show: the JSON pointer, and the values
// before and after.
type Change = jsondiff.Difference

// InfoAs returns the info of an interrupt as a T, whether or not the interrupt was raised in this
// process.
func InfoAs[T any](i *InterruptCtx) (T, error) {
	if v, ok := i.Info.(T); ok {
		return v, nil
	}
	if p, ok := i.Info.(*T); ok && p != nil {
		return *p, nil
	}
	var v T
	data := i.Data
	if data == nil {
		var err error
		if data, err = roundtrip.Marshal(i.Info); err != nil {
			return v, err
		}
	}
	if err := decodeStored(data, &v); err != nil {
		return v, fmt.Errorf("fermata: info of %s is not a %T: %w", i.Address, v, err)
	}
	return v, nil
}

// InterruptInfo lists where a run waits.
type InterruptInfo struct {
	Run string
	// Interrupts are the places that asked, as a flat list. Parent leads to the places around them.
	Interrupts []*InterruptCtx
	// State is the state of the outermost graph.
	State any
	// Data is for agents of the older form; only package agent sets it. In an event it is the Info
	// of the only interrupt, or of the composite that contains all of them, else a list. In the
	// resume of an agent it is the info of the agent's own interrupt, as a json.RawMessage. An
	// agent may raise an interrupt by yielding an event with nothing but Data. Use Interrupts in
	// new code.
	Data any
}

// ByKind returns the open interrupts of one kind.
func (i *InterruptInfo) ByKind(kind string) []*InterruptCtx {
	var found []*InterruptCtx
	for _, ic := range i.Interrupts {
		if ic.Kind == kind {
			found = append(found, ic)
		}
	}
	return found
}

// InterruptError is returned when a run waits. The run is saved before it is returned.
type InterruptError struct {
	Info *InterruptInfo
	// BadAnswers are answers that the asking code could not use; their interrupts are still open.
	// errors.As finds them.
	BadAnswers []*AnswerError
}

func (e *InterruptError) Error() string {
	places := make([]string, len(e.Info.Interrupts))
	for i, ic := range e.Info.Interrupts {
		places[i] = ic.Address.String()
		if ic.Kind != "" {
			places[i] += " (" + ic.Kind + ")"
		}
	}
	text := fmt.Sprintf("fermata: run %s waits at %s", e.Info.Run, strings.Join(places, ", "))
	for _, bad := range e.BadAnswers {
		text += "; rejected: " + bad.Error()
	}
	return text
}

// Unwrap makes the bad answers visible to errors.As.
func (e *InterruptError) Unwrap() []error {
	errs := make([]error, len(e.BadAnswers))
	for i, bad := range e.BadAnswers {
		errs[i] = bad
	}
	return errs
}

// FailedError reports that a run failed, or was stopped, while interrupts are open. They can be
// answered: the node that failed is then entered again.
type FailedError struct {
	// Info lists the open interrupts.
	Info *InterruptInfo
	// Err is the failure.
	Err error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("%v (open: %d)", e.Err, len(e.Info.Interrupts))
}

// Unwrap returns the failure.
func (e *FailedError) Unwrap() error { return e.Err }

// OpenInterrupts returns the open interrupts of a run that waits ([InterruptError]) or has failed
// next to them ([FailedError]); nil if err carries none.
func OpenInterrupts(err error) []*InterruptCtx {
	if failed, ok := errors.AsType[*FailedError](err); ok {
		return failed.Info.Interrupts
	}
	if waiting, ok := errors.AsType[*InterruptError](err); ok {
		return waiting.Info.Interrupts
	}
	return nil
}

// ExtractInterruptInfo returns where the run waits if err is an [InterruptError]. For a run that
// has failed next to open interrupts see [OpenInterrupts].
func ExtractInterruptInfo(err error) (*InterruptInfo, bool) {
	waiting, ok := errors.AsType[*InterruptError](err)
	if !ok {
		return nil, false
	}
	return waiting.Info, true
}

// IsInterrupt reports whether err, inside a run, only signals an interrupt: from Ask, Approve, Do,
// Interrupt and similar calls, also wrapped or joined. It is for code between the asking code and
// the node, which must pass such an error on and must not retry, log or replace it. Callers that
// run a graph use [ExtractInterruptInfo].
func IsInterrupt(err error) bool { return activation.IsWait(err) }

// Interrupt returns an error that makes the run wait at the current address. info is shown to the
// person. The node must return the error. After the answer the node is entered again and reads the
// answer with [GetResumeContext].
//
// Prefer [Kind.Ask] if the answer has a type.
func Interrupt(ctx context.Context, info any) error {
	return raise(ctx, info, nil)
}

// StatefulInterrupt is [Interrupt] with a state that [GetInterruptState] returns later.
func StatefulInterrupt(ctx context.Context, info, state any) error {
	return raise(ctx, info, state)
}

// CompositeInterrupt combines the errors of several parts of one node. Every part needs its own
// address ([AppendAddressSegment]). The parts can be answered separately; info and state belong to
// the node that combines them. If errs contains an error that is not an interrupt, that error is
// returned and no interrupt is raised. nil errors are ignored; if all are nil, it returns nil.
// Without errs it is [StatefulInterrupt].
func CompositeInterrupt(ctx context.Context, info, state any, errs ...error) error {
	if len(errs) == 0 {
		return StatefulInterrupt(ctx, info, state)
	}
	joined := errors.Join(errs...)
	if joined == nil {
		return nil
	}
	scope := activation.FromContext(ctx)
	if scope == nil {
		return ErrNoRun
	}
	signals, plain := scope.Collect(joined)
	if plain != nil {
		return plain
	}
	return raise(ctx, info, state, signals...)
}

func raise(ctx context.Context, info, state any, subs ...*activation.Signal) error {
	scope := activation.FromContext(ctx)
	if scope == nil {
		return ErrNoRun
	}
	data, err := encode("the info of an interrupt at "+scope.FullAddress(), info)
	if err != nil {
		return err
	}
	if len(data) > limits.MaxDataBytes {
		return &DataSizeError{"the info of an interrupt at " + scope.FullAddress(), len(data)}
	}
	what := "the state of an interrupt at " + scope.FullAddress()
	if err := checkComplete(state); err != nil {
		return &EncodeError{Value: what, Err: err}
	}
	stateData, err := encode(what, state)
	if err != nil {
		return err
	}
	signal, err := scope.Interrupt(data, stateData, info, subs...)
	if err != nil {
		return err
	}
	return signal
}

// encode returns nil for nil and JSON for everything else.
func encode(what string, v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	data, err := roundtrip.Marshal(v)
	if err != nil {
		return nil, &EncodeError{Value: what, Err: err}
	}
	return data, nil
}

// CurrentAddress returns the address of ctx in the run; nil outside a run.
func CurrentAddress(ctx context.Context) Address {
	scope := activation.FromContext(ctx)
	if scope == nil {
		return nil
	}
	address, err := ParseAddress(scope.FullAddress())
	if err != nil {
		panic(err) // the runtime wrote it
	}
	return address
}

// Now returns the time by the clock of the run. It advances between two entries of a node; use [Do]
// to keep a fixed time. It has no monotonic part, like a time that was stored. Outside a run it is
// time.Now.
func Now(ctx context.Context) time.Time {
	if scope := activation.FromContext(ctx); scope != nil {
		return scope.Host.Time()
	}
	return time.Now().Round(0)
}

// AppendAddressSegment returns a context for a part of the current node that may wait on its own,
// such as a subprocess or a call. Interrupts raised with it have the longer address. Outside a run
// it returns ctx.
func AppendAddressSegment(ctx context.Context, segmentType SegmentType, id string) context.Context {
	return withSegment(ctx, Segment{Type: segmentType, ID: id})
}

func withSegment(ctx context.Context, segment Segment) context.Context {
	scope := activation.FromContext(ctx)
	if scope == nil {
		return ctx
	}
	return activation.WithScope(ctx, scope.Child(segment.String()))
}
