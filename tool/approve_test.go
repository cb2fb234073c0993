package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/tool"
)

func TestI4_ApproveAsksWithExactlyTheseArgumentsAndNothingIsDoneBefore(t *testing.T) {
	var r railway
	call := newRun(t, tool.Approve(r.tool()), `{"to":"ORY","from":"CDG"}`)
	_, err := call.start()
	ic, asked := waitsFor(t, err), approval(t, err)
	if ic.Kind != "approval" || !strings.HasPrefix(ic.Address.String(), "runnable:g;node:n;tool:book#c1;gate:book;approve:book#") {
		t.Errorf("got %q at %s", ic.Kind, ic.Address)
	}
	if asked.Action != "book" || string(asked.Args) != `{"to":"ORY","from":"CDG"}` || asked.Summary != "Books a ticket." || !asked.Fixed || len(asked.Digest) != 64 {
		t.Errorf("got %+v", asked)
	}
	if len(r.booked) != 0 {
		t.Fatal("something was booked before the approval")
	}
	got, err := call.answer(err, yes())
	wantDone(t, got, err, "booked CDG-ORY")
	if !slices.Equal(r.booked, []ticket{{From: "CDG", To: "ORY"}}) {
		t.Errorf("booked %+v", r.booked)
	}
}

func TestApprove_GivesTheCallAKey(t *testing.T) {
	var r railway
	for range 2 { // the same call has the same key
		call := newRun(t, tool.Approve(r.tool()), `{"to":"ORY"}`)
		_, err := call.start()
		if _, err := call.answer(err, yes()); err != nil {
			t.Fatal(err)
		}
	}
	other := newRun(t, tool.Approve(r.tool()), `{"to":"CDG"}`)
	_, err := other.start()
	if _, err := other.answer(err, yes()); err != nil {
		t.Fatal(err)
	}
	if r.keys[0] == "" || r.keys[0] != r.keys[1] || r.keys[0] == r.keys[2] {
		t.Errorf("got %q", r.keys)
	}
	if _, err := newRun(t, r.tool(), `{"to":"ORY"}`).start(); err != nil || r.keys[3] != "" {
		t.Errorf("a call without approval has the key %q, %v", r.keys[3], err)
	}
}

func TestApprove_ARefusalReachesTheModelWithWhoAndWhy(t *testing.T) {
	var r railway
	call := newRun(t, tool.Approve(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	got, err := call.answer(err, fermata.Decision{Verb: fermata.VerbReject, Reason: "too dear", By: "bob"})
	wantFailed(t, got, err, "book was refused by bob: too dear", "not done")
	if len(r.booked) != 0 {
		t.Error("it was booked anyway")
	}
}

func TestI11_ALapseReachesTheModelAsNoRefusal(t *testing.T) {
	var r railway
	call := newRun(t, tool.Approve(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	got, err := call.answer(err, fermata.Decision{Verb: fermata.VerbExpire, Reason: "24 hours are over"})
	wantFailed(t, got, err, "book was not decided in time: 24 hours are over", "not done", "not refused")
	if len(r.booked) != 0 {
		t.Error("it was booked anyway")
	}
}

func TestApprove_TakesNoEditsAndStaysOpen(t *testing.T) {
	var r railway
	call := newRun(t, tool.Approve(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	id := waitsFor(t, err).ID
	for _, args := range []string{`{"to":"CDG"}`, `{"to":"ORY"}`} {
		if _, err := call.resume(graph.Answer(id, edit(args))); !isAnswerError(err) {
			t.Errorf("%s: got %v", args, err)
		}
	}
	if len(r.booked) != 0 {
		t.Fatal("an edit was taken for an approval")
	}
	got, err := call.resume(graph.Answer(id, yes()))
	wantDone(t, got, err, "booked -ORY")
}

func TestApprove_IsAnEffectAndAFailureOfUnknownOutcomeIsAskedAbout(t *testing.T) {
	r := railway{fail: func() error { return errors.New("no answer from the railway") }}
	call := newRun(t, tool.Approve(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	if _, err := call.answer(err, yes()); err == nil {
		t.Fatal("the run should fail")
	}
	r.fail = nil
	_, err = call.resume()
	if ic := waitsFor(t, err); ic.Kind != "effect-in-doubt" || len(r.booked) != 1 {
		t.Fatalf("got %s, called %d times", ic.Kind, len(r.booked))
	}
}

func TestApprove_ToolResultIsTheReceipt(t *testing.T) {
	r := railway{fail: func() error { return tool.Errorf("sold out") }}
	call := newRun(t, tool.Approve(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	got, err := call.answer(err, yes())
	wantFailed(t, got, err, "sold out")
	if len(r.booked) != 1 {
		t.Errorf("called %d times", len(r.booked))
	}
}

func TestSummary_IsMadeOfTheArguments(t *testing.T) {
	summary := tool.Summary(func(args json.RawMessage) string { return "Book " + string(args) })
	for name, wrapped := range map[string]*tool.Tool{
		"approve":         tool.Approve(new(railway).tool(), summary),
		"review":          tool.Review(new(railway).tool(), summary),
		"guard":           tool.Guard(new(railway).tool(), nil, summary),
		"wrapped further": tool.Review(tool.Approve(new(railway).tool(), summary)),
	} {
		_, err := newRun(t, wrapped, `{"to":"ORY"}`).start()
		if asked := approval(t, err); asked.Summary != `Book {"to":"ORY"}` {
			t.Errorf("%s: got %q", name, asked.Summary)
		}
	}
}

// A preview that has changed since people saw it is shown again before anything is done.
func TestPreview_IsReadAgainAfterTheDecision(t *testing.T) {
	var r railway
	free := 3
	preview := tool.Preview(func(_ context.Context, args json.RawMessage) (any, error) {
		if !strings.Contains(string(args), "ORY") {
			t.Errorf("preview of %s", args)
		}
		return map[string]int{"free": free}, nil
	})
	call := newRun(t, tool.Guard(tool.Approve(r.tool(), preview), nil), `{"to":"ORY"}`)
	_, err := call.start()
	if asked := approval(t, err); string(asked.Target) != `{"free":3}` {
		t.Errorf("the approver sees %s", asked.Target)
	}
	free = 1
	_, err = call.answer(err, yes())
	if asked := approval(t, err); string(asked.Target) != `{"free":1}` || string(asked.PreviousTarget) != `{"free":3}` || len(r.booked) != 0 {
		t.Fatalf("the approver sees %s after %s, and %v was booked", asked.Target, asked.PreviousTarget, r.booked)
	}
	got, err := call.answer(err, yes())
	wantDone(t, got, err, "booked -ORY")
	if len(r.booked) != 1 {
		t.Errorf("booked %+v", r.booked)
	}
}

// A preview that fails is an error of the run, not a call without one.
func TestPreview_AnErrorCallsNothing(t *testing.T) {
	var r railway
	broken := tool.Preview(func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("no connection") })
	if _, err := newRun(t, tool.Approve(r.tool(), broken), `{"to":"ORY"}`).start(); err == nil || !strings.Contains(err.Error(), "no connection") || len(r.booked) != 0 {
		t.Errorf("%v, booked %v", err, r.booked)
	}
}

func TestReview_RunsEditedArgumentsAndReportsThemToTheModel(t *testing.T) {
	var r railway
	call := newRun(t, tool.Review(r.tool()), `{"to":"ORY","from":"CDG"}`)
	_, err := call.start()
	if asked := approval(t, err); asked.Fixed || len(asked.ArgsSchema) == 0 {
		t.Errorf("got %+v", asked)
	}
	got, err := call.answer(err, edit(`{"to":"ORY","from":"NCE","seat":4}`))
	wantDone(t, got, err, "(Before the call ann changed the arguments to {\"to\":\"ORY\",\"from\":\"NCE\",\"seat\":4}.)\nbooked NCE-ORY")
	if !slices.Equal(r.booked, []ticket{{From: "NCE", To: "ORY", Seat: 4}}) {
		t.Errorf("booked %+v", r.booked)
	}
}

func TestReview_WithoutChangesIsAnApproval(t *testing.T) {
	for name, answer := range map[string]fermata.Decision{"plain": yes(), "the same, spelled otherwise": edit(`{ "to" : "ORY" }`)} {
		t.Run(name, func(t *testing.T) {
			call := newRun(t, tool.Review(new(railway).tool()), `{"to":"ORY"}`)
			_, err := call.start()
			got, err := call.answer(err, answer)
			wantDone(t, got, err, "booked -ORY")
		})
	}
}

func TestReview_AnEditorWithoutANameIsAPerson(t *testing.T) {
	call := newRun(t, tool.Review(new(railway).tool()), `{"to":"ORY"}`)
	_, err := call.start()
	answer := edit(`{"to":"CDG"}`)
	answer.By = ""
	got, err := call.answer(err, answer)
	wantDone(t, got, err, "(Before the call a person changed the arguments to {\"to\":\"CDG\"}.)\nbooked -CDG")
}

func TestI13_AnEditThatDoesNotFitLeavesTheQuestionOpen(t *testing.T) {
	var r railway
	call := newRun(t, tool.Review(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	id := waitsFor(t, err).ID
	for _, args := range []string{`{}`, `{"to":7}`, `{"to":"ORY","class":1}`, `{"to":"a","to":"b"}`, `["ORY"]`, `{"To":"ORY"}`} {
		if _, err := call.resume(graph.Answer(id, edit(args))); !isAnswerError(err) {
			t.Errorf("%s: got %v", args, err)
		}
	}
	if len(r.booked) != 0 {
		t.Fatalf("booked %+v", r.booked)
	}
	got, err := call.resume(graph.Answer(id, yes()))
	wantDone(t, got, err, "booked -ORY")
}

// ruling is a policy with a fixed ruling.
func ruling(verdict fermata.Verdict, reason string) fermata.Policy {
	return fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
		return fermata.Ruling{Verdict: verdict, Rule: "r1", Reason: reason}, nil
	})
}

func TestGuard_AllowRunsAtOnceAsAnEffect(t *testing.T) {
	var r railway
	got, err := newRun(t, tool.Guard(r.tool(), ruling(fermata.Allow, "")), `{"to":"ORY"}`).start()
	wantDone(t, got, err, "booked -ORY")
	if len(r.booked) != 1 || r.keys[0] == "" {
		t.Errorf("called %d times with keys %q", len(r.booked), r.keys)
	}
}

func TestGuard_DenyIsReportedToTheModelWithoutInterrupt(t *testing.T) {
	var r railway
	got, err := newRun(t, tool.Guard(r.tool(), ruling(fermata.Deny, "no trains on Sundays")), `{"to":"ORY"}`).start()
	wantFailed(t, got, err, "book was refused by policy r1: no trains on Sundays")
	if len(r.booked) != 0 {
		t.Error("it was booked anyway")
	}
}

func TestGuard_AskShowsTheReason(t *testing.T) {
	call := newRun(t, tool.Guard(new(railway).tool(), ruling(fermata.AskPerson, "above 100 EUR")), `{"to":"ORY"}`)
	_, err := call.start()
	if asked := approval(t, err); asked.Rule != "r1" || asked.Reason != "above 100 EUR" || !asked.Fixed {
		t.Errorf("got %+v", asked)
	}
	got, err := call.answer(err, yes())
	wantDone(t, got, err, "booked -ORY")
}

func TestGuard_SeesTheCallAsItWouldRun(t *testing.T) {
	var seen fermata.ActionRequest
	policy := fermata.PolicyFunc(func(_ context.Context, a fermata.ActionRequest) (fermata.Ruling, error) {
		seen = a
		return fermata.Ruling{Verdict: fermata.Allow}, nil
	})
	if _, err := newRun(t, tool.Guard(new(railway).tool(), policy), `{"to":"ORY"}`).start(); err != nil {
		t.Fatal(err)
	}
	if seen.Action != "book" || string(seen.Args) != `{"to":"ORY"}` || seen.Run != "r" || len(seen.Digest) != 64 ||
		!strings.HasPrefix(seen.Address.String(), "runnable:g;node:n;tool:book#c1") {
		t.Errorf("got %+v", seen)
	}
}

func TestGuard_APolicyThatFailsLetsNothingThrough(t *testing.T) {
	down := errors.New("policy server is down")
	failing := fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
		return fermata.Ruling{Verdict: fermata.Allow}, down
	})
	var r railway
	for name, wrapped := range map[string]*tool.Tool{
		"alone":             tool.Guard(r.tool(), failing),
		"beside another":    tool.Guard(tool.Guard(r.tool(), ruling(fermata.Allow, "")), failing),
		"before another":    tool.Guard(tool.Guard(r.tool(), failing), ruling(fermata.Allow, "")),
		"with ReportErrors": tool.ReportErrors(tool.Guard(r.tool(), failing)),
	} {
		_, err := newRun(t, wrapped, `{"to":"ORY"}`).start()
		if !errors.Is(err, fermata.ErrPolicy) || !errors.Is(err, down) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(r.booked) != 0 {
		t.Error("it was booked anyway")
	}
}

func TestGuard_StrictestRulingCounts(t *testing.T) {
	allow, ask, deny := ruling(fermata.Allow, ""), ruling(fermata.AskPerson, ""), ruling(fermata.Deny, "")
	rank := []fermata.Policy{allow, ask, deny}
	words := []string{"runs", "asks", "refuses"}
	for i, own := range rank {
		for j, second := range rank {
			for k, general := range rank {
				var r railway
				got, err := newRun(t, tool.Guard(tool.Guard(r.tool(), own), second), `{"to":"ORY"}`, graph.WithPolicy(general)).start()
				word := "runs"
				if _, waits := fermata.ExtractInterruptInfo(err); waits {
					word = "asks"
				} else if err != nil {
					t.Fatal(err)
				} else if got.Failed {
					word = "refuses"
				}
				if want := words[max(i, j, k)]; word != want || (len(r.booked) == 1) != (word == "runs") {
					t.Errorf("%s, %s and %s: it %s, want %s", words[i], words[j], words[k], word, want)
				}
			}
		}
	}
}

func TestGuard_WithoutAPolicyGoesByTheRuns(t *testing.T) {
	guarded := tool.Guard(new(railway).tool(), nil)
	got, err := newRun(t, guarded, `{"to":"ORY"}`, graph.WithPolicy(ruling(fermata.Allow, ""))).start()
	wantDone(t, got, err, "booked -ORY")
	_, err = newRun(t, guarded, `{"to":"ORY"}`).start()
	waitsFor(t, err)
}

func TestApprove_AsksEvenIfTheRunsPolicyWouldAllow(t *testing.T) {
	_, err := newRun(t, tool.Approve(new(railway).tool()), `{"to":"ORY"}`, graph.WithPolicy(ruling(fermata.Allow, ""))).start()
	waitsFor(t, err)
}

func TestGuard_MayDenyEditedArguments(t *testing.T) {
	var r railway
	policy := fermata.PolicyFunc(func(_ context.Context, a fermata.ActionRequest) (fermata.Ruling, error) {
		if strings.Contains(string(a.Args), "LAS") {
			return fermata.Ruling{Verdict: fermata.Deny, Rule: "no-vegas", Reason: "not on expenses"}, nil
		}
		return fermata.Ruling{}, nil
	})
	call := newRun(t, tool.Review(tool.Guard(r.tool(), policy)), `{"to":"ORY"}`)
	_, err := call.start()
	got, err := call.answer(err, edit(`{"to":"LAS"}`))
	wantFailed(t, got, err, "book was refused by policy no-vegas: not on expenses")
	if len(r.booked) != 0 {
		t.Error("it was booked anyway")
	}
}

// Go is stricter than a schema, for example about 64-bit numbers and times.
func TestI13_AnEditThatOnlyGoRefusesLeavesTheQuestionOpen(t *testing.T) {
	var r railway
	call := newRun(t, tool.Review(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	id := waitsFor(t, err).ID
	_, err = call.resume(graph.Answer(id, edit(`{"to":"ORY","seat":100000000000000000000}`)))
	if waitsFor(t, err).ID != id || !isAnswerError(err) || len(r.booked) != 0 {
		t.Fatalf("got %v, booked %+v", err, r.booked)
	}
	got, err := call.resume(graph.Answer(id, edit(`{"to":"ORY","seat":4}`)))
	wantDone(t, got, err, "(Before the call ann changed the arguments to {\"to\":\"ORY\",\"seat\":4}.)\nbooked -ORY")
}
