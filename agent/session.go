package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

type rawValue = json.RawMessage

const entryValue = "value"

// SetValue stores a value for all agents and tools of the run, across interrupts and crashes. It is
// saved with the next save, together with the result of the tool or agent that sets it. It returns
// an error for a value that JSON cannot represent completely.
func SetValue(ctx context.Context, key string, value any) error {
	stage := scopeOf(ctx)
	if stage == nil {
		return fermata.ErrNoRun
	}
	data, err := encodeValue(key, value)
	if err != nil {
		return err
	}
	return stage.valuePlace(key).Record(ctx, entryValue, data, activation.SaveWithNext)
}

// Value returns the value that [SetValue] or [WithSessionValues] stored under the key. It returns
// an error if the value is not a T. In untyped values numbers are json.Number.
func Value[T any](ctx context.Context, key string) (value T, ok bool, err error) {
	stage := scopeOf(ctx)
	if stage == nil {
		return value, false, fermata.ErrNoRun
	}
	data, ok := stage.valuePlace(key).Recorded(entryValue)
	if !ok {
		data, ok = stage.values[key]
	}
	if !ok {
		return value, false, nil
	}
	if err := roundtrip.UnmarshalUseNumber(data, &value); err != nil {
		return value, true, fmt.Errorf("agent: session value %q is not a %T: %w", key, value, err)
	}
	return value, true, nil
}

func (e *runShared) valuePlace(key string) *activation.Scope {
	return e.root.Child(fermata.Segment{Type: "value", ID: key}.String())
}

func encodeValues(values map[string]any) (map[string]rawValue, error) {
	if len(values) == 0 {
		return nil, nil
	}
	encoded := make(map[string]rawValue, len(values))
	for key, value := range values {
		var err error
		if encoded[key], err = encodeValue(key, value); err != nil {
			return nil, err
		}
	}
	return encoded, nil
}

func encodeValue(key string, value any) (rawValue, error) {
	data, err := roundtrip.Encode(value)
	if t := reflect.TypeOf(value); err == nil && t != nil {
		if lost := roundtrip.InfoOf(t).Problems(); len(lost) > 0 {
			err = errors.New(lost[0])
		} else {
			err = roundtrip.CheckUntyped(reflect.ValueOf(value), "it")
		}
	}
	if err != nil {
		return nil, &fermata.EncodeError{Value: "the session value " + key, Err: err}
	}
	return data, nil
}
