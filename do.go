package fermata

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// Do runs fn once per visit of a node and remembers its result: when the node is entered again, after an answer or a
// crash, Do returns the result without running fn. Put everything into it that must not be repeated or may come out
// differently: a call of a model, a look at the clock, a random choice.
//
// name must be unique within the visit. fn may ask; then the work stays open, and a later entry runs fn again only when one
// of its own questions is answered. An error of fn is not remembered.
//
// A result is kept as JSON. A T of which JSON would lose a part (fields that are not exported, interfaces with methods) is an
// [EncodeError], and fn is not run. Where T is untyped, as a map[string]any, Do returns what JSON makes of the result, the first time, too: a
// number is a json.Number, exactly as it was, and a struct a map. Give T a type if you look into it. A result that an earlier version of
// the program has kept, and that is not a T any more, is [ErrProgramChanged].
func Do[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (T, error) {
	return DoAt(ctx, Segment{Type: SegmentDo, ID: name}, fn)
}

// DoAt is [Do] for work that has an address of its own, as one call of a tool among several.
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

// typeInfo is what is known of a type whose values are kept as JSON.
type typeInfo struct {
	err     error // a part of a value would be lost
	untyped bool
}

var typeInfos sync.Map // of reflect.Type to keeping

func typeInfoOf(t reflect.Type) typeInfo {
	known, ok := typeInfos.Load(t)
	if !ok {
		k := typeInfo{untyped: roundtrip.HasUntyped(t)}
		if mistakes := roundtrip.Problems(t, "it"); len(mistakes) > 0 {
			k.err = errors.New(strings.Join(mistakes, "; "))
		}
		known, _ = typeInfos.LoadOrStore(t, k)
	}
	return known.(typeInfo)
}

// checkEncodable returns an error for a type of which a part would be lost when a result is remembered.
func checkEncodable(t reflect.Type) error { return typeInfoOf(t).err }

// decodeStored is [roundtrip.UnmarshalUseNumber], which costs more, where it makes a difference.
func decodeStored[T any](data []byte, v *T) error {
	if typeInfoOf(reflect.TypeFor[T]()).untyped {
		return roundtrip.UnmarshalUseNumber(data, v)
	}
	return roundtrip.Unmarshal(data, v)
}

// roundTrip is a result as a later entry of the node gets it. If that were another than what the first entry gets, no test of the first would tell.
func roundTrip[T any](result T, data []byte) (T, error) {
	if !typeInfoOf(reflect.TypeFor[T]()).untyped { //mutate:untyped-result-normalized
		return result, nil
	}
	var kept T
	return kept, roundtrip.Decode(data, &kept)
}

// What the journal of a visit holds, by the first word of a part's name.
const (
	entryResult = "do"     // a result of Do
	entryRuling = "ruling" // what the policy said
	entryTarget = "target" // what an action would act on
	entryEffect = "effect" // an intent, later with its receipt
)
