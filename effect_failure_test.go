package fermata_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

func TestI4_EffectFailureIsAnUnknownOutcomeUnlessMarkedNotDone(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("i/o timeout") },
		"panic": func() error { panic("i/o timeout") },
		"retry": func() error { return fermata.Retry(errors.New("i/o timeout")) },
	} {
		t.Run(name, func(t *testing.T) {
			d := database{fail: fail}
			ledger := make(ledgerByAttempt)
			r := newRun(t, dropping(&d), graph.WithLedger(ledger))
			_, err := r.start()
			_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
			doubt, qerr := fermata.EffectInDoubt.Question(waitsFor(t, err))
			if qerr != nil || !strings.Contains(doubt.Error, "i/o timeout") || d.n != 1 || ledger[1].State != fermata.EffectBegun {
				t.Fatalf("got %+v, %v, %d calls, ledger %+v", doubt, qerr, d.n, ledger[1])
			}
			out, err := r.answer(err, fermata.EffectResolution{Happened: true, Receipt: json.RawMessage(`"dropped"`)})
			if err != nil || out != "dropped" || d.n != 1 || ledger[1].State != fermata.EffectSucceeded {
				t.Fatalf("got %q, %v, %d calls, ledger %+v", out, err, d.n, ledger[1])
			}
		})
	}
}

func TestEffect_NotDoneIsReturnedToTheNodeAndMayBeRepeated(t *testing.T) {
	refused := errors.New("refused")
	d := database{fail: func() error { return fermata.NotDone(refused) }}
	r := newRun(t, dropping(&d))
	_, err := r.start()
	if _, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove}); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	d.fail = nil
	if out, err := r.resume(); err != nil || out != "dropped users" || d.n != 2 {
		t.Fatalf("got %q, %v, %d calls", out, err, d.n)
	}
}

func TestEffect_IdempotentFailureIsRetriedWithTheSameKeyBeforeAPersonIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		fail    error
		retries int
		after   time.Duration
	}{
		"by default":  {errors.New("timeout"), 5, 0},
		"as it asked": {fermata.Retry(errors.New("timeout"), fermata.After(time.Minute), fermata.AtMost(2)), 2, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			d := database{fail: func() error { return c.fail }}
			r := newRun(t, dropping(&d, fermata.Idempotent()))
			_, err := r.start()
			_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
			for n := range c.retries {
				retry, ok := errors.AsType[*fermata.RetryError](err)
				if !ok || retry.After != c.after {
					t.Fatalf("after %d calls: %v", n+1, err)
				}
				_, err = r.resume()
			}
			doubt, qerr := fermata.EffectInDoubt.Question(waitsFor(t, err))
			if qerr != nil || doubt.Error != "timeout" || d.n != c.retries+1 || d.keys[0] != d.keys[d.n-1] {
				t.Fatalf("got %+v, %v, keys %v", doubt, qerr, d.keys)
			}
		})
	}
}

func TestRetry_NotDoneIsRetriedUpToItsLimit(t *testing.T) {
	refused := errors.New("busy")
	for name, fail := range map[string]error{
		"outside": fermata.Retry(fermata.NotDone(refused), fermata.AtMost(1)),
		"inside":  fermata.NotDone(fermata.Retry(refused, fermata.AtMost(1))),
	} {
		t.Run(name, func(t *testing.T) {
			d := database{fail: func() error { return fail }}
			r := newRun(t, dropping(&d))
			_, err := r.start()
			_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
			if _, retry := errors.AsType[*fermata.RetryError](err); !retry {
				t.Fatalf("got %v", err)
			}
			_, err = r.resume()
			if _, retry := errors.AsType[*fermata.RetryError](err); retry || !errors.Is(err, refused) || d.n != 2 {
				t.Fatalf("got %v after %d calls", err, d.n)
			}
		})
	}
}

// The process ends after the error is in the journal and before the attempt is counted: the node
// gets the request for a retry again.
func TestRetry_NotDoneIsRetriedAfterATakeover(t *testing.T) {
	var d database
	r := newRun(t, dropping(&d))
	faulty := storetest.NewFaulty(r.st)
	r.st = faulty
	_, err := r.start()
	ic := waitsFor(t, err)
	d.fail = func() error {
		faulty.CrashSave(faulty.Saves()+2, storetest.BeforeWrite)
		return fermata.NotDone(fermata.Retry(errors.New("busy"), fermata.After(time.Minute)))
	}
	if _, err := r.resume(graph.Answer(ic.ID, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"})); !errors.Is(err, storetest.ErrCrashed) {
		t.Fatalf("got %v", err)
	}
	faulty.Restart()
	d.fail = nil
	_, err = r.resume(graph.TakeOver())
	if retry, ok := errors.AsType[*fermata.RetryError](err); !ok || retry.After != time.Minute || d.n != 1 {
		t.Fatalf("got %v after %d calls", err, d.n)
	}
	if out, err := r.resume(); err != nil || out != "dropped users" || d.n != 2 {
		t.Fatalf("got %q, %v after %d calls", out, err, d.n)
	}
}
