package fermata_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// deploy continues the run with a newer program.
func (r *run) deploy(n node) { r.flow = flowOf(r.t, n) }

// The earlier program sent no key, so the target does not know it: options of the later program
// apply only to its own calls.
func TestI4_EffectBegunWithoutKeyIsNotRepeatedWithOne(t *testing.T) {
	nothing := func(context.Context, string) (string, bool, error) { return "", false, nil }
	for name, options := range map[string][]fermata.EffectOption{
		"a target with keys by now":             {fermata.Idempotent()},
		"a target with lookup and fence by now": {fermata.Lookup(nothing), fermata.Fenced()},
		"a target with all options by now":      {fermata.Lookup(nothing), fermata.Fenced(), fermata.Idempotent()},
	} {
		for _, ledger := range []fermata.Ledger{nil, &ledgerWithoutEnds{}} {
			t.Run(fmt.Sprintf("%s, ledger %v", name, ledger != nil), func(t *testing.T) {
				var d database
				r := newRun(t, dropping(&d))
				if ledger != nil {
					r.opts = append(r.opts, graph.WithLedger(ledger))
				}
				r.crash(&d)
				r.deploy(dropping(&d, options...))

				_, err := r.resume(graph.TakeOver())

				ic := waitsFor(t, err)
				if ic.Kind != fermata.EffectInDoubt.Name() || d.n != 1 {
					t.Fatalf("waits for %s after %d calls", ic.Kind, d.n)
				}
				out, err := r.answer(err, fermata.EffectResolution{})
				if err != nil || out != "dropped users" || d.n != 2 {
					t.Errorf("got %q, %v, %d calls", out, err, d.n)
				}
			})
		}
	}
}

// ledgerWithoutEnds is a ledger that does not record ends: the owner has died.
type ledgerWithoutEnds struct{ begun map[int]bool }

func (l *ledgerWithoutEnds) Begin(_ context.Context, intent fermata.Intent) (fermata.LedgerEntry, bool, error) {
	if l.begun[intent.Attempt] {
		return fermata.LedgerEntry{State: fermata.EffectBegun}, false, nil
	}
	l.begun = map[int]bool{intent.Attempt: true}
	return fermata.LedgerEntry{}, true, nil
}

func (l *ledgerWithoutEnds) End(context.Context, fermata.Intent, fermata.LedgerEntry) error {
	return nil
}

// A failure in the earlier program is as uncertain as its crash.
func TestI4_EffectFailedWithoutKeyIsNotRepeatedWithOne(t *testing.T) {
	d := database{fail: func() error { return errors.New("timeout") }}
	r := newRun(t, dropping(&d))
	_, err := r.start()
	if _, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove}); err == nil {
		t.Fatal("it did not fail")
	}
	d.fail = nil
	r.deploy(dropping(&d, fermata.Idempotent()))

	_, err = r.resume()

	if ic := waitsFor(t, err); ic.Kind != fermata.EffectInDoubt.Name() || d.n != 1 {
		t.Errorf("waits for %s after %d calls", ic.Kind, d.n)
	}
}

// A float64 has 53 bits. Approving the deletion of row 9007199254740993 is not approving
// 9007199254740992.
func TestI4_ANumberIsUsedAsItWasApproved(t *testing.T) {
	const asked, edited = `{"row":9007199254740993}`, `{"row":12345678901234567891}`
	for answer, want := range map[string]string{"": asked, edited: edited} {
		var got []byte
		r := newRun(t, func(ctx context.Context) (string, error) {
			yes, err := fermata.Approve(ctx, fermata.Action[map[string]any]{Name: "delete", Args: map[string]any{"row": 9007199254740993}})
			if err != nil {
				return "", err
			}
			return fermata.Effect(ctx, yes, func(_ context.Context, args map[string]any, _ string) (_ string, err error) {
				got, err = json.Marshal(args)
				return "", err
			})
		})
		_, err := r.start()
		decision := fermata.Decision{Verb: fermata.VerbApprove}
		if answer != "" {
			decision.Args = json.RawMessage(answer)
		}
		if _, err = r.answer(err, decision); err != nil || string(got) != want {
			t.Errorf("approved %s, done %s, %v", want, got, err)
		}
	}
}

// Values that Do, Effect and StatefulInterrupt store, in two versions of a program. The field for a
// denial differs between them.
type (
	earlierCheck struct {
		Denied bool   `json:"denied,omitempty"`
		Note   string `json:"note,omitempty"`
	}
	laterCheck struct {
		Refused bool   `json:"refused,omitempty"`
		Note    string `json:"note,omitempty"`
	}
	widerCheck struct {
		earlierCheckParts
		Score int `json:"score"`
	}
	earlierCheckParts struct {
		Denied bool   `json:"denied,omitempty"`
		Note   string `json:"note,omitempty"`
	}
	smallerCheck struct {
		Note string `json:"note"`
	}
)

var confirmation = fermata.NewKind[string, string]("test-certain")

// checkThenAsk checks something, asks a person, and returns the result of the check.
func checkThenAsk[C any](check C, yes func(C) bool) node {
	return func(ctx context.Context) (string, error) {
		got, err := fermata.Do(ctx, "check", func(context.Context) ([]C, error) { return []C{check}, nil })
		if err != nil {
			return "", err
		}
		if _, err := confirmation.Ask(ctx, "sure?"); err != nil {
			return "", err
		}
		return fmt.Sprint(yes(got[0])), nil
	}
}

// A result that would lose one field and default another must be rejected.
func TestDo_IncompatibleStoredResultReturnsErrProgramChanged(t *testing.T) {
	r := newRun(t, checkThenAsk(earlierCheck{Denied: true, Note: "sanctions"}, func(c earlierCheck) bool { return !c.Denied }))
	_, err := r.start()
	ic := waitsFor(t, err)
	r.deploy(checkThenAsk(laterCheck{}, func(c laterCheck) bool { return !c.Refused }))

	out, err := r.resume(graph.Answer(ic.ID, "yes"))

	if !errors.Is(err, fermata.ErrProgramChanged) || !strings.Contains(err.Error(), `"denied"`) || !strings.Contains(err.Error(), `"refused"`) {
		t.Fatalf("got %q, %v", out, err)
	}
	r.deploy(checkThenAsk(earlierCheck{}, func(c earlierCheck) bool { return !c.Denied }))
	if out, err = r.resume(); err != nil || out != "false" {
		t.Errorf("back in the earlier program: got %q, %v", out, err)
	}
}

func TestDo_ResultWithAddedOrRemovedFieldIsRead(t *testing.T) {
	for name, later := range map[string]node{
		"more": checkThenAsk(widerCheck{}, func(c widerCheck) bool { return c.Denied && c.Note == "sanctions" }),
		"less": checkThenAsk(smallerCheck{}, func(c smallerCheck) bool { return c.Note == "sanctions" }),
	} {
		r := newRun(t, checkThenAsk(earlierCheck{Denied: true, Note: "sanctions"}, func(c earlierCheck) bool { return !c.Denied }))
		_, err := r.start()
		ic := waitsFor(t, err)
		r.deploy(later)
		if out, err := r.resume(graph.Answer(ic.ID, "yes")); err != nil || out != "true" {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
	}
}

// effectThenAsk performs an approved action, asks a person, and returns the receipt.
func effectThenAsk[R any](receipt R) node {
	return func(ctx context.Context) (string, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[drop]{Name: "check", Policy: allowAll})
		if err != nil {
			return "", err
		}
		got, err := fermata.Effect(ctx, yes, func(context.Context, drop, string) (R, error) { return receipt, nil })
		if err != nil {
			return "", err
		}
		if _, err := confirmation.Ask(ctx, "sure?"); err != nil {
			return "", err
		}
		return fmt.Sprintf("%+v", got), nil
	}
}

func TestEffect_IncompatibleStoredReceiptReturnsErrProgramChanged(t *testing.T) {
	r := newRun(t, effectThenAsk(earlierCheck{Denied: true}))
	_, err := r.start()
	ic := waitsFor(t, err)
	r.deploy(effectThenAsk(laterCheck{}))

	out, err := r.resume(graph.Answer(ic.ID, "yes"))

	if !errors.Is(err, fermata.ErrProgramChanged) {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestGetInterruptState_IncompatibleStateIsMissing(t *testing.T) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		return "", fermata.StatefulInterrupt(ctx, "sure?", earlierCheck{Denied: true})
	})
	_, err := r.start()
	ic := waitsFor(t, err)
	r.deploy(func(ctx context.Context) (string, error) {
		_, has, state := fermata.GetInterruptState[laterCheck](ctx)
		return fmt.Sprintf("%v %+v", has, state), nil
	})

	out, err := r.resume(graph.Answer(ic.ID, nil))

	if err != nil || out != "false {Refused:false Note:}" {
		t.Errorf("got %q, %v", out, err)
	}
}

var allowAll = fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
	return fermata.Ruling{Verdict: fermata.Allow}, nil
})

// ledgerByApproval is a ledger that identifies an effect by its approval.
type ledgerByApproval map[string]fermata.LedgerEntry

func (l ledgerByApproval) Begin(_ context.Context, in fermata.Intent) (fermata.LedgerEntry, bool, error) {
	line, known := l[fmt.Sprint(in.InterruptID, in.Attempt)]
	if !known {
		l[fmt.Sprint(in.InterruptID, in.Attempt)] = fermata.LedgerEntry{State: fermata.EffectBegun}
	}
	return line, !known, nil
}

func (l ledgerByApproval) End(_ context.Context, in fermata.Intent, line fermata.LedgerEntry) error {
	l[fmt.Sprint(in.InterruptID, in.Attempt)] = line
	return nil
}

// dropsAndAsks drops a table, counts that, and asks a person afterwards.
func dropsAndAsks(done *int, action fermata.Action[drop], fn func() error) node {
	action.Name = "drop"
	return func(ctx context.Context) (string, error) {
		yes, err := fermata.Approve(ctx, action)
		if err != nil {
			return "", err
		}
		if _, err = fermata.Effect(ctx, yes, func(context.Context, drop, string) (string, error) {
			*done++
			return "", fn()
		}); err != nil {
			return "", err
		}
		return confirmation.Ask(ctx, "sure?")
	}
}

func noError() error { return nil }

// Regression: when a policy was added or removed, the ledger was asked for an effect of another
// approval and had none.
func TestI4_BegunEffectStaysInDoubtUnderAnotherPolicy(t *testing.T) {
	for name, policies := range map[string][2]fermata.Policy{
		"one that came": {nil, allowAll},
		"one that went": {allowAll, nil},
	} {
		t.Run(name, func(t *testing.T) {
			done := 0
			var faulty *storetest.Faulty
			dies := func() error { faulty.CrashSave(faulty.Saves()+1, storetest.BeforeWrite); return errors.New("died") }
			r := newRun(t, dropsAndAsks(&done, fermata.Action[drop]{Policy: policies[0]}, dies), graph.WithLedger(ledgerByApproval{}))
			faulty = storetest.NewFaulty(r.st)
			r.st = faulty
			_, err := r.start()
			if policies[0] == nil {
				_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
			}
			if !errors.Is(err, storetest.ErrCrashed) {
				t.Fatal(err)
			}
			faulty.Restart()
			r.deploy(dropsAndAsks(&done, fermata.Action[drop]{Policy: policies[1]}, noError))

			_, err = r.resume(graph.TakeOver())

			if ic := waitsFor(t, err); ic.Kind != fermata.EffectInDoubt.Name() || done != 1 {
				t.Errorf("waits for %s, and it was done %d times", ic.Kind, done)
			}
		})
	}
}

// Regression: a person was asked to approve an effect that was already done, could reject it, and
// the new answer was lost.
func TestApprove_BegunEffectIsNotAskedAgainWithChangedQuestion(t *testing.T) {
	done := 0
	r := newRun(t, dropsAndAsks(&done, fermata.Action[drop]{Summary: "drops it"}, noError))
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, Args: []byte(`{"table":"old"}`)})
	ic := waitsFor(t, err)
	r.deploy(dropsAndAsks(&done, fermata.Action[drop]{Summary: "drops the table", Fixed: true}, noError))

	out, err := r.resume(graph.Answer(ic.ID, "yes"))

	if err != nil || out != "yes" || done != 1 {
		t.Errorf("got %q, %v; it was done %d times", out, err, done)
	}
}
