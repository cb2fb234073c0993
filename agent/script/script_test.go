package script_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
)

func request(messages ...agent.Message) *agent.Request { return &agent.Request{Messages: messages} }

func TestModel_SaysTheLineThatTheConversationHasComeTo(t *testing.T) {
	m := script.New(script.Call("book", `{"to":"Paris"}`), script.Say("Booked."))
	first, err := m.Generate(t.Context(), request(agent.System("be kind"), agent.User("book!")))
	if err != nil || first.FinishReason != agent.FinishToolCalls || first.Message.Role != agent.RoleAssistant || first.Message.ToolCalls[0].Name != "book" || first.Model != "script" {
		t.Fatalf("got %+v, %v", first, err)
	}
	// It has no state: the same conversation gets the same line in any process.
	for _, m := range []*script.Model{m, script.New(nil, script.Say("Booked."))} {
		second, err := m.Generate(t.Context(), request(agent.User("book!"), first.Message, agent.ToolResult(agent.ToolCall{ID: "1"}, "ok")))
		if err != nil || second.Message.Text != "Booked." || second.FinishReason != agent.FinishStop {
			t.Fatalf("got %+v, %v", second, err)
		}
	}
	if m.Calls() != 2 {
		t.Errorf("%d calls", m.Calls())
	}
}

func TestModel_ToBeAskedForMoreIsAnError(t *testing.T) {
	_, err := script.New(script.Say("x")).Generate(t.Context(), request(agent.User("a"), agent.Assistant("x"), agent.User("b")))
	if failure, ok := errors.AsType[*agent.ModelError](err); !ok || !strings.Contains(failure.Error(), "the script has 1 lines, but line 2 was requested") {
		t.Errorf("got %v", err)
	}
}

func TestModel_FailReturnsTheError(t *testing.T) {
	down := errors.New("overloaded")
	if _, err := script.New(script.Fail(down)).Generate(t.Context(), request()); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
}

func TestModel_LineMayReadTheRequest(t *testing.T) {
	m := script.New(func(r *agent.Request) (agent.Message, error) {
		return agent.Assistant("you said " + r.Messages[0].Text), nil
	})
	if got, err := m.Generate(t.Context(), request(agent.User("hello"))); err != nil || got.Message.Text != "you said hello" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestModel_StreamsWordsThenTheResponse(t *testing.T) {
	var pieces []string
	var answer *agent.Response
	for piece, err := range script.New(script.Say("one two  three")).Stream(t.Context(), request(agent.User("count"))) {
		if err != nil || answer != nil {
			t.Fatalf("got %+v, %v after the answer", piece, err)
		}
		if piece.Text != "" {
			pieces = append(pieces, piece.Text)
		}
		answer = piece.Response
	}
	if strings.Join(pieces, "|") != "one |two | |three" || answer == nil || answer.Message.Text != "one two  three" {
		t.Errorf("got %q, %+v", pieces, answer)
	}
	if answer.Usage != (agent.Usage{InputTokens: 1, OutputTokens: 3}) {
		t.Errorf("got %+v", answer.Usage)
	}
}

func TestModel_UnreadStreamStops(t *testing.T) {
	for range script.New(script.Say("one two")).Stream(t.Context(), request()) {
		break
	}
}

func TestModel_HeedsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := script.New(script.Say("one two"))
	if _, err := m.Generate(ctx, request()); !errors.Is(err, context.Canceled) || m.Calls() != 0 {
		t.Errorf("got %v after %d calls", err, m.Calls())
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	var failure error
	for _, err := range m.Stream(ctx, request()) {
		cancel()
		failure = err
	}
	if !errors.Is(failure, context.Canceled) {
		t.Errorf("got %v", failure)
	}
}

func TestModel_AStreamOfAFailureIsTheFailure(t *testing.T) {
	down := errors.New("overloaded")
	for piece, err := range script.New(script.Fail(down)).Stream(t.Context(), request()) {
		if piece != nil || !errors.Is(err, down) {
			t.Errorf("got %+v, %v", piece, err)
		}
	}
}
