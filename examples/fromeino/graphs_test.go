package fromeino_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/tool"
)

type Work struct {
	Text string `json:"text"`
}

// flowOf returns a graph with one node.
func flowOf(node graph.Func[Work]) *graph.Flow[Work] {
	g := graph.New[Work]("work")
	g.Node("node", node)
	g.Chain(graph.Start, "node", graph.End)
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	return flow
}

// doc:start parts
type Part struct{ ID string }

func (p Part) Run(ctx context.Context) (string, error) {
	if target, _, answer := fermata.GetResumeContext[string](ctx); target {
		return answer, nil
	}
	return "", fermata.Interrupt(ctx, "the value of "+p.ID)
}

// runParts runs parts that wait at their own addresses. A finished part is not run again.
func runParts(ctx context.Context, w Work) (Work, error) {
	var errs []error
	for _, part := range []Part{{"a"}, {"b"}} {
		segment := fermata.Segment{Type: "process", ID: part.ID}
		text, err := fermata.DoAt(ctx, segment, part.Run) // AppendAddressSegment, and the result is kept
		w.Text += text
		errs = append(errs, err)
	}
	return w, fermata.CompositeInterrupt(ctx, "both parts need a value", nil, errs...)
}

// doc:end

func Example_graphInterrupts() {
	graphOfParts := flowOf(runParts)
	// doc:start extract
	store := graph.WithStore(memory.New())
	_, err := graphOfParts.Run(ctx, Work{}, store, graph.WithRun("1"))
	info, waits := fermata.ExtractInterruptInfo(err)
	if !waits {
		panic(err)
	}
	for _, point := range info.Interrupts {
		fmt.Println(point.Address, point.Info)
	}
	// doc:end

	// doc:start batch
	a, b := info.Interrupts[0].ID, info.Interrupts[1].ID
	resumed := fermata.BatchResumeWithData(ctx, map[string]any{a: "1", b: "2"})
	// one interrupt: fermata.ResumeWithData(ctx, a, "1"); no data: fermata.Resume(ctx, a, b)
	work, err := graphOfParts.Resume(resumed, "1", store) // or: graph.Answer(a, "1"), graph.Answer(b, "2")
	fmt.Println(work.Text, err)
	// doc:end

	// Output:
	// runnable:work;node:node;process:a the value of a
	// runnable:work;node:node;process:b the value of b
	// 12 <nil>
}

// doc:start state
type Import struct{ Rows int }

func importRows(ctx context.Context, w Work) (Work, error) {
	was, hasState, state := fermata.GetInterruptState[Import](ctx)
	if !was {
		return w, fermata.StatefulInterrupt(ctx, "Go on?", Import{Rows: 42})
	}
	target, hasData, answer := fermata.GetResumeContext[string](ctx)
	if !target { // the answer is not a string: it is rejected, and the question stays open
		return w, fermata.StatefulInterrupt(ctx, "Go on?", state)
	}
	w.Text = fmt.Sprintln(hasState, state.Rows, hasData, answer)
	return w, nil
}

// doc:end

func Example_state() {
	flow, store := flowOf(importRows), graph.WithStore(memory.New())
	_, err := flow.Run(ctx, Work{}, store, graph.WithRun("1"))
	info, _ := fermata.ExtractInterruptInfo(err)
	work, err := flow.Resume(ctx, "1", store, graph.Answer(info.Interrupts[0].ID, "yes"))
	fmt.Print(work.Text, err)
	// Output:
	// true 42 true yes
	// <nil>
}

// doc:start legacy
// oldTool knows no addresses.
func oldTool(asked bool) (string, error) {
	if !asked {
		return "", fermata.NewInterruptAndRerunErr("Is it allowed?")
	}
	return "done", nil
}

func callOldTool(ctx context.Context, w Work) (Work, error) {
	segment := fermata.Segment{Type: fermata.SegmentTool, ID: "old"}
	asked, _, _ := fermata.GetResumeContext[any](fermata.AppendAddressSegment(ctx, segment.Type, segment.ID))
	text, err := oldTool(asked)
	w.Text = text
	return w, fermata.WrapInterruptAndRerunIfNeeded(ctx, segment, err)
}

// doc:end

func Example_legacy() {
	flow, store := flowOf(callOldTool), graph.WithStore(memory.New())
	_, err := flow.Run(ctx, Work{}, store, graph.WithRun("1"))
	info, _ := fermata.ExtractInterruptInfo(err)
	fmt.Println(info.Interrupts[0].Address)
	work, err := flow.Resume(fermata.Resume(ctx, info.Interrupts[0].ID), "1", store)
	fmt.Println(work.Text, err)
	// Output:
	// runnable:work;node:node;tool:old
	// done <nil>
}

func upper(_ context.Context, w Work) (Work, error) { w.Text = strings.ToUpper(w.Text); return w, nil }
func twice(_ context.Context, w Work) (Work, error) { w.Text += w.Text; return w, nil }

func Example_holds() {
	// doc:start holds
	g := graph.New[Work]("held")
	g.Node("first", upper)
	g.Node("second", twice)
	g.Chain(graph.Start, "first", "second", graph.End)
	g.HoldAfter("first")
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	store := graph.WithStore(memory.New())
	_, err = flow.Run(ctx, Work{Text: "a"}, store, graph.WithRun("1"))
	info, _ := fermata.ExtractInterruptInfo(err)
	hold := info.Interrupts[0]
	state, err := fermata.InfoAs[Work](hold) // the state of the graph, in any process
	if err != nil {
		panic(err)
	}
	state.Text += "!"
	work, err := flow.Resume(ctx, "1", store, graph.Answer(hold.ID, state))
	fmt.Println(work.Text, err)
	// doc:end

	// Output: A!A! <nil>
}

func Example_toolsNode() {
	add := tool.New("add", "Adds.", func(_ context.Context, n struct{ A, B int }) (int, error) { return n.A + n.B, nil })
	type Turn struct {
		Calls   []tool.Call       `json:"calls"`
		Results []tool.CallResult `json:"results"`
	}
	// doc:start tools
	g := graph.New[Turn]("turn")
	tool.Node[Turn]{
		Tools:   []*tool.Tool{add},
		Calls:   func(t Turn) []tool.Call { return t.Calls },
		Results: func(t *Turn, results []tool.CallResult) { t.Results = results },
	}.Add(g, "tools")
	g.Chain(graph.Start, "tools", graph.End)
	// doc:end
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	turn, err := flow.Run(ctx, Turn{Calls: []tool.Call{{ID: "1", Name: "add", Args: `{"A":1,"B":2}`}}})
	fmt.Println(turn.Results[0].Result.Text, err)
	// Output: 3 <nil>
}

func Example_stream() {
	flow := flowOf(func(ctx context.Context, w Work) (Work, error) {
		for _, word := range []string{"one", "two"} {
			graph.Emit(ctx, word)
		}
		return w, nil
	})
	// doc:start stream
	for event, err := range flow.Stream(ctx, Work{}) {
		if err != nil {
			panic(err)
		}
		switch event := event.(type) {
		case graph.Output: // graph.Emit(ctx, "…") in a node
			fmt.Println(event.Text)
		case graph.Finished[Work]:
			fmt.Println("finished")
		case graph.Step:
		}
	}
	// doc:end

	// Output:
	// one
	// two
	// finished
}
