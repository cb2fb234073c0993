package main

import (
	"context"
	"fmt"
	"strconv"
)

// engine is one engine, set up for one scenario.
type engine struct {
	// do performs one operation, from the start of a run to its end, and fails unless the result is
	// correct.
	do func(ctx context.Context) error
	// stored returns the stored bytes while a run waits. It is nil if nothing is stored.
	stored func(ctx context.Context) (int, error)
}

// waitingRun is an engine with a graph that waits, as both sides implement it.
type waitingRun[T any] interface {
	// start runs until the run waits and returns the ids of the open interrupts.
	start(ctx context.Context, run string) (questions []string, err error)
	// resume answers the interrupts and runs to the end.
	resume(ctx context.Context, run string, answers map[string]any) (T, error)
	// size returns the stored bytes of the run, and delete deletes them.
	size(ctx context.Context, run string) (int, error)
	delete(ctx context.Context, run string) error
}

// waitingEngine makes an engine of a graph that waits once, at a number of places.
func waitingEngine[T any](w waitingRun[T], places int, check func(T) error) *engine {
	runs := 0
	start := func(ctx context.Context) (run string, questions []string, err error) {
		runs++
		run = "run-" + strconv.Itoa(runs)
		questions, err = w.start(ctx, run)
		if err == nil && len(questions) != places {
			err = fmt.Errorf("it waits at %d places, want %d", len(questions), places)
		}
		return run, questions, err
	}
	return &engine{
		do: func(ctx context.Context) error {
			run, questions, err := start(ctx)
			if err != nil {
				return err
			}
			answers := make(map[string]any, len(questions))
			for _, id := range questions {
				answers[id] = answer
			}
			result, err := w.resume(ctx, run, answers)
			if err != nil {
				return err
			}
			if err := check(result); err != nil {
				return err
			}
			return w.delete(ctx, run)
		},
		stored: func(ctx context.Context) (int, error) {
			run, _, err := start(ctx)
			if err != nil {
				return 0, err
			}
			size, err := w.size(ctx, run)
			if err != nil {
				return 0, err
			}
			return size, w.delete(ctx, run)
		},
	}
}
