package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
	"github.com/fermata-go/fermata/internal/golden"
)

func TestGenerate_PlainAnswer(t *testing.T) {
	s := serve(t, answer(`[{"type":"text","text":"Grüße aus "},{"type":"text","text":"東京 🙂"}]`, "end_turn",
		`{"input_tokens":20,"cache_creation_input_tokens":30,"cache_read_input_tokens":100,"output_tokens":9,"service_tier":"standard"}`))
	modeltest.WantResponse(t, modeltest.MustGenerate(t, s.model(), modeltest.Ask("Hello")), &agent.Response{
		Message:      agent.Assistant("Grüße aus 東京 🙂"),
		Usage:        agent.Usage{InputTokens: 150, OutputTokens: 9, CachedTokens: 100},
		Model:        "claude-test-20260901",
		FinishReason: agent.FinishStop,
	})
	if got := *s.Requests()[0].MaxTokens; got != 8192 {
		t.Errorf("limit is %d; want 8192", got)
	}
}

func TestGenerate_SeveralToolCalls(t *testing.T) {
	s := serve(t, answer(`[{"type":"text","text":"Looking."},
		{"type":"tool_use","id":"toolu_a","name":"weather","input":{"why":"asked","city":"Rome"}},
		{"type":"tool_use","id":"toolu_b","name":"clock","input":{}}]`, "tool_use", someUsage))
	request := modeltest.Ask("Rome?")
	request.Tools = []agent.ToolSpec{modeltest.Weather, {Name: "clock"}}
	modeltest.WantResponse(t, modeltest.MustGenerate(t, s.model(), request), &agent.Response{
		Message: agent.Assistant("Looking.",
			agent.ToolCall{ID: "toolu_a", Name: "weather", Args: `{"why":"asked","city":"Rome"}`},
			agent.ToolCall{ID: "toolu_b", Name: "clock", Args: `{}`}),
		Usage:        agent.Usage{InputTokens: 1, OutputTokens: 1},
		Model:        "claude-test-20260901",
		FinishReason: agent.FinishToolCalls,
	})
}

func TestGenerate_ReasonsToStop(t *testing.T) {
	for reason, want := range map[string]agent.FinishReason{
		"end_turn":                      agent.FinishStop,
		"tool_use":                      agent.FinishToolCalls,
		"max_tokens":                    agent.FinishLength,
		"refusal":                       agent.FinishContentFilter,
		"stop_sequence":                 "stop_sequence",
		"pause_turn":                    "pause_turn",
		"model_context_window_exceeded": agent.FinishLength,
	} {
		s := serve(t, answer(`[]`, reason, someUsage))
		if got := modeltest.MustGenerate(t, s.model(), modeltest.Ask("A story")).FinishReason; got != want {
			t.Errorf("finish for %s is %q; want %q", reason, got, want)
		}
	}
}

func TestGenerate_MustCall_NamesTheTool(t *testing.T) {
	s := serve(t, answer(`[{"type":"tool_use","id":"toolu_a","name":"weather","input":{}}]`, "tool_use", someUsage))
	request := modeltest.Ask("Rome?")
	request.Tools = []agent.ToolSpec{{Name: "clock"}, modeltest.Weather}
	request.MustCall = "weather"
	modeltest.MustGenerate(t, s.model(), request)
	if got, want := *s.Requests()[0].ToolChoice, (wireChoice{"tool", "weather"}); got != want {
		t.Errorf("tool choice is %v; want %v", got, want)
	}
}

// wholeConversation contains everything that an agent's history can contain.
func wholeConversation() *agent.Request {
	rome := agent.ToolCall{ID: "toolu_1", Name: "weather", Args: `{"why":"asked", "city":"Rome"}`}
	oslo := agent.ToolCall{ID: "toolu_2", Name: "weather", Args: `{"city":`}
	list := agent.ToolCall{ID: "toolu_3", Name: "weather", Args: `["Rome"]`}
	none := agent.ToolCall{ID: "functions.weather:0", Name: "weather"}
	failed, silent := agent.ToolResult(oslo, "the arguments are not JSON"), agent.ToolResult(list, "")
	failed.Failed, silent.Failed = true, true
	other := agent.Assistant("I am another agent.")
	other.Agent = "meteorologist"
	other.Opaque = json.RawMessage(`{"of":"another vendor"}`)
	return &agent.Request{
		Messages: []agent.Message{
			agent.System("You know the weather."),
			agent.System("Be brief."),
			agent.Assistant("Welcome!"),
			agent.User("Rome & <Oslo>?"),
			agent.User("Quickly."),
			agent.Assistant("", rome, oslo, list),
			agent.ToolResult(rome, "sunny"),
			failed,
			silent,
			agent.User("And now?"),
			agent.Assistant("Let me look.", none),
			agent.ToolResult(none, ""),
			agent.Assistant("Nothing."),
			other,
			agent.User(" \n"),
			agent.Assistant("\n"),
			agent.Assistant("The end."),
		},
		Tools: []agent.ToolSpec{modeltest.Weather, {Name: "clock"}},
	}
}

func TestGenerate_ConversationOnTheWire(t *testing.T) {
	s := serve(t, say("Sun in Rome."))
	modeltest.MustGenerate(t, s.model(func(c *Config) {
		c.MaxTokens = 500
		c.Temperature = new(0.0)
		c.Extra = map[string]any{"cache_control": map[string]any{"type": "ephemeral"}}
		c.Betas = []string{"one-2026-01-01", "two-2026-02-02"}
	}), wholeConversation())
	// services cache prompts by their prefix, so the order of fields matters
	golden.CompareJSON(t, "testdata/request.json", s.LastBody(), "\t")
	if got, want := s.Requests()[0].betas, "one-2026-01-01,two-2026-02-02"; got != want {
		t.Errorf("betas are %q; want %q", got, want)
	}
}

// The signatures of newer models' thinking, and the service's cache, are valid only while nothing
// before them changes.
func TestGenerate_RequestsAreDeterministic(t *testing.T) {
	whole := wholeConversation()
	var before []wireMessage
	for n := 3; n <= len(whole.Messages); n++ {
		last := whole.Messages[n-1]
		if last.Role == agent.RoleTool || len(last.ToolCalls) > 0 {
			continue // no request is made in the middle of a turn
		}
		s := serve(t, say("Yes."))
		modeltest.MustGenerate(t, s.model(), &agent.Request{Messages: whole.Messages[:n]})
		now := s.Requests()[0].Messages
		// The last turn is the user's, and may be extended.
		for i, message := range before[:max(0, len(before)-1)] {
			if diff := cmp.Diff(message, now[i]); diff != "" {
				t.Fatalf("turn %d with %d messages (-before +now):\n%s", i, n, diff)
			}
		}
		before = now
	}
}

func TestGenerate_NothingButASystemPrompt(t *testing.T) {
	s := serve(t, say("Good morning!"))
	modeltest.MustGenerate(t, s.model(), &agent.Request{Messages: []agent.Message{agent.System("Greet the visitor.")}})
	if got := s.Requests()[0].Messages; len(got) != 1 || got[0].Content[0].Text != filler {
		t.Errorf("sent %+v", got)
	}
}

// The service rejects non-streaming requests that may take more than ten minutes.
func TestGenerate_HighLimit_StreamsUnderneath(t *testing.T) {
	high := func(c *Config) { c.MaxTokens = 64000 }
	s := serve(t, stream(streamed("A long story")...))
	response := modeltest.MustGenerate(t, s.model(high), modeltest.Ask("A story"))
	if !s.Requests()[0].Stream || response.Message.Text != "A long story" || response.FinishReason != agent.FinishStop {
		t.Errorf("got %+v", response)
	}
	broken := serve(t, stream(start()))
	if response, err := broken.model(high).Generate(t.Context(), modeltest.Ask("A story")); err == nil || response != nil {
		t.Errorf("truncated: got %v, %v", response, err)
	}
}

// Regression: the service rejected a conversation with an invalid call of the model, and so every
// resume of the run.
func TestGenerate_ACallThatAModelMadeUpIsTakenBack(t *testing.T) {
	s := serve(t, say("Sun in Rome."))
	modeltest.MustGenerate(t, s.model(), modeltest.OddNames())
	if got := s.Requests()[0].Messages[1].Content[0].Name; got != "multi_tool_use_parallel" {
		t.Errorf("sent %q", got)
	}
}
