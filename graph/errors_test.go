package graph_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// flaky is a graph whose second node fails once with the result of fail.
func flaky(c *counter, fail func(ctx context.Context, s *notes) error) *graph.Graph[notes] {
	g := graph.New[notes]("flaky")
	g.Node("first", write(c, "first", fieldA))
	g.Node("second", func(ctx context.Context, s notes) (notes, error) {
		c.add("second")
		if c.of("second") == 1 {
			if err := fail(ctx, &s); err != nil {
				return s, err
			}
			return s, nil
		}
		s.B = "second"
		return s, nil
	}, graph.Timeout(50*time.Millisecond))
	g.Edge(graph.Start, "first")
	g.Edge("first", "second")
	g.Edge("second", graph.End)
	return g
}

func TestI17_AFailedRunKeepsItsStateAndCanGoOn(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name  string
		fail  func(ctx context.Context, s *notes) error
		check func(error) bool
	}{
		{"error", func(context.Context, *notes) error { return boom }, func(err error) bool { return errors.Is(err, boom) }},
		{"panic", func(context.Context, *notes) error { panic("at the disco") }, func(err error) bool {
			p, ok := errors.AsType[*graph.PanicError](err)
			return ok && p.Value == "at the disco" && strings.Contains(string(p.Stack), "errors_test.go")
		}},
		{"panic with an error", func(context.Context, *notes) error { panic(boom) }, func(err error) bool { return errors.Is(err, boom) }},
		{"timeout", func(ctx context.Context, _ *notes) error { <-ctx.Done(); return ctx.Err() }, func(err error) bool {
			return errors.Is(err, context.DeadlineExceeded)
		}},
		{"state not in UTF-8", func(_ context.Context, s *notes) error { s.B = "\xff"; return nil }, func(err error) bool {
			e, ok := errors.AsType[*fermata.EncodeError](err)
			return ok && strings.Contains(e.Error(), "state field B")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c counter
			h := newHarness(t, flaky(&c, test.fail))
			_, err := h.start(notes{})
			failed, ok := errors.AsType[*graph.NodeError](err)
			if !ok || failed.Address.String() != "runnable:flaky;node:second" || !test.check(err) {
				t.Fatalf("got %v", err)
			}
			snapshot, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
			if err != nil || snapshot.Status != graph.StatusFailed || snapshot.State.A != "first" || snapshot.State.B != "" || snapshot.Error == "" {
				t.Fatalf("got %+v, %v", snapshot, err)
			}
			out, err := h.resume()
			if err != nil || out.A != "first" || out.B != "second" {
				t.Fatalf("got %+v, %v", out, err)
			}
			c.want(t, map[string]int{"first": 1, "second": 2})
		})
	}
}

func TestState_ThatCannotBeEncodedIsNamed(t *testing.T) {
	type state struct {
		Score float64
		Any   any
	}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	for name, bad := range map[string]state{
		"NaN":      {Score: math.NaN()},
		"function": {Any: func() {}},
		"cycle":    {Any: cyclic},
	} {
		t.Run(name, func(t *testing.T) {
			for _, options := range [][]graph.Option{nil, {graph.SaveOnWait()}} {
				g := graph.New[state]("bad")
				g.Node("spoil", func(context.Context, state) (state, error) { return bad, nil })
				g.Node("ask", func(ctx context.Context, s state) (state, error) { return s, fermata.Interrupt(ctx, "?") })
				g.Edge(graph.Start, "spoil")
				g.Edge("spoil", "ask")
				g.Edge("ask", graph.End)
				h := newHarness(t, g)
				_, err := h.start(state{}, options...)
				if _, ok := errors.AsType[*fermata.EncodeError](err); !ok {
					t.Fatalf("got %v", err)
				}
				if _, waits := fermata.ExtractInterruptInfo(err); waits {
					t.Fatal("no interrupt may be reported for an unsavable state")
				}
			}
		})
	}
}

func TestI9_FailedSaveReportsNoInterruptAndStopsTheRun(t *testing.T) {
	down := errors.New("disk full")
	for n := 1; n <= 3; n++ {
		var c counter
		g := graph.New[notes]("saving")
		g.Node("first", write(&c, "first", fieldA))
		g.Node("asks", ask(&c, "asks", fieldB))
		g.Edge(graph.Start, "first")
		g.Edge("first", "asks")
		g.Edge("asks", graph.End)
		h := newHarness(t, g)
		faulty := storetest.NewFaulty(h.st)
		h.st = faulty
		faulty.FailSave(n, storetest.BeforeWrite, down)
		_, err := h.start(notes{})
		wantErr(t, err, down)
		if _, ok := errors.AsType[*graph.SaveError](err); !ok {
			t.Fatalf("got %v", err)
		}
		if _, waits := fermata.ExtractInterruptInfo(err); waits {
			t.Fatal("an interrupt was reported for a run that is not saved")
		}
		c.want(t, map[string]int{"first": min(n-1, 1), "asks": max(0, min(n-2, 1))})
		if n == 1 {
			_, err := h.resume()
			wantErr(t, err, graph.ErrUnknownRun)
			continue
		}
		_, err = h.resume()
		wantErr(t, err, graph.ErrRunning)
		_, err = h.resume(graph.TakeOver())
		if out, err := h.answer(h.waits(err), "asks?", "yes"); err != nil || out.A != "first" || out.B != "yes" {
			t.Fatalf("got %+v, %v", out, err)
		}
	}
}

func TestStore_ThatCannotBeReadRunsNothing(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(ask(&c, "node", fieldA)))
	faulty := storetest.NewFaulty(h.st)
	h.st = faulty
	_, err := h.start(notes{})
	open := h.waits(err)
	down := errors.New("no route to host")
	faulty.FailLoad(down)
	_, err = h.answer(open, "node?", "yes")
	wantErr(t, err, down)
	c.want(t, map[string]int{"node": 1})
	faulty.FailLoad(nil)
	if _, err := h.answer(open, "node?", "yes"); err != nil {
		t.Fatal(err)
	}
}

func TestI16_ATakenOverRunCanDoNoMoreHarm(t *testing.T) {
	var c counter
	var h *harness[notes]
	steal := true
	g := graph.New[notes]("stolen")
	g.Node("slow", func(_ context.Context, s notes) (notes, error) {
		c.add("slow")
		if steal { // while this node runs, another process takes the run over
			steal = false
			if out, err := h.resume(graph.TakeOver()); err != nil || out.B != "after" {
				t.Errorf("got %+v, %v", out, err)
			}
		}
		s.A = "slow"
		return s, nil
	})
	g.Node("after", write(&c, "after", fieldB))
	g.Edge(graph.Start, "slow")
	g.Edge("slow", "after")
	g.Edge("after", graph.End)
	h = newHarness(t, g)
	_, err := h.start(notes{})
	wantErr(t, err, graph.ErrTakenOver)
	c.want(t, map[string]int{"slow": 2, "after": 1})
}

func TestLoad_CorruptForeignAndNewerCheckpointsAreRefused(t *testing.T) {
	var c counter
	fresh := func() *harness[notes] {
		h := newHarness(t, oneNode(ask(&c, "node", fieldA)))
		_, err := h.start(notes{A: strings.Repeat("large enough for a separate part ", 10)})
		h.waits(err)
		return h
	}
	replace := func(h *harness[notes], part, data string) {
		parts := h.parts()
		if _, ok := parts[part]; !ok {
			t.Fatalf("no part %q in %v", part, parts)
		}
		if parts[part] = []byte(data); data == "" {
			delete(parts, part)
		}
		h.st = memory.New()
		if _, err := h.st.Save(t.Context(), storeKey(h.run), 0, put(parts)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, part, data string
		want             error
	}{
		{"no head", "run", "", graph.ErrCorrupt},
		{"head is not JSON", "run", "garbage", graph.ErrCorrupt},
		{"head of another run", "run", `{"format":2,"graph":"one","run":"other","status":"waiting"}`, graph.ErrCorrupt},
		{"newer format", "run", `{"format":3,"graph":"one","run":"run","status":"waiting"}`, graph.ErrFormat},
		{"older format", "run", `{"format":1,"graph":"one","run":"run","status":"waiting"}`, graph.ErrFormat},
		{"a part exists twice", "run", `{"format":2,"graph":"one","run":"run","status":"waiting","parts":{"frame ":{"clock":1}}}`, graph.ErrCorrupt},
		{"a field exists twice", "run", `{"format":2,"graph":"one","run":"run","status":"waiting","parts":{"field :A#1 ":"x"}}`, graph.ErrCorrupt},
		{"other graph", "run", `{"format":2,"graph":"two","run":"run","status":"waiting"}`, graph.ErrWrongGraph},
		{"no frame", "frame ", "", graph.ErrCorrupt},
		{"frame is not JSON", "frame ", "{", graph.ErrCorrupt},
		{"field is gone", "field :A#1 ", "", graph.ErrCorrupt},
		{"field has another type", "field :A#1 ", "{}", graph.ErrCorrupt},
		{"task is not JSON", "task node:node#1", "[]", graph.ErrCorrupt},
		{"task of unknown status", "task node:node#1", `{"node":"node","visit":1,"seq":1,"at":1,"status":"flying"}`, graph.ErrCorrupt},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := fresh()
			replace(h, test.part, test.data)
			before := h.version()
			_, err := h.resume()
			wantErr(t, err, test.want)
			if test.want != graph.ErrCorrupt && h.version() != before {
				t.Error("the checkpoint was changed")
			}
		})
	}
}

func TestChanged_ARenamedNodeIsAnErrorUnlessTheGraphSaysSo(t *testing.T) {
	var c counter
	build := func(name string) *graph.Graph[notes] {
		g := graph.New[notes]("evolving")
		g.Node("first", write(&c, "first", fieldB))
		g.Node(name, ask(&c, "asks", fieldA))
		g.Edge(graph.Start, "first")
		g.Edge("first", name)
		g.Edge(name, graph.End)
		return g
	}
	h := newHarness(t, build("old"))
	_, err := h.start(notes{})
	open := h.waits(err)
	h.flow = compile(t, build("new"))
	_, err = h.answer(open, "asks?", "yes")
	changed, ok := errors.AsType[*graph.ProgramChangedError](err)
	if !ok || len(changed.Missing) != 1 || !strings.Contains(changed.Missing[0], "node:old") {
		t.Fatalf("got %v", err)
	}
	if err := h.flow.Check(t.Context(), h.run, graph.WithStore(h.st)); err == nil {
		t.Fatal("Check must also report it")
	}
	c.want(t, map[string]int{"asks": 1})
	g := build("new")
	g.Rename("old", "new")
	h.flow = compile(t, g)
	if err := h.flow.Check(t.Context(), h.run, graph.WithStore(h.st)); err != nil {
		t.Fatal(err)
	}
	out, err := h.answer(open, "asks?", "yes")
	if err != nil || out.A != "yes" || out.B != "first" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestChanged_AParkedNodeThatStillExistsGoesOn(t *testing.T) {
	var c counter
	build := func(more bool) *graph.Graph[notes] {
		g := graph.New[notes]("growing")
		g.Node("asks", ask(&c, "asks", fieldA))
		g.Edge(graph.Start, "asks")
		if more {
			g.Node("more", write(&c, "more", fieldB))
			g.Edge("asks", "more")
			g.Edge("more", graph.End)
		} else {
			g.Edge("asks", graph.End)
		}
		return g
	}
	h := newHarness(t, build(false))
	_, err := h.start(notes{})
	open := h.waits(err)
	h.flow = compile(t, build(true))
	out, err := h.answer(open, "asks?", "yes")
	if err != nil || out.A != "yes" || out.B != "more" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

type oldState struct {
	Name string
	Kept string
	Age  int
}

type fewerFields struct{ Age int }

var forLater = strings.Repeat("for later ", 10)

type newState struct {
	FullName string
	Age      int
	Verdict  string
}

func TestChanged_StateMigratesAndUnknownFieldsAreKept(t *testing.T) {
	st := memory.New()
	old := graph.New[oldState]("people")
	old.Node("asks", func(ctx context.Context, s oldState) (oldState, error) {
		_, err := question.Ask(ctx, "ok?")
		return s, err
	})
	old.Edge(graph.Start, "asks")
	old.Edge("asks", graph.End)
	_, err := compile(t, old).Run(t.Context(), oldState{"Ann", forLater, 42}, graph.WithStore(st), graph.WithRun("r"))
	info, ok := fermata.ExtractInterruptInfo(err)
	if !ok {
		t.Fatal(err)
	}
	build := func(migrate bool) *graph.Flow[newState] {
		g := graph.New[newState]("people")
		g.Node("asks", func(ctx context.Context, s newState) (newState, error) {
			verdict, err := question.Ask(ctx, "ok?")
			s.Verdict = s.FullName + " " + verdict
			return s, err
		})
		g.Edge(graph.Start, "asks")
		g.Edge("asks", graph.End)
		if migrate {
			g.MigrateState(func(fields graph.Fields) error {
				fields["FullName"] = fields["Name"]
				delete(fields, "Name")
				return nil
			})
		}
		return compile(t, g)
	}
	copied := memory.New()
	saved, _ := st.Load(t.Context(), storeKey("r"))
	if _, err := copied.Save(t.Context(), storeKey("r"), 0, put(saved.Parts)); err != nil {
		t.Fatal(err)
	}
	_, err = build(false).Resume(t.Context(), "r", graph.WithStore(copied), graph.Answer(info.Interrupts[0].ID, "yes"))
	if changed, ok := errors.AsType[*graph.ProgramChangedError](err); !ok || !strings.Contains(changed.Error(), "Name") {
		t.Fatalf("a field that seems to be renamed must be reported: %v", err)
	}
	if err := build(false).Check(t.Context(), "r", graph.WithStore(copied)); err == nil {
		t.Fatal("Check must also report it")
	}
	fewer := graph.New[fewerFields]("people")
	fewer.Node("asks", func(ctx context.Context, s fewerFields) (fewerFields, error) {
		_, err := question.Ask(ctx, "ok?")
		return s, err
	})
	fewer.Edge(graph.Start, "asks")
	fewer.Edge("asks", graph.End)
	if _, err := compile(t, fewer).Resume(t.Context(), "r", graph.WithStore(copied), graph.Answer(info.Interrupts[0].ID, "yes")); err != nil {
		t.Fatal(err)
	}
	saved, _ = copied.Load(t.Context(), storeKey("r"))
	kept := unpack(t, saved.Parts)
	if string(kept["field :Kept#1 "]) != `"`+forLater+`"` || !strings.Contains(string(kept["frame "]), `"Name":{"values":{"1":"Ann"}}`) {
		t.Error("an unknown field was not kept")
	}
	out, err := build(true).Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(info.Interrupts[0].ID, "yes"))
	if err != nil || out.Verdict != "Ann yes" || out.Age != 42 {
		t.Fatalf("got %+v, %v", out, err)
	}
}
