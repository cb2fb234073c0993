package openai

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

// echoing answers with the last message, complete or streamed as requested.
func echoing(echo func(string) string) reply {
	return func(w http.ResponseWriter, r *http.Request, asked wireRequest) {
		text := echo(*asked.Messages[len(asked.Messages)-1].Content)
		if asked.Stream {
			stream(textChunk(text), chunk(`{}`, "stop"))(w, r, asked)
			return
		}
		say(text)(w, r, asked)
	}
}

func TestStream_TextAndCallsInterleaved(t *testing.T) {
	s := serve(t, stream(
		chunk(`{"role":"assistant","content":"","refusal":null}`, ""),
		textChunk("Zwei Stä"),
		textChunk("dte: 東京 🙂"),
		chunk(`{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"weather","arguments":""}}]}`, ""),
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\""}}]}`, ""),
		chunk(`{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"clock","arguments":"{"}}]}`, ""),
		chunk(`{"content":" gleich","tool_calls":[{"index":0,"function":{"arguments":":\"Zürich\"}"}},{"index":1,"function":{"arguments":"}"}}]}`, ""),
		chunk(`{}`, "tool_calls"),
		usageChunk(`{"prompt_tokens":50,"completion_tokens":20,"total_tokens":70,"prompt_tokens_details":{"cached_tokens":32}}`),
	))
	texts, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Zürich und 東京?")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Zwei Stä", "dte: 東京 🙂", " gleich"}, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	modeltest.WantResponse(t, response, &agent.Response{
		Message: agent.Assistant("Zwei Städte: 東京 🙂 gleich",
			agent.ToolCall{ID: "call_a", Name: "weather", Args: `{"city":"Zürich"}`},
			agent.ToolCall{ID: "call_b", Name: "clock", Args: `{}`}),
		Usage:        agent.Usage{InputTokens: 50, OutputTokens: 20, CachedTokens: 32},
		Model:        "gpt-test-2026-09-01",
		FinishReason: agent.FinishToolCalls,
	})
	if options := s.Requests()[0].StreamOptions; options == nil || !options.IncludeUsage {
		t.Error("usage was not requested")
	}
}

func TestStream_WithoutUsage_IsFine(t *testing.T) {
	s := serve(t, stream(textChunk("Hi"), chunk(`{}`, "stop")))
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Hello")))
	if err != nil {
		t.Fatal(err)
	}
	if response.Message.Text != "Hi" || response.Usage != (agent.Usage{}) {
		t.Errorf("got %+v", response)
	}
}

// Some servers send the usage so far with each chunk, or once and not at the end.
func TestStream_UsageBeforeTheEnd_IsNotLost(t *testing.T) {
	early := strings.Replace(textChunk("Hi"), `"usage":null`, `"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}`, 1)
	s := serve(t, stream(early, chunk(`{}`, "stop")))
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Hello")))
	if err != nil {
		t.Fatal(err)
	}
	if want := (agent.Usage{InputTokens: 5, OutputTokens: 1}); response.Usage != want {
		t.Errorf("usage is %+v; want %+v", response.Usage, want)
	}
}

func TestStream_Refusal_IsTheTextAndFiltered(t *testing.T) {
	s := serve(t, stream(chunk(`{"role":"assistant","refusal":"I can"}`, ""), chunk(`{"refusal":"not."}`, ""), chunk(`{}`, "stop")))
	texts, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Something bad")))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(texts, "") != "I cannot." || response.Message.Text != "I cannot." || response.FinishReason != agent.FinishContentFilter {
		t.Errorf("got %q, %+v", texts, response)
	}
}

// Some servers send every call complete, and all with index 0.
func TestStream_CallsWithOneIndexAreDistinguishedByID(t *testing.T) {
	s := serve(t, stream(
		chunk(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"weather","arguments":"{\"n\":1}"}}]}`, ""),
		chunk(`{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"weather","arguments":"{\"n\":2}"}}]}`, ""),
		chunk(`{}`, "stop"),
	))
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Two")))
	if err != nil {
		t.Fatal(err)
	}
	want := []agent.ToolCall{{ID: "a", Name: "weather", Args: `{"n":1}`}, {ID: "b", Name: "weather", Args: `{"n":2}`}}
	if diff := cmp.Diff(want, response.Message.ToolCalls); diff != "" || response.FinishReason != agent.FinishToolCalls {
		t.Errorf("finish %q, calls (-want +got):\n%s", response.FinishReason, diff)
	}
}

// Others repeat id and name in every chunk.
func TestStream_RepeatedIDAndName_AreOneCall(t *testing.T) {
	s := serve(t, stream(
		chunk(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"weather","arguments":"{\"n\":"}}]}`, ""),
		chunk(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"weather","arguments":"1}"}}]}`, ""),
		chunk(`{}`, "tool_calls"),
	))
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("One")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]agent.ToolCall{{ID: "a", Name: "weather", Args: `{"n":1}`}}, response.Message.ToolCalls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestStream_BrokenOff_IsAnError(t *testing.T) {
	half := events(textChunk("The answer is 4"))
	whole := events(textChunk("The answer is 42."), chunk(`{}`, "stop"))
	for name, broken := range map[string]reply{
		"connection cut": func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
			modeltest.SendSlowly(w, half)
			panic(http.ErrAbortHandler)
		},
		"connection cut after the reason to stop": func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
			modeltest.SendSlowly(w, whole)
			panic(http.ErrAbortHandler)
		},
		"connection cut inside of a chunk": func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
			modeltest.SendSlowly(w, half+`data: {"id":"chatcm`)
			panic(http.ErrAbortHandler)
		},
		"response ended": func(w http.ResponseWriter, _ *http.Request, _ wireRequest) { modeltest.SendSlowly(w, half) },
		"empty":          func(w http.ResponseWriter, _ *http.Request, _ wireRequest) { modeltest.SendSlowly(w, "") },
		// A gateway whose own connection broke may still end its stream regularly.
		"done without a reason to stop": stream(textChunk("The answer is 4")),
		"done without a choice":         stream(usageChunk(noUsage)),
	} {
		t.Run(name, func(t *testing.T) {
			_, response, err := modeltest.Collect(serve(t, broken).model().Stream(t.Context(), modeltest.Ask("6 × 7?")))
			failure, ok := errors.AsType[*agent.ModelError](err)
			if !ok || response != nil {
				t.Fatalf("got %v, %v; want a ModelError", response, err)
			}
			if !failure.Temporary || failure.Status != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %+v; want a temporary one without status, an unexpected end", failure)
			}
		})
	}
}

// Not all servers send [DONE]. The finish reason is sufficient.
func TestStream_WithoutDone_IsWholeAfterTheReasonToStop(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
		modeltest.SendSlowly(w, events(textChunk("42"), chunk(`{}`, "stop")))
	})
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("6 × 7?")))
	if err != nil || response.Message.Text != "42" {
		t.Errorf("got %v, %v", response, err)
	}
}

func TestStream_ErrorInside(t *testing.T) {
	for _, test := range []struct {
		name, event string
		status      int
		temporary   bool
		says        string
	}{
		{"server error", `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`, 0, true, "The server had an error"},
		{"status as code", `{"error":{"message":"out of memory","type":"InternalServerError","code":500}}`, 500, true, "out of memory"},
		{"bad request as code", `{"error":{"message":"too long","type":"BadRequestError","code":400}}`, 400, false, "too long"},
		{"bad request as type", `{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`, 0, false, "context_length_exceeded"},
		{"only words", `{"error":"model crashed"}`, 0, true, "model crashed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			texts, response, err := modeltest.Collect(serve(t, stream(textChunk("Well"), test.event)).model().Stream(t.Context(), modeltest.Ask("Hello")))
			failure, ok := errors.AsType[*agent.ModelError](err)
			if !ok || response != nil || len(texts) != 1 {
				t.Fatalf("got %q, %v, %v; want a text and a ModelError", texts, response, err)
			}
			if failure.Status != test.status || failure.Temporary != test.temporary || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %+v", failure)
			}
		})
	}
}

func TestStream_MalformedChunk_IsAnErrorAndNotTemporary(t *testing.T) {
	_, response, err := modeltest.Collect(serve(t, stream(textChunk("Well"), `{"choices":[{`)).model().Stream(t.Context(), modeltest.Ask("Hello")))
	failure, ok := errors.AsType[*agent.ModelError](err)
	if !ok || response != nil || failure.Temporary {
		t.Fatalf("got %v, %v; want a lasting ModelError", response, err)
	}
}
