package tool_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/tool"
)

func TestRespond_APersonAnswersAndTheToolIsNeverCalled(t *testing.T) {
	var r railway
	call := newRun(t, tool.Respond(r.tool()), `{"to":"ORY"}`)
	_, err := call.start()
	asked, qerr := tool.Response.Question(waitsFor(t, err))
	if qerr != nil || asked.Tool != "book" || asked.Description != "Books a ticket." || string(asked.Args) != `{"to":"ORY"}` {
		t.Errorf("got %+v, %v", asked, qerr)
	}
	got, err := call.answer(err, tool.HumanResponse{Text: "I booked it by phone.", By: "ann"})
	wantDone(t, got, err, "I booked it by phone.")
	if len(r.booked) != 0 {
		t.Error("the tool was called")
	}
}

func TestRespond_ADeclinedAnswerReachesTheModelWithWhoAndWhy(t *testing.T) {
	call := newRun(t, tool.Respond(new(railway).tool()), `{"to":"ORY"}`)
	_, err := call.start()
	got, err := call.answer(err, tool.HumanResponse{Declined: true, Reason: "not my job", By: "bob"})
	wantFailed(t, got, err, "book was not called", "by bob: not my job")
}

func TestI13_AnEmptyOrDoubleResponseLeavesTheQuestionOpen(t *testing.T) {
	call := newRun(t, tool.Respond(new(railway).tool()), `{"to":"ORY"}`)
	_, err := call.start()
	id := waitsFor(t, err).ID
	for name, wrong := range map[string]any{
		"empty":              tool.HumanResponse{By: "ann"},
		"declined with text": tool.HumanResponse{Declined: true, Text: "done"},
		"a bare text":        "done",
		"unknown member":     json.RawMessage(`{"text":"done","force":true}`),
	} {
		if _, err := call.resume(graph.Answer(id, wrong)); !isAnswerError(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	got, err := call.resume(graph.Answer(id, tool.HumanResponse{Text: "done"}))
	wantDone(t, got, err, "done")
}

var (
	from = tool.Missing{Field: "from", Question: "From where?"}
	seat = tool.Missing{Field: "seat", Question: "Which seat?"}
)

// fields returns completed arguments.
func fields(pairs ...string) tool.CompletedArgs {
	c := tool.CompletedArgs{Fields: make(map[string]json.RawMessage)}
	for i := 0; i < len(pairs); i += 2 {
		c.Fields[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return c
}

// completion returns the only open interrupt as a completion request.
func completion(t *testing.T, err error) tool.CompletionRequest {
	t.Helper()
	asked, err := tool.Completion.Question(waitsFor(t, err))
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

func TestFollowUp_RepeatsUntilNothingIsMissing(t *testing.T) {
	var r railway
	call := newRun(t, tool.FollowUp(r.tool(), tool.Needs[ticket](from, seat)), `{"to":"ORY"}`)
	_, err := call.start()
	asked := completion(t, err)
	if asked.Tool != "book" || string(asked.Args) != `{"to":"ORY"}` || !slices.Equal(asked.Missing, []tool.Missing{from, seat}) || len(asked.ArgsSchema) == 0 {
		t.Errorf("got %+v", asked)
	}
	first := waitsFor(t, err).ID
	_, err = call.answer(err, fields("from", `"CDG"`))
	asked = completion(t, err)
	if string(asked.Args) != `{"from":"CDG","to":"ORY"}` || !slices.Equal(asked.Missing, []tool.Missing{seat}) || waitsFor(t, err).ID == first {
		t.Errorf("got %+v", asked)
	}
	if len(r.booked) != 0 {
		t.Fatal("it was called too early")
	}
	got, err := call.answer(err, fields("seat", `4`))
	wantDone(t, got, err, "booked CDG-ORY")
	if !slices.Equal(r.booked, []ticket{{From: "CDG", To: "ORY", Seat: 4}}) {
		t.Errorf("booked %+v", r.booked)
	}
}

func TestFollowUp_AnAnswerThatChangesNothingIsAskedAgainAsANewQuestion(t *testing.T) {
	call := newRun(t, tool.FollowUp(new(railway).tool(), tool.Needs[ticket](from)), `{"to":"ORY","from":""}`)
	_, err := call.start()
	first := waitsFor(t, err).ID
	_, err = call.answer(err, fields("from", `""`))
	second := waitsFor(t, err).ID
	_, err = call.answer(err, fields("from", `""`))
	if third := waitsFor(t, err).ID; second == first || third == second {
		t.Errorf("got %s, %s, %s", first, second, third)
	}
	got, err := call.answer(err, fields("from", `"CDG"`))
	wantDone(t, got, err, "booked CDG-ORY")
}

func TestFollowUp_CompleteArgumentsRaiseNoInterrupt(t *testing.T) {
	got, err := newRun(t, tool.FollowUp(new(railway).tool(), tool.Needs[ticket](from)), `{"to":"ORY","from":"CDG"}`).start()
	wantDone(t, got, err, "booked CDG-ORY")
}

func TestFollowUp_MayGiveMoreThanWasAsked(t *testing.T) {
	var r railway
	call := newRun(t, tool.FollowUp(r.tool(), tool.Needs[ticket](from)), `{"to":"ORY"}`)
	_, err := call.start()
	got, err := call.answer(err, fields("from", `"CDG"`, "to", `"NCE"`))
	wantDone(t, got, err, "booked CDG-NCE")
}

func TestFollowUp_ADeclinedAnswerReachesTheModelAndTheToolIsNotCalled(t *testing.T) {
	var r railway
	call := newRun(t, tool.FollowUp(r.tool(), tool.Needs[ticket](from)), `{"to":"ORY"}`)
	_, err := call.start()
	got, err := call.answer(err, tool.CompletedArgs{Declined: true, Reason: "I stay at home", By: "ann"})
	wantFailed(t, got, err, "book was not called", "by ann: I stay at home")
	if len(r.booked) != 0 {
		t.Error("it was called anyway")
	}
}

func TestI13_ACompletionThatDoesNotFitLeavesTheQuestionOpen(t *testing.T) {
	var r railway
	call := newRun(t, tool.FollowUp(r.tool(), tool.Needs[ticket](from)), `{"to":"ORY"}`)
	_, err := call.start()
	id := waitsFor(t, err).ID
	declined := fields("from", `"CDG"`)
	declined.Declined = true
	for name, wrong := range map[string]any{
		"wrong type":           fields("from", `7`),
		"unknown argument":     fields("from", `"CDG"`, "class", `1`),
		"nothing":              tool.CompletedArgs{},
		"declined with fields": declined,
		"a bare text":          "CDG",
		"null":                 fields("from", `null`),
	} {
		if _, err := call.resume(graph.Answer(id, wrong)); !isAnswerError(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(r.booked) != 0 {
		t.Fatalf("booked %+v", r.booked)
	}
	got, err := call.resume(graph.Answer(id, fields("from", `"CDG"`)))
	wantDone(t, got, err, "booked CDG-ORY")
}

func TestFollowUp_SeveralAreAskedInTheOrderOfWrapping(t *testing.T) {
	inner := tool.FollowUp(new(railway).tool(), tool.Needs[ticket](from))
	first, second := tool.FollowUp(inner, tool.Needs[ticket](seat)), tool.FollowUp(inner, func(ticket) []tool.Missing { return nil })
	call := newRun(t, first, `{"to":"ORY"}`)
	_, err := call.start()
	if asked := completion(t, err); !slices.Equal(asked.Missing, []tool.Missing{from}) {
		t.Errorf("got %+v", asked.Missing)
	}
	_, err = call.answer(err, fields("from", `"CDG"`))
	if asked := completion(t, err); !slices.Equal(asked.Missing, []tool.Missing{seat}) {
		t.Errorf("got %+v", asked.Missing)
	}
	// the second wrapper of a tool does not see the first
	other := newRun(t, second, `{"to":"ORY"}`)
	_, err = other.start()
	got, err := other.answer(err, fields("from", `"CDG"`))
	wantDone(t, got, err, "booked CDG-ORY")
}

func TestNeeds_EmptyIsMissing(t *testing.T) {
	type form struct {
		Text string         `json:"text"`
		N    int            `json:"n"`
		List []string       `json:"list"`
		Map  map[string]int `json:"map"`
		Flag bool           `json:"flag"`
		Ptr  *int           `json:"ptr"`
	}
	zero := 0
	all := []string{"flag", "list", "map", "n", "ptr", "text", "unknown"}
	var needs []tool.Missing
	for _, field := range all {
		needs = append(needs, tool.Missing{Field: field})
	}
	for name, test := range map[string]struct {
		in   form
		want []string
	}{
		"nothing":      {form{}, all},
		"empty":        {form{List: []string{}, Map: map[string]int{}}, all},
		"zero":         {form{Ptr: &zero}, all},
		"everything":   {form{"x", 1, []string{""}, map[string]int{"a": 0}, true, new(int)}, []string{"ptr", "unknown"}},
		"a real value": {form{Text: "0"}, []string{"flag", "list", "map", "n", "ptr", "unknown"}},
	} {
		got := make(map[string]bool)
		for _, m := range tool.Needs[form](needs...)(test.in) {
			got[m.Field] = true
		}
		if fields := slices.Sorted(maps.Keys(got)); !slices.Equal(fields, test.want) {
			t.Errorf("%s: got %v, want %v", name, fields, test.want)
		}
	}
}
