// Package recovery runs user code and converts its panics to errors.
package recovery

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// PanicError is a panic in a node, a tool or an agent.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recover converts a panic to an error. It must be deferred.
func Recover(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}

// ErrExited is returned if user code neither returned nor panicked.
var ErrExited = errors.New("fermata: user code called runtime.Goexit")

// Parallel calls fn for 0 to n-1 and returns the error of each call. It runs at most limit calls at
// a time if limit is positive.
func Parallel(n, limit int, fn func(i int) error) []error {
	errs := make([]error, n)
	if limit <= 0 {
		limit = max(n, 1)
	}
	slots := make(chan struct{}, limit)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = ErrExited
			defer Recover(&errs[i])
			errs[i] = fn(i)
		})
	}
	wg.Wait()
	return errs
}
