package fermata_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// Regression: a run that was stopped between the approval and the effect left the effect in doubt,
// although nothing had been called, and a person was asked.
func TestEffect_NotBegunBeforeStopIsNotInDoubt(t *testing.T) {
	var paid calls
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRun(t, func(inner context.Context) (string, error) {
		approved, err := fermata.Approve(inner, fermata.Action[int]{Name: "pay", Args: 3})
		if err != nil {
			return "", err
		}
		cancel()
		return fermata.Effect(inner, approved, func(ctx context.Context, _ int, _ string) (string, error) {
			if err := ctx.Err(); err != nil { // as any client does
				return "", err
			}
			paid.add()
			return "paid", nil
		})
	})
	_, err := r.start()
	yes := graph.Answer(waitsFor(t, err).ID, fermata.Decision{Verb: fermata.VerbApprove})
	if _, err := r.flow.Resume(ctx, "r", graph.WithStore(r.st), yes); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a cancelled run", err)
	}

	out, err := r.resume()

	if err != nil || out != "paid" || paid.n != 1 {
		t.Errorf("got %q, %v, paid %d times; want it done once without asking", out, err, paid.n)
	}
}

// Regression: a kind with that name got states as answers: its own type was rejected, and nil could
// not be read.
func TestNewKind_HoldNamePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a kind has the name of holds")
		}
	}()
	fermata.NewKind[string, string](graph.KindHold)
}

// retry behaves like a library that does not know interrupts.
func retry(times int, fn func() error) (err error) {
	for range times {
		if err = fn(); err == nil || fermata.IsInterrupt(err) {
			return err
		}
	}
	return err
}

func TestIsInterrupt_DistinguishesInterruptFromFailure(t *testing.T) {
	confirm := fermata.NewKind[string, bool]("test-confirm-retried")
	tries := 0
	r := newRun(t, func(ctx context.Context) (string, error) {
		return "", retry(3, func() error {
			if tries++; tries < 3 {
				return errors.New("not yet")
			}
			_, once := confirm.Ask(ctx, "sure?")
			_, twice := confirm.Ask(ctx, "really?")
			if once != nil {
				return errors.Join(fmt.Errorf("asking: %w", once), twice)
			}
			return twice
		})
	})

	_, err := r.start()

	if info, ok := fermata.ExtractInterruptInfo(err); !ok || len(info.Interrupts) != 2 || tries != 3 {
		t.Errorf("got %v after %d tries, want two interrupts after three", err, tries)
	}
	for what, err := range map[string]error{
		"nil":                       nil,
		"a failure":                 errors.New("boom"),
		"a failure beside":          errors.Join(fermata.InterruptAndRerun, errors.New("boom")),
		"a run that waits, outside": err,
	} {
		if fermata.IsInterrupt(err) {
			t.Errorf("%s is taken for an interrupt", what)
		}
	}
}
