package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
)

// Call is a tool call that a model requests.
type Call struct {
	// ID identifies the call within the model's conversation.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args is the text that the model wrote. It should be a JSON object, but need not be.
	Args string `json:"args"`
	// CutOff reports that the answer may have ended inside the call. The call is not made, because
	// its arguments may be incomplete.
	CutOff bool `json:"cutOff,omitempty"`
}

// CallResult is a [Call] with its result.
type CallResult struct {
	Call   Call   `json:"call"`
	Result Result `json:"result"`
}

// Node is a node that makes the tool calls of a model, for graphs that call models themselves
// (package agent does this for its agents):
//
//	tools := tool.Node[State]{
//		Tools:   []*tool.Tool{search, tool.Approve(book)},
//		Calls:   func(s State) []tool.Call { return s.Reply.ToolCalls },
//		Results: func(s *State, results []tool.CallResult) { s.add(results) },
//	}
//	tools.Add(g, "tools")
//
// Every call has its own address below the node, so calls that wait are answered separately and in
// any order. A finished call is not made again. A call of an unknown tool and a call with invalid
// arguments have a failed [Result] for the model.
type Node[S any] struct {
	// Tools are the tools that the model may call. Their names must differ.
	Tools []*Tool
	// Calls returns the calls to make. It must depend only on the state.
	Calls func(state S) []Call
	// Results stores the results, in the order of the calls. It is called once, when all calls are
	// finished.
	Results func(state *S, results []CallResult)
	// Sequential makes the calls one after the other: no call begins while an earlier one waits. By
	// default they run concurrently.
	Sequential bool
	// MaxParallel limits the number of concurrent calls. The default 0 means no limit.
	MaxParallel int
}

// Add adds the node to a graph. It panics if the node is incomplete or two tools have one name.
func (n Node[S]) Add(g *graph.Graph[S], name string, options ...graph.NodeOption) {
	if mistake := n.mistake(); mistake != "" {
		panic(fmt.Sprintf("tool: the tools node %q %s", name, mistake))
	}
	n.Tools = slices.Clone(n.Tools)
	g.Node(name, n.Run, options...)
}

func (n Node[S]) mistake() string {
	switch {
	case len(n.Tools) == 0:
		return "has no tools"
	case slices.Contains(n.Tools, nil):
		return "has a tool that is nil"
	case n.Calls == nil:
		return "has no Calls: return the calls that the model requested"
	case n.Results == nil:
		return "has no Results: store the results in the state"
	}
	seen := make(map[string]bool)
	for _, t := range n.Tools {
		if seen[t.name] {
			return fmt.Sprintf("has the tool %q twice", t.name)
		}
		seen[t.name] = true
	}
	return ""
}

// Run is the function of the node, a [graph.Func]. It makes the calls and stores their results.
func (n Node[S]) Run(ctx context.Context, state S) (S, error) {
	calls := n.Calls(state)
	ids := uniqueIDs(calls)
	results := make([]CallResult, len(calls))
	one := func(i int) (err error) {
		results[i].Call = calls[i]
		segment := fermata.Segment{Type: fermata.SegmentTool, ID: calls[i].Name, SubID: ids[i]}
		results[i].Result, err = fermata.DoAt(ctx, segment, func(ctx context.Context) (result Result, err error) {
			defer recovery.Recover(&err)
			result, err = n.call(ctx, calls[i])
			result.Text = strings.ToValidUTF8(result.Text, "\uFFFD")
			return result, err
		})
		return err
	}
	var err error
	if n.Sequential {
		for i := 0; i < len(calls) && err == nil; i++ {
			err = one(i)
		}
	} else {
		err = errors.Join(recovery.Parallel(len(calls), n.MaxParallel, one)...)
	}
	if err != nil {
		return state, err
	}
	n.Results(&state, results)
	return state, nil
}

func (n Node[S]) call(ctx context.Context, call Call) (Result, error) {
	if call.CutOff {
		return Result{Failed: true, Text: "The call was not made: the answer ended inside it. Make the call again, with less text before it."}, nil
	}
	args := json.RawMessage(call.Args)
	if strings.TrimSpace(call.Args) == "" {
		args = json.RawMessage("{}")
	}
	names := make([]string, len(n.Tools))
	for i, t := range n.Tools {
		if t.name == call.Name {
			return t.Call(ctx, args)
		}
		names[i] = t.name
	}
	// a person was asked in or about this call, and the tool is gone
	if scope := activation.FromContext(ctx); scope.Interrupted() || wasDecided(ctx) || scope.Host.HasNewAnswer(scope.Path()) {
		return Result{}, &ProgramChangedError{call.Name}
	}
	slices.Sort(names)
	return Result{Failed: true, Text: fmt.Sprintf("There is no tool %q. The tools are: %s.", call.Name, strings.Join(names, ", "))}, nil
}

// uniqueIDs returns an id for the address of each call: the model's own id, if it is unique among
// the calls of the tool.
func uniqueIDs(calls []Call) []string {
	type place struct{ name, id string }
	taken := make(map[place]bool, len(calls))
	ids := make([]string, len(calls))
	for i, call := range calls {
		id := call.ID
		for n := i + 1; id == "" || taken[place{call.Name, id}]; n++ {
			id = call.ID + "_" + strconv.Itoa(n)
		}
		taken[place{call.Name, id}] = true
		ids[i] = id
	}
	return ids
}
