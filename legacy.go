package fermata

import (
	"context"
	"errors"

	"github.com/fermata-go/fermata/internal/activation"
)

// InterruptAndRerun makes the run wait at the node that returns it and enters the node again
// afterwards. It has no address and no question. It exists for compatibility; use [Interrupt] in
// new code.
var InterruptAndRerun error = &activation.Rerun{}

// NewInterruptAndRerunErr is [InterruptAndRerun] with info for the person.
func NewInterruptAndRerunErr(extra any) error { return &activation.Rerun{Extra: extra} }

// WrapInterruptAndRerunIfNeeded gives a legacy interrupt the address of the part that returned it,
// one segment below ctx, so that it can be answered separately. Other errors, including nil and
// errors joined with it, are returned unchanged.
func WrapInterruptAndRerunIfNeeded(ctx context.Context, segment Segment, err error) error {
	rerun, ok := errors.AsType[*activation.Rerun](err)
	if !ok {
		return err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var parts []error
		for _, part := range joined.Unwrap() {
			parts = append(parts, WrapInterruptAndRerunIfNeeded(ctx, segment, part))
		}
		return errors.Join(parts...)
	}
	return Interrupt(withSegment(ctx, segment), rerun.Extra)
}
