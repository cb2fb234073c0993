package fermata_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
)

// deletes is a node that deletes the current rows.
func deletes(rows, deleted *atomic.Int64, fail *atomic.Bool) node {
	return func(ctx context.Context) (string, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{
			Name: "delete", Args: "old orders",
			Target: func(context.Context, string) (any, error) { return map[string]int64{"rows": rows.Load()}, nil },
		})
		if err != nil {
			return "", err
		}
		return fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) {
			n := rows.Swap(0)
			deleted.Add(n)
			if fail.Load() {
				return "", errors.New("the answer was lost")
			}
			return fmt.Sprint("deleted ", n), nil
		})
	}
}

func question(t *testing.T, err error) fermata.ApprovalRequest {
	t.Helper()
	q, err := fermata.Approval.Question(waitsFor(t, err))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// An approver of twelve rows is asked again when there are twelve thousand.
func TestI6_ApprovalHoldsForTheTargetThatWasShown(t *testing.T) {
	var rows, deleted atomic.Int64
	rows.Store(12)
	r := newRun(t, deletes(&rows, &deleted, new(atomic.Bool)))
	_, err := r.start()
	first := question(t, err)
	if string(first.Target) != `{"rows":12}` || first.PreviousTarget != nil {
		t.Fatalf("%s, %s", first.Target, first.PreviousTarget)
	}
	rows.Store(12000)
	asked := waitsFor(t, err).ID
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"})
	second := question(t, err)
	if string(second.Target) != `{"rows":12000}` || string(second.PreviousTarget) != `{"rows":12}` || second.Digest != first.Digest || waitsFor(t, err).ID == asked || deleted.Load() != 0 {
		t.Fatalf("%s, %s, deleted %d", second.Target, second.PreviousTarget, deleted.Load())
	}
	out, err := r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"})
	if err != nil || out != "deleted 12000" {
		t.Errorf("%s, %v", out, err)
	}
}

func TestTarget_UnchangedTargetIsNotAskedAgain(t *testing.T) {
	var rows, deleted atomic.Int64
	rows.Store(12)
	r := newRun(t, deletes(&rows, &deleted, new(atomic.Bool)))
	_, err := r.start()
	if out, err := r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"}); err != nil || out != "deleted 12" {
		t.Errorf("%s, %v", out, err)
	}
}

// A begun effect has changed the target itself: that is not a target change, and the person is
// asked about the effect in doubt.
func TestTarget_BegunEffectIsNotATargetChange(t *testing.T) {
	var rows, deleted atomic.Int64
	var fail atomic.Bool
	rows.Store(12)
	fail.Store(true)
	r := newRun(t, deletes(&rows, &deleted, &fail))
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"})
	if q, err := fermata.EffectInDoubt.Question(waitsFor(t, err)); err != nil || q.Action != "delete" {
		t.Errorf("%+v, %v", q, err)
	}
	if deleted.Load() != 12 {
		t.Errorf("deleted %d", deleted.Load())
	}
}

func TestTarget_FailingCheckBlocksTheEffect(t *testing.T) {
	down := errors.New("the database is down")
	r := newRun(t, func(ctx context.Context) (string, error) {
		_, err := fermata.Approve(ctx, fermata.Action[string]{Name: "delete", Args: "x", Target: func(context.Context, string) (any, error) { return nil, down }})
		return "", err
	})
	if _, err := r.start(); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
}

// An effect that certainly did not happen is repeated only if its target is unchanged.
func TestI6_RepeatedEffectChecksItsTargetAgain(t *testing.T) {
	var rows, deleted atomic.Int64
	var down atomic.Bool
	rows.Store(12)
	down.Store(true)
	r := newRun(t, func(ctx context.Context) (string, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{
			Name: "delete", Args: "old orders",
			Target: func(context.Context, string) (any, error) { return map[string]int64{"rows": rows.Load()}, nil },
		})
		if err != nil {
			return "", err
		}
		return fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) {
			if down.Load() {
				return "", fermata.NotDone(errors.New("no connection"))
			}
			return fmt.Sprint("deleted ", deleted.Add(rows.Swap(0))), nil
		})
	})
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"})
	if _, waits := fermata.ExtractInterruptInfo(err); waits || err == nil {
		t.Fatalf("the effect failed, and: %v", err)
	}
	_, err = r.resume() // the same rows: it is repeated without asking
	if _, waits := fermata.ExtractInterruptInfo(err); waits || err == nil {
		t.Fatalf("the effect failed again, and: %v", err)
	}
	rows.Store(12000)
	down.Store(false)
	_, err = r.resume()
	if q := question(t, err); string(q.Target) != `{"rows":12000}` || string(q.PreviousTarget) != `{"rows":12}` || deleted.Load() != 0 {
		t.Fatalf("%s, %s, deleted %d", q.Target, q.PreviousTarget, deleted.Load())
	}
	if out, err := r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"}); err != nil || out != "deleted 12000" {
		t.Errorf("%s, %v", out, err)
	}
}

// An approval is void after a target change, even if the target has changed back: the second
// request may have been rejected, or the second approval performed the effect.
func TestI4_ApprovalIsVoidAfterTheTargetChanged(t *testing.T) {
	more := fermata.NewKind[string, string]("more-after-" + t.Name())
	for verb, times := range map[fermata.Verb]int64{fermata.VerbApprove: 1, fermata.VerbReject: 0} {
		t.Run(string(verb), func(t *testing.T) {
			var rows, done atomic.Int64
			rows.Store(12)
			r := newRun(t, func(ctx context.Context) (string, error) {
				yes, err := fermata.Approve(ctx, fermata.Action[string]{
					Name: "reset", Args: "orders", Target: func(context.Context, string) (any, error) { return rows.Load(), nil },
				})
				if err == nil {
					_, err = fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) {
						done.Add(1)
						return "reset", nil
					})
				}
				if _, refused := errors.AsType[*fermata.RejectedError](err); err != nil && !refused {
					return "", err
				}
				return more.Ask(ctx, "and then?")
			})
			_, err := r.start()
			rows.Store(13)
			_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"})
			_, err = r.answer(err, fermata.Decision{Verb: verb, Reason: "because", By: "bob"})
			if _, err := more.Question(waitsFor(t, err)); err != nil {
				t.Fatal(err)
			}
			rows.Store(12) // as it was at the first approval
			if out, err := r.answer(err, "nothing"); err != nil || out != "nothing" || done.Load() != times {
				t.Errorf("%s, %v, done %d times", out, err, done.Load())
			}
		})
	}
}

// Code that continued after a failed effect continues in the same way: in that attempt nothing is
// repeated, and no one is asked again.
func TestTarget_IsNotCheckedAgainWithoutRepeat(t *testing.T) {
	what := fermata.NewKind[string, string]("what-now-" + t.Name())
	var rows atomic.Int64
	r := newRun(t, func(ctx context.Context) (string, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{
			Name: "delete", Args: "x", Target: func(context.Context, string) (any, error) { return rows.Load(), nil },
		})
		if err != nil {
			return "", err
		}
		if _, err := fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) {
			return "", fermata.NotDone(errors.New("no connection"))
		}); err == nil {
			t.Error("it worked")
		}
		return what.Ask(ctx, "what now?")
	})
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"})
	rows.Store(1)
	if out, err := r.answer(err, "leave it"); err != nil || out != "leave it" {
		t.Errorf("%s, %v", out, err)
	}
}

// An approver who edits is asked again if the edited arguments have another target. The summary
// describes the original arguments and would be wrong for the edited ones.
func TestI6_SummaryIsNotShownWithEditedArguments(t *testing.T) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{
			Name: "drop", Args: "drafts", Summary: "Drop the drafts.",
			Target: func(_ context.Context, table string) (any, error) { return "rows of " + table, nil },
		})
		return fmt.Sprint(yes.Args(), ", edited: ", yes.Edited()), err
	})
	_, err := r.start()
	if q := question(t, err); q.Summary != "Drop the drafts." {
		t.Fatalf("%+v", q)
	}
	edit := fermata.Decision{Verb: fermata.VerbApprove, Args: []byte(`"orders"`)}
	_, err = r.answer(err, edit)
	if q := question(t, err); q.Summary != "" || string(q.Args) != `"orders"` || string(q.Target) != `"rows of orders"` {
		t.Fatalf("%+v", q)
	}
	// a form sends all of its fields
	if out, err := r.answer(err, edit); err != nil || out != "orders, edited: true" {
		t.Errorf("%s, %v", out, err)
	}
}
