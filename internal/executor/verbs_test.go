package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider/inproc"
)

// People approve and reject gates and holds with the verbs of an approval. The run gets what the
// gate or the hold expects.
func TestVerbs_GatesAndHoldsAreApprovedAndRejected(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := opsExecutor(t, s, "default: ask\ndefaults: {ask: {groups: [{from: ['group:dba']}], deadline: 1h, editable: ['']}}\n")
		for name, c := range map[string]struct {
			graph, answer string
			verb          string // in the audit log
			dropped       string
			end           string // a part of the outcome of a gate
		}{
			"approve a hold":      {"held", `{"verb":"approve"}`, "approve", "users", ""},
			"release a hold":      {"held", `null`, "approve", "users", ""},
			"edit a hold":         {"held", `{"verb":"approve","args":{"table":"logs"}}`, "respond", "logs", ""},
			"state of a hold":     {"held", `{"table":"logs"}`, "respond", "logs", ""},
			"reject a hold":       {"held", `{"verb":"reject","reason":"too early"}`, "reject", "", ""},
			"reject with a code":  {"held", `{"verb":"reject","codes":["risk"]}`, "reject", "", ""},
			"approve a gate":      {"gated", `{"verb":"approve","reason":"fine"}`, "approve", "users", `"feedback":"fine"`},
			"signal of a gate":    {"gated", `{"approved":true}`, "approve", "users", `"approvedBy":"ann"`},
			"reject a gate":       {"gated", `{"verb":"reject","reason":"too early"}`, "reject", "", `"approved":false`},
			"signal against":      {"gated", `{"approved":false,"feedback":"too early"}`, "reject", "", `"feedback":"too early"`},
			"reject gate by code": {"gated", `{"verb":"reject","codes":["risk"]}`, "reject", "", `"feedback":"risk"`},
		} {
			t.Run(name, func(t *testing.T) {
				asked := waits(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: name, Graph: "inproc:" + c.graph, Input: json.RawMessage(`{"table":"users"}`), Actor: "bot", Kind: desk.ActorAgent}))
				id := asked.Interrupts[0].ID
				outcome, err := e.Decide(t.Context(), executor.DecideRequest{
					Account: "acme", ResumeID: name, Actor: "ann", Auth: requirement.AuthSSO, Targets: map[string]executor.Answer{id: {Value: json.RawMessage(c.answer)}},
				})
				if err != nil {
					t.Fatal(err)
				}
				var state opsState
				text := ""
				switch o := outcome.(type) {
				case fermata.Completed:
					text = string(o.Output)
					if err := json.Unmarshal(o.Output, &state); err != nil {
						t.Fatal(err)
					}
				case fermata.Failed:
					if o.Code != "rejected" || c.graph != "held" || c.verb != "reject" {
						t.Errorf("failed with %s", o.Code)
					}
				}
				if got := strings.Join(state.Dropped, " "); got != c.dropped || !strings.Contains(text, c.end) {
					t.Errorf("dropped %q, want %q; %s", got, c.dropped, text)
				}
				if verbs := verbsOfRun(t, s, name); !slices.Equal(verbs, []string{c.verb}) {
					t.Errorf("audit log has %q, want %q", verbs, c.verb)
				}
			})
		}
	})
}

// verbsOfRun returns the verbs of the decisions on a run in the audit log.
func verbsOfRun(t *testing.T, s store.Store, key string) (verbs []string) {
	t.Helper()
	run, err := s.Get(t.Context(), "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := s.AuditLines(t.Context(), "acme", 0, 10000)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		var record struct {
			Place struct {
				Run string `json:"run"`
			} `json:"place"`
			Body struct {
				Verb string `json:"verb"`
			} `json:"body"`
		}
		if err := json.Unmarshal(line.Raw, &record); err != nil {
			t.Fatal(err)
		}
		if record.Place.Run == run.ID && record.Body.Verb != "" {
			verbs = append(verbs, record.Body.Verb)
		}
	}
	return verbs
}

// What a rule does not allow, or what makes no sense, is refused, and the request stays open.
func TestVerbs_InvalidOnesAreRefused(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := opsExecutor(t, s, "default: ask\ndefaults: {ask: {groups: [{from: ['group:dba']}], deadline: 1h}}\n")
		for _, graph := range []string{"held", "gated"} {
			asked := waits(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: graph, Graph: "inproc:" + graph, Input: json.RawMessage(`{"table":"users"}`), Actor: "bot"}))
			for _, answer := range []string{
				`{"verb":"expire"}`, `{"verb":"return","reason":"again"}`, `{"verb":"maybe"}`, `{"verb":"deny"}`, `{"verb":"reject","comment":"no"}`, `{"verb":7}`, `{"verb":"reject","args":{"table":"logs"}}`, `{"verb":"approve","args":{"table":"logs"}}`, `{"verb":"approve","more":1}`, `{"verb":"approve","args":7}`, `"approve"`,
			} {
				_, err := e.Decide(t.Context(), executor.DecideRequest{
					Account: "acme", ResumeID: graph + answer, Actor: "ann", Auth: requirement.AuthSSO, Targets: map[string]executor.Answer{asked.Interrupts[0].ID: {Value: json.RawMessage(answer)}},
				})
				_, invalid := errors.AsType[*fermata.AnswerError](err)
				if !invalid && !errors.Is(err, desk.ErrNotAllowed) {
					t.Errorf("%s %s: %v", graph, answer, err)
				}
			}
			doc, err := e.RequestDocument(t.Context(), "acme", asked.Interrupts[0].ID)
			if err != nil || doc.State != desk.StateOpen || len(doc.Votes) > 0 {
				t.Errorf("%s: %s with %d votes, %v", graph, doc.State, len(doc.Votes), err)
			}
		}
	})
}

// Of two approvers of a gate, one rejection is enough.
func TestVerbs_OneRejectionEndsAGateForTwo(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := opsExecutor(t, s, "default: ask\ndefaults: {ask: {groups: [{from: ['group:dba'], count: 2}], deadline: 1h}}\n")
		asked := waits(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "r", Graph: "inproc:gated", Input: json.RawMessage(`{"table":"users"}`), Actor: "bot"}))
		say := func(who, answer string) (fermata.Outcome, error) {
			return e.Decide(t.Context(), executor.DecideRequest{
				Account: "acme", ResumeID: who, Actor: who, Auth: requirement.AuthSSO, Targets: map[string]executor.Answer{asked.Interrupts[0].ID: {Value: json.RawMessage(answer)}},
			})
		}
		if out, err := say("ann", `{"verb":"approve"}`); err != nil || len(waits(t, out).Interrupts) != 1 {
			t.Fatalf("%#v, %v", out, err)
		}
		out, err := say("ben", `{"verb":"reject","reason":"no"}`)
		done, completed := out.(fermata.Completed)
		if err != nil || !completed || strings.Contains(string(done.Output), "dropped") {
			t.Errorf("%#v, %v", out, err)
		}
	})
}

// Who approved a gate of a run is a prior approver of its next one; who only rejected one is not.
func TestVerbs_ApprovedGateMakesAPriorApprover(t *testing.T) {
	s := memory.NewStore(nil)
	e := opsExecutor(t, s, "default: ask\ndefaults: {ask: {groups: [{from: ['group:dba']}], deadline: 1h, separation_of_duties: [prior_approver]}}\n")
	say := func(id, who string) error {
		_, err := e.Decide(t.Context(), executor.DecideRequest{
			Account: "acme", ResumeID: who + id, Actor: who, Auth: requirement.AuthSSO, Targets: map[string]executor.Answer{id: {Value: json.RawMessage(`{"verb":"approve"}`)}},
		})
		return err
	}
	first := waits(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "r", Graph: "inproc:two-gates", Input: json.RawMessage(`{"table":"users"}`), Actor: "bot"})).Interrupts[0].ID
	if err := say(first, "ann"); err != nil {
		t.Fatal(err)
	}
	view, err := e.GetRun(t.Context(), "acme", "r")
	if err != nil {
		t.Fatal(err)
	}
	second := view.Interrupts[len(view.Interrupts)-1].ID
	if err := say(second, "ann"); !errors.Is(err, desk.ErrExcluded) {
		t.Errorf("ann: %v", err)
	}
	if err := say(second, "ben"); err != nil {
		t.Errorf("ben: %v", err)
	}
}

// A state that has a member "verb" is approved, rejected and edited like any other: an object with
// a verb is never taken for a state.
func TestVerbs_StateWithAVerb(t *testing.T) {
	done := func(_ context.Context, s map[string]any) (map[string]any, error) {
		s["done"] = s["verb"]
		return s, nil
	}
	g := graph.New[map[string]any]("open")
	g.Node("act", done)
	g.Edge(graph.Start, "act")
	g.Edge("act", graph.End)
	g.HoldBefore("act")
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	in, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[map[string]any]{}))
	if err != nil {
		t.Fatal(err)
	}
	e := executorOf(t, memory.NewStore(nil), in, nil)
	for answer, want := range map[string]string{
		`{"verb":"approve"}`:                        `"done":"deploy"`,
		`{"verb":"approve","args":{"verb":"stop"}}`: `"done":"stop"`,
		`{"verb":"reject","reason":"no"}`:           "rejected",
		`{"verb":"stop"}`:                           "refused",
		`{"verb":"return","reason":"no!"}`:          "refused",
		`{"verb":"reject","comment":"no!"}`:         "refused",
	} {
		id := waits(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: answer, Graph: "inproc:open", Input: json.RawMessage(`{"verb":"deploy"}`), Actor: "bot"})).Interrupts[0].ID
		out, err := e.Decide(t.Context(), executor.DecideRequest{
			Account: "acme", ResumeID: answer, Actor: "ann", Auth: requirement.AuthSSO, Targets: map[string]executor.Answer{id: {Value: json.RawMessage(answer)}},
		})
		got := "refused"
		switch o := out.(type) {
		case fermata.Completed:
			got = string(o.Output)
		case fermata.Failed:
			got = o.Code
		}
		if _, invalid := errors.AsType[*fermata.AnswerError](err); !strings.Contains(got, want) || (err != nil) != (want == "refused") || err != nil && !invalid {
			t.Errorf("%s: %s, %v; want %s", answer, got, err, want)
		}
	}
}
