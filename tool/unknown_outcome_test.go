package tool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/tool"
)

func TestI4_ErrorOfAnApprovedCallAsksAPerson(t *testing.T) {
	r := railway{fail: func() error { return errors.New("i/o timeout") }}
	call := newRun(t, tool.Approve(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	_, err = call.answer(err, yes())
	doubt, qerr := fermata.EffectInDoubt.Question(waitsFor(t, err))
	if qerr != nil || doubt.Action != "book" || doubt.Error != "i/o timeout" {
		t.Errorf("got %+v, %v", doubt, qerr)
	}
}

func TestLookup_UnknownOutcomeOfAnApprovedCallIsLookedUp(t *testing.T) {
	r := railway{fail: func() error { return errors.New("i/o timeout") }}
	var asked string
	lookup := tool.Lookup(func(_ context.Context, key string) (string, bool, error) {
		asked = key
		return "booked, says the railway", true, nil
	})
	call := newRun(t, tool.Approve(r.tool(lookup)), `{"to":"ORY"}`)
	_, err := call.start()
	got, err := call.answer(err, yes())
	wantDone(t, got, err, "booked, says the railway")
	if asked == "" || asked != r.keys[0] {
		t.Errorf("looked up %q, called with %q", asked, r.keys)
	}
}

func TestFenced_CallThatDidNotHappenIsRetriedWithAHigherFence(t *testing.T) {
	var fences []int
	fail := true
	pay := tool.New("pay", "pays", func(ctx context.Context, _ struct{}) (string, error) {
		fences = append(fences, fermata.Fence(ctx))
		if fail {
			return "", fermata.Retry(errors.New("i/o timeout"), fermata.After(time.Second))
		}
		return "paid", nil
	}, tool.Fenced(), tool.Lookup(func(context.Context, string) (string, bool, error) { return "", false, nil }))
	call := newRun(t, tool.Approve(pay), `{}`)
	_, err := call.start()
	_, err = call.answer(err, yes())
	if retry, ok := errors.AsType[*fermata.RetryError](err); !ok || retry.After != time.Second {
		t.Fatalf("got %v", err)
	}
	fail = false
	got, err := call.resume()
	wantDone(t, got, err, "paid")
	if len(fences) != 2 || fences[0] >= fences[1] {
		t.Errorf("called with fences %v", fences)
	}
}

func TestReportErrors_RetryIsNotReported(t *testing.T) {
	r := railway{fail: func() error { return fermata.Retry(tool.Errorf("busy")) }}
	call := newRun(t, tool.ReportErrors(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	if _, retry := errors.AsType[*fermata.RetryError](err); !retry {
		t.Errorf("got %v", err)
	}
}

// A call that certainly did nothing is made again, and at last the model is told.
func TestNotDone_ErrorForTheModelIsAResultAfterTheLastRetry(t *testing.T) {
	r := railway{fail: func() error {
		return fermata.NotDone(fermata.Retry(tool.Errorf("the railway is closed"), fermata.AtMost(1)))
	}}
	call := newRun(t, tool.Approve(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	_, err = call.answer(err, yes())
	if _, ok := errors.AsType[*fermata.RetryError](err); !ok {
		t.Fatalf("after the first call: %v", err)
	}
	got, err := call.resume()
	if want := (tool.Result{Text: "the railway is closed", Failed: true}); err != nil || got != want || len(r.booked) != 2 || r.keys[0] != r.keys[1] {
		t.Errorf("after the last one: %+v, %v, %d calls with the keys %q", got, err, len(r.booked), r.keys)
	}
}
