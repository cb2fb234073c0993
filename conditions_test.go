package fermata_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// voidLedger is a ledger whose conditions hold or not.
type voidLedger struct {
	ledgerByAttempt
	void bool
}

func (l *voidLedger) Begin(ctx context.Context, intent fermata.Intent) (fermata.LedgerEntry, bool, error) {
	if _, known := l.ledgerByAttempt[intent.Attempt]; !known && intent.Conditional != nil && l.void {
		return fermata.LedgerEntry{}, false, &fermata.VoidApprovalError{Reason: "too late"}
	}
	return l.ledgerByAttempt.Begin(ctx, intent)
}

var onlySmall = fermata.Decision{Verb: fermata.VerbApprove, Conditions: fermata.Conditions{OnlyIf: "args.size() < 10"}}

func TestI4_VoidApprovalIsAskedAgainAndNothingRuns(t *testing.T) {
	var d database
	ledger := &voidLedger{ledgerByAttempt: make(ledgerByAttempt), void: true}
	r := newRun(t, dropping(&d), graph.WithLedger(ledger))
	_, err := r.start()
	first := waitsFor(t, err).ID
	_, err = r.answer(err, onlySmall)
	if again := question(t, err); again.Voided != "too late" || waitsFor(t, err).ID == first || d.n != 0 {
		t.Fatalf("asked %+v, %d calls", again, d.n)
	}
	_, err = r.answer(err, onlySmall)
	if again := question(t, err); again.Voided != "too late" || d.n != 0 {
		t.Fatalf("asked %+v, %d calls", again, d.n)
	}
	ledger.void = false
	if out, err := r.answer(err, onlySmall); err != nil || out != "dropped users" || d.n != 1 {
		t.Errorf("got %q, %v, %d calls", out, err, d.n)
	}
}

// An effect that began while the conditions held is repeated with the same key: a new approval
// would have another one.
func TestI4_RepeatedEffectDoesNotCheckItsConditionsAgain(t *testing.T) {
	var d database
	ledger := &voidLedger{ledgerByAttempt: make(ledgerByAttempt)}
	d.fail = func() error { ledger.void = true; return errUnavailable }
	r := newRun(t, dropping(&d, fermata.Idempotent()), graph.WithLedger(ledger))
	_, err := r.start()
	if _, err = r.answer(err, onlySmall); err == nil {
		t.Fatal("the effect failed, and the run goes on")
	}
	d.fail = nil
	if out, err := r.resume(); err != nil || out != "dropped users" || d.n != 2 {
		t.Errorf("got %q, %v, %d calls", out, err, d.n)
	}
}

func TestConditions_WithoutALedgerTheEndIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d database
		r := newRun(t, dropping(&d))
		_, err := r.start()
		if _, err = r.answer(err, onlySmall); err == nil || question(t, err).Voided != "" {
			t.Errorf("onlyIf without an executor: %v", err)
		}
		until := time.Now().Add(time.Hour)
		time.Sleep(2 * time.Hour)
		_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, Conditions: fermata.Conditions{Until: until}})
		if again := question(t, err); !strings.Contains(again.Voided, "it was valid until") || d.n != 0 {
			t.Fatalf("asked %+v, %d calls", again, d.n)
		}
		out, err := r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, Conditions: fermata.Conditions{Until: time.Now().Add(time.Hour)}})
		if err != nil || out != "dropped users" || d.n != 1 {
			t.Errorf("got %q, %v, %d calls", out, err, d.n)
		}
	})
}

func TestConditions_And(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for _, tt := range []struct{ a, b, want fermata.Conditions }{
		{fermata.Conditions{}, fermata.Conditions{Until: early, OnlyIf: "a"}, fermata.Conditions{Until: early, OnlyIf: "a"}},
		{fermata.Conditions{Until: late, OnlyIf: "a || b"}, fermata.Conditions{Until: early, OnlyIf: "c // d"}, fermata.Conditions{Until: early, OnlyIf: "(a || b) && (c // d\n)"}},
		{fermata.Conditions{Until: early, OnlyIf: "a"}, fermata.Conditions{Until: late, OnlyIf: "a"}, fermata.Conditions{Until: early, OnlyIf: "a"}},
		{fermata.Conditions{Until: early, OnlyIf: "a"}, fermata.Conditions{}, fermata.Conditions{Until: early, OnlyIf: "a"}},
	} {
		if got := tt.a.And(tt.b); got != tt.want {
			t.Errorf("%+v and %+v: %+v", tt.a, tt.b, got)
		}
	}
}
