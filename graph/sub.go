package graph

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// Sub adds a node that runs another graph. in creates its state from the outer one, out merges its
// final state back; both must depend only on their arguments. The nodes of the inner graph have
// addresses below that of the node. Finished work in it is not repeated, regardless of the order of
// answers.
func Sub[S, T any](g *Graph[S], name string, flow *Flow[T], in func(S) T, out func(S, T) S, options ...NodeOption) {
	n := &node{name: name}
	if flow != nil && in != nil && out != nil {
		n.sub = flow.compiled
		n.run = func(ctx context.Context, from, to statePtr, _ int) error {
			state := *from.(*S)
			inner, err := flow.runInside(ctx, activation.FromContext(ctx), in(state))
			if err == nil {
				*to.(*S) = out(state, inner)
			}
			return err
		}
	}
	g.add(n, options)
}

func (fl *Flow[S]) runInside(ctx context.Context, scope *activation.Scope, input S) (S, error) {
	return typedState[S](fl.compiled.runInside(ctx, scope, &input))
}

// runInside runs the graph as part of the activation of scope.
func (fl *compiled) runInside(ctx context.Context, scope *activation.Scope, input statePtr) (statePtr, error) {
	s, ok := scope.Host.(*execution)
	if !ok {
		return nil, fmt.Errorf("graph: %s is not run by this engine", scope.FullAddress())
	}
	if err := scope.ClaimGraph(); err != nil {
		return nil, err
	}
	f, err := fl.instanceAt(s, activation.Instance{Place: scope.Path(), Address: scope.FullAddress(), Outer: scope.Activation}, input)
	if err != nil {
		return nil, err
	}
	if !f.done {
		if err := f.run(ctx); err != nil {
			if signals, plain := scope.Collect(err); plain == nil {
				scope.Raise(activation.Flatten(signals)...)
			}
			return nil, err
		}
	}
	return fl.stateType.copyIfShared(f.state)
}

// Each adds a node that processes every item of a list concurrently. Every item has its own
// address, can raise interrupts, and is not processed again once it is done. collect receives the
// results in the order of the items. items and collect must depend only on their arguments.
func Each[S, T, R any](g *Graph[S], name string, items func(S) []T, work func(ctx context.Context, item T) (R, error), collect func(S, []R) S, options ...NodeOption) {
	n := &node{name: name, fanOut: true, result: reflect.TypeFor[R]()}
	n.unsavable = roundtrip.Problems(n.result, fmt.Sprintf("a result of node %q", name))
	if items != nil && work != nil && collect != nil {
		n.items = func(in statePtr) any { return items(*in.(*S)) }
		n.run = func(ctx context.Context, in, out statePtr, parallel int) error {
			state := *in.(*S)
			results, err := each(ctx, parallel, items(state), work)
			if err == nil {
				*out.(*S) = collect(state, results)
			}
			return err
		}
	}
	g.add(n, options)
}

// EachFlow is [Each] with a graph as the work: every item is the state of its own graph.
func EachFlow[S, T any](g *Graph[S], name string, items func(S) []T, flow *Flow[T], collect func(S, []T) S, options ...NodeOption) {
	if flow == nil {
		g.add(&node{name: name, fanOut: true}, options)
		return
	}
	Each(g, name, items, func(ctx context.Context, item T) (T, error) {
		return flow.runInside(ctx, activation.FromContext(ctx), item)
	}, collect, options...)
	g.nodes[len(g.nodes)-1].sub = flow.compiled
}

func each[T, R any](ctx context.Context, limit int, items []T, work func(context.Context, T) (R, error)) ([]R, error) {
	results := make([]R, len(items))
	errs := recovery.Parallel(len(items), limit, func(i int) (err error) {
		segment := fermata.Segment{Type: fermata.SegmentItem, ID: strconv.Itoa(i)}
		results[i], err = fermata.DoAt(ctx, segment, func(ctx context.Context) (result R, err error) {
			defer recovery.Recover(&err)
			return work(ctx, items[i])
		})
		return err
	})
	return results, errors.Join(errs...)
}
