package fermata

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// Do runs fn once per activation of a node and stores its result. When the node is entered again,
// after an answer or a crash, Do returns the stored result without running fn. Use it for work that
// must not be repeated or is not deterministic: a model call, the current time, a random choice.
//
// name must be unique within the activation. fn may raise interrupts; then the work stays open, and
// a later entry runs fn again only when one of its own interrupts is answered. An error of fn is
// not stored.
//
// Results are stored as JSON. If JSON cannot represent T completely (unexported fields, interfaces
// with methods), Do returns an [EncodeError] and does not run fn. Do returns the decoded JSON also
// the first time: a time.Time has no monotonic part, fields with the tag `json:"-"` are zero, and
// in untyped values numbers are json.Number and structs are maps. If JSON would lose a part of
// an untyped value, Do returns an [EncodeError]. A stored result that an earlier version of the
// program wrote and that is not a T returns [ErrProgramChanged].
func Do[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (T, error) {
	return DoAt(ctx, Segment{Type: SegmentDo, ID: name}, fn)
}

// DoAt is [Do] with an explicit address segment, for example for one of several tool calls.
func DoAt[T any](ctx context.Context, segment Segment, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	outer := activation.FromContext(ctx)
	if outer == nil {
		return zero, ErrNoRun
	}
	scope := outer.Child(segment.String())
	if err := scope.Claim(entryResult); err != nil {
		return zero, err
	}
	if data, ok := scope.Recorded(entryResult); ok { //mutate:done-work-recalled
		scope.Skip()
		var result T
		if err := roundtrip.Decode(data, &result); err != nil {
			return zero, fmt.Errorf("%w: the result of %s is not a %T: %w", ErrProgramChanged, scope.FullAddress(), zero, err)
		}
		return result, nil
	}
	if err := scope.Parked(ctx); err != nil {
		return zero, err
	}
	if err := checkEncodable(reflect.TypeFor[T]()); err != nil {
		return zero, &EncodeError{Value: "the result of " + scope.FullAddress(), Err: err}
	}
	inside := scope.Begin()
	result, err := fn(activation.WithScope(ctx, inside))
	if err != nil {
		signals, plain := scope.Collect(err)
		if plain != nil {
			return zero, plain
		}
		scope.Park(ctx)
		return zero, activation.JoinSignals(signals)
	}
	if err := inside.Finish(); err != nil { //mutate:do-interrupt-not-lost
		return zero, err
	}
	data, err := roundtrip.Encode(result)
	if err != nil {
		return zero, &EncodeError{Value: "the result of " + scope.FullAddress(), Err: err}
	}
	if result, err = roundTrip(result, data); err != nil {
		return zero, &EncodeError{Value: "the result of " + scope.FullAddress(), Err: err}
	}
	return result, scope.Complete(ctx, inside, entryResult, data)
}

// checkEncodable returns an error if JSON cannot represent values of t completely.
func checkEncodable(t reflect.Type) error {
	if mistakes := roundtrip.InfoOf(t).Problems(); len(mistakes) > 0 {
		return errors.New(strings.Join(mistakes, "; "))
	}
	return nil
}

// checkComplete returns an error if JSON would lose a part of the value, also in untyped places.
func checkComplete(v any) error {
	if v == nil {
		return nil
	}
	if err := checkEncodable(reflect.TypeOf(v)); err != nil {
		return err
	}
	return roundtrip.CheckUntyped(reflect.ValueOf(v), "it")
}

// decodeStored preserves numbers in untyped values. Typed values use the cheaper decoder.
func decodeStored[T any](data []byte, v *T) error {
	if roundtrip.InfoOf(reflect.TypeFor[T]()).Untyped {
		return roundtrip.UnmarshalUseNumber(data, v)
	}
	return roundtrip.Unmarshal(data, v)
}

// roundTrip returns the result as a later entry of the node will see it, so that the first entry
// and re-entries get the same value. data is its JSON. It returns an error if JSON lost a part of
// it.
func roundTrip[T any](result T, data []byte) (T, error) {
	if roundtrip.InfoOf(reflect.TypeFor[T]()).Stable { //mutate:untyped-result-normalized
		return result, nil
	}
	return decodeAgain(result, data)
}

func decodeAgain[T any](result T, data []byte) (T, error) {
	value := reflect.ValueOf(&result).Elem()
	if roundtrip.Canonical(value) {
		return result, nil
	}
	var stored T
	if err := roundtrip.CheckUntyped(value, "it"); err != nil {
		return stored, err
	}
	if err := roundtrip.CheckMethods(result); err != nil {
		return stored, err
	}
	return stored, roundtrip.Decode(data, &stored)
}

// Entry types in the journal of an activation: the first word of a part's name.
const (
	entryResult = "do"     // a result of Do
	entryRuling = "ruling" // the ruling of the policy
	entryTarget = "target" // the state of an action's target
	entryEffect = "effect" // an intent, later with its receipt
	entryVoid   = "void"   // why the approval before is void
)
