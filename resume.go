package fermata

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Resume returns a context that answers these interrupts without data. Pass it to the call that
// resumes the run.
func Resume(ctx context.Context, interruptIDs ...string) context.Context {
	targets := make(map[string]any, len(interruptIDs))
	for _, id := range interruptIDs {
		targets[id] = nil
	}
	return BatchResumeWithData(ctx, targets)
}

// ResumeWithData returns a context that answers one interrupt. data may be the answer's Go type, a
// pointer to it, json.RawMessage, or any value with the same JSON; nil is an answer without data.
func ResumeWithData(ctx context.Context, interruptID string, data any) context.Context {
	return BatchResumeWithData(ctx, map[string]any{interruptID: data})
}

// BatchResumeWithData returns a context that answers several interrupts, in addition to those that
// ctx already answers. The map is copied.
func BatchResumeWithData(ctx context.Context, answers map[string]any) context.Context {
	return activation.WithResumeTargets(ctx, answers)
}

// GetInterruptState reports whether the code at the current address has waited in this activation,
// and returns the state it passed to [StatefulInterrupt] or [CompositeInterrupt]. A state that is
// not a T is reported as missing.
func GetInterruptState[T any](ctx context.Context) (wasInterrupted, hasState bool, state T) {
	scope := activation.FromContext(ctx)
	if scope == nil {
		return false, false, state
	}
	last := scope.Last()
	if last == nil || last.State == nil {
		return scope.Interrupted(), false, state
	}
	if err := roundtrip.Decode(last.State, &state); err != nil {
		var zero T
		return true, false, zero
	}
	return true, true, state
}

// GetResumeContext reports whether the code at the current address may continue: its own interrupt
// was answered, or one below it was answered in this resume. hasData is true if its own answer has
// data.
//
// Data that is not a T is not an answer. The code is then not a target, its interrupt stays open
// with the same id, and the caller gets an [AnswerError]. A rejection of the wrong type is never
// taken for an approval.
//
// An answer to an interrupt that the code raised here with [Kind.Ask] or [Approve] is returned only
// by that call: it does not make the code a target.
func GetResumeContext[T any](ctx context.Context) (isResumeTarget, hasData bool, data T) {
	scope := activation.FromContext(ctx)
	if scope == nil {
		return false, false, data
	}
	last := scope.Last()
	if last != nil && last.Status == activation.StatusOpen && !last.Composite { //mutate:own-interrupt-still-open
		return false, false, data // its own interrupt is still open
	}
	if last == nil || last.Status != activation.StatusAnswered {
		//mutate:answer-of-other-interrupt
		return scope.Host.HasNewAnswer(scope.Path()) && (last != nil || !scope.AskedHere(string(SegmentApprove)+":", string(SegmentEffect)+":")), false, data
	}
	if last.Answer == nil {
		return true, false, data
	}
	if err := strictjson.Decode(last.Answer, &data); err != nil {
		var zero T
		// the code raises its interrupt again, or fails
		_ = scope.Refuse(last.ID, fmt.Errorf("not a %T: %w", zero, err))
		return false, false, zero //mutate:wrong-type-is-no-resume
	}
	return true, true, data
}

// RefuseAnswer refuses the last answer that the code at the current address got from [Kind.Ask] or
// [GetResumeContext]. The question stays open, and the person sees the reason. The node must return
// the error:
//
//	amount, err := Amount.Ask(ctx, "how much?")
//	if err == nil && amount > limit {
//		err = fermata.RefuseAnswer(ctx, "at most 100")
//	}
//	if err != nil {
//		return state, err
//	}
//
// Use it for rules that depend on the state of the run. A rule about the answer alone belongs into
// the kind, which rejects the answer before it is recorded.
func RefuseAnswer(ctx context.Context, reason string) error {
	scope := activation.FromContext(ctx)
	if scope == nil {
		return ErrNoRun
	}
	if err := scope.RefuseLast(reason); err != nil {
		return err
	}
	return fmt.Errorf("fermata: refuse an answer at %s: the code there has read none", scope.FullAddress())
}
