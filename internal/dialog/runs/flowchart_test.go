package runs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/store"
)

// edge is an edge of the flow chart: it holds after the user has said something.
type edge struct {
	name  string
	says  []string
	holds func(w *world, r dialog.Record) bool
}

func (e edge) store() string {
	if strings.HasPrefix(e.name, "Pause") {
		return "sqlite" // the file is what survives
	}
	return "memory"
}

// TestSeed003_FlowChart has a case for each edge of the seed's flow chart, named as there. It plays
// a conversation up to the edge. No model is involved.
func TestSeed003_FlowChart(t *testing.T) {
	const escape, other, draft = "never mind", "someone else", "Eva Braun, auditor"
	prompt := func(r dialog.Record) *dialog.Prompt { return r.Lines[len(r.Lines)-1].Prompt }
	first := func(r dialog.Record) *dialog.Asking { return r.Questions[0] }
	status := func(w *world, r dialog.Record) store.Status {
		view, err := w.executor.GetRun(w.t.Context(), account, r.Runs[0].Run)
		if err != nil {
			w.t.Fatal(err)
		}
		return view.Status
	}
	for _, edge := range []edge{
		{"DomainAgent -WAITING_FOR_INPUT-> AgentExecution", []string{"ask subject"}, func(w *world, r dialog.Record) bool {
			view, err := w.executor.GetRun(w.t.Context(), account, r.Runs[0].Run)
			waiting, ok := view.Outcome.(fermata.NeedsInput)
			return err == nil && ok && waiting.Interrupts[0].Kind == dialog.Request.Name()
		}},
		{"EntityResolution -ambiguity detected-> DisambiguationBlocking", []string{"mail anna"}, func(_ *world, r dialog.Record) bool {
			q := first(r).Question
			return q.Kind == dialog.Disambiguation && q.Relevance == dialog.Blocking && len(q.Options) == 2
		}},
		{"AgentExecution -user_in_the_loop.is_waiting-> UIRouter", []string{"ask subject"}, func(_ *world, r dialog.Record) bool {
			return first(r).Status == dialog.Asked && r.Runs[0].Waiting && !r.Working
		}},
		{"DisambiguationBlocking -streams question-> UIRouter", []string{"mail anna"}, func(_ *world, r dialog.Record) bool {
			return prompt(r) != nil && prompt(r).Question == first(r).ID && len(prompt(r).Choices) == 3
		}},
		{"UIRouter -> HITLText", []string{"mail anna"}, func(_ *world, r dialog.Record) bool {
			return r.Channel == "web" && prompt(r).Modality == dialog.Text && prompt(r).Template == first(r).Template
		}},
		{"HITLText -streams question to frontend-> Handler", []string{"ask subject"}, func(_ *world, r dialog.Record) bool {
			return last(r) == first(r).Shown && r.Lines[len(r.Lines)-1].From == dialog.ByHandler
		}},
		{"Handler -interrupt()-> Pause", []string{"mail anna"}, func(w *world, r dialog.Record) bool {
			return status(w, r) == store.StatusWaiting && first(r).Target.Interrupt != ""
		}},
		{"Pause -checkpoint-> WaitForUser", []string{"mail anna"}, func(w *world, r dialog.Record) bool {
			w.restart()
			w.clock.add(400 * 24 * time.Hour)
			again, err := w.handler.Get(w.t.Context(), account, "c")
			return err == nil && status(w, r) == store.StatusWaiting && first(again).Status == dialog.Asked && len(again.Lines) == len(r.Lines)
		}},
		{"WaitForUser -user responds-> Command(resume=answer)", []string{"ask subject", "lunch"}, func(_ *world, r dialog.Record) bool {
			return first(r).Answer.Text == "lunch" && first(r).Answer.Actor == user
		}},
		{"Command(resume=answer) -> Handler", []string{"ask subject", "lunch"}, func(_ *world, r dialog.Record) bool {
			return first(r).Turns[0].Reply == "lunch" && first(r).Turns[0].Verdict == dialog.IsAnswer
		}},
		{"Handler -escaping?-> ProcessNewIntent", []string{"ask subject", escape, "mail anna"}, func(w *world, r dialog.Record) bool {
			return first(r).Answer.Escaped && status(w, r) == store.StatusCompleted && len(r.Runs) == 2 && r.Questions[1].Status == dialog.Asked
		}},
		{"Handler -answer received-> ResumeRoute", []string{"ask subject", "lunch"}, func(w *world, r dialog.Record) bool {
			return first(r).Status == dialog.Answered && status(w, r) == store.StatusCompleted
		}},
		{"ResumeRoute -agent HITL-> AgentExecution", []string{"ask subject", "lunch"}, func(_ *world, r dialog.Record) bool {
			return last(r) == "Did: ask subject" && r.Lines[len(r.Lines)-1].Run == first(r).Target.Run
		}},
		{"ResumeRoute -disambiguation-> DisambiguationResolution", []string{"mail anna", "legal"}, func(_ *world, r dialog.Record) bool {
			return first(r).Answer.Option == "anna-m" && first(r).Answer.Method == dialog.ByName
		}},
		{"DisambiguationResolution -resolve entity-> PersistPendingFacts", []string{"mail anna", "legal"}, func(w *world, r dialog.Record) bool {
			return w.hasFact("anna-m", "tea") && !w.hasFact("anna-s", "tea")
		}},
		{"DisambiguationResolution -create new entity-> CreateNewEntityNode", []string{"mail anna", other, draft, "yes"}, func(w *world, r dialog.Record) bool {
			entities, err := w.handler.Entities(w.t.Context(), account, user)
			return err == nil && len(entities) == 1 && entities[0].Name == "Eva Braun" && entities[0].ID == first(r).Answer.Option
		}},
		{"PersistPendingFacts -> ContinueGraph", []string{"mail anna", "legal"}, func(w *world, r dialog.Record) bool {
			return w.hasFact("anna-m", "tea") && last(r) == "Did: mail anna"
		}},
		{"CreateNewEntityNode -> ContinueGraph", []string{"mail anna", other, draft, "yes"}, func(w *world, r dialog.Record) bool {
			return w.hasFact(first(r).Answer.Option, "tea") && last(r) == "Did: mail anna" && status(w, r) == store.StatusCompleted
		}},
	} {
		t.Run(edge.name, func(t *testing.T) {
			w := newWorld(t, openStore(t, edge.store()))
			var r dialog.Record
			for _, text := range edge.says {
				r = w.say("c", dialog.Message{Text: text, Channel: "web"})
			}
			if !edge.holds(w, r) {
				t.Errorf("%+v\n%+v", r.Lines, first(r))
			}
		})
	}
}

func (w *world) hasFact(entity, value string) bool {
	w.t.Helper()
	facts, err := w.handler.Facts(w.t.Context(), account, user, entity)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.ContainsFunc(facts, func(f dialog.StoredFact) bool { return f.Value == value })
}
