package anthropic

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
	"github.com/fermata-go/fermata/internal/golden"
)

func manual(c *Config) {
	c.MaxTokens = 4000
	c.Extra = map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2000}}
}

// thoughtful is an answer with thinking before, between and after, as from models that think
// between calls.
var thoughtful = []string{
	fmt.Sprintf(`{"type":"thinking","thinking":"Größe? \u003c3","signature":%q}`, sign("Größe? <3")),
	`{"type":"text","text":"Ich sehe "}`,
	`{"type":"redacted_thinking","data":"redacted:x+/="}`,
	`{"type":"text","text":"nach: ä"}`,
	`{"type":"tool_use","id":"toolu_a","name":"weather","input":{"city":"Rome"}}`,
	fmt.Sprintf(`{"type":"thinking","thinking":"","signature":%q}`, sign("")),
	`{"type":"tool_use","id":"toolu_b","name":"clock","input":{}}`,
}

// thoughtfully is the same as a stream.
func thoughtfully() []event {
	return join(
		[]event{
			start(),
			begin(0, `{"type":"thinking","thinking":"","signature":""}`),
			delta(0, "thinking_delta", "thinking", "Größe?"),
			delta(0, "thinking_delta", "thinking", " <3"),
			delta(0, "signature_delta", "signature", sign("Größe? <3")),
			end(0),
		},
		textBlock(1, "Ich sehe "),
		[]event{begin(2, thoughtful[2]), end(2)},
		textBlock(3, "nach", ": ä"),
		callBlock(4, "toolu_a", "weather", `{"city":`, `"Rome"}`),
		[]event{
			begin(5, `{"type":"thinking","thinking":"","signature":""}`),
			delta(5, "signature_delta", "signature", sign("")),
			end(5),
		},
		callBlock(6, "toolu_b", "clock"),
		stop("tool_use"))
}

// wantThoughtful checks that the turn before the last has the blocks of thoughtful.
func wantThoughtful(t *testing.T, got []wireBlock, want ...string) {
	t.Helper()
	var blocks []wireBlock
	if err := json.Unmarshal([]byte("["+strings.Join(want, ",")+"]"), &blocks); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(blocks, got); diff != "" {
		t.Errorf("sent back (-want +got):\n%s", diff)
	}
}

// followUp is the request after an answer's calls were made.
func followUp(answer agent.Message) *agent.Request {
	request := modeltest.Ask("Rome?")
	request.Messages = append(request.Messages, answer)
	for _, call := range answer.ToolCalls {
		request.Messages = append(request.Messages, agent.ToolResult(call, "fine"))
	}
	return request
}

func TestThinking_RoundTrips(t *testing.T) {
	modeltest.Both(t, func(t *testing.T, streaming bool) {
		first := answer("["+strings.Join(thoughtful, ",")+"]", "tool_use", someUsage)
		if streaming {
			first = stream(thoughtfully()...)
		}
		s := serve(t, first, say("Sunny."))
		m := s.model(manual)
		response := mustAsk(t, m, streaming, modeltest.Ask("Rome?"))
		if got := response.Message.Text; got != "Ich sehe nach: ä" {
			t.Errorf("text is %q; thinking is not part of it", got)
		}
		if len(response.Message.ToolCalls) != 2 {
			t.Fatalf("calls are %v", response.Message.ToolCalls)
		}
		golden.CompareJSON(t, "testdata/opaque.json", response.Message.Opaque, "\t")

		modeltest.MustGenerate(t, m, followUp(stored(t, response.Message)))
		wantThoughtful(t, s.Requests()[1].Messages[1].Content, thoughtful...)
	})
}

// stored is the message after its run was saved and loaded.
func stored(t *testing.T, message agent.Message) agent.Message {
	t.Helper()
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	var loaded agent.Message
	if err := json.Unmarshal(text, &loaded); err != nil {
		t.Fatal(err)
	}
	return loaded
}

// thoughtfulMessage has its opaque part from a file, like a run that has waited since the first
// version.
func thoughtfulMessage(t *testing.T) agent.Message {
	t.Helper()
	opaque, err := os.ReadFile("testdata/opaque-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	message := agent.Assistant("Ich sehe nach: ä",
		agent.ToolCall{ID: "toolu_a", Name: "weather", Args: `{"city":"Rome"}`}, agent.ToolCall{ID: "toolu_b", Name: "clock", Args: `{}`})
	message.Opaque = opaque
	return message
}

func TestThinking_OfTheFirstVersionIsUnderstood(t *testing.T) {
	s := serve(t, say("Sunny."))
	modeltest.MustGenerate(t, s.model(manual), followUp(thoughtfulMessage(t)))
	wantThoughtful(t, s.Requests()[0].Messages[1].Content, thoughtful...)
}

// Filters may change an agent's messages, and agents assign their own call ids.
func TestThinking_OfAChangedMessageComesFirst(t *testing.T) {
	thoughts := []string{thoughtful[0], thoughtful[2], thoughtful[5]}
	for name, test := range map[string]struct {
		change func(*agent.Message)
		want   []string
	}{
		"id of a call": {
			func(m *agent.Message) { m.ToolCalls[0].ID = "mine_1" },
			append(append([]string{}, thoughtful[:4]...), strings.Replace(thoughtful[4], "toolu_a", "mine_1", 1), thoughtful[5], thoughtful[6]),
		},
		"longer text": {func(m *agent.Message) { m.Text += "!" }, append(thoughts, `{"type":"text","text":"Ich sehe nach: ä!"}`, thoughtful[4], thoughtful[6])},
		"no text":     {func(m *agent.Message) { m.Text = "" }, append(thoughts, thoughtful[4], thoughtful[6])},
		"cut letter":  {func(m *agent.Message) { m.Text = "Ich seheäach: ä" }, append(thoughts, `{"type":"text","text":"Ich seheäach: ä"}`, thoughtful[4], thoughtful[6])},
		"one call":    {func(m *agent.Message) { m.ToolCalls = m.ToolCalls[:1] }, append(thoughts, `{"type":"text","text":"Ich sehe nach: ä"}`, thoughtful[4])},
		"no call":     {func(m *agent.Message) { m.ToolCalls = nil }, append(thoughts, `{"type":"text","text":"Ich sehe nach: ä"}`)},
		"another call": {func(m *agent.Message) {
			m.ToolCalls = append(m.ToolCalls[:1:1], m.ToolCalls[1], agent.ToolCall{ID: "c", Name: "clock"})
		}, append(thoughts, `{"type":"text","text":"Ich sehe nach: ä"}`, thoughtful[4], thoughtful[6], `{"type":"tool_use","id":"c","name":"clock","input":{}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			message := thoughtfulMessage(t)
			test.change(&message)
			s := serve(t, say("Sunny."))
			modeltest.MustGenerate(t, s.model(), followUp(message))
			wantThoughtful(t, s.Requests()[0].Messages[1].Content, test.want...)
		})
	}
}

// Models cannot read each other's thinking; some reject it.
func TestThinking_IsNotForAnotherModel(t *testing.T) {
	s := serve(t, say("Sunny."))
	modeltest.MustGenerate(t, s.model(func(c *Config) { c.Model = "claude-other" }), followUp(thoughtfulMessage(t)))
	wantThoughtful(t, s.Requests()[0].Messages[1].Content, `{"type":"text","text":"Ich sehe nach: ä"}`, thoughtful[4], thoughtful[6])
}

func TestThinking_OpaqueOfOthers_IsLeftAlone(t *testing.T) {
	for _, opaque := range []string{
		`null`, `[]`, `"x"`, `{}`, `{"model":"claude-test","blocks":[{"type":"thinking"}]}`,
		`{"anthropic":2,"model":"claude-test","blocks":[{"type":"thinking"}]}`,
		`{"anthropic":1,"model":"claude-test","blocks":[{"type":"text","length":-3}]}`,
		`{"anthropic":1,"model":"claude-test","blocks":[{"type":"hologram"},{"type":"text","length":3}]}`, `{`,
	} {
		message := agent.Assistant("Yes.")
		message.Opaque = json.RawMessage(opaque)
		request := modeltest.Ask("Really?")
		request.Messages = append(request.Messages, message, agent.User("Sure?"))
		s := serve(t, say("Sure."))
		modeltest.MustGenerate(t, s.model(), request)
		wantThoughtful(t, s.Requests()[0].Messages[1].Content, `{"type":"text","text":"Yes."}`)
	}
}

func TestThinking_NothingIsKeptWithoutIt(t *testing.T) {
	s := serve(t, say("Sunny."))
	if got := modeltest.MustGenerate(t, s.model(), modeltest.Ask("Rome?")).Message.Opaque; got != nil {
		t.Errorf("kept %s", got)
	}
}

// An answer may be cut off while the model still thinks. The API does not accept that back.
func TestThinking_ThatLedToNothing_IsNotSentBack(t *testing.T) {
	s := serve(t, stream(join([]event{
		start(),
		begin(0, `{"type":"thinking","thinking":"","signature":""}`),
		delta(0, "thinking_delta", "thinking", "Where was I"),
		end(0),
	}, stop("max_tokens"))...), say("Sunny."))
	m := s.model(manual)
	cut := mustAsk(t, m, true, modeltest.Ask("Rome?"))
	if cut.FinishReason != agent.FinishLength || cut.Message.Text != "" {
		t.Errorf("got %+v", cut)
	}
	modeltest.MustGenerate(t, m, &agent.Request{Messages: []agent.Message{agent.User("Rome?"), cut.Message, agent.User("Well?")}})
	if got := s.Requests()[1].Messages; len(got) != 1 {
		t.Errorf("sent %+v", got)
	}
}

// The API rejects thinking of type "enabled" together with a forced call, and thinking blocks
// without thinking enabled. It accepts adaptive thinking.
func TestThinking_AndMustCall(t *testing.T) {
	for _, test := range []struct {
		kind string
		sent bool
	}{{"enabled", false}, {"adaptive", true}} {
		s := serve(t, say("Sunny."), say("Sunny."))
		m := s.model(func(c *Config) {
			c.Extra = map[string]any{"thinking": map[string]any{"type": test.kind, "budget_tokens": 2000}}
		})
		request := followUp(thoughtfulMessage(t))
		request.Tools = []agent.ToolSpec{modeltest.Weather}
		modeltest.MustGenerate(t, m, request)
		request.MustCall = "weather"
		modeltest.MustGenerate(t, m, request)
		free, forced := s.Requests()[0], s.Requests()[1]
		wantThoughtful(t, free.Messages[1].Content, thoughtful...)
		if free.Thinking == nil {
			t.Errorf("%s: a request without a forced call did not think", test.kind)
		}
		if sent := forced.Thinking != nil; sent != test.sent {
			t.Errorf("%s: thinking was sent with a forced call: %v; want %v", test.kind, sent, test.sent)
		}
		if !test.sent {
			wantThoughtful(t, forced.Messages[1].Content, `{"type":"text","text":"Ich sehe nach: ä"}`, thoughtful[4], thoughtful[6])
		}
	}
}

func TestThinking_SwitchedOff_ThoughtsAreNotSentBack(t *testing.T) {
	s := serve(t, say("Sunny."))
	m := s.model(func(c *Config) { c.Extra = map[string]any{"thinking": map[string]any{"type": "disabled"}} })
	modeltest.MustGenerate(t, m, followUp(thoughtfulMessage(t)))
}
