package fermata_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
)

var part = fermata.Segment{Type: "part", ID: "old"}

// Regression: a failure joined with a legacy interrupt was lost, and the run waited.
func TestWrapInterruptAndRerun_KeepsOtherFailure(t *testing.T) {
	failure := errors.New("the disk is full")
	_, err := newRun(t, func(ctx context.Context) (string, error) {
		return "", fermata.WrapInterruptAndRerunIfNeeded(ctx, part, errors.Join(fermata.InterruptAndRerun, failure))
	}).start()
	if _, waits := fermata.ExtractInterruptInfo(err); waits || !errors.Is(err, failure) {
		t.Errorf("it came to %v", err)
	}
}

// It also keeps other interrupts.
func TestWrapInterruptAndRerun_KeepsOtherInterrupts(t *testing.T) {
	_, err := newRun(t, func(ctx context.Context) (string, error) {
		asked := fermata.Interrupt(fermata.AppendAddressSegment(ctx, "part", "new"), "new?")
		return "", fermata.WrapInterruptAndRerunIfNeeded(ctx, part, errors.Join(asked, fmt.Errorf("in the old part: %w", fermata.NewInterruptAndRerunErr("old?"))))
	}).start()
	info, waits := fermata.ExtractInterruptInfo(err)
	if !waits || len(info.Interrupts) != 2 {
		t.Fatalf("it came to %v", err)
	}
	for i, want := range []string{"part:new", "part:old"} {
		if last := info.Interrupts[i].Address[len(info.Interrupts[i].Address)-1]; last.String() != want {
			t.Errorf("number %d asks at %s, want %s", i+1, last, want)
		}
	}
}
