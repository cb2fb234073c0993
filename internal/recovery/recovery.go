// Package safely runs code that we did not write: what it does wrong becomes an error.
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

// Recover, deferred, turns a panic into an error.
func Recover(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}

// ErrExited says that code did not return, and did not panic either.
var ErrExited = errors.New("fermata: the code ended its goroutine with runtime.Goexit")

// Parallel calls fn for 0 to n-1, at most limit at a time if that is above 0, and returns what each returned.
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
