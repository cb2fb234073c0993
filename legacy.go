package fermata

import (
	"context"
	"errors"

	"github.com/fermata-go/fermata/internal/activation"
)

// InterruptAndRerun makes the run wait at the node that returns it and enter the node again afterwards. It knows no address
// and no question; it is here for code that was written for it. [Interrupt] does the same with both.
var InterruptAndRerun error = &activation.Rerun{}

// NewInterruptAndRerunErr is [InterruptAndRerun] with something for the person to see.
func NewInterruptAndRerunErr(extra any) error { return &activation.Rerun{Extra: extra} }

// WrapInterruptAndRerunIfNeeded gives a legacy interrupt the address of the part that returned it, one segment below ctx,
// so that it can be answered on its own. Any other error, nil included, comes back as it is; so do those that it is joined with.
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
