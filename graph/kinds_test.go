package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// The answer of a kind in two versions of a program. In the first a denial is Approved false; in
// the second it is a string.
type (
	earlierVerdict struct{ Approved bool }
	laterVerdict   struct{ Word verdictWord }
	// laterNote has the fields of the earlier verdict and an optional one.
	laterNote struct {
		Approved bool
		Note     string `json:",omitempty"`
	}
	// laterReasons has the fields of the earlier verdict, and requires a reason for each denial.
	laterReasons struct {
		Approved bool
		Reason   string `json:",omitempty"`
	}
	verdictWord string
)

func (v laterReasons) Validate() error {
	if !v.Approved && v.Reason == "" {
		return errors.New("a no needs a reason")
	}
	return nil
}

// The names have equal length: newProgram replaces one by another.
var (
	earlierKind = fermata.NewKind[string, earlierVerdict]("test-verdict-0")
	laterKind   = fermata.NewKind[string, laterVerdict]("test-verdict-1")
	noteKind    = fermata.NewKind[string, laterNote]("test-verdict-2")
	reasonsKind = fermata.NewKind[string, laterReasons]("test-verdict-3")
)

// twoQuestions asks for a verdict and for another answer, and stores the result of proceeds for the
// verdict.
func twoQuestions[A any](kind *fermata.Kind[string, A], proceeds func(A) bool) *graph.Graph[notes] {
	g := graph.New[notes]("two-questions")
	g.Node("asks", func(ctx context.Context, s notes) (notes, error) {
		verdict, noVerdict := kind.Ask(ctx, "deploy?")
		_, unsure := question.Ask(ctx, "sure?")
		if err := errors.Join(noVerdict, unsure); err != nil {
			return s, err
		}
		s.A = "stopped"
		if proceeds(verdict) {
			s.A = "deployed"
		}
		return s, nil
	})
	g.Edge(graph.Start, "asks")
	g.Edge("asks", graph.End)
	return g
}

func earlier() *graph.Graph[notes] {
	return twoQuestions(earlierKind, func(v earlierVerdict) bool { return v.Approved })
}

func later() *graph.Graph[notes] {
	return twoQuestions(laterKind, func(v laterVerdict) bool { return v.Word != "reject" })
}

// newProgram continues the run in a program in which the kind has changed.
func (h *harness[S]) newProgram(g *graph.Graph[S], kind string) {
	h.t.Helper()
	saved, err := h.st.Load(h.t.Context(), storeKey(h.run))
	if err != nil {
		h.t.Fatal(err)
	}
	parts := make(map[string][]byte)
	for name, data := range saved.Parts {
		parts[name] = []byte(strings.ReplaceAll(string(data), earlierKind.Name(), kind))
	}
	h.flow, h.st = compile(h.t, g), memory.New()
	if _, err := h.st.Save(h.t.Context(), storeKey(h.run), 0, put(parts)); err != nil {
		h.t.Fatal(err)
	}
}

// Regression: a denial that was given before a deployment was decoded as the zero value of the new
// answer, which was an approval.
func TestI13_AnswerGivenInEarlierFormIsAskedAgain(t *testing.T) {
	h := newHarness(t, earlier())
	_, err := h.start(notes{})
	_, err = h.answer(h.waits(err), "deploy?", earlierVerdict{Approved: false})
	open := h.waits(err)
	h.newProgram(later(), laterKind.Name())

	_, err = h.answer(open, "sure?", "yes")

	reopened := h.waits(err)
	if len(reopened) != 1 || reopened[0].Kind != laterKind.Name() {
		t.Fatalf("waits for %v, want the verdict again", infos(reopened))
	}
	bad, ok := errors.AsType[*fermata.AnswerError](err)
	if !ok || bad.ID != reopened[0].ID || !strings.Contains(bad.Error(), "a form that this program does not accept") {
		t.Errorf("the caller gets %v", bad)
	}
	if out, err := h.answer(reopened, "deploy?", laterVerdict{"reject"}); err != nil || out.A != "stopped" {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestI13_UnusedAnswerOfEarlierProgramIsAskedAgain(t *testing.T) {
	h := newHarness(t, earlier())
	_, err := h.start(notes{})
	id := find(t, h.waits(err), "deploy?").ID
	faulty := storetest.NewFaulty(h.st)
	faulty.CrashSave(2, storetest.BeforeWrite) // the first save has the answer
	_, err = h.flow.Resume(t.Context(), h.run, graph.WithStore(faulty), graph.Answer(id, earlierVerdict{Approved: false}))
	if err == nil {
		t.Fatal("the process did not die")
	}
	h.newProgram(later(), laterKind.Name())

	_, err = h.resume(graph.TakeOver())

	if got := infos(h.waits(err)); len(got) != 2 {
		t.Errorf("waits for %v, want both", got)
	}
}

func TestResume_AnAnswerThatStillFitsAChangedKindIsNotAskedForAgain(t *testing.T) {
	h := newHarness(t, earlier())
	_, err := h.start(notes{})
	_, err = h.answer(h.waits(err), "deploy?", earlierVerdict{Approved: true})
	open := h.waits(err)
	h.newProgram(twoQuestions(noteKind, func(n laterNote) bool { return n.Approved }), noteKind.Name())

	out, err := h.answer(open, "sure?", "yes")

	if err != nil || out.A != "deployed" {
		t.Errorf("got %+v, %v", out, err)
	}
}

// Validators of a kind also apply to answers that were given before.
func TestI13_AnswerOfEarlierFormIsAskedAgainIfRejected(t *testing.T) {
	reasons := twoQuestions(reasonsKind, func(v laterReasons) bool { return v.Approved })
	h := newHarness(t, earlier())
	_, err := h.start(notes{})
	_, err = h.answer(h.waits(err), "deploy?", earlierVerdict{Approved: false})
	open := h.waits(err)
	h.newProgram(reasons, reasonsKind.Name())

	_, err = h.answer(open, "sure?", "yes")

	reopened := h.waits(err)
	if len(reopened) != 1 || reopened[0].Kind != reasonsKind.Name() {
		t.Fatalf("waits for %v, want the verdict again", infos(reopened))
	}
	if out, err := h.answer(reopened, "deploy?", laterReasons{Reason: "a freeze"}); err != nil || out.A != "stopped" {
		t.Errorf("got %+v, %v", out, err)
	}
}
