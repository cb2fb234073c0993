package fermata_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

type drop struct {
	Table string `json:"table"`
	Rows  int    `json:"rows,omitempty"`
}

// database is the external system of these tests.
type database struct {
	calls
	dropped []drop
	keys    []string
	fail    func() error
}

func (d *database) drop(_ context.Context, args drop, key string) (string, error) {
	d.add()
	d.keys = append(d.keys, key)
	if d.fail != nil {
		if err := d.fail(); err != nil {
			return "", err
		}
	}
	d.dropped = append(d.dropped, args)
	return "dropped " + args.Table, nil
}

// dropping is a node that drops a table after approval.
func dropping(d *database, options ...fermata.EffectOption) node {
	return func(ctx context.Context) (string, error) {
		ok, err := fermata.Approve(ctx, fermata.Action[drop]{Name: "drop-table", Args: drop{Table: "users"}, Summary: "Drop users"})
		if err != nil {
			return "", err
		}
		return fermata.Effect(ctx, ok, d.drop, options...)
	}
}

func TestI4_NothingHappensBeforeApproval(t *testing.T) {
	var d database
	r := newRun(t, dropping(&d))
	_, err := r.start()
	ic := waitsFor(t, err)
	question, err := fermata.Approval.Question(ic)
	if err != nil || question.Action != "drop-table" || string(question.Args) != `{"table":"users"}` || question.Summary != "Drop users" || len(question.Digest) != 64 {
		t.Fatalf("got %+v, %v", question, err)
	}
	if !strings.HasPrefix(ic.Address.String(), "runnable:g;node:n;approve:drop-table#") {
		t.Fatalf("got %s", ic.Address)
	}
	if d.n != 0 {
		t.Fatal("a table was dropped before the approval")
	}
	out, err := r.resume(graph.Answer(ic.ID, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"}))
	if err != nil || out != "dropped users" || d.n != 1 {
		t.Fatalf("got %q, %v, %d calls", out, err, d.n)
	}
}

func TestApprove_RejectionNamesPersonAndReason(t *testing.T) {
	var d database
	r := newRun(t, dropping(&d))
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbReject, Reason: "still in use", By: "bob"})
	refused, ok := errors.AsType[*fermata.RejectedError](err)
	if !ok || refused.Reason != "still in use" || refused.By != "bob" || refused.Action != "drop-table" || d.n != 0 {
		t.Fatalf("got %v, %d calls", err, d.n)
	}
}

func TestI11_ExpiredIsNotRejectedAndNeverApproves(t *testing.T) {
	var d database
	r := newRun(t, dropping(&d))
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbExpire, Reason: "stale"})
	if _, ok := errors.AsType[*fermata.RejectedError](err); ok {
		t.Fatalf("an expiry is not a rejection: %v", err)
	}
	expired, ok := errors.AsType[*fermata.ExpiredError](err)
	if !ok || expired.Reason != "stale" || d.n != 0 {
		t.Fatalf("got %v, %d calls", err, d.n)
	}
}

func TestI6_EffectRunsWithApprovedArguments(t *testing.T) {
	var d database
	var first, second string
	r := newRun(t, func(ctx context.Context) (string, error) {
		ok, err := fermata.Approve(ctx, fermata.Action[drop]{Name: "drop-table", Args: drop{Table: "users", Rows: 10}})
		if err != nil {
			return "", err
		}
		first, second = ok.Args().Table, ok.By()
		return fermata.Effect(ctx, ok, d.drop)
	})
	_, err := r.start()
	out, err := r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "ann", Args: json.RawMessage(`{"table":"users_old"}`)})
	if err != nil || out != "dropped users_old" || d.dropped[0] != (drop{Table: "users_old"}) || first != "users_old" || second != "ann" {
		t.Fatalf("got %q, %v, %+v", out, err, d.dropped)
	}
}

func TestApprove_InvalidEditsAreRejectedBeforeAnythingRuns(t *testing.T) {
	var d database
	entered := 0
	inner := dropping(&d)
	r := newRun(t, func(ctx context.Context) (string, error) { entered++; return inner(ctx) })
	_, err := r.start()
	ic := waitsFor(t, err)
	for name, decision := range map[string]any{
		"unknown member": fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`{"table":"x","cascade":true}`)},
		"wrong type":     fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`{"table":7}`)},
		"missing":        fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`{}`)},
		"said twice":     fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`{"table":"x","table":"y"}`)},
		"edited no":      fermata.Decision{Verb: fermata.VerbReject, Args: json.RawMessage(`{"table":"x"}`)},
		"unknown verb":   fermata.Decision{Verb: "maybe"},
		"no verb":        json.RawMessage(`{}`),
		"verb as case":   json.RawMessage(`{"Verb":"approve"}`),
	} {
		_, err := r.resume(graph.Answer(ic.ID, decision))
		if _, ok := errors.AsType[*fermata.AnswerError](err); !ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if entered != 1 || d.n != 0 {
		t.Fatalf("entered %d times, %d calls", entered, d.n)
	}
}

// Regression: JSON Schema accepts 1e20 as an integer, Go does not, and the approved action could
// neither be performed nor asked about again.
func TestApprove_EditsThatGoCannotDecodeLeaveTheInterruptOpen(t *testing.T) {
	type small struct {
		N int64 `json:"n"`
	}
	r := newRun(t, func(ctx context.Context) (string, error) {
		ok, err := fermata.Approve(ctx, fermata.Action[small]{Name: "pay", Args: small{N: 1}})
		return fmt.Sprint(ok.Args().N), err
	})
	_, err := r.start()
	id := waitsFor(t, err).ID
	for _, args := range []string{`{"n":1e20}`, `{"n":99999999999999999999.0}`} {
		_, err := r.resume(graph.Answer(id, fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(args)}))
		if !isAnswerError(err) || waitsFor(t, err).ID != id {
			t.Fatalf("%s: got %v", args, err)
		}
	}
	out, err := r.resume(graph.Answer(id, fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`{"n":7}`)}))
	if err != nil || out != "7" {
		t.Fatalf("got %q, %v", out, err)
	}
}

func TestEffect_RequiresApprovalOfThisActivation(t *testing.T) {
	var d database
	var leaked fermata.Approved[drop]
	allow := graph.WithPolicy(fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
		return fermata.Ruling{Verdict: fermata.Allow, Rule: "everything"}, nil
	}))
	r := newRun(t, func(ctx context.Context) (string, error) {
		ok, err := fermata.Approve(ctx, fermata.Action[drop]{Name: "drop-table", Args: drop{Table: "a"}})
		leaked = ok
		if err != nil {
			return "", err
		}
		if _, err := fermata.Effect(ctx, fermata.Approved[drop]{}, d.drop); !errors.Is(err, fermata.ErrNotApproved) {
			t.Errorf("a zero approval: got %v", err)
		}
		out, err := fermata.Effect(ctx, ok, d.drop)
		if err != nil {
			return "", err
		}
		if _, err := fermata.Effect(ctx, ok, d.drop); !errors.Is(err, fermata.ErrNotApproved) {
			t.Errorf("a used approval: got %v", err)
		}
		return out + " by " + ok.By(), nil
	}, allow)
	if out, err := r.start(); err != nil || out != "dropped a by policy everything" {
		t.Fatalf("got %q, %v", out, err)
	}
	other := newRun(t, func(ctx context.Context) (string, error) { return fermata.Effect(ctx, leaked, d.drop) })
	if _, err := other.start(); !errors.Is(err, fermata.ErrNotApproved) {
		t.Fatalf("an approval of another run: got %v", err)
	}
	if d.n != 1 {
		t.Fatalf("%d calls", d.n)
	}
}

func TestPolicy_DecidesAndFailsClosed(t *testing.T) {
	for _, test := range []struct {
		name   string
		ruling fermata.Ruling
		err    error
		check  func(error) bool
		calls  int
	}{
		{"allow", fermata.Ruling{Verdict: fermata.Allow}, nil, func(err error) bool { return err == nil }, 1},
		{"deny", fermata.Ruling{Verdict: fermata.Deny, Reason: "never"}, nil, func(err error) bool {
			refused, ok := errors.AsType[*fermata.RejectedError](err)
			return ok && refused.Reason == "never"
		}, 0},
		{"ask", fermata.Ruling{}, nil, func(err error) bool { _, ok := fermata.ExtractInterruptInfo(err); return ok }, 0},
		{"unknown word asks", fermata.Ruling{Verdict: "perhaps"}, nil, func(err error) bool { _, ok := fermata.ExtractInterruptInfo(err); return ok }, 0},
		{"error", fermata.Ruling{Verdict: fermata.Allow}, errors.New("down"), func(err error) bool { return errors.Is(err, fermata.ErrPolicy) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var d database
			r := newRun(t, dropping(&d), graph.WithPolicy(fermata.PolicyFunc(func(_ context.Context, a fermata.ActionRequest) (fermata.Ruling, error) {
				if a.Action != "drop-table" || string(a.Args) != `{"table":"users"}` || a.Digest == "" || a.Run != "r" {
					t.Errorf("got %+v", a)
				}
				return test.ruling, test.err
			})))
			_, err := r.start()
			if !test.check(err) || d.n != test.calls {
				t.Fatalf("got %v, %d calls", err, d.n)
			}
		})
	}
}

func TestPolicy_MayDenyEditedArguments(t *testing.T) {
	var d database
	r := newRun(t, dropping(&d), graph.WithPolicy(fermata.PolicyFunc(func(_ context.Context, a fermata.ActionRequest) (fermata.Ruling, error) {
		if strings.Contains(string(a.Args), "payroll") {
			return fermata.Ruling{Verdict: fermata.Deny, Rule: "hands-off", Reason: "payroll is off limits"}, nil
		}
		return fermata.Ruling{}, nil
	})))
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, By: "eve", Args: json.RawMessage(`{"table":"payroll"}`)})
	if refused, ok := errors.AsType[*fermata.RejectedError](err); !ok || refused.By != "policy hands-off" || d.n != 0 {
		t.Fatalf("got %v, %d calls", err, d.n)
	}
}

// crashing runs an effect whose process dies between intent and receipt, and returns the run as
// another process finds it.
func crashing(t *testing.T, d *database, options ...fermata.EffectOption) *run {
	t.Helper()
	r := newRun(t, dropping(d, options...))
	r.crash(d)
	return r
}

func (r *run) crash(d *database) {
	t := r.t
	t.Helper()
	faulty := storetest.NewFaulty(r.st)
	r.st = faulty
	_, err := r.start()
	ic := waitsFor(t, err)
	// Two saves until the effect is begun: the answer, and the ready task. The save after the
	// intent crashes.
	d.fail = func() error { faulty.CrashSave(faulty.Saves()+1, storetest.BeforeWrite); return nil }
	if _, err := r.resume(graph.Answer(ic.ID, fermata.Decision{Verb: fermata.VerbApprove, By: "ann"})); !errors.Is(err, storetest.ErrCrashed) {
		t.Fatalf("got %v", err)
	}
	faulty.Restart()
	d.fail = nil
	if d.n != 1 {
		t.Fatalf("%d calls", d.n)
	}
}

func TestI4_EffectInDoubtAsksAPersonAndIsNotRepeated(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprint("happened ", happened), func(t *testing.T) {
			var d database
			r := crashing(t, &d)
			_, err := r.resume(graph.TakeOver())
			ic := waitsFor(t, err)
			doubt, qerr := fermata.EffectInDoubt.Question(ic)
			if qerr != nil || ic.Kind != "effect-in-doubt" || doubt.Action != "drop-table" || doubt.Key != d.keys[0] || doubt.Started.IsZero() {
				t.Fatalf("got %+v, %v", doubt, qerr)
			}
			if d.n != 1 {
				t.Fatal("it was repeated blindly")
			}
			answer := fermata.EffectResolution{Happened: happened}
			want := 2
			if happened {
				answer.Receipt = json.RawMessage(`"dropped users, I looked"`)
				want = 1
			}
			out, err := r.resume(graph.Answer(ic.ID, answer))
			if err != nil || d.n != want || happened != strings.HasSuffix(out, "I looked") {
				t.Fatalf("got %q, %v, %d calls", out, err, d.n)
			}
			if d.n == 2 && d.keys[0] != d.keys[1] {
				t.Error("the key must stay the same")
			}
		})
	}
}

func TestEffect_AReceiptOfAnotherTypeIsRefused(t *testing.T) {
	var d database
	r := crashing(t, &d)
	_, err := r.resume(graph.TakeOver())
	ic := waitsFor(t, err)
	for _, wrong := range []fermata.EffectResolution{
		{Happened: true, Receipt: json.RawMessage(`{"id":7}`)},
		{Happened: false, Receipt: json.RawMessage(`"x"`)},
	} {
		if _, err := r.resume(graph.Answer(ic.ID, wrong)); !isAnswerError(err) {
			t.Errorf("got %v", err)
		}
	}
}

func isAnswerError(err error) bool { _, ok := errors.AsType[*fermata.AnswerError](err); return ok }

func TestEffect_IdempotentInDoubtIsRepeatedWithTheSameKey(t *testing.T) {
	var d database
	r := crashing(t, &d, fermata.Idempotent())
	out, err := r.resume(graph.TakeOver())
	if err != nil || out != "dropped users" || d.n != 2 || d.keys[0] != d.keys[1] {
		t.Fatalf("got %q, %v, keys %v", out, err, d.keys)
	}
}

func TestEffect_HandledErrorIsReturnedAgainInTheSameAttempt(t *testing.T) {
	d := database{fail: func() error { return fermata.NotDone(errors.New("out of stock")) }}
	ask := fermata.NewKind[string, string]("test-after-failure")
	r := newRun(t, func(ctx context.Context) (string, error) {
		ok, err := fermata.Approve(ctx, fermata.Action[drop]{Name: "order", Args: drop{Table: "x"}})
		if err != nil {
			return "", err
		}
		_, failed := fermata.Effect(ctx, ok, d.drop)
		answer, err := ask.Ask(ctx, "it failed, what now?")
		return fmt.Sprint(failed != nil, " ", answer), err
	})
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
	out, err := r.answer(err, "leave it")
	if err != nil || out != "true leave it" || d.n != 1 {
		t.Fatalf("got %q, %v, %d calls", out, err, d.n)
	}
}

func TestI9_WithoutASavedIntentTheEffectDoesNotHappen(t *testing.T) {
	var d database
	r := newRun(t, dropping(&d), graph.SaveOnWait())
	faulty := storetest.NewFaulty(r.st)
	r.st = faulty
	_, err := r.start()
	ic := waitsFor(t, err)
	down := errors.New("disk full")
	faulty.FailSave(faulty.Saves()+2, storetest.BeforeWrite, down) // the first is the answer
	if _, err := r.resume(graph.Answer(ic.ID, fermata.Decision{Verb: fermata.VerbApprove})); !errors.Is(err, down) {
		t.Fatalf("got %v", err)
	}
	if d.n != 0 {
		t.Fatal("the effect ran although its intent could not be saved")
	}
	out, err := r.resume(graph.TakeOver())
	if err != nil || out != "dropped users" || d.n != 1 {
		t.Fatalf("got %q, %v, %d calls", out, err, d.n)
	}
}

func TestDo_RunsOncePerActivation(t *testing.T) {
	var charged, looked calls
	ask := fermata.NewKind[string, string]("test-do")
	r := newRun(t, func(ctx context.Context) (string, error) {
		receipt, err := fermata.Do(ctx, "charge", func(context.Context) (string, error) { charged.add(); return "receipt", nil })
		if err != nil {
			return "", err
		}
		inner, err := fermata.Do(ctx, "asks inside", func(ctx context.Context) (string, error) {
			looked.add()
			return ask.Ask(ctx, "inside?")
		})
		if err != nil {
			return "", err
		}
		outer, err := ask.Ask(ctx, "outside?")
		return receipt + inner + outer, err
	})
	_, err := r.start()
	if got := waitsFor(t, err).Address.String(); got != "runnable:g;node:n;do:asks inside" {
		t.Fatalf("got %s", got)
	}
	_, err = r.answer(err, " in")
	out, err := r.answer(err, " out")
	if err != nil || out != "receipt in out" || charged.n != 1 || looked.n != 2 {
		t.Fatalf("got %q, %v; charged %d, looked %d", out, err, charged.n, looked.n)
	}
}

func TestI4_OneResolutionAllowsOneRepeat(t *testing.T) {
	d := database{fail: func() error { return errors.New("timeout") }}
	// two concurrent calls are two attempts
	frozen := graph.WithClock(func() time.Time { return time.Unix(0, 0) })
	r := newRun(t, dropping(&d), frozen)
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
	_, err = r.answer(err, fermata.EffectResolution{Happened: false})
	if doubt, qerr := fermata.EffectInDoubt.Question(waitsFor(t, err)); qerr != nil || doubt.Attempt != 2 || d.n != 2 {
		t.Fatalf("got %+v, %v after %d calls", doubt, qerr, d.n)
	}
}

func TestEffect_ReceiptThatGoCannotDecodeLeavesTheInterruptOpen(t *testing.T) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		ok, err := fermata.Approve(ctx, fermata.Action[int]{Name: "pay", Args: 1})
		if err != nil {
			return "", err
		}
		receipt, err := fermata.Effect(ctx, ok, func(context.Context, int, string) (int, error) { return 0, errors.New("timeout") })
		return fmt.Sprint(receipt), err
	})
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
	id := waitsFor(t, err).ID
	_, err = r.resume(graph.Answer(id, fermata.EffectResolution{Happened: true, Receipt: json.RawMessage("1e20")}))
	if !isAnswerError(err) || waitsFor(t, err).ID != id {
		t.Fatalf("got %v", err)
	}
	out, err := r.resume(graph.Answer(id, fermata.EffectResolution{Happened: true, Receipt: json.RawMessage("7")}))
	if err != nil || out != "7" {
		t.Fatalf("got %q, %v", out, err)
	}
}

// After a crash, an answer that was acted on must not be missing, so that another answer could be
// given.
func TestI2_AnAnswerIsSavedBeforeAnythingRunsOnIt(t *testing.T) {
	yes := fermata.NewKind[string, string]("yes")
	for _, opts := range [][]graph.Option{nil, {graph.SaveOnWait()}} {
		acted := func() {}
		r := newRun(t, func(ctx context.Context) (string, error) {
			said, err := yes.Ask(ctx, "well?")
			if err == nil {
				acted()
			}
			return said, err
		}, opts...)
		faulty := storetest.NewFaulty(r.st)
		r.st = faulty
		_, err := r.start()
		acted = func() { faulty.CrashSave(faulty.Saves()+1, storetest.BeforeWrite) }
		if _, err := r.answer(err, "go"); !errors.Is(err, storetest.ErrCrashed) {
			t.Fatalf("got %v", err)
		}
		faulty.Restart()
		acted = func() {}
		if out, err := r.resume(graph.TakeOver()); err != nil || out != "go" {
			t.Errorf("got %q, %v", out, err)
		}
	}
}

func TestI2_ResolutionOfAnEffectInsideWaitingWorkIsKept(t *testing.T) {
	ask := fermata.NewKind[string, string]("test-beside-doubt")
	r := newRun(t, func(ctx context.Context) (string, error) {
		return fermata.Do(ctx, "work", func(ctx context.Context) (string, error) {
			ok, err := fermata.Approve(ctx, fermata.Action[int]{Name: "pay", Args: 1})
			if err != nil {
				return "", err
			}
			_, failed := fermata.Effect(ctx, ok, func(context.Context, int, string) (int, error) { return 0, errors.New("timeout") })
			answer, asked := ask.Ask(ctx, "beside?")
			return answer, errors.Join(failed, asked)
		})
	})
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
	info, _ := fermata.ExtractInterruptInfo(err)
	if len(info.Interrupts) != 2 {
		t.Fatalf("got %v", err)
	}
	_, err = r.resume(graph.Answer(info.ByKind(fermata.EffectInDoubt.Name())[0].ID, fermata.EffectResolution{Happened: true}))
	if isAnswerError(err) {
		t.Fatalf("got %v", err)
	}
	out, err := r.answer(err, "fine")
	if err != nil || out != "fine" {
		t.Fatalf("got %q, %v", out, err)
	}
}

func TestContext_HasAddressAndTime(t *testing.T) {
	noon := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	r := newRun(t, func(ctx context.Context) (string, error) {
		part := fermata.AppendAddressSegment(ctx, "part", "x")
		return fmt.Sprint(fermata.CurrentAddress(part), " ", fermata.Now(ctx).Hour()), nil
	}, graph.WithClock(func() time.Time { return noon }))
	if out, err := r.start(); err != nil || out != "runnable:g;node:n;part:x 12" {
		t.Fatalf("got %q, %v", out, err)
	}
	if fermata.CurrentAddress(t.Context()) != nil || fermata.Now(t.Context()).IsZero() {
		t.Error("outside a run there is no address, and the time is now")
	}
}

type currency string

func (currency) Choices() []string { return []string{"CHF", "EUR"} }

// An edited argument must be a value that the program itself could have written.
func TestApprove_EditsMustMatchTheChoicesOfTheirType(t *testing.T) {
	type transfer struct {
		In   currency
		Note []byte
	}
	r := newRun(t, func(ctx context.Context) (string, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[transfer]{Name: "transfer", Args: transfer{In: "CHF", Note: []byte("hi")}})
		return string(yes.Args().In) + string(yes.Args().Note), err
	})
	_, err := r.start()
	_, bad := r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, Args: []byte(`{"In":"USD","Note":"aGk="}`)})
	if _, ok := errors.AsType[*fermata.AnswerError](bad); !ok {
		t.Errorf("got %v", bad)
	}
	if out, err := r.answer(err, fermata.Decision{Verb: fermata.VerbApprove, Args: []byte(`{"In":"EUR","Note":"aGk="}`)}); err != nil || out != "EURhi" {
		t.Errorf("%s, %v", out, err)
	}
}
