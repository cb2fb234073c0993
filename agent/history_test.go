package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/tool"
)

// recordingModel is a model that records its requests. Its next line follows the lines it has used
// in this test, not the history.
type recordingModel struct {
	x     *agentHarness
	name  string
	lines []script.Line
	seen  *[][]string
}

func (w *recordingModel) Generate(ctx context.Context, r *agent.Request) (*agent.Response, error) {
	*w.seen = append(*w.seen, messageLines(r.Messages))
	if err := w.x.at(ctx, "model "+w.name); err != nil {
		return nil, err
	}
	w.x.c.add("answer " + w.name)
	message, err := w.lines[w.x.c.of("answer "+w.name)-1](r)
	return &agent.Response{Message: message}, err
}

// messageLines returns one line per message.
func messageLines(messages []agent.Message) []string {
	var lines []string
	for _, m := range messages {
		text := string(m.Role) + " " + m.Text
		for _, call := range m.ToolCalls {
			text += call.Name + call.Args
		}
		lines = append(lines, text)
	}
	return lines
}

// twiceAsking asks a person twice, and then is done.
func twiceAsking(seen *[][]string) func(x *agentHarness) agent.Agent {
	return func(x *agentHarness) agent.Agent {
		model := &recordingModel{x, "asker", []script.Line{script.Call("ask", `{"to":"one"}`), script.Call("ask", `{"to":"two"}`), script.Say("Done.")}, seen}
		return must(agent.NewChat(agent.Chat{Name: "asker", Model: model, Tools: tools(asking(&x.c, "ask"))}))
	}
}

// shortened is a history edit that leaves one message.
func shortened(_ fermata.Address, history []agent.Message) ([]agent.Message, error) {
	return []agent.Message{agent.User(fmt.Sprintf("In short: %d messages.", len(history)))}, nil
}

func TestHistoryEdit_AppliesToLaterModelCalls(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var seen [][]string
		x := newAgentHarnessIn(p, twiceAsking(&seen))
		open := one(t, x.start().waits(t))
		open = one(t, x.goOn(map[string]any{open.ID: "first"}, agent.WithHistoryEdit(shortened)).waits(t))
		end := x.goOn(map[string]any{open.ID: "second"})
		want := [][]string{
			{"user Go."},
			{"user In short: 3 messages."},
			{"user In short: 3 messages.", `assistant ask{"to":"two"}`, "tool ask heard second"},
		}
		if d := cmp.Diff(want, seen); d != "" {
			t.Errorf("the model saw (-want +got):\n%s", d)
		}
		really := []string{`assistant ask{"to":"one"}`, "tool ask heard first", `assistant ask{"to":"two"}`, "tool ask heard second", "assistant Done."}
		if d := cmp.Diff(really, messageLines(end.finished(t).Output.Messages)); d != "" {
			t.Errorf("the output must not change (-want +got):\n%s", d)
		}
	})
}

func TestHistoryEdit_TheNextOneBeginsWhereTheLastOneEnded(t *testing.T) {
	var seen [][]string
	x := newAgentHarness(t, twiceAsking(&seen))
	open := one(t, x.start().waits(t))
	open = one(t, x.goOn(map[string]any{open.ID: "first"}, agent.WithHistoryEdit(shortened)).waits(t))
	x.goOn(map[string]any{open.ID: "second"}, agent.WithHistoryEdit(func(_ fermata.Address, history []agent.Message) ([]agent.Message, error) {
		return append(history, agent.User("Be quick.")), nil
	})).finished(t)
	want := []string{"user In short: 3 messages.", `assistant ask{"to":"two"}`, "tool ask heard second", "user Be quick."}
	if d := cmp.Diff(want, seen[2]); d != "" {
		t.Errorf("the model saw (-want +got):\n%s", d)
	}
}

// The edit is made before the first request of a resume. Earlier answers are not requested again
// for it, and later messages of the same resume are added to it.
func TestHistoryEdit_IsMadeOncePerAgentAndResume(t *testing.T) {
	var seen [][]string
	x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
		model := &recordingModel{x, "clerk", []script.Line{
			script.Call("work", "{}"), script.Call("ask", `{"to":"one"}`), script.Call("work", "{}"), script.Say("Done.")}, &seen}
		return must(agent.NewChat(agent.Chat{Name: "clerk", Instruction: "Be nice.", Model: model, Tools: tools(asking(&x.c, "ask"), x.tool("work"))}))
	})
	edits := 0
	edit := agent.WithHistoryEdit(func(at fermata.Address, history []agent.Message) ([]agent.Message, error) {
		edits++
		if strings.HasPrefix(messageLines(history)[0], "system") {
			t.Error("the instruction is not history")
		}
		return shortened(at, history)
	})
	open := one(t, x.start(edit).waits(t))
	x.goOn(nil, edit).waits(t)
	if edits != 0 {
		t.Errorf("it was made %d times before any model call", edits)
	}
	end := x.goOn(map[string]any{open.ID: "yes"}, edit).finished(t)
	if really := messageLines(end.Output.Messages); len(really) != 7 || really[0] != "assistant work{}" {
		t.Errorf("the output is %q", really)
	}
	want := [][]string{
		{"system Be nice.", "user Go."},
		{"system Be nice.", "user Go.", "assistant work{}", "tool work done"},
		{"system Be nice.", "user In short: 5 messages."},
		{"system Be nice.", "user In short: 5 messages.", "assistant work{}", "tool work done"},
	}
	if d := cmp.Diff(want, seen); d != "" || edits != 1 {
		t.Errorf("with %d edits the model saw (-want +got):\n%s", edits, d)
	}
}

func TestHistoryEdit_NilLeavesItAsItIs(t *testing.T) {
	var edited, plain [][]string
	for seen, options := range map[*[][]string][]agent.RunOption{
		&plain: nil,
		&edited: {agent.WithHistoryEdit(func(_ fermata.Address, history []agent.Message) ([]agent.Message, error) {
			for i := range history { // it gets its own copy
				history[i].Text = "forged"
				for j := range history[i].ToolCalls {
					history[i].ToolCalls[j].Args = "forged"
				}
			}
			return nil, nil
		})},
	} {
		x := newAgentHarness(t, twiceAsking(seen))
		open := one(t, x.start().waits(t))
		open = one(t, x.goOn(map[string]any{open.ID: "first"}, options...).waits(t))
		end := x.goOn(map[string]any{open.ID: "second"}, options...)
		if all := fmt.Sprint(messageLines(end.finished(t).Output.Messages)); strings.Contains(all, "forged") {
			t.Errorf("the output is %s", all)
		}
	}
	if d := cmp.Diff(plain, edited); d != "" {
		t.Errorf("the model saw (-without +with):\n%s", d)
	}
}

// An edit may modify the messages that it receives; the output does not change.
func TestHistoryEdit_DoesNotChangeTheOutput(t *testing.T) {
	var seen [][]string
	x := newAgentHarness(t, twiceAsking(&seen))
	open := one(t, x.start().waits(t))
	open = one(t, x.goOn(map[string]any{open.ID: "first"}, agent.WithHistoryEdit(func(_ fermata.Address, history []agent.Message) ([]agent.Message, error) {
		history[1].ToolCalls[0].Args, history[2].Text = `{"to":"nobody"}`, "nothing"
		return history, nil
	})).waits(t))
	end := x.goOn(map[string]any{open.ID: "second"})
	if want := []string{"user Go.", `assistant ask{"to":"nobody"}`, "tool nothing"}; !slices.Equal(seen[1], want) {
		t.Errorf("the model saw %q", seen[1])
	}
	if got := messageLines(end.finished(t).Output.Messages)[:2]; !slices.Equal(got, []string{`assistant ask{"to":"one"}`, "tool ask heard first"}) {
		t.Errorf("the output is %q", got)
	}
}

func TestHistoryEdit_NamesTheAgentByItsPlace(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var worker, boss [][]string
		x := newAgentHarnessIn(p, func(x *agentHarness) agent.Agent {
			w := must(agent.NewChat(agent.Chat{Name: "worker", Tools: tools(asking(&x.c, "ask")),
				Model: &recordingModel{x, "worker", []script.Line{script.Call("ask", `{"to":"one"}`), script.Say("dug")}, &worker}}))
			return must(agent.NewChat(agent.Chat{Name: "boss", Tools: tools(agent.AsTool(w)),
				Model: &recordingModel{x, "boss", []script.Line{script.Call("worker", `{"request":"dig"}`), script.Say("Good.")}, &boss}}))
		})
		open := one(t, x.start().waits(t))
		var places []string
		edit := agent.WithHistoryEdit(func(at fermata.Address, history []agent.Message) ([]agent.Message, error) {
			places = append(places, at.String())
			if at[len(at)-1].ID == "boss" {
				return nil, nil
			}
			return shortened(at, history)
		})
		// the edit is kept although the execution failed
		x.cancelAt("model worker", agent.CancelNow)
		x.wantCancelled(x.goOn(map[string]any{open.ID: "yes"}, edit))
		x.goOn(nil, edit).finished(t)
		want := []string{"agent:boss;tool:worker#call_1_1;agent:worker"}
		if want = append(want, want[0], "agent:boss"); !slices.Equal(places, want) {
			t.Errorf("the edits were made at %q, want %q", places, want)
		}
		if !slices.Equal(worker[1], []string{"user In short: 3 messages."}) || !slices.Equal(worker[2], []string{"user In short: 1 messages."}) {
			t.Errorf("the worker saw %q", worker)
		}
		if want := []string{"user Go.", `assistant worker{"request":"dig"}`, "tool dug"}; !slices.Equal(boss[1], want) {
			t.Errorf("the boss saw %q", boss[1])
		}
	})
}

func TestHistoryEdit_OneThatNoModelTakesIsRefusedAndNothingIsLost(t *testing.T) {
	call := agent.Assistant("", agent.ToolCall{ID: "a", Name: "ask", Args: "{}"})
	result := agent.ToolResult(agent.ToolCall{ID: "a", Name: "ask"}, "done")
	own := errors.New("I cannot")
	for name, test := range map[string]struct {
		history []agent.Message
		err     error
		want    error // nil for any
	}{
		"a result without a call":          {[]agent.Message{agent.User("x"), result}, nil, agent.ErrHistory},
		"a result before its call":         {[]agent.Message{result, call}, nil, agent.ErrHistory},
		"a call without a result":          {[]agent.Message{call}, nil, agent.ErrHistory},
		"two results of one call":          {[]agent.Message{call, result, result}, nil, agent.ErrHistory},
		"talk between the two":             {[]agent.Message{call, agent.User("wait"), result}, nil, agent.ErrHistory},
		"another call between them":        {[]agent.Message{call, agent.Assistant("", agent.ToolCall{ID: "b", Name: "ask", Args: "{}"}), result}, nil, agent.ErrHistory},
		"the same call twice":              {[]agent.Message{agent.Assistant("", call.ToolCalls[0], call.ToolCalls[0]), result, result}, nil, agent.ErrHistory},
		"an unknown role":                  {[]agent.Message{{Role: "narrator", Text: "x"}}, nil, agent.ErrHistory},
		"no message at all":                {[]agent.Message{}, nil, agent.ErrHistory},
		"one that cannot be encoded":       {[]agent.Message{{Role: agent.RoleUser, Opaque: json.RawMessage("{")}}, nil, nil},
		"an edit that fails":               {nil, own, own},
		"a history together with an error": {[]agent.Message{agent.User("x")}, own, own},
	} {
		t.Run(name, func(t *testing.T) {
			var seen [][]string
			x := newAgentHarness(t, twiceAsking(&seen))
			open := one(t, x.start().waits(t))
			failed := x.goOn(map[string]any{open.ID: "first"}, agent.WithHistoryEdit(func(fermata.Address, []agent.Message) ([]agent.Message, error) {
				return test.history, test.err
			}))
			if failed.err == nil || !errors.Is(failed.err, test.want) && test.want != nil {
				t.Fatalf("got %q, want %v", failed.log(), test.want)
			}
			if len(seen) != 1 {
				t.Errorf("it was sent: %q", seen[1])
			}
			// the answer counts, and so does the work based on it
			next := one(t, x.goOn(nil).waits(t))
			if x.c.of("ask done") != 1 || next.ID == open.ID || len(seen[1]) != 3 {
				t.Errorf("%v has happened, and the model saw %q", x.c.n, seen)
			}
		})
	}
}

func TestHistoryEdit_APanicIsAnError(t *testing.T) {
	var seen [][]string
	x := newAgentHarness(t, twiceAsking(&seen))
	open := one(t, x.start().waits(t))
	failed := x.goOn(map[string]any{open.ID: "first"}, agent.WithHistoryEdit(func(fermata.Address, []agent.Message) ([]agent.Message, error) { panic("oh") }))
	if failed.err == nil || !strings.Contains(failed.err.Error(), "panic: oh") {
		t.Fatalf("got %q", failed.log())
	}
	x.goOn(nil, agent.WithHistoryEdit(shortened)).waits(t)
}

// Another agent receives the history as its caller sees it.
func TestHistoryEdit_IsPassedToOtherAgents(t *testing.T) {
	var seen, others [][]string
	x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
		other := must(agent.NewChat(agent.Chat{Name: "other", Model: &recordingModel{x, "other", []script.Line{script.Call("ask", `{"to":"two"}`), script.Say("Done.")}, &others},
			Tools: tools(asking(&x.c, "ask"))}))
		model := &recordingModel{x, "asker", []script.Line{script.Call("ask", `{"to":"one"}`), script.Call("transfer_to_agent", `{"agent_name":"other"}`)}, &seen}
		return must(agent.NewChat(agent.Chat{Name: "asker", Model: model, Tools: tools(asking(&x.c, "ask")), Agents: []agent.Agent{other}}))
	})
	open := one(t, x.start().waits(t))
	open = one(t, x.goOn(map[string]any{open.ID: "first"}, agent.WithHistoryEdit(func(at fermata.Address, history []agent.Message) ([]agent.Message, error) {
		if len(at) > 1 {
			return nil, nil
		}
		return shortened(at, history)
	})).waits(t))
	x.goOn(map[string]any{open.ID: "second"}).finished(t)
	for _, saw := range others {
		if saw[0] != "user In short: 3 messages." || strings.Contains(fmt.Sprint(saw), "first") {
			t.Errorf("the other saw %q", saw)
		}
	}
}

func TestHistoryEdit_AgentsSideBySide(t *testing.T) {
	x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
		var lanes []agent.Agent
		for i := range 6 {
			name := fmt.Sprint("lane", i)
			lanes = append(lanes, x.chat(name, []*tool.Tool{asking(&x.c, "ask")}, script.Call("ask", `{"to":"`+name+`"}`), script.Say("Heard.")))
		}
		return must(agent.NewParallel("lanes", "", lanes...))
	})
	all := make(map[string]any)
	for _, open := range x.start().waits(t) {
		all[open.ID] = "yes"
	}
	var mu sync.Mutex // it may be called concurrently
	places := make(map[string]int)
	x.goOn(all, agent.WithHistoryEdit(func(at fermata.Address, history []agent.Message) ([]agent.Message, error) {
		mu.Lock()
		defer mu.Unlock()
		places[at.String()]++
		return append(history, agent.User("Thanks.")), nil
	})).finished(t)
	if len(places) != 6 {
		t.Errorf("the edits were made at %v", places)
	}
}
