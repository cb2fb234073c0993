package executor

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata/provider"
)

// I7: what went wrong is said by its kind, never in the words of whoever failed.
func TestI7_ClassName_SaysWhatKindOfErrorItIs(t *testing.T) {
	inner := &provider.RetryError{Err: errors.New("CANARY")}
	for want, err := range map[string]error{
		"provider.RetryError":                                              fmt.Errorf("%w: %w: CANARY", provider.ErrPark, inner),
		"executor.RefusedError":                                            errors.Join(errors.New("CANARY"), &RefusedError{Interrupt: "CANARY"}),
		"an error without a type":                                          errors.New("CANARY"),
		"provider.RetryError: executor.voteCountedError":                       &provider.RetryError{Err: &voteCountedError{"CANARY"}},
		"provider.RetryError: executor.toldError (127.0.0.1 answered 500)": &provider.RetryError{Err: fmt.Errorf("CANARY: %w", toldError{})},
	} {
		if got := errorClass(err); got != want {
			t.Errorf("it is called %q, not %q", got, want)
		}
	}
}

// toldError is an error with words for the log.
type toldError struct{}

func (toldError) Error() string  { return "CANARY" }
func (toldError) ForLog() string { return "127.0.0.1 answered 500" }
