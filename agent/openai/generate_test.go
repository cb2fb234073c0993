package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
	"github.com/fermata-go/fermata/internal/golden"
)

func TestGenerate_PlainAnswer(t *testing.T) {
	s := serve(t, answer(`{"role":"assistant","content":"Grüße aus 東京 🙂","refusal":null,"annotations":[]}`, "stop",
		`{"prompt_tokens":120,"completion_tokens":9,"total_tokens":129,"prompt_tokens_details":{"cached_tokens":100,"audio_tokens":0},
		"completion_tokens_details":{"reasoning_tokens":4}}`))
	modeltest.WantResponse(t, modeltest.MustGenerate(t, s.model(), modeltest.Ask("Hello")), &agent.Response{
		Message:      agent.Assistant("Grüße aus 東京 🙂"),
		Usage:        agent.Usage{InputTokens: 120, OutputTokens: 9, CachedTokens: 100},
		Model:        "gpt-test-2026-09-01",
		FinishReason: agent.FinishStop,
	})
}

func TestGenerate_SeveralToolCalls(t *testing.T) {
	s := serve(t, answer(lines(`{"role":"assistant","content":null,"refusal":null,"tool_calls":[`,
		`{"id":"call_a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}},`,
		`{"id":"call_b","type":"function","function":{"name":"weather","arguments":"not JSON"}}]}`), "tool_calls", noUsage))
	request := modeltest.Ask("Rome and Oslo?")
	request.Tools = []agent.ToolSpec{modeltest.Weather}
	modeltest.WantResponse(t, modeltest.MustGenerate(t, s.model(), request), &agent.Response{
		Message: agent.Assistant("",
			agent.ToolCall{ID: "call_a", Name: "weather", Args: `{"city":"Rome"}`},
			agent.ToolCall{ID: "call_b", Name: "weather", Args: `not JSON`}),
		Usage:        agent.Usage{InputTokens: 1, OutputTokens: 1},
		Model:        "gpt-test-2026-09-01",
		FinishReason: agent.FinishToolCalls,
	})
}

// OpenAI sends "stop" if the call was forced; for an agent it is a tool call all the same.
func TestGenerate_MustCall_NamesTheToolAndFinishesWithCalls(t *testing.T) {
	s := serve(t, answer(lines(`{"role":"assistant","content":null,"refusal":null,"tool_calls":[`,
		`{"id":"call_a","type":"function","function":{"name":"weather","arguments":"{}"}}]}`), "stop", noUsage))
	request := modeltest.Ask("Rome?")
	request.Tools = []agent.ToolSpec{{Name: "clock"}, modeltest.Weather}
	request.MustCall = "weather"
	if got := modeltest.MustGenerate(t, s.model(), request).FinishReason; got != agent.FinishToolCalls {
		t.Errorf("finish is %q; want %q", got, agent.FinishToolCalls)
	}
	if got, want := string(s.Requests()[0].ToolChoice), `{"function":{"name":"weather"},"type":"function"}`; got != want {
		t.Errorf("tool choice is %s; want %s", got, want)
	}
}

func TestGenerate_Refusal_IsTheTextAndFiltered(t *testing.T) {
	s := serve(t, answer(`{"role":"assistant","content":null,"refusal":"I cannot help with that."}`, "stop", noUsage))
	response := modeltest.MustGenerate(t, s.model(), modeltest.Ask("Something bad"))
	if response.Message.Text != "I cannot help with that." || response.FinishReason != agent.FinishContentFilter {
		t.Errorf("got %q, finish %q", response.Message.Text, response.FinishReason)
	}
}

func TestGenerate_OtherReasonsToStopArePassedOn(t *testing.T) {
	for _, reason := range []string{"length", "content_filter", "model_length"} {
		s := serve(t, answer(`{"role":"assistant","content":"Once upon"}`, reason, noUsage))
		if got := modeltest.MustGenerate(t, s.model(), modeltest.Ask("A story")).FinishReason; string(got) != reason {
			t.Errorf("finish is %q; want %q", got, reason)
		}
	}
}

// conversation contains everything that an agent's history can contain.
func conversation() *agent.Request {
	rome := agent.ToolCall{ID: "call_1", Name: "weather", Args: `{"why":"asked", "city":"Rome"}`}
	oslo := agent.ToolCall{ID: "call_2", Name: "weather", Args: `{"city":`}
	nowhere := agent.ToolCall{ID: "call_3", Name: "weather"}
	long := agent.ToolCall{ID: strings.Repeat("x", 64), Name: "weather", Args: "{}"}
	failed := agent.ToolResult(oslo, "the arguments are not JSON")
	failed.Failed = true
	second := agent.Assistant("Let me look.", nowhere, long)
	second.Agent = "meteorologist"
	second.Opaque = json.RawMessage(`{"of":"another vendor"}`)
	return &agent.Request{
		Messages: []agent.Message{
			agent.System("You know the weather."),
			agent.System("Be brief."),
			agent.User("Rome & <Oslo>?"),
			agent.Assistant("", rome, oslo),
			agent.ToolResult(rome, "sunny"),
			failed,
			second,
			agent.ToolResult(nowhere, ""),
			agent.ToolResult(long, "rain"),
			agent.Assistant(""),
			agent.User("Well?"),
			agent.User("Hurry."),
		},
		Tools: []agent.ToolSpec{modeltest.Weather, {Name: "clock"}},
	}
}

func TestGenerate_ConversationOnTheWire(t *testing.T) {
	s := serve(t, say("Sun in Rome."))
	modeltest.MustGenerate(t, s.model(func(c *Config) {
		c.MaxTokens = 500
		c.Temperature = new(0.0)
		c.Extra = map[string]any{"reasoning_effort": "low", "seed": 7}
	}), conversation())
	// services cache prompts by their prefix, so the order of fields matters
	golden.CompareJSON(t, "testdata/request.json", s.LastBody(), "\t")
}

func TestGenerate_LimitHasTheNameThatTheServiceKnows(t *testing.T) {
	for _, test := range []struct{ base, want string }{
		{"", "max_completion_tokens"},
		{"http://localhost:1/v1", "max_tokens"},
	} {
		m, err := New(Config{Model: "m", APIKey: key, BaseURL: test.base, MaxTokens: 42})
		if err != nil {
			t.Fatal(err)
		}
		params, err := m.params(modeltest.Ask("x"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`%q:42`, test.want); !strings.Contains(string(body), want) {
			t.Errorf("base URL %q: sent %s; want %s", test.base, body, want)
		}
	}
}

// Regression: the service rejected a conversation with an invalid call of the model, and so every
// resume of the run.
func TestGenerate_ACallThatAModelMadeUpIsTakenBack(t *testing.T) {
	s := serve(t, say("Sun in Rome."))
	modeltest.MustGenerate(t, s.model(), modeltest.OddNames())
	if got := s.Requests()[0].Messages[1].ToolCalls[0].Function.Name; got != "multi_tool_use_parallel" {
		t.Errorf("sent %q", got)
	}
}
