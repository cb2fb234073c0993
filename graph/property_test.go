package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// The property: for any graph, any waiting points, any order and portions of answers, and any
// crashes, the run ends as if every answer had been available at once, and no work is done more
// often than it should be.

// wide is a state with a field for every node.
type wide struct {
	F0, F1, F2, F3, F4, F5, F6, F7 string
	V0, V1, V2, V3, V4, V5, V6, V7 int // activations of each node in this iteration
	Round                          int
}

func (w *wide) visits(i int) *int {
	return []*int{&w.V0, &w.V1, &w.V2, &w.V3, &w.V4, &w.V5, &w.V6, &w.V7}[i]
}

func (w *wide) field(i int) *string {
	return []*string{&w.F0, &w.F1, &w.F2, &w.F3, &w.F4, &w.F5, &w.F6, &w.F7}[i]
}

type nodeKind string

const (
	plainNode  nodeKind = "plain"
	askNode    nodeKind = "ask"
	askBoth    nodeKind = "ask both"
	askTwice   nodeKind = "ask twice"
	doNode     nodeKind = "do"
	eachNode   nodeKind = "each"
	effectNode nodeKind = "effect"
	subNode    nodeKind = "sub"
	runNode    nodeKind = "run" // a graph that the node's own code runs
	eachFlow   nodeKind = "each flow"
	lowLevel   nodeKind = "interrupts" // with the lower-level calls
	askAndLow  nodeKind = "ask and interrupt"
)

type graphSpec struct {
	nodes  []nodeSpec
	rounds int
}

type nodeSpec struct {
	kind   nodeKind
	to     []int
	routes bool // picks one of to instead of following all
	back   int  // a predecessor that a route may go back to; -1 for none
	sub    *graphSpec
	// held is whether the graph holds before or after the node, fails whether the first entry of
	// every activation fails.
	heldBefore, heldAfter, fails bool
}

func drawGraph(t *rapid.T, depth int, label string) *graphSpec {
	n := rapid.IntRange(2, 7-depth*2).Draw(t, label+" size")
	spec := &graphSpec{nodes: make([]nodeSpec, n), rounds: rapid.IntRange(1, 2).Draw(t, label+" rounds")}
	kinds := []nodeKind{plainNode, askNode, askBoth, askTwice, doNode, eachNode, effectNode, lowLevel, askAndLow}
	if depth < 2 {
		kinds = append(kinds, subNode, subNode, runNode, eachFlow)
	}
	for i := range spec.nodes {
		node := &spec.nodes[i]
		name := fmt.Sprint(label, ".", i)
		node.kind = rapid.SampledFrom(kinds).Draw(t, name)
		if node.kind == subNode || node.kind == runNode || node.kind == eachFlow {
			node.sub = drawGraph(t, depth+1, name)
		}
		node.heldBefore = rapid.IntRange(0, 7).Draw(t, name+" held before") == 0
		node.heldAfter = rapid.IntRange(0, 7).Draw(t, name+" held after") == 0
		node.fails = rapid.IntRange(0, 5).Draw(t, name+" fails") == 0
		if i < n-1 {
			node.to = rapid.SliceOfNDistinct(rapid.IntRange(i+1, n-1), 1, min(3, n-1-i), rapid.ID[int]).Draw(t, name+" to")
			slices.Sort(node.to)
			node.routes = rapid.Bool().Draw(t, name+" routes")
		}
		node.back = -1
	}
	for j := 1; j < n; j++ { // everything must be reachable
		if !slices.ContainsFunc(spec.nodes[:j], func(s nodeSpec) bool { return slices.Contains(s.to, j) }) {
			spec.nodes[j-1].to = append(spec.nodes[j-1].to, j)
		}
	}
	for i := range n - 1 { // loops, each with one entry
		if spec.nodes[i].routes && i > 0 && rapid.Bool().Draw(t, fmt.Sprint(label, ".", i, " loops")) {
			spec.nodes[i].back = spec.header(i)
		}
	}
	return spec
}

// header is the nearest node that every path to i contains, except for the first.
func (g *graphSpec) header(i int) int {
	for h := i - 1; h >= 0; h-- {
		if !g.avoids(0, h, i) {
			return h
		}
	}
	return 0
}

// avoids reports whether a path leads from one node to another without a third.
func (g *graphSpec) avoids(from, without, to int) bool {
	if from == without {
		return false
	}
	return from == to || slices.ContainsFunc(g.nodes[from].to, func(next int) bool { return g.avoids(next, without, to) })
}

// world is the environment of a random graph's nodes.
type world struct {
	inline    bool // all answers are available at once
	done      counter
	mu        sync.Mutex
	performed map[string]int // effects by key
	tries     counter        // calls of the functions of effects, by key
	failed    counter
	entries   atomic.Int64 // until stop is called
	stop      graph.StopFunc
}

var (
	errBroken   = errors.New("broken, the first time")
	errTimeout  = errors.New("no response, although it was done")
	errModifier = errors.New("the modifier fails")
)

// enter is called at the beginning of a node.
func (w *world) enter(fails bool, visit string) error {
	if w.inline {
		return nil
	}
	if w.entries.Add(-1) == 0 {
		w.stop(0)
	}
	if fails {
		w.failed.add(visit)
		if w.failed.of(visit) == 1 {
			return errBroken
		}
	}
	return nil
}

// isBroken reports whether err is the failure of a node or an effect. After a crash, the failure of
// an effect is read from the journal.
func isBroken(err error) bool {
	recorded, ok := errors.AsType[*fermata.EffectError](err)
	return errors.Is(err, errBroken) || ok && recorded.Message == errBroken.Error()
}

func answerTo(question string) string { return "answer to " + question }

func (w *world) ask(ctx context.Context, asked string) (string, error) {
	if w.inline {
		return answerTo(asked), nil
	}
	return question.Ask(ctx, asked)
}

func (w *world) build(t testing.TB, spec *graphSpec, name string) *graph.Flow[wide] {
	g := graph.New[wide](name)
	for i, n := range spec.nodes {
		id := fmt.Sprint("n", i)
		ancestors := spec.ancestors(i)
		seen := func(s wide) string {
			text := fmt.Sprint(name, id, "r", s.Round, "v", *s.visits(i))
			for _, a := range ancestors {
				text += *s.field(a)
			}
			return short(text)
		}
		switch n.kind {
		case runNode:
			inner := w.build(t, n.sub, name+id)
			g.Node(id, func(ctx context.Context, s wide) (wide, error) {
				r, errInner := inner.Run(ctx, wide{F7: seen(s)})
				answer, err := w.ask(ctx, seen(s)+"beside")
				if err := errors.Join(errInner, err); err != nil {
					return s, err
				}
				*s.field(i) = short(seen(s) + *r.field(len(n.sub.nodes) - 1) + answer)
				return spec.counted(s, i), nil
			})
		case eachFlow:
			graph.EachFlow(g, id, func(s wide) []wide { return []wide{{F7: seen(s) + "x"}, {F7: seen(s) + "y"}} }, w.build(t, n.sub, name+id), func(s wide, rs []wide) wide {
				*s.field(i) = short(seen(s) + *rs[0].field(len(n.sub.nodes) - 1) + *rs[1].field(len(n.sub.nodes) - 1))
				return spec.counted(s, i)
			})
		case subNode:
			graph.Sub(g, id, w.build(t, n.sub, name+id), func(s wide) wide { return wide{F7: seen(s)} }, func(s, r wide) wide {
				*s.field(i) = short(seen(s) + *r.field(len(n.sub.nodes) - 1))
				return spec.counted(s, i)
			})
		default:
			work := w.work(n.kind, name+id)
			g.Node(id, func(ctx context.Context, s wide) (wide, error) {
				if err := w.enter(n.fails, name+id+seen(s)); err != nil {
					return s, err
				}
				result, err := work(ctx, seen(s))
				if err != nil {
					return s, err
				}
				w.done.add(fmt.Sprint(name, id, "#", s.Round, ".", *s.visits(i), s.F7))
				*s.field(i) = short(seen(s) + result)
				return spec.counted(s, i), nil
			})
		}
		if n.heldBefore && !w.inline {
			g.HoldBefore(id)
		}
		if n.heldAfter && !w.inline {
			g.HoldAfter(id)
		}
	}
	spec.edges(g)
	return compile(t, g)
}

// edges connects the nodes, and the sink with the first node until all iterations are done.
func (spec *graphSpec) edges(g *graph.Graph[wide]) {
	last := len(spec.nodes) - 1
	for i, n := range spec.nodes {
		var targets []string
		for _, to := range n.to {
			targets = append(targets, fmt.Sprint("n", to))
		}
		if !n.routes || i == last {
			for _, to := range targets {
				g.Edge(fmt.Sprint("n", i), to)
			}
			continue
		}
		all := targets
		if n.back >= 0 {
			all = append(slices.Clone(targets), fmt.Sprint("n", n.back))
		}
		g.Branch(fmt.Sprint("n", i), func(s wide) string {
			if n.back >= 0 && *s.visits(i) < 3 && hash(*s.field(i))%2 == 0 {
				return all[len(targets)]
			}
			return targets[hash(*s.field(i))%len(targets)]
		}, all...)
	}
	g.Edge(graph.Start, "n0")
	g.Branch(fmt.Sprint("n", last), func(s wide) string {
		if s.Round < spec.rounds {
			return "n0"
		}
		return graph.End
	}, "n0", graph.End)
}

// counted counts the activation and, at the sink, the iteration.
func (g *graphSpec) counted(s wide, i int) wide {
	*s.visits(i)++
	if i == len(g.nodes)-1 {
		s.Round++
	}
	return s
}

func (g *graphSpec) ancestors(i int) []int {
	var found []int
	for j := range i {
		if g.leads(j, i) {
			found = append(found, j)
		}
	}
	return found
}

func (g *graphSpec) leads(from, to int) bool {
	return slices.ContainsFunc(g.nodes[from].to, func(next int) bool { return next == to || next < to && g.leads(next, to) })
}

func short(text string) string { return fmt.Sprintf("%08x", hash(text)) }

func hash(text string) int {
	h := fnv.New32a()
	h.Write([]byte(text))
	return int(h.Sum32())
}

// work is the function of a node of this kind.
func (w *world) work(kind nodeKind, name string) func(ctx context.Context, seen string) (string, error) {
	switch kind {
	case askNode:
		return func(ctx context.Context, seen string) (string, error) { return w.ask(ctx, seen) }
	case askBoth:
		return func(ctx context.Context, seen string) (string, error) {
			a, errA := w.ask(ctx, seen+"a")
			b, errB := w.ask(ctx, seen+"b")
			return a + b, errors.Join(errA, errB)
		}
	case askTwice:
		return func(ctx context.Context, seen string) (string, error) {
			a, err := w.ask(ctx, seen)
			if err != nil {
				return "", err
			}
			return w.ask(ctx, seen+a)
		}
	case doNode:
		return func(ctx context.Context, seen string) (string, error) {
			result, err := fermata.Do(ctx, "work", func(ctx context.Context) (string, error) {
				w.done.add("do " + name + seen)
				return short(seen), nil
			})
			if err != nil {
				return "", err
			}
			asked, err := fermata.Do(ctx, "asking", func(ctx context.Context) (string, error) { return w.ask(ctx, result) })
			return result + asked, err
		}
	case eachNode:
		return w.each
	case lowLevel:
		return w.interrupts
	case askAndLow:
		return w.asksAndInterrupts
	case effectNode:
		return w.effect
	}
	return func(_ context.Context, seen string) (string, error) { return seen, nil }
}

// each is a fan-out within a node.
func (w *world) each(ctx context.Context, seen string) (string, error) {
	results, errs := make([]string, 3), make([]error, 3)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			results[i], errs[i] = fermata.DoAt(ctx, fermata.Segment{Type: "item", ID: fmt.Sprint(i)}, func(ctx context.Context) (string, error) {
				if i == 1 {
					return "quick", nil
				}
				return w.ask(ctx, fmt.Sprint(seen, i))
			})
		})
	}
	wg.Wait()
	return fmt.Sprint(results), errors.Join(errs...)
}

// interrupts is two parts of a node that use the lower-level calls, combined.
func (w *world) interrupts(ctx context.Context, seen string) (string, error) {
	var results [2]string
	var errs [2]error
	for i := range results {
		results[i], errs[i] = w.interrupt(fermata.AppendAddressSegment(ctx, "part", fmt.Sprint(i)), fmt.Sprint(seen, i))
	}
	if errors.Join(errs[:]...) != nil {
		return "", fermata.CompositeInterrupt(ctx, nil, results, errs[:]...)
	}
	return fmt.Sprint(results), nil
}

func (w *world) interrupt(ctx context.Context, asked string) (string, error) {
	if w.inline {
		return answerTo(asked), nil
	}
	was, has, before := fermata.GetInterruptState[string](ctx)
	target, hasData, data := fermata.GetResumeContext[string](ctx)
	switch {
	case was && (!has || before != asked):
		return "", fmt.Errorf("the state of %s is %q", asked, before)
	case was && target && hasData:
		return data, nil
	case target && hasData:
		return "", fmt.Errorf("%s has an answer but did not ask", asked)
	}
	return "", fermata.StatefulInterrupt(ctx, asked, asked)
}

// asksAndInterrupts asks in both ways, one after the other.
func (w *world) asksAndInterrupts(ctx context.Context, seen string) (string, error) {
	answer, err := w.ask(ctx, seen)
	if err != nil || w.inline {
		return answer + answer, err
	}
	if may, _, second := fermata.GetResumeContext[string](ctx); may {
		return answer + second, nil
	}
	return "", fermata.Interrupt(ctx, seen)
}

func (w *world) effect(ctx context.Context, seen string) (string, error) {
	ok, err := fermata.Approve(ctx, fermata.Action[string]{Name: "pay", Args: seen})
	if err != nil {
		return "", err
	}
	return fermata.Effect(ctx, ok, func(_ context.Context, args, key string) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tries.add(key)
		first := !w.inline && w.tries.of(key) == 1
		if first && hash(args)%4 == 0 {
			return "", fermata.NotDone(errBroken)
		}
		w.performed[key]++
		if first && hash(args)%4 == 1 {
			return "", errTimeout
		}
		return "paid " + args, nil
	})
}

// decide returns the simulated answers. They are truthful about effects.
func (w *world) decide(ic *fermata.InterruptCtx) any {
	switch ic.Kind {
	case fermata.Approval.Name():
		return fermata.Decision{Verb: fermata.VerbApprove}
	case graph.KindHold:
		return nil
	case "":
		asked, _ := fermata.InfoAs[string](ic)
		return answerTo(asked)
	case fermata.EffectInDoubt.Name():
		doubt, _ := fermata.EffectInDoubt.Question(ic)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.performed[doubt.Key] == 0 {
			return fermata.EffectResolution{Happened: false}
		}
		var args string
		_ = json.Unmarshal(doubt.Args, &args)
		receipt, _ := json.Marshal("paid " + args)
		return fermata.EffectResolution{Happened: true, Receipt: receipt}
	}
	asked, _ := question.Question(ic)
	return answerTo(asked)
}

func allowAll(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
	return fermata.Ruling{Verdict: fermata.Allow}, nil
}

// truth runs the graph with every answer available.
func truth(t testing.TB, spec *graphSpec) (wide, *world) {
	w := &world{inline: true, performed: make(map[string]int)}
	out, err := w.build(t, spec, "g").Run(t.Context(), wide{}, graph.WithPolicy(fermata.PolicyFunc(allowAll)), graph.WithRun("r"))
	if err != nil {
		t.Fatal(err)
	}
	return out, w
}

// play runs the graph to its end, answering in random portions; crash is called before each
// execution.
func play(t *rapid.T, tb testing.TB, flow *graph.Flow[wide], w *world, st *storetest.Faulty, options []graph.Option, crash func()) wide {
	options = append(options, graph.WithStore(st))
	crash()
	going := func() context.Context {
		ctx, stop := graph.WithStop(tb.Context())
		w.stop = stop
		w.entries.Store(int64(rapid.IntRange(0, 12).Draw(t, "entries until it is stopped")))
		return ctx
	}
	out, err := flow.Run(going(), wide{}, append(options, graph.WithRun("r"))...)
	for range 1000 {
		if err == nil {
			return out
		}
		var answers []graph.Option
		switch info, waits := fermata.ExtractInterruptInfo(err); {
		case waits:
			if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
				t.Fatalf("an answer was not used: %v", bad)
			}
			portion := rapid.SliceOfNDistinct(rapid.IntRange(0, len(info.Interrupts)-1), 1, -1, rapid.ID[int]).Draw(t, "portion")
			for _, i := range portion {
				answers = append(answers, graph.Answer(info.Interrupts[i].ID, w.decide(info.Interrupts[i])))
			}
			if rapid.IntRange(0, 9).Draw(t, "modifier") == 0 {
				answers = append(answers, graph.WithStateModifier(func(fermata.Address, any) error { return errModifier }))
			}
		case errors.Is(err, storetest.ErrCrashed):
			st.Restart()
			answers = append(answers, graph.TakeOver())
		case errors.Is(err, graph.ErrUnknownRun):
			out, err = flow.Run(going(), wide{}, append(options, graph.WithRun("r"))...)
			continue
		case errors.Is(err, graph.ErrStopped), errors.Is(err, errModifier), isBroken(err): // and no answers
		case errors.Is(err, graph.ErrFinished): // it crashed after its last save
			snapshot, err := flow.Inspect(tb.Context(), "r", options...)
			if err != nil {
				t.Fatal(err)
			}
			return snapshot.State
		default:
			t.Fatalf("the run failed: %v", err)
		}
		crash()
		out, err = flow.Resume(going(), "r", append(answers, options...)...)
	}
	t.Fatal("the run does not end")
	return out
}

func TestProperty_RandomPartialResumesEndLikeInlineAnswers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec := drawGraph(rt, 0, "g")
		want, reference := truth(t, spec)
		w := &world{performed: make(map[string]int)}
		var options []graph.Option
		if rapid.Bool().Draw(rt, "save on hold") {
			options = append(options, graph.SaveOnWait())
		}
		got := play(rt, t, w.build(t, spec, "g"), w, storetest.NewFaulty(memory.New()), options, func() {})
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("the end differs (-inline +resumed):\n%s", d)
		}
		if d := cmp.Diff(reference.done.n, w.done.n); d != "" {
			rt.Fatalf("work differs (-inline +resumed):\n%s", d)
		}
		if len(w.performed) != len(reference.performed) {
			rt.Fatalf("%d effects, want %d", len(w.performed), len(reference.performed))
		}
		for key, n := range w.performed {
			if n != 1 {
				rt.Fatalf("effect %s was done %d times", key, n)
			}
		}
	})
}

func TestProperty_CrashesBetweenAnyTwoWritesLoseAndRepeatNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec := drawGraph(rt, 0, "g")
		want, reference := truth(t, spec)
		w := &world{performed: make(map[string]int)}
		st := storetest.NewFaulty(memory.New())
		var options []graph.Option
		if rapid.Bool().Draw(rt, "save on hold") {
			options = append(options, graph.SaveOnWait())
		}
		crashes := rapid.IntRange(1, 6).Draw(rt, "crashes")
		crash := func() {
			if crashes == 0 || !rapid.Bool().Draw(rt, "crash now") {
				return
			}
			crashes--
			when := rapid.SampledFrom([]storetest.FaultTime{storetest.BeforeWrite, storetest.AfterWrite}).Draw(rt, "when")
			st.CrashSave(st.Saves()+rapid.IntRange(1, 5).Draw(rt, "write"), when)
		}
		got := play(rt, t, w.build(t, spec, "g"), w, st, options, crash)
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("the end differs (-inline +crashed):\n%s", d)
		}
		if len(w.performed) != len(reference.performed) {
			rt.Fatalf("%d effects, want %d", len(w.performed), len(reference.performed))
		}
		for key, n := range w.performed {
			if n != 1 {
				rt.Fatalf("effect %s was done %d times", key, n)
			}
		}
		for what, n := range reference.done.n {
			if w.done.of(what) < n {
				rt.Fatalf("%s happened %d times, want at least %d", what, w.done.of(what), n)
			}
		}
	})
}
