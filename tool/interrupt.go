package tool

import (
	"context"

	"github.com/fermata-go/fermata"
)

// Interrupt is [fermata.Interrupt]: it returns an error that makes the run wait at this call.
func Interrupt(ctx context.Context, info any) error { return fermata.Interrupt(ctx, info) }

// StatefulInterrupt is [fermata.StatefulInterrupt]: the state is returned by [GetInterruptState].
func StatefulInterrupt(ctx context.Context, info, state any) error {
	return fermata.StatefulInterrupt(ctx, info, state)
}

// CompositeInterrupt is [fermata.CompositeInterrupt]: it combines the interrupts of several parts
// of a tool, each with its own address.
func CompositeInterrupt(ctx context.Context, info, state any, errs ...error) error {
	return fermata.CompositeInterrupt(ctx, info, state, errs...)
}

// GetInterruptState is [fermata.GetInterruptState]: whether this call has waited, and the state
// that it passed to [StatefulInterrupt].
func GetInterruptState[T any](ctx context.Context) (wasInterrupted, hasState bool, state T) {
	return fermata.GetInterruptState[T](ctx)
}

// GetResumeContext is [fermata.GetResumeContext]: whether this call may continue, and the answer.
func GetResumeContext[T any](ctx context.Context) (isResumeTarget, hasData bool, data T) {
	return fermata.GetResumeContext[T](ctx)
}
