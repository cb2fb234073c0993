package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// holdsAt fails the test unless the run still waits at the design gate, with the same interrupt,
// and nothing else ran.
func (j *journey) holdsAt(id string) {
	j.t.Helper()
	open, question := j.open()
	if open.ID != id || question.Gate != "design_approval" {
		j.t.Errorf("the run waits for %s at %s, want %s at the design gate", open.ID, question.Gate, id)
	}
	if saved := j.saved(); !cmp.Equal(saved.State.Ran, []string{"design"}) {
		j.t.Errorf("ran %v, want the first design alone", saved.State.Ran)
	}
}

func TestI5_ResumeWithoutAnAnswerStaysAtTheGate(t *testing.T) {
	for name, option := range map[string]graph.Option{
		"plainly":         graph.WithAccount(""),
		"with a takeover": graph.TakeOver(),
		"saving less":     graph.SaveOnWait(),
	} {
		t.Run(name, func(t *testing.T) {
			j := begin(t)
			open, _ := j.open()
			_, err := j.resume(option)
			info, waits := fermata.ExtractInterruptInfo(err)
			if !waits || len(info.Interrupts) != 1 || info.Interrupts[0].ID != open.ID {
				t.Errorf("got %v, want the same interrupt again", err)
			}
			j.holdsAt(open.ID)
		})
	}
}

func TestI5_StartingTheRunAgainDoesNotPassTheGate(t *testing.T) {
	j := begin(t)
	open, _ := j.open()
	_, err := j.flow.Run(t.Context(), pipeline{}, graph.WithStore(j.kept), graph.WithRun("r"))
	if !errors.Is(err, graph.ErrRunExists) {
		t.Errorf("got %v", err)
	}
	j.holdsAt(open.ID)
}

func TestI5_AnApprovalInTheInputIsRefused(t *testing.T) {
	j := begin(t)
	_, err := j.flow.Run(t.Context(), pipeline{Decisions: []gate.Record{{Gate: "design_approval", Approved: true, At: noon}}},
		graph.WithStore(j.kept), graph.WithRun("forged"))
	if !errors.Is(err, fermata.ErrForgedIdentity) {
		t.Errorf("got %v, want it refused", err)
	}
}

// A person who may edit a held state cannot turn a no into a yes.
func TestI5_AHoldEditCannotChangeADecision(t *testing.T) {
	type state struct {
		Decisions []gate.Record `json:"decisions,omitempty"`
	}
	done := func(_ context.Context, s state) (state, error) { return s, nil }
	g := graph.New[state]("held")
	g.Node("forward", done)
	g.Node("backward", done)
	gate.Approval[state]{
		ID: "design", Decisions: func(s *state) *[]gate.Record { return &s.Decisions }, Forward: "forward", Backward: "backward",
	}.Add(g, "review")
	g.Edge(graph.Start, "review")
	g.Edge("forward", graph.End)
	g.Edge("backward", graph.End)
	g.HoldAfter("review")
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	options := []graph.Option{graph.WithStore(memory.New()), graph.WithRun("r")}
	answer := func(err error, value any) error {
		t.Helper()
		info, waits := fermata.ExtractInterruptInfo(err)
		if !waits {
			t.Fatalf("got %v, want the run to wait", err)
		}
		_, err = flow.Resume(t.Context(), "r", append(options, graph.Answer(info.Interrupts[0].ID, value))...)
		return err
	}
	_, err = flow.Run(t.Context(), state{}, options...)
	held := answer(err, gate.Signal{})
	forged := answer(held, state{Decisions: []gate.Record{{Gate: "design", Approved: true}}})
	if !errors.Is(forged, fermata.ErrForgedIdentity) {
		t.Errorf("got %v, want it refused", forged)
	}
}

// forge appends an approval that was not given.
func forge(_ fermata.Address, state any) error {
	p := state.(*pipeline)
	p.Decisions = append(p.Decisions, gate.Record{Gate: "design_approval", Approved: true, At: noon, By: "nobody"})
	return nil
}

func TestI5_AForgedRecordDoesNotPassTheGate(t *testing.T) {
	j := begin(t)
	open, _ := j.open()
	if _, err := j.resume(graph.WithStateModifier(forge)); err == nil {
		t.Error("the run went on")
	}
	j.holdsAt(open.ID)
}

func TestI5_AForgedRecordDoesNotTurnANoIntoAYes(t *testing.T) {
	for name, split := range map[string]bool{"before the answer": true, "with the answer": false} {
		t.Run(name, func(t *testing.T) {
			j := begin(t)
			open, _ := j.open()
			options := []graph.Option{graph.WithStateModifier(forge)}
			if split {
				j.resume(options...)
				options = nil
			}
			j.resume(append(options, graph.Answer(open.ID, no("not like this")))...)
			_, question := j.open()
			if question.Gate != "design_approval" || question.CurrentStatus != "design 2 not like this" {
				t.Errorf("waits with %+v, want the design again", question)
			}
		})
	}
}

func TestI6_ApprovalDoesNotCountForAChangedStatus(t *testing.T) {
	j := begin(t)
	open, _ := j.open()
	j.resume(graph.Answer(open.ID, yes()), graph.WithStateModifier(func(_ fermata.Address, state any) error {
		state.(*pipeline).Design = "something else"
		return nil
	}))
	again, question := j.open()
	if question.Gate != "design_approval" || question.CurrentStatus != "something else" || again.ID == open.ID {
		t.Errorf("waits for %s with %+v, want a new interrupt about the other design", again.ID, question)
	}
	if saved := j.saved(); len(saved.State.Decisions) != 0 {
		t.Errorf("the trail holds %+v", saved.State.Decisions)
	}
	j.answer(yes())
	if _, question := j.open(); question.Gate != "dag_approval" {
		t.Errorf("waits at %s after an approval of what was shown, want the next gate", question.Gate)
	}
}

func TestI13_AWrongSignalIsRefusedAndTheGateStaysShut(t *testing.T) {
	raw := func(text string) any { return json.RawMessage(text) }
	for name, signal := range map[string]any{
		"nothing":                         nil,
		"a nil signal":                    (*gate.Signal)(nil),
		"a bare true":                     true,
		"a word":                          "approved",
		"a decision of another kind":      fermata.Decision{Verb: fermata.VerbApprove, At: noon},
		"a record":                        gate.Record{Gate: "design_approval", Approved: true, At: noon},
		"JSON: nothing":                   raw(``),
		"JSON: null":                      raw(`null`),
		"JSON: empty":                     raw(`{}`),
		"JSON: a list":                    raw(`[{"approved":true,"approvedAt":"2026-01-02T12:00:00Z"}]`),
		"JSON: no approved":               raw(`{"approvedAt":"2026-01-02T12:00:00Z"}`),
		"JSON: approved null":             raw(`{"approved":null,"approvedAt":"2026-01-02T12:00:00Z"}`),
		"JSON: approved as text":          raw(`{"approved":"true","approvedAt":"2026-01-02T12:00:00Z"}`),
		"JSON: approved as number":        raw(`{"approved":1,"approvedAt":"2026-01-02T12:00:00Z"}`),
		"JSON: approved in other case":    raw(`{"Approved":true,"approvedAt":"2026-01-02T12:00:00Z"}`),
		"JSON: approved twice":            raw(`{"approved":false,"approved":true,"approvedAt":"2026-01-02T12:00:00Z"}`),
		"JSON: approved in both cases":    raw(`{"approved":false,"APPROVED":true,"approvedAt":"2026-01-02T12:00:00Z"}`),
		"JSON: approvedAt null":           raw(`{"approved":true,"approvedAt":null}`),
		"JSON: approvedAt is not a time":  raw(`{"approved":true,"approvedAt":"yesterday"}`),
		"JSON: feedback is not a string":  raw(`{"approved":true,"approvedAt":"2026-01-02T12:00:00Z","feedback":{}}`),
		"JSON: something unknown":         raw(`{"approved":true,"approvedAt":"2026-01-02T12:00:00Z","force":true}`),
		"JSON: something after it":        raw(`{"approved":true,"approvedAt":"2026-01-02T12:00:00Z"} {}`),
		"a map without approved":          map[string]any{"approvedAt": noon},
		"a map with approved as a string": map[string]any{"approved": "yes", "approvedAt": noon},
	} {
		t.Run(name, func(t *testing.T) {
			j := begin(t)
			open, _ := j.open()
			before := j.saved().Version
			_, err := j.resume(graph.Answer(open.ID, signal))
			if _, refused := errors.AsType[*fermata.AnswerError](err); !refused {
				t.Errorf("got %v, want an AnswerError", err)
			}
			j.holdsAt(open.ID)
			if after := j.saved().Version; after != before {
				t.Errorf("a rejected answer saved something: version %d became %d", before, after)
			}
		})
	}
}

func TestSignal_JSONAnswersWithTheSeedsNames(t *testing.T) {
	j := begin(t)
	open, _ := j.open()
	j.resume(graph.Answer(open.ID, json.RawMessage(
		`{"approved":true,"feedback":"Architecture looks correct.","approvedBy":"alice","approvedAt":"2026-01-02T13:00:00+01:00"}`)))
	want := []gate.Record{{Gate: "design_approval", Approved: true, At: noon, Feedback: "Architecture looks correct.", By: "alice"}}
	if diff := cmp.Diff(want, j.saved().State.Decisions); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
}

func TestI5_AnIDThatIsNotOpenDoesNotPassTheGate(t *testing.T) {
	j := begin(t)
	first, _ := j.open()
	j.answer(no("again"))
	second, _ := j.open()
	before := j.saved().Version
	for name, test := range map[string]struct {
		id   string
		want error
	}{
		"of the round before": {first.ID, graph.ErrAlreadyAnswered},
		"of nothing":          {"int_0123456789", graph.ErrUnknownInterrupt},
		"empty":               {"", graph.ErrUnknownInterrupt},
		"the gate's own name": {"design_approval", graph.ErrUnknownInterrupt},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := j.resume(graph.Answer(test.id, yes())); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if open, _ := j.open(); open.ID != second.ID || j.saved().Version != before {
				t.Errorf("the run waits for %s in version %d, want %s in version %d", open.ID, j.saved().Version, second.ID, before)
			}
		})
	}
	t.Run("beside a good one", func(t *testing.T) {
		if _, err := j.resume(graph.Answer(first.ID, yes()), graph.Answer(second.ID, yes())); !errors.Is(err, graph.ErrAlreadyAnswered) {
			t.Errorf("got %v", err)
		}
		if open, _ := j.open(); open.ID != second.ID {
			t.Errorf("the valid answer was used although the other was rejected")
		}
	})
}

func TestKind_SchemaDemandsOnlyTheDecision(t *testing.T) {
	for _, text := range []json.RawMessage{gate.Kind.AnswerSchema(), gate.Kind.HumanAnswerSchema()} {
		var schema struct {
			Required []string `json:"required"`
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		if want := []string{"approved"}; !cmp.Equal(schema.Required, want) {
			t.Errorf("required are %v, want %v", schema.Required, want)
		}
	}
	if people := string(gate.Kind.HumanAnswerSchema()); strings.Contains(people, "approvedBy") || strings.Contains(people, "approvedAt") {
		t.Errorf("people are asked for their name and the time: %s", people)
	}
}
