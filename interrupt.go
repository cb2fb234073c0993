package fermata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// InterruptCtx is one place where a run waits, as people and programs see it.
type InterruptCtx struct {
	// ID names the interrupt for [ResumeWithData]. It is the same as long as the question is open, in every process. It is
	// empty for a place that cannot be answered itself, as the graph around a node that asked.
	ID      string
	Address Address
	// Kind is the name of the question's [Kind], "" for one raised with [Interrupt] ([PlainKind] on a server).
	Kind string
	// Info is what the asking code gave. In the process that asked it is the Go value; read from a store it is what JSON
	// makes of it ([InfoAs] and [Kind.Question] bridge that). For a hold it is the graph's state.
	Info any
	// Data is Info as JSON. It is empty where Info is nil, and for a hold, whose state is stored elsewhere.
	Data json.RawMessage
	// IsRootCause is true for a place that asked, false for one that only contains such places.
	IsRootCause bool
	// Parent is the composite or the graph that contains this place; nil for the run's outermost graph.
	Parent *InterruptCtx
}

// InfoAs returns what the asking code gave as a T, whether or not the interrupt was raised in this process.
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
		if data, err = json.Marshal(roundtrip.Addressable(i.Info)); err != nil {
			return v, err
		}
	}
	if err := decodeStored(data, &v); err != nil {
		return v, fmt.Errorf("fermata: the info of %s is not a %T: %w", i.Address, v, err)
	}
	return v, nil
}

// InterruptInfo says where a run waits.
type InterruptInfo struct {
	Run string
	// Interrupts are the places that asked, flat; the places around them are reached through Parent.
	Interrupts []*InterruptCtx
	// State is the state of the outermost graph.
	State any
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

// InterruptError is what running a graph returns when the run waits. Everything is saved by then.
type InterruptError struct {
	Info *InterruptInfo
	// BadAnswers are answers that were given but could not be used by the code that had asked; those questions are still
	// open. errors.As finds them.
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
		text += "; not used: " + bad.Error()
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

// ExtractInterruptInfo returns where the run waits, if err says that it does.
func ExtractInterruptInfo(err error) (*InterruptInfo, bool) {
	waiting, ok := errors.AsType[*InterruptError](err)
	if !ok {
		return nil, false
	}
	return waiting.Info, true
}

// IsInterrupt reports whether err, as code in a run gets it, is nothing but the wish to wait: of Ask, Approve, Do, Interrupt and the
// like, also wrapped and joined. It is for code between the one that asks and the node, which must neither retry nor log such an error,
// nor make something else of it, but pass it on. Whoever runs the graph uses [ExtractInterruptInfo].
func IsInterrupt(err error) bool { return activation.IsWait(err) }

// Interrupt returns an error that makes the run wait at the current address. info is what the person sees. The node has to
// return the error; after the answer it is entered again and finds the answer with [GetResumeContext].
//
// [Kind.Ask] is the better call wherever the answer has a type.
func Interrupt(ctx context.Context, info any) error {
	return raise(ctx, info, nil)
}

// StatefulInterrupt is [Interrupt] with a state that comes back through [GetInterruptState].
func StatefulInterrupt(ctx context.Context, info, state any) error {
	return raise(ctx, info, state)
}

// CompositeInterrupt bundles what several parts of one node returned into one error. Every part needs its own address
// ([AppendAddressSegment]). The parts stay single places to answer; info and state belong to the node that bundles them.
// A plain error among errs wins: it is returned, and nobody is asked. nil errors are passed over; if there are no others, no part waits, and it returns nil.
// Without any errs it is [StatefulInterrupt].
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
	what := "the state of an interrupt at " + scope.FullAddress()
	if state != nil {
		if err := checkEncodable(reflect.TypeOf(state)); err != nil {
			return &EncodeError{Value: what, Err: err}
		}
	}
	kept, err := encode(what, state)
	if err != nil {
		return err
	}
	signal, err := scope.Interrupt(data, kept, info, subs...)
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
	data, err := json.Marshal(roundtrip.Addressable(v))
	if err != nil {
		return nil, &EncodeError{Value: what, Err: err}
	}
	return data, nil
}

// CurrentAddress is the place in the run that ctx stands for; nil outside of a run.
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

// Now is the time by the clock of the run that ctx is part of. It moves on between two entries of a node; keep a time that
// must not with [Do]. Outside of a run it is time.Now.
func Now(ctx context.Context) time.Time {
	if scope := activation.FromContext(ctx); scope != nil {
		return scope.Host.Time()
	}
	return time.Now()
}

// AppendAddressSegment returns a context for a part of the current node: a sub-process, a call, whatever may wait on its
// own. Interrupts raised with it carry the longer address. Outside of a run it returns ctx.
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
