package agent_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/tool"
)

// lastError drains the events of a run.
func lastError(events iter.Seq2[*agent.Event, error]) error {
	for _, err := range events {
		if err != nil {
			return err
		}
	}
	return nil
}

func waitingRun(t *testing.T) (*agent.Runner, string) {
	t.Helper()
	var c counter
	r := newRunner(t, chat(&c, "clerk", tools(tool.Approve(booking(&c))), script.Call("book", `{"to":"Paris"}`), script.Say("done")))
	for event, err := range r.Query(t.Context(), "go", agent.WithRun("trip")) {
		if err != nil {
			t.Fatal(err)
		}
		if waits, ok := event.Body.(agent.Interrupted); ok {
			return r, waits.Interrupts[0].ID
		}
	}
	t.Fatal("the run should wait")
	return nil, ""
}

func TestQuery_AnswersAreAnError(t *testing.T) {
	var c counter
	r := newRunner(t, chat(&c, "clerk", nil, script.Say("done")))
	if err := lastError(r.Query(t.Context(), "go", agent.Answer("int_1", fermata.Yes("ann")))); !errors.Is(err, graph.ErrAnswersForNewRun) {
		t.Errorf("got %v", err)
	}
	if err := lastError(r.Query(fermata.ResumeWithData(t.Context(), "int_1", "yes"), "go")); !errors.Is(err, graph.ErrAnswersForNewRun) {
		t.Errorf("got %v", err)
	}
}

func TestResume_MisuseIsAnErrorAndTheQuestionStaysOpen(t *testing.T) {
	r, id := waitingRun(t)
	yes := agent.Answer(id, fermata.Yes("ann"))
	if err := lastError(r.Resume(t.Context(), "trip", yes, agent.WithRun("other"))); err == nil || !strings.Contains(err.Error(), "WithRun") {
		t.Errorf("got %v", err)
	}
	if err := lastError(r.Resume(t.Context(), "trip", yes, agent.Answer(id, fermata.No("bob", "no")))); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
	if err := lastError(r.Resume(t.Context(), "trip", yes)); err != nil {
		t.Fatal(err)
	}
	err := lastError(r.Resume(t.Context(), "trip"))
	finished, ok := errors.AsType[*agent.FinishedError](err)
	if !ok || !errors.Is(err, graph.ErrFinished) || finished.Output.Text() != "done" {
		t.Errorf("got %v", err)
	}
}

type silent struct{}

func (silent) Generate(context.Context, *agent.Request) (*agent.Response, error) { return nil, nil }

func TestModel_ThatReturnsNothingIsAnErrorThatSaysWhatToDo(t *testing.T) {
	r := newRunner(t, must(agent.NewChat(agent.Chat{Name: "clerk", Model: silent{}})))
	err := lastError(r.Query(t.Context(), "go"))
	if err == nil || !strings.Contains(err.Error(), "the model of clerk returned nothing: Generate must return a *Response or return an error") {
		t.Errorf("got %v", err)
	}
}

// empty is a model that returns an empty response, streamed or not.
type empty struct{ finish agent.FinishReason }

func (m empty) Generate(context.Context, *agent.Request) (*agent.Response, error) {
	return &agent.Response{FinishReason: m.finish}, nil
}

func (m empty) Stream(ctx context.Context, r *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) {
		response, err := m.Generate(ctx, r)
		yield(&agent.Chunk{Response: response}, err)
	}
}

func TestModel_EmptyResponseIsAnErrorThatSaysWhatToDo(t *testing.T) {
	for finish, want := range map[agent.FinishReason]string{
		"":                 "the model of clerk returned an empty Response: set Message.Text or Message.ToolCalls",
		agent.FinishLength: "raise the limit of its output tokens",
		agent.FinishStop:   "",
	} {
		for _, streaming := range []bool{false, true} {
			r := newRunner(t, must(agent.NewChat(agent.Chat{Name: "clerk", Model: empty{finish}})), func(c *agent.RunnerConfig) { c.EnableStreaming = streaming })
			err := lastError(r.Query(t.Context(), "go"))
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("finish reason %q, streaming %v: got %v", finish, streaming, err)
			}
		}
	}
}

// Regression: an agent whose subagent has it as a subagent, too, was listed twice in the schema.
func TestTransfer_EachTargetIsOfferedOnce(t *testing.T) {
	var c counter
	var schema string
	back := team(&c, "A", nil, nil, script.Say("again"))
	b := team(&c, "B", []agent.Agent{back}, nil, func(r *agent.Request) (agent.Message, error) {
		i := slices.IndexFunc(r.Tools, func(s agent.ToolSpec) bool { return s.Name == agent.ToolTransfer })
		schema = string(r.Tools[i].Schema)
		return agent.Assistant("done"), nil
	})
	r := newRunner(t, team(&c, "A", []agent.Agent{b}, nil, transfer("B")))
	if err := lastError(r.Query(t.Context(), "go")); err != nil || !strings.Contains(schema, `"enum":["A"]`) {
		t.Errorf("%s, %v", schema, err)
	}
}

func TestUnknownTool_MessageListsTheTransfer(t *testing.T) {
	var c counter
	var told string
	a := team(&c, "A", []agent.Agent{chat(&c, "B", nil)}, tools(booking(&c)), script.Call("transfer", `{}`), func(r *agent.Request) (agent.Message, error) {
		told = r.Messages[len(r.Messages)-1].Text
		return agent.Assistant("done"), nil
	})
	if err := lastError(newRunner(t, a).Query(t.Context(), "go")); err != nil || !strings.Contains(told, "The tools are: book, transfer_to_agent.") {
		t.Errorf("%q, %v", told, err)
	}
}
