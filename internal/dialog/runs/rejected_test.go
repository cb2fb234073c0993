package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/provider/inproc"
)

// chat is a graph with the input of an agent.
type chat struct {
	Query    string           `json:"query"`
	Messages []map[string]any `json:"messages,omitempty"`
	Done     string           `json:"done,omitempty"`
}

func chatGraph(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[chat]("assistant")
	g.Node("answer", func(_ context.Context, s chat) (chat, error) {
		if s.Done = fmt.Sprintf("%d lines", len(s.Messages)); s.Query == "report" {
			s.Done = strings.Repeat("<", 100<<10)
		}
		return s, nil
	})
	g.Edge(graph.Start, "answer")
	g.Edge("answer", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[chat]{Content: func(s chat) string { return s.Done }})
}

// Long lines are more than a run may begin with. The newest ones that fit are its input.
func TestStart_LongLinesFitIntoTheInputOfAnAgent(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	w.graph, w.input = chatGraph(t), nil
	w.restart()
	for range 2 {
		w.say("c", dialog.Message{Text: "report"})
	}
	if r := w.say("c", dialog.Message{Text: "hello"}); last(r) != "0 lines" {
		t.Errorf("%.100s", last(r))
	}
	if r := w.say("c", dialog.Message{Text: "hello"}); last(r) != "2 lines" {
		t.Errorf("%.100s", last(r))
	}
}

// A run that can never start fails, and the conversation continues.
func TestStart_RejectedRunFailsAndTheConversationContinues(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	long := true
	w.input = func(s dialog.Start) (json.RawMessage, error) {
		text := s.Lines[len(s.Lines)-1].Text
		if long {
			text += strings.Repeat("x", executor.MaxInput)
		}
		return json.Marshal(work{Text: text})
	}
	w.restart()
	r := w.say("c", dialog.Message{Text: "hello"})
	if !strings.HasPrefix(last(r), "That did not work") || !r.Runs[0].Settled || r.Working {
		t.Fatalf("%+v", r)
	}
	long = false
	if r = w.say("c", dialog.Message{Text: "hello"}); last(r) != "Did: hello" {
		t.Errorf("%s", last(r))
	}
	if _, err := w.executor.Start(t.Context(), executor.StartRequest{Account: account, StateKey: "conversation-d-1", Graph: "inproc:assistant", Input: json.RawMessage(`{"text":"secret"}`)}); err != nil {
		t.Fatal(err)
	}
	if r = w.say("d", dialog.Message{Text: "hello"}); !strings.HasPrefix(last(r), "That did not work") || !r.Runs[0].Settled {
		t.Errorf("another run has the state key: %+v", r)
	}
}

// failing fails to start the runs of conversations whose id begins with "bad".
type failing struct{ conversation.Runs }

var errFailing = errors.New("failing")

func (f failing) Start(ctx context.Context, account string, s dialog.Start) error {
	if strings.HasPrefix(s.Run, "conversation-bad") {
		return errFailing
	}
	return f.Runs.Start(ctx, account, s)
}

// More conversations fail than a sweep reads, and others are continued nevertheless.
func TestSweep_FailingConversationsDoNotDelayOthers(t *testing.T) {
	w := newWorld(t, openStore(t, "clock"))
	w.wrap = func(d conversation.Documents, r conversation.Runs) (conversation.Documents, conversation.Runs) {
		return d, failing{r}
	}
	w.restart()
	accept := func(id string) {
		t.Helper()
		if _, err := w.handler.Accept(t.Context(), account, id, dialog.Message{Text: "hello", Actor: user}); err != nil {
			t.Fatal(err)
		}
		w.clock.add(time.Millisecond)
	}
	for n := range 105 {
		accept(fmt.Sprint("bad", n))
	}
	accept("good")
	w.clock.add(3 * time.Second)
	for range 2 {
		if _, err := w.handler.Sweep(t.Context()); !errors.Is(err, errFailing) {
			t.Fatal(err)
		}
	}
	if r, err := w.handler.Peek(t.Context(), account, "good"); err != nil || len(r.Runs) != 1 || !r.Runs[0].Settled && !r.Working {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := w.executor.GetRun(t.Context(), account, "conversation-good-1"); err != nil {
		t.Error(err)
	}
	if n, err := w.handler.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("again at once: %d, %v", n, err)
	}
	w.clock.add(time.Minute)
	if _, err := w.handler.Sweep(t.Context()); !errors.Is(err, errFailing) {
		t.Errorf("after the delay: %v", err)
	}
}
