package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

var review = fermata.NewKind[string, string]("bench-review")

// ours is Fermata with a graph that waits.
type ours[S any] struct {
	measuredStore
	flow    *graph.Flow[S]
	options []graph.Option
	input   S
}

var _ waitingRun[doc] = (*ours[doc])(nil)

func newOurs[S any](g *graph.Graph[S], st store.Checkpoints, input S, options []graph.Option) (*ours[S], error) {
	flow, err := g.Compile()
	if err != nil {
		return nil, err
	}
	return &ours[S]{measuredStore: measuredStore{st}, flow: flow, input: input, options: slices.Concat(options, []graph.Option{graph.WithStore(st)})}, nil
}

func (o *ours[S]) start(ctx context.Context, run string) ([]string, error) {
	_, err := o.flow.Run(ctx, o.input, append(slices.Clip(o.options), graph.WithRun(run))...)
	info, waits := fermata.ExtractInterruptInfo(err)
	if !waits {
		return nil, fmt.Errorf("the graph does not wait: %w", err)
	}
	ids := make([]string, len(info.Interrupts))
	for i, interrupt := range info.Interrupts {
		ids[i] = interrupt.ID
	}
	return ids, nil
}

func (o *ours[S]) resume(ctx context.Context, run string, answers map[string]any) (S, error) {
	return o.flow.Resume(fermata.BatchResumeWithData(ctx, answers), run, o.options...)
}

// measuredStore is a store with its measurements.
type measuredStore struct{ store.Checkpoints }

func (k measuredStore) size(ctx context.Context, run string) (int, error) {
	saved, err := k.Load(ctx, store.Key{Run: run})
	size := 0
	for name, data := range saved.Parts {
		size += len(name) + len(data)
	}
	return size, err
}

func (k measuredStore) delete(ctx context.Context, run string) error {
	return k.Delete(ctx, store.Key{Run: run})
}

// saveMode is how often our side saves. Eino saves only when it waits.
type saveMode []graph.Option

var (
	saveOnHold   = saveMode{graph.SaveOnWait()}
	saveEachStep = saveMode{}
)

// oursNode is a node that does not interrupt.
func oursNode(work func(doc) doc) graph.Func[doc] {
	return func(_ context.Context, d doc) (doc, error) { return work(d), nil }
}

func oursAsk(ctx context.Context, d doc) (doc, error) {
	verdict, err := review.Ask(ctx, question)
	if err != nil {
		return d, err
	}
	return answered(d, verdict), nil
}

// oursLine is a line of ten nodes; the node at ask interrupts, 0 means none.
func oursLine(ask int) *graph.Graph[doc] {
	g := graph.New[doc]("line")
	before := graph.Start
	for i := 1; i <= lineLength; i++ {
		node := oursNode(step)
		if i == ask {
			node = oursAsk
		}
		g.Node(nodeName(i), node)
		g.Edge(before, nodeName(i))
		before = nodeName(i)
	}
	g.Edge(before, graph.End)
	return g
}

func oursRun() (*engine, error) {
	flow, err := oursLine(0).Compile()
	if err != nil {
		return nil, err
	}
	check := expect(doc{Steps: lineLength})
	return &engine{do: func(ctx context.Context) error {
		result, err := flow.Run(ctx, doc{})
		if err != nil {
			return err
		}
		return check(result)
	}}, nil
}

func oursWait(text string, mode saveMode) (*engine, error) {
	o, err := newOurs(oursLine(lineAsk), memory.New(), doc{Text: text}, mode)
	if err != nil {
		return nil, err
	}
	return waitingEngine(o, 1, expect(doc{Text: text, Steps: lineLength, Answer: answer})), nil
}

// oursNest is a nested graph; the innermost one interrupts.
func oursNest(depth int, text string) (*engine, error) {
	g, err := oursNested(depth, text)
	if err != nil {
		return nil, err
	}
	o, err := newOurs(g, memory.New(), doc{}, saveOnHold)
	if err != nil {
		return nil, err
	}
	return waitingEngine(o, 1, expect(nestResult(depth, text))), nil
}

func oursNested(depth int, text string) (*graph.Graph[doc], error) {
	g := graph.New[doc](fmt.Sprintf("level%d", depth))
	if depth == 1 {
		g.Node("pre", oursNode(addText(text)))
		g.Node("inner", oursAsk)
		g.Node("post", oursNode(dropText(text)))
	} else {
		inner, err := oursNested(depth-1, text)
		if err != nil {
			return nil, err
		}
		flow, err := inner.Compile()
		if err != nil {
			return nil, err
		}
		g.Node("pre", oursNode(step))
		graph.Sub(g, "inner", flow, func(d doc) doc { return d }, func(_, d doc) doc { return d })
		g.Node("post", oursNode(step))
	}
	g.Edge(graph.Start, "pre")
	g.Edge("pre", "inner")
	g.Edge("inner", "post")
	g.Edge("post", graph.End)
	return g, nil
}
