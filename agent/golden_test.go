package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/tool"
)

// everything is an agent that can wait in each possible way. Every branch has made some progress by
// then.
func everything(c *counter) agent.Agent {
	desk := chat(c, "desk", tools(booking(c), tool.Approve(asking(c, "pay"))), script.Calls(call("book", "Paris"), call("pay", "Paris")), script.Say("paid"))
	follow := chat(c, "follow", tools(tool.FollowUp(booking(c), tool.Needs[city](tool.Missing{Field: "to", Question: "Where to?"}))),
		script.Call("book", `{"to":""}`), script.Say("followed"))
	loop := must(agent.NewLoop("loop", "", 2, asker(c, "again")))
	host := team(c, "host", []agent.Agent{chat(c, "guest", tools(asking(c, "ask")), script.Calls(call("ask", "guest")), script.Say("welcomed"))}, nil, transfer("guest"))
	plans := must(agent.NewPlanExecute(agent.PlanExecute{Name: "plans", Executor: executor(c),
		Planner: model(c, "plan", byProgress(planning("Rome", "Oslo"), planning("Oslo"), responding("travelled")))}))
	both := pair("pair", chat(c, "left", nil, script.Say("left is done")),
		chat(c, "right", tools(agent.AsTool(asker(c, "inner"))), script.Call("inner", `{"request":"x"}`), script.Say("right is done")))
	notes := must(agent.NewFunc("notes", "", func(ctx context.Context, _ *agent.Input) (*agent.Output, error) {
		kept, known, err := agent.Value[string](ctx, "kept")
		if err == nil && !known {
			err = agent.SetValue(ctx, "kept", "a value")
		}
		if err != nil {
			return nil, err
		}
		if _, err := question.Ask(ctx, "notes?"); err != nil {
			return nil, err
		}
		return &agent.Output{Messages: []agent.Message{agent.Assistant("kept " + kept)}}, nil
	}))
	return must(agent.NewParallel("everything", "", desk, follow, loop, holder(c, "hold", 2), host, plans, both, notes))
}

func fixedClock(config *agent.RunnerConfig) {
	config.EnableStreaming = true
	config.Clock = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
}

// park executes a run of everything until all of it waits, most branches for the second time.
func park(t *testing.T, st store.Checkpoints) []*fermata.InterruptCtx {
	t.Helper()
	var c counter
	r := newRunner(t, everything(&c), fixedClock, func(config *agent.RunnerConfig) { config.Store = st })
	open := record(r.Query(t.Context(), "go", agent.WithRun("run"))).waits(t)
	answers := make(map[string]any)
	for _, ic := range open {
		switch {
		case ic.Kind == fermata.Approval.Name():
			answers[ic.ID] = yes
		case ic.Info == "again?" || ic.Info == "hold 1?":
			answers[ic.ID] = "once"
		}
	}
	if len(answers) != 4 || len(open) != 8 {
		t.Fatalf("got %v", infos(open))
	}
	return record(r.ResumeWithParams(t.Context(), "run", &agent.ResumeParams{Targets: answers})).waits(t)
}

const fixture = "testdata/checkpoints/format2.json"

// scenario 57. TestFormat_AWaitingRunOfTheSecondFormatStillResumes reads a checkpoint of an earlier
// build. The file is never rewritten; a new format gets an additional file.
func TestFormat_AWaitingRunOfTheSecondFormatStillResumes(t *testing.T) {
	if _, err := os.Stat(fixture); *golden.Update && os.IsNotExist(err) {
		st := memory.New()
		park(t, st)
		golden.Compare(t, fixture, asJSON(t, rawParts(t, st)))
	}
	data, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		t.Fatal(err)
	}
	var delta store.Delta
	for name, part := range parts {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: part})
	}
	st := memory.New()
	if _, err := st.Save(t.Context(), store.Key{Run: "run"}, 0, delta); err != nil {
		t.Fatal(err)
	}

	var c counter
	r := newRunner(t, everything(&c), fixedClock, func(config *agent.RunnerConfig) { config.Store = st })
	open := record(r.ResumeWithParams(t.Context(), "run", nil)).waits(t)
	c.want(t, nil)
	if want := park(t, memory.New()); !slices.Equal(ids(open), ids(want)) || !slices.Equal(addresses(open), addresses(want)) {
		t.Errorf("it waits for %v at %q; a new run for %v at %q", infos(open), addresses(open), infos(want), addresses(want))
	}
	answers := make(map[string]any)
	for _, ic := range open {
		switch ic.Kind {
		case fermata.Approval.Name():
			answers[ic.ID] = yes
		case tool.Completion.Name():
			answers[ic.ID] = tool.CompletedArgs{Fields: map[string]json.RawMessage{"to": json.RawMessage(`"Nice"`)}}
		default:
			answers[ic.ID] = "yes"
		}
	}
	done := record(r.ResumeWithParams(t.Context(), "run", &agent.ResumeParams{Targets: answers}))
	want := []string{"", "booked Paris", "pay heard yes", "paid", "", "booked Nice", "followed",
		"again begins", "again heard once", "again begins", "again heard yes", "hold begins", "hold heard once at 1", "hold heard yes at 2",
		"", "Handed over to guest.", "", "ask heard yes", "welcomed", "", "booked Rome", "done: booked Rome", "", "booked Oslo", "done: booked Oslo", "travelled",
		"pair goes on with 1 waiting", "pair is done", "kept a value"}
	if got := texts(done.finished(t).Output); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if !slices.ContainsFunc(done.events, func(e *agent.Event) bool { _, ok := e.Body.(agent.Token); return ok }) {
		t.Error("the run streamed when it began, and does not any more")
	}
	c.want(t, map[string]int{"model desk": 1, "enter pay": 1, "pay done": 1, "model follow": 1, "book Nice": 1, "enter again": 1, "resume hold": 1,
		"model guest": 1, "enter ask": 1, "ask done": 1, "model plan": 1, "model executor": 1, "book Oslo": 1, "model right": 1, "enter inner": 1})
}

func rawParts(t *testing.T, st store.Checkpoints) map[string]json.RawMessage {
	t.Helper()
	saved, err := st.Load(t.Context(), store.Key{Run: "run"})
	if err != nil {
		t.Fatal(err)
	}
	parts := make(map[string]json.RawMessage)
	for name, data := range saved.Parts {
		if !json.Valid(data) {
			t.Errorf("part %q is not JSON: %s", name, data)
		}
		parts[name] = data
	}
	return parts
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}
