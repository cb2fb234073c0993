package background

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
)

// I7: an error is logged by its class, never by its text.
func TestI7_ErrorClass_ContainsNoErrorText(t *testing.T) {
	inner := &fermata.RetryError{Err: errors.New("CANARY")}
	for want, err := range map[string]error{
		"fermata.RetryError":                                                fmt.Errorf("%w: %w: CANARY", provider.ErrPark, inner),
		"background.refusedError":                                           errors.Join(errors.New("CANARY"), &refusedError{"CANARY"}),
		"an error without a type":                                           errors.New("CANARY"),
		"fermata.RetryError: background.refusedError":                       &fermata.RetryError{Err: &refusedError{"CANARY"}},
		"fermata.RetryError: background.toldError (127.0.0.1 answered 500)": &fermata.RetryError{Err: fmt.Errorf("CANARY: %w", toldError{})},
	} {
		if got := ErrorClass(err); got != want {
			t.Errorf("class %q, want %q", got, want)
		}
	}
}

// toldError is an error with a text for the log.
type toldError struct{}

func (toldError) Error() string  { return "CANARY" }
func (toldError) ForLog() string { return "127.0.0.1 answered 500" }

// refusedError is an error with a type.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }
