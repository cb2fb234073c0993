package tool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/tool"
)

// crashing makes an approved call whose process dies before the result is saved, and returns the
// run as another process finds it.
func crashing(t *testing.T, r *railway, options ...tool.Option) *run {
	t.Helper()
	call := newRun(t, tool.Approve(r.tool(options...)), `{"to":"ORY"}`)
	faulty := storetest.NewFaulty(call.st)
	call.st = faulty
	_, err := call.start()
	r.fail = func() error { faulty.CrashSave(faulty.Saves()+1, storetest.BeforeWrite); return nil }
	if _, err := call.answer(err, yes()); !errors.Is(err, storetest.ErrCrashed) {
		t.Fatalf("got %v", err)
	}
	faulty.Restart()
	r.fail = nil
	if len(r.booked) != 1 {
		t.Fatalf("called %d times", len(r.booked))
	}
	return call
}

func TestI4_CallInDoubtAsksAPersonAndIsNotRepeated(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprint("happened ", happened), func(t *testing.T) {
			var r railway
			call := crashing(t, &r)
			_, err := call.resume(graph.TakeOver())
			doubt, qerr := fermata.EffectInDoubt.Question(waitsFor(t, err))
			if qerr != nil || doubt.Action != "book" || string(doubt.Args) != `{"to":"ORY"}` || doubt.Key != r.keys[0] {
				t.Errorf("got %+v, %v", doubt, qerr)
			}
			if len(r.booked) != 1 {
				t.Fatal("it was repeated blindly")
			}
			answer, text, calls := fermata.EffectResolution{}, "booked -ORY", 2
			if happened {
				answer = fermata.EffectResolution{Happened: true, Receipt: json.RawMessage(`{"text":"booked, I looked"}`)}
				text, calls = "booked, I looked", 1
			}
			got, err := call.answer(err, answer)
			wantDone(t, got, err, text)
			if len(r.booked) != calls || r.keys[0] != r.keys[len(r.keys)-1] {
				t.Errorf("called %d times with keys %q", len(r.booked), r.keys)
			}
		})
	}
}

func TestIdempotent_ACallInDoubtIsRepeatedWithTheSameKey(t *testing.T) {
	var r railway
	call := crashing(t, &r, tool.Idempotent())
	got, err := call.resume(graph.TakeOver())
	wantDone(t, got, err, "booked -ORY")
	if len(r.keys) != 2 || r.keys[0] == "" || r.keys[0] != r.keys[1] {
		t.Errorf("got keys %q", r.keys)
	}
}

func TestRepeatable_ACallInDoubtIsRepeatedAndTheYesStillCounts(t *testing.T) {
	var r railway
	call := crashing(t, &r, tool.Repeatable())
	got, err := call.resume(graph.TakeOver())
	wantDone(t, got, err, "booked -ORY")
	if len(r.booked) != 2 || r.keys[0] != "" {
		t.Errorf("called %d times with keys %q", len(r.booked), r.keys)
	}
}

func TestI14_SavedResultIsNotRecomputed(t *testing.T) {
	for name, options := range map[string][]tool.Option{"default": nil, "idempotent": {tool.Idempotent()}} {
		t.Run(name, func(t *testing.T) {
			var r railway
			call := newRun(t, tool.Approve(r.tool(options...)), `{"to":"ORY"}`)
			faulty := storetest.NewFaulty(call.st)
			call.st = faulty
			_, err := call.start()
			// the receipt is saved
			r.fail = func() error { faulty.CrashSave(faulty.Saves()+1, storetest.AfterWrite); return nil }
			if _, err := call.answer(err, yes()); !errors.Is(err, storetest.ErrCrashed) {
				t.Fatalf("got %v", err)
			}
			faulty.Restart()
			got, err := call.resume(graph.TakeOver())
			wantDone(t, got, err, "booked -ORY")
			if len(r.booked) != 1 {
				t.Errorf("called %d times", len(r.booked))
			}
		})
	}
}

func TestGuard_AnAllowedCallInDoubtIsAskedAbout(t *testing.T) {
	var r railway
	call := newRun(t, tool.Guard(r.tool(), ruling(fermata.Allow, "")), `{"to":"ORY"}`)
	faulty := storetest.NewFaulty(call.st)
	call.st = faulty
	r.fail = func() error { faulty.CrashSave(faulty.Saves()+1, storetest.BeforeWrite); return nil }
	if _, err := call.start(); !errors.Is(err, storetest.ErrCrashed) {
		t.Fatalf("got %v", err)
	}
	faulty.Restart()
	_, err := call.resume(graph.TakeOver())
	if ic := waitsFor(t, err); ic.Kind != "effect-in-doubt" || len(r.booked) != 1 {
		t.Errorf("got %s, called %d times", ic.Kind, len(r.booked))
	}
}

// A person who answers instead of the tool performs no effect that could be in doubt.
func TestRespond_BehindAnApprovalIsNeverInDoubt(t *testing.T) {
	for n := 1; n < 10; n++ {
		call := newRun(t, tool.Approve(tool.Respond(new(railway).tool())), `{"to":"ORY"}`)
		faulty := storetest.NewFaulty(call.st)
		call.st = faulty
		_, err := call.start()
		_, err = call.answer(err, yes())
		id := waitsFor(t, err).ID
		faulty.CrashSave(faulty.Saves()+n, storetest.BeforeWrite)
		answer := graph.Answer(id, tool.HumanResponse{Text: "by hand"})
		if _, err := call.resume(answer); err == nil {
			return // there is no nth save any more
		}
		faulty.Restart()
		again := graph.TakeOver()
		if n == 1 {
			again = answer // it was lost
		}
		got, err := call.resume(again)
		wantDone(t, got, err, "by hand")
	}
	t.Error("a call should not take so many saves")
}
