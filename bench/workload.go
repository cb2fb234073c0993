package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
)

// workload is a graph whose runs wait for a person once, with its input and expected result.
// langgraph/pieces.mjs has the same workloads for LangGraph, under the same names.
type workload struct {
	name     string
	text     string // that its nodes write
	graph    string
	shown    string // the data of the interrupt
	provider func(text string) (*inproc.Provider, error)
	// fails unless a run has ended correctly
	checkDone func(outcome fermata.Outcome, text string) error
}

// The names of the workloads.
const (
	workloadReview = "review"
	workloadChain  = "chain"
)

// reviewWorkload is a draft that a person reviews.
func reviewWorkload(text string) workload {
	return workload{name: workloadReview, text: text, graph: reviewGraph, shown: text, provider: reviewProvider, checkDone: checkPublished}
}

// newWorkload finds a workload by its name, with the text size of the measurement.
func newWorkload(name string) workload {
	if name == workloadChain {
		return chainWorkload(randomText(lineLength * kib))
	}
	return reviewWorkload(randomText(kib))
}

// chainWorkload imitates agents: each of ten steps adds a message of 1 KiB to the previous ones.
// The fifth asks about the one before.
func chainWorkload(text string) workload {
	return workload{
		name: workloadChain, text: text, graph: inproc.Name + ":" + workloadChain, shown: chainMessage(text, lineAsk-1).Content, provider: chainProvider, checkDone: checkChain,
	}
}

// conversation is its state.
type conversation struct {
	Topic    string    `json:"topic"`
	Messages []message `json:"messages,omitempty"`
	Verdict  string    `json:"verdict,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// chainMessage is what a step adds, counted from one.
func chainMessage(text string, step int) message {
	size := len(text) / lineLength
	return message{Role: "assistant", Content: text[(step-1)*size : step*size]}
}

func chainProvider(text string) (*inproc.Provider, error) {
	g := graph.New[conversation](workloadChain)
	from := graph.Start
	for i := 1; i <= lineLength; i++ {
		g.Node(nodeName(i), func(ctx context.Context, s conversation) (_ conversation, err error) {
			if i == lineAsk {
				if s.Verdict, err = contentReview.Ask(ctx, s.Messages[len(s.Messages)-1].Content); err != nil {
					return s, err
				}
			}
			s.Messages = append(s.Messages, chainMessage(text, i))
			return s, nil
		})
		g.Edge(from, nodeName(i))
		from = nodeName(i)
	}
	g.Edge(from, graph.End)
	flow, err := g.Compile()
	if err != nil {
		return nil, err
	}
	return inproc.New(inproc.Flow(flow, inproc.FlowConfig[conversation]{}))
}

func checkChain(outcome fermata.Outcome, text string) error {
	done, ok := outcome.(fermata.Completed)
	if !ok {
		return fmt.Errorf("the run should be completed, but its outcome is %T", outcome)
	}
	var state conversation
	if err := json.Unmarshal(done.Output, &state); err != nil {
		return err
	}
	var want []message
	for i := 1; i <= lineLength; i++ {
		want = append(want, chainMessage(text, i))
	}
	if state.Topic != "tea" || state.Verdict != reviewVerdict || !slices.Equal(state.Messages, want) {
		return fmt.Errorf("it ended as %q with %d messages, or with wrong ones", state.Verdict, len(state.Messages))
	}
	return nil
}
