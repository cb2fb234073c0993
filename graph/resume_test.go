package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

type vote struct {
	Approve bool   `json:"approve"`
	Reason  string `json:"reason,omitempty"`
}

var voting = fermata.NewKind[string, vote]("test-vote")

// guarded is a node that acts only on an approval.
func guarded(c *counter) fn {
	return func(ctx context.Context, s notes) (notes, error) {
		v, err := voting.Ask(ctx, "delete?")
		if err != nil {
			return s, err
		}
		if v.Approve {
			c.add("deleted")
		}
		s.A = fmt.Sprint(v.Approve)
		return s, nil
	}
}

func TestI13_AnAnswerOfTheWrongTypeChangesNothing(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(guarded(&c)))
	_, err := h.start(notes{})
	open := h.waits(err)
	version := h.version()
	for name, wrong := range map[string]any{
		"nothing":            nil,
		"a word":             "no",
		"a bare bool":        true,
		"another struct":     struct{ Denied bool }{true},
		"unknown member":     json.RawMessage(`{"approve":true,"force":true}`),
		"missing member":     json.RawMessage(`{"reason":"no"}`),
		"other case":         json.RawMessage(`{"Approve":true}`),
		"said twice":         json.RawMessage(`{"approve":false,"approve":true}`),
		"said twice, folded": json.RawMessage(`{"approve":false,"APPROVE":true}`),
		"two documents":      json.RawMessage(`{"approve":true} {"approve":false}`),
		"text for a bool":    json.RawMessage(`{"approve":"true"}`),
		"not UTF-8":          json.RawMessage("{\"approve\":true,\"reason\":\"\xff\"}"),
		"null":               json.RawMessage(`null`),
		"not JSON":           json.RawMessage(`{`),
		"a nil pointer":      (*vote)(nil),
	} {
		_, err := h.resume(graph.Answer(open[0].ID, wrong))
		bad, ok := errors.AsType[*fermata.AnswerError](err)
		if !ok || bad.ID != open[0].ID || bad.Kind != "test-vote" {
			t.Errorf("%s: got %v", name, err)
		}
		if h.version() != version {
			t.Errorf("%s: the run was changed", name)
		}
	}
	c.want(t, map[string]int{"deleted": 0})
	out, err := h.resume(graph.Answer(open[0].ID, vote{Approve: false}))
	if err != nil || out.A != "false" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

// version returns how often the run was saved.
func (h *harness[S]) version() int64 {
	h.t.Helper()
	saved, err := h.st.Load(h.t.Context(), storeKey(h.run))
	if err != nil {
		h.t.Fatal(err)
	}
	return saved.Version
}

func TestI5_ADenialInAnyFormIsADenial(t *testing.T) {
	for name, denial := range map[string]any{
		"value":   vote{Approve: false},
		"pointer": &vote{Approve: false},
		"map":     map[string]any{"approve": false},
		"JSON":    json.RawMessage(`{"approve": false}`),
	} {
		t.Run(name, func(t *testing.T) {
			var c counter
			h := newHarness(t, oneNode(guarded(&c)))
			_, err := h.start(notes{})
			out, err := h.resume(graph.Answer(h.waits(err)[0].ID, denial))
			if err != nil || out.A != "false" {
				t.Fatalf("got %+v, %v", out, err)
			}
			c.want(t, map[string]int{"deleted": 0})
		})
	}
}

// An approval wrapper in the style of other frameworks: it acts when it is a target without data,
// which is how wrong-typed data looked.
func peersWrapper(c *counter) fn {
	return func(ctx context.Context, s notes) (notes, error) {
		was, _, _ := fermata.GetInterruptState[string](ctx)
		if !was {
			return s, fermata.StatefulInterrupt(ctx, "delete?", "args")
		}
		target, hasData, data := fermata.GetResumeContext[*vote](ctx)
		if !target {
			return s, fermata.StatefulInterrupt(ctx, "delete?", "args")
		}
		if !hasData || data.Approve {
			c.add("deleted")
		}
		s.A = "decided"
		return s, nil
	}
}

// For encoding/json, null is any struct with zero fields: here, one that denies nothing.
func TestI13_JSONNullIsAnAnswerWithoutData(t *testing.T) {
	type denial struct{ Denied bool }
	for _, null := range []any{json.RawMessage("null"), json.RawMessage(" null "), (*denial)(nil), nil} {
		var withData bool
		h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
			target, hasData, _ := fermata.GetResumeContext[denial](ctx)
			if !target {
				return s, fermata.Interrupt(ctx, "delete?")
			}
			withData = hasData
			return s, nil
		}))
		_, err := h.start(notes{})
		if _, err := h.resume(graph.Answer(h.waits(err)[0].ID, null)); err != nil || withData {
			t.Errorf("%#v: with data %v, %v", null, withData, err)
		}
	}
}

// Unexported fields are not in the JSON of an answer, and a denial without them denies nothing.
func TestI13_AnAnswerOfWhichAPartWouldBeLostIsRefused(t *testing.T) {
	type denial struct{ denied bool }
	var c counter
	h := newHarness(t, oneNode(peersWrapper(&c)))
	_, err := h.start(notes{})
	open := h.waits(err)
	_, err = h.resume(graph.Answer(open[0].ID, denial{denied: true}))
	if bad, ok := errors.AsType[*fermata.AnswerError](err); !ok || !strings.Contains(bad.Error(), "denied is not exported") {
		t.Errorf("got %v", err)
	}
	if _, err := h.resume(); h.waits(err)[0].ID != open[0].ID {
		t.Error("the question is another")
	}
}

func TestI13_ADenialOfTheWrongTypeIsNotAYesEvenAtTheLowerLevel(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(peersWrapper(&c)))
	_, err := h.start(notes{})
	open := h.waits(err)
	for _, wrong := range []any{"no", false, map[string]any{"denied": true}, json.RawMessage(`{"Approve":false}`)} {
		_, err := h.resume(graph.Answer(open[0].ID, wrong))
		if _, ok := errors.AsType[*fermata.AnswerError](err); !ok {
			t.Fatalf("%v: got %v", wrong, err)
		}
		if again := h.waits(err); len(again) != 1 || again[0].ID != open[0].ID {
			t.Fatalf("%v: the interrupt must stay open with its id", wrong)
		}
	}
	c.want(t, map[string]int{"deleted": 0})
	if _, err := h.resume(graph.Answer(open[0].ID, vote{Approve: false})); err != nil {
		t.Fatal(err)
	}
	c.want(t, map[string]int{"deleted": 0})
}

func TestResume_UnknownStaleAndAnsweredIDsAreErrorsAndNothingRuns(t *testing.T) {
	var c counter
	g := oneNode(func(ctx context.Context, s notes) (notes, error) {
		c.add("node")
		first, err1 := question.Ask(ctx, "first?")
		if err1 == nil && first == "changed" {
			_, err := question.Ask(ctx, "third?")
			return s, err
		}
		_, err2 := question.Ask(ctx, "second?")
		return s, errors.Join(err1, err2)
	})
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)
	_, err = h.answer(open, "first?", "changed")
	h.waits(err)
	version := h.version()
	for _, test := range []struct {
		id   string
		want error
	}{
		{"int_00000000000000000000000000", graph.ErrUnknownInterrupt},
		{"", graph.ErrUnknownInterrupt},
		{find(t, open, "first?").ID, graph.ErrAlreadyAnswered},
		{find(t, open, "second?").ID, graph.ErrWithdrawn},
	} {
		_, err := h.resume(graph.Answer(test.id, "x"))
		wantErr(t, err, test.want)
	}
	if h.version() != version {
		t.Error("the run was changed")
	}
	c.want(t, map[string]int{"node": 2})
}

func TestResume_OneBadAnswerAmongGoodOnesRunsNothing(t *testing.T) {
	var c counter
	g := graph.New[notes]("two")
	g.Node("a", ask(&c, "a", fieldA))
	g.Node("b", guarded(&c))
	for _, name := range []string{"a", "b"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)
	_, err = h.resume(graph.Answer(find(t, open, "a?").ID, "fine"), graph.Answer(find(t, open, "delete?").ID, "wrong"))
	if _, ok := errors.AsType[*fermata.AnswerError](err); !ok {
		t.Fatalf("got %v", err)
	}
	c.want(t, map[string]int{"a": 1})
}

func TestI1_TwoAnswersToOneQuestionInOneCallAreRefused(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(guarded(&c)))
	_, err := h.start(notes{})
	id := h.waits(err)[0].ID
	no, yes := vote{Approve: false}, vote{Approve: true}
	for name, try := range map[string]func() (notes, error){
		"twice as options": func() (notes, error) { return h.resume(graph.Answer(id, no), graph.Answer(id, yes)) },
		"in the context, as well": func() (notes, error) {
			return h.flow.Resume(fermata.ResumeWithData(t.Context(), id, no), h.run, graph.WithStore(h.st), graph.Answer(id, yes))
		},
	} {
		if _, err := try(); !isAnswerError(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	c.want(t, map[string]int{"deleted": 0})
}

func TestResume_OnlyTargetsRun(t *testing.T) {
	var c counter
	g := graph.New[notes]("three")
	g.Node("a", ask(&c, "a", fieldA))
	g.Node("b", ask(&c, "b", fieldB))
	g.Node("c", ask(&c, "c", fieldC))
	for _, name := range []string{"a", "b", "c"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)
	_, err = h.answer(open, "b?", "2")
	rest := h.waits(err)
	c.want(t, map[string]int{"a": 1, "b": 2, "c": 1})
	for _, ic := range rest {
		if find(t, open, fmt.Sprint(ic.Info)).ID != ic.ID {
			t.Errorf("%v has a new id", ic.Info)
		}
	}
	_, err = h.resume() // without an answer nothing runs, and the interrupts are the same
	if again := h.waits(err); len(again) != 2 {
		t.Fatalf("got %v", infos(again))
	}
	c.want(t, map[string]int{"a": 1, "b": 2, "c": 1})
	out, err := h.resume(graph.Answer(find(t, open, "a?").ID, "1"), graph.Answer(find(t, open, "c?").ID, "3"))
	if err != nil || out.A+out.B+out.C != "123" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"a": 2, "b": 2, "c": 2})
}

func TestI1_OfEightResumesAtOnceOneRuns(t *testing.T) {
	for range 20 {
		var c counter
		h := newHarness(t, oneNode(guarded(&c)))
		_, err := h.start(notes{})
		id := h.waits(err)[0].ID
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() { _, errs[i] = h.resume(graph.Answer(id, vote{Approve: true})) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, graph.ErrRunning) && !errors.Is(err, graph.ErrAlreadyAnswered) && !errors.Is(err, graph.ErrFinished):
				t.Errorf("got %v", err)
			}
		}
		if won != 1 {
			t.Fatalf("%d of 8 resumes won", won)
		}
		c.want(t, map[string]int{"deleted": 1})
	}
}

func TestResume_InAnotherProcessThroughSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	var c counter
	build := func() *harness[notes] {
		st, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		g := graph.New[notes]("elsewhere")
		g.Node("before", write(&c, "before", fieldB))
		g.Node("asks", ask(&c, "asks", fieldA))
		g.Edge(graph.Start, "before")
		g.Edge("before", "asks")
		g.Edge("asks", graph.End)
		h := newHarness(t, g)
		h.st = st
		return h
	}
	_, err := build().start(notes{N: 7})
	first := build()
	open := first.waits(err)
	snapshot, err := build().flow.Inspect(t.Context(), first.run, graph.WithStore(first.st))
	if err != nil || snapshot.Status != graph.StatusWaiting || snapshot.Interrupts[0].ID != open[0].ID || snapshot.State.B != "before" {
		t.Fatalf("got %+v, %v", snapshot, err)
	}
	out, err := build().resume(graph.Answer(open[0].ID, "there"))
	if err != nil || out.A != "there" || out.N != 7 {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"before": 1, "asks": 2})
}

func TestRun_AnIDThatExistsIsRefused(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(ask(&c, "node", fieldA)))
	for _, options := range [][]graph.Option{nil, {graph.SaveOnWait()}} {
		h.run += "x"
		_, err := h.start(notes{}, options...)
		open := h.waits(err)
		_, err = h.start(notes{B: "new input"}, options...)
		wantErr(t, err, graph.ErrRunExists)
		if _, err := h.resume(graph.Answer(open[0].ID, "yes")); err != nil {
			t.Fatal(err)
		}
		_, err = h.start(notes{}, options...)
		wantErr(t, err, graph.ErrRunExists)
	}
}

func TestResume_UnresumableRunReturnsError(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(write(&c, "node", fieldA)))
	_, err := h.resume()
	wantErr(t, err, graph.ErrUnknownRun)
	if _, err := h.start(notes{}); err != nil {
		t.Fatal(err)
	}
	_, err = h.resume()
	wantErr(t, err, graph.ErrFinished)
	_, err = h.flow.Resume(t.Context(), h.run)
	wantErr(t, err, graph.ErrNoStore)
	_, err = h.flow.Resume(t.Context(), h.run, graph.WithStore(h.st), graph.WithAccount("another"))
	wantErr(t, err, graph.ErrUnknownRun)
}

func TestI9_WithoutAStoreNoInterruptIsReported(t *testing.T) {
	var c counter
	flow := compile(t, oneNode(ask(&c, "node", fieldA)))
	_, err := flow.Run(t.Context(), notes{})
	wantErr(t, err, graph.ErrNoStore)
	out, err := compile(t, oneNode(write(&c, "node", fieldA))).Run(t.Context(), notes{})
	if err != nil || out.A != "node" {
		t.Fatalf("a graph that does not wait needs no store: %v", err)
	}
}

func TestWithStateModifier_ChangesTheStateOfTheWaitingNode(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		answer, err := question.Ask(ctx, "go?")
		s.A = answer + s.B
		return s, err
	}))
	_, err := h.start(notes{B: "old"})
	open := h.waits(err)
	out, err := h.resume(graph.Answer(open[0].ID, "on "), graph.WithStateModifier(func(at fermata.Address, state any) error {
		if at.String() != "runnable:one" {
			t.Errorf("got address %s", at)
		}
		state.(*notes).B = "new"
		return nil
	}))
	if err != nil || out.A != "on new" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

// Regression: a state modifier changed the question of a waiting node while its answer arrived. The
// answer was accepted, dropped, and used again when the state changed back, instead of a newer one.
func TestI2_AnAnswerToAQuestionThatChangedIsRefusedAndNeverUsedLater(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		answer, err := question.Ask(ctx, "delete "+s.B+"?")
		s.A = answer
		return s, err
	}))
	become := func(table string) graph.Option {
		return graph.WithStateModifier(func(_ fermata.Address, state any) error { state.(*notes).B = table; return nil })
	}
	_, err := h.start(notes{B: "logs"})
	logs := h.waits(err)[0]
	_, err = h.resume(graph.Answer(logs.ID, "yes"), become("users"))
	users := h.waits(err)[0]
	if refused, ok := errors.AsType[*fermata.AnswerError](err); !ok || refused.ID != logs.ID || !errors.Is(err, graph.ErrWithdrawn) || users.Info != "delete users?" {
		t.Fatalf("got %v", err)
	}
	_, err = h.resume(graph.Answer(users.ID, "no"), become("logs"))
	again := h.waits(err)[0]
	if again.Info != "delete logs?" {
		t.Fatalf("got %v", again.Info)
	}
	out, err := h.resume(graph.Answer(again.ID, "no"))
	if err != nil || out.A != "no" {
		t.Fatalf("got %q, %v", out.A, err)
	}
}

func TestResume_AnswersInsideFinishedWorkStayUsed(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		both := func(name string) func(context.Context) (string, error) {
			return func(ctx context.Context) (string, error) {
				first, err := question.Ask(ctx, name+" first?")
				if err != nil {
					return "", err
				}
				second, err := question.Ask(ctx, name+" second?")
				if err != nil {
					return "", err
				}
				third, err := question.Ask(ctx, name+" third?")
				return first + second + third, err
			}
		}
		a, errA := fermata.Do(ctx, "a", both("a"))
		b, errB := fermata.Do(ctx, "b", both("b"))
		s.A, s.B = a, b
		return s, errors.Join(errA, errB)
	}))
	_, err := h.start(notes{})
	_, err = h.answer(h.waits(err), "a first?", "1")
	bFirst := find(t, h.waits(err), "b first?").ID
	_, err = h.answer(h.waits(err), "b first?", "3") // a waits now, with an answer inside
	_, err = h.answer(h.waits(err), "b second?", "4")
	_, err = h.answer(h.waits(err), "b third?", "5") // now b is done
	_, err = h.answer(h.waits(err), "a second?", "2")
	open := h.waits(err)
	_, err = h.resume(graph.Answer(bFirst, "again"))
	wantErr(t, err, graph.ErrAlreadyAnswered) // b is done and was not entered; nothing is withdrawn
	out, err := h.answer(open, "a third?", "6")
	if err != nil || out.A != "126" || out.B != "345" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

// Regression: results are stored by item number. With a list that was shortened, an item bypassed
// its interrupt with the result of another item.
func TestI5_AModifierCannotChangeTheListThatAFanOutIsAtWorkOn(t *testing.T) {
	type orders struct{ Items, Results []string }
	g := graph.New[orders]("orders")
	graph.Each(g, "each", func(s orders) []string { return s.Items }, func(ctx context.Context, item string) (string, error) {
		if item == "free" {
			return "nothing to approve", nil
		}
		return question.Ask(ctx, item)
	}, func(s orders, results []string) orders { s.Results = results; return s })
	g.Edge(graph.Start, "each")
	g.Edge("each", graph.End)
	h := newHarness(t, g)
	_, err := h.start(orders{Items: []string{"free", "dear"}})
	id := h.waits(err)[0].ID
	modify := func(change func(*orders)) graph.Option {
		return graph.WithStateModifier(func(_ fermata.Address, state any) error { change(state.(*orders)); return nil })
	}

	_, err = h.resume(modify(func(s *orders) { s.Items = s.Items[1:] }))

	if err == nil || !strings.Contains(err.Error(), `node "each" is processing a list`) {
		t.Errorf("got %v", err)
	}
	_, err = h.resume(modify(func(s *orders) { s.Results = []string{"none of its business"} }))
	if open := h.waits(err); open[0].ID != id {
		t.Errorf("waits for %v, want the same interrupt", infos(open))
	}
	out, err := h.resume(graph.Answer(id, "yes"))
	if want := []string{"nothing to approve", "yes"}; err != nil || !slices.Equal(out.Results, want) || len(out.Items) != 2 {
		t.Errorf("got %+v, %v", out, err)
	}
}
