package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
)

func init() {
	schema.RegisterName[doc]("fermata_bench_doc") // Eino can only save registered types
}

// einoStore is the store of Eino's own examples: a map. Like store/memory it keeps the bytes it is
// given.
type einoStore struct {
	mu   sync.Mutex
	runs map[string][]byte
}

var _ compose.CheckPointStore = (*einoStore)(nil)

func newEinoStore() *einoStore { return &einoStore{runs: make(map[string][]byte)} }

func (s *einoStore) Get(_ context.Context, id string) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.runs[id]
	return data, ok, nil
}

func (s *einoStore) Set(_ context.Context, id string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[id] = data
	return nil
}

// eino is Eino with a graph that waits.
type eino[I, O any] struct {
	*einoStore
	graph compose.Runnable[I, O]
	input I
}

var _ waitingRun[doc] = (*eino[doc, doc])(nil)

func newEino[I, O any](g *compose.Graph[I, O], input I) (*eino[I, O], error) {
	st := newEinoStore()
	compiled, err := g.Compile(context.Background(), compose.WithCheckPointStore(st), compose.WithGraphName("bench"))
	if err != nil {
		return nil, err
	}
	return &eino[I, O]{einoStore: st, graph: compiled, input: input}, nil
}

func (e *eino[I, O]) start(ctx context.Context, run string) ([]string, error) {
	_, err := e.graph.Invoke(ctx, e.input, compose.WithCheckPointID(run))
	info, waits := compose.ExtractInterruptInfo(err)
	if !waits {
		return nil, fmt.Errorf("the graph does not wait: %w", err)
	}
	ids := make([]string, len(info.InterruptContexts))
	for i, interrupt := range info.InterruptContexts {
		ids[i] = interrupt.ID
	}
	return ids, nil
}

func (e *eino[I, O]) resume(ctx context.Context, run string, answers map[string]any) (O, error) {
	var ignored I // Eino uses the checkpoint instead
	return e.graph.Invoke(compose.BatchResumeWithData(ctx, answers), ignored, compose.WithCheckPointID(run))
}

func (s *einoStore) size(_ context.Context, run string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs[run]), nil
}

func (s *einoStore) delete(_ context.Context, run string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, run)
	return nil
}

// einoNode is a node that does not interrupt.
func einoNode(work func(doc) doc) *compose.Lambda {
	return compose.InvokableLambda(func(_ context.Context, d doc) (doc, error) { return work(d), nil })
}

// einoAsk is a node that interrupts, as in Eino's documentation: Eino does not keep the node's
// input.
func einoAsk(ctx context.Context, d doc) (doc, error) {
	was, _, saved := compose.GetInterruptState[doc](ctx)
	if !was {
		return doc{}, compose.StatefulInterrupt(ctx, question, d)
	}
	target, has, verdict := compose.GetResumeContext[string](ctx)
	if !target || !has {
		return doc{}, compose.StatefulInterrupt(ctx, question, saved)
	}
	return answered(saved, verdict), nil
}

// einoLine is a line of ten nodes; the node at ask interrupts, 0 means none.
func einoLine(ask int) (*compose.Graph[doc, doc], error) {
	g := compose.NewGraph[doc, doc]()
	before := compose.START
	var errs []error
	for i := 1; i <= lineLength; i++ {
		node := einoNode(step)
		if i == ask {
			node = compose.InvokableLambda(einoAsk)
		}
		errs = append(errs, g.AddLambdaNode(nodeName(i), node), g.AddEdge(before, nodeName(i)))
		before = nodeName(i)
	}
	return g, errors.Join(append(errs, g.AddEdge(before, compose.END))...)
}

func einoRun() (*engine, error) {
	g, err := einoLine(0)
	if err != nil {
		return nil, err
	}
	compiled, err := g.Compile(context.Background())
	if err != nil {
		return nil, err
	}
	check := expect(doc{Steps: lineLength})
	return &engine{do: func(ctx context.Context) error {
		result, err := compiled.Invoke(ctx, doc{})
		if err != nil {
			return err
		}
		return check(result)
	}}, nil
}

func einoWait(text string) (*engine, error) {
	g, err := einoLine(lineAsk)
	if err != nil {
		return nil, err
	}
	e, err := newEino(g, doc{Text: text})
	if err != nil {
		return nil, err
	}
	return waitingEngine(e, 1, expect(doc{Text: text, Steps: lineLength, Answer: answer})), nil
}

// einoNest is a nested graph; the innermost one interrupts.
func einoNest(depth int, text string) (*engine, error) {
	g, err := einoNested(depth, text)
	if err != nil {
		return nil, err
	}
	e, err := newEino(g, doc{})
	if err != nil {
		return nil, err
	}
	return waitingEngine(e, 1, expect(nestResult(depth, text))), nil
}

func einoNested(depth int, text string) (*compose.Graph[doc, doc], error) {
	g := compose.NewGraph[doc, doc]()
	pre, post := einoNode(step), einoNode(step)
	var errs []error
	if depth == 1 {
		pre, post = einoNode(addText(text)), einoNode(dropText(text))
		errs = append(errs, g.AddLambdaNode("inner", compose.InvokableLambda(einoAsk)))
	} else {
		inner, err := einoNested(depth-1, text)
		errs = append(errs, err, g.AddGraphNode("inner", inner))
	}
	errs = append(errs,
		g.AddLambdaNode("pre", pre), g.AddLambdaNode("post", post),
		g.AddEdge(compose.START, "pre"), g.AddEdge("pre", "inner"), g.AddEdge("inner", "post"), g.AddEdge("post", compose.END))
	return g, errors.Join(errs...)
}

// einoFan has n parallel nodes. Each stores its result under its own key, which is how Eino joins
// branches.
func einoFan(n int) (*engine, error) {
	g := compose.NewGraph[string, map[string]any]()
	var errs []error
	for i := range n {
		name := nodeName(i)
		ask := func(ctx context.Context, in string) (string, error) {
			was, _, saved := compose.GetInterruptState[string](ctx)
			if !was {
				return "", compose.StatefulInterrupt(ctx, question, in)
			}
			target, has, verdict := compose.GetResumeContext[string](ctx)
			if !target || !has {
				return "", compose.StatefulInterrupt(ctx, question, saved)
			}
			return fanAnswer(name, verdict), nil
		}
		errs = append(errs, g.AddLambdaNode(name, compose.InvokableLambda(ask), compose.WithOutputKey(name)),
			g.AddEdge(compose.START, name), g.AddEdge(name, compose.END))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	e, err := newEino(g, "")
	if err != nil {
		return nil, err
	}
	return waitingEngine(e, n, func(joined map[string]any) error {
		left := make([]string, 0, n)
		for value := range maps.Values(joined) {
			text, _ := value.(string)
			left = append(left, text)
		}
		return checkFan(n, left)
	}), nil
}
