package fermata_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// ledgerByAttempt is a ledger that knows only how each attempt ended.
type ledgerByAttempt map[int]fermata.LedgerEntry

func (l ledgerByAttempt) Begin(_ context.Context, intent fermata.Intent) (fermata.LedgerEntry, bool, error) {
	line, known := l[intent.Attempt]
	if !known {
		l[intent.Attempt] = fermata.LedgerEntry{State: fermata.EffectBegun}
	}
	return line, !known, nil
}

func (l ledgerByAttempt) End(_ context.Context, intent fermata.Intent, line fermata.LedgerEntry) error {
	l[intent.Attempt] = line
	return nil
}

// An idempotent target is also not called again: it may have forgotten the key.
func TestI14_EffectEndedInLedgerIsNotRepeated(t *testing.T) {
	var d database
	r := newRun(t, dropping(&d, fermata.Idempotent()), graph.WithLedger(make(ledgerByAttempt)))
	r.crash(&d)
	out, err := r.resume(graph.TakeOver())
	if err != nil || out != "dropped users" || d.n != 1 {
		t.Fatalf("got %q, %v, %d calls", out, err, d.n)
	}
}

// unavailableLedger is a ledger that fails the first calls of End.
type unavailableLedger struct {
	ledgerByAttempt
	left int
}

var errUnavailable = errors.New("the ledger is away")

func (l *unavailableLedger) End(ctx context.Context, intent fermata.Intent, line fermata.LedgerEntry) error {
	if l.left > 0 {
		l.left--
		return errUnavailable
	}
	return l.ledgerByAttempt.End(ctx, intent, line)
}

// The journal's end is written to the ledger later: otherwise the audit would report the effect as
// unknown forever.
func TestI4_MissedLedgerEndIsWrittenLater(t *testing.T) {
	for name, c := range map[string]struct {
		fail error
		want fermata.LedgerState
	}{
		"it was done":    {nil, fermata.EffectSucceeded},
		"it was refused": {fermata.NotDone(errors.New("refused")), fermata.EffectFailed},
	} {
		t.Run(name, func(t *testing.T) {
			d := database{fail: func() error { return c.fail }}
			ledger := &unavailableLedger{ledgerByAttempt: make(ledgerByAttempt), left: 1}
			r := newRun(t, dropping(&d), graph.WithLedger(ledger))
			_, err := r.start()
			if _, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove}); !errors.Is(err, errUnavailable) {
				t.Fatal(err)
			}
			if _, err = r.resume(); c.fail == nil && (err != nil || d.n != 1) {
				t.Errorf("%v after %d calls", err, d.n)
			}
			if got := ledger.ledgerByAttempt[1].State; got != c.want {
				t.Errorf("the ledger has %q, want %q", got, c.want)
			}
		})
	}
}
