package anthropic

import (
	"errors"
	"fmt"
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
		text := echo(asked.Messages[len(asked.Messages)-1].Content[0].Text)
		if asked.Stream {
			stream(streamed(text)...)(w, r, asked)
			return
		}
		say(text)(w, r, asked)
	}
}

func TestStream_TextAndCallsInterleaved(t *testing.T) {
	// Deltas of blocks may be interleaved.
	between := []event{
		begin(1, `{"type":"tool_use","id":"toolu_a","name":"weather","input":{}}`),
		delta(1, "input_json_delta", "partial_json", `{"city"`),
		begin(2, `{"type":"tool_use","id":"toolu_b","name":"clock","input":{}}`),
		delta(1, "input_json_delta", "partial_json", `: "Zürich"}`),
		end(1),
		end(2),
	}
	s := serve(t, stream(join([]event{start()}, textBlock(0, "Zwei Stä", "dte: 東京 🙂"), between, textBlock(3, " gleich"), stop("tool_use"))...))
	texts, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Zürich und 東京?")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Zwei Stä", "dte: 東京 🙂", " gleich"}, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	modeltest.WantResponse(t, response, &agent.Response{
		Message: agent.Assistant("Zwei Städte: 東京 🙂 gleich",
			agent.ToolCall{ID: "toolu_a", Name: "weather", Args: `{"city": "Zürich"}`},
			agent.ToolCall{ID: "toolu_b", Name: "clock", Args: `{}`}),
		Usage:        agent.Usage{InputTokens: 135, OutputTokens: 15, CachedTokens: 100},
		Model:        "claude-test-20260901",
		FinishReason: agent.FinishToolCalls,
	})
}

func TestStream_UsageAtTheEndReplacesThatOfTheBeginning(t *testing.T) {
	s := serve(t, stream(start(),
		event{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":` +
			`{"input_tokens":30,"cache_creation_input_tokens":0,"cache_read_input_tokens":200,"output_tokens":7}}`},
		event{"message_stop", `{"type":"message_stop"}`}))
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Hello")))
	if err != nil {
		t.Fatal(err)
	}
	if want := (agent.Usage{InputTokens: 230, OutputTokens: 7, CachedTokens: 200}); response.Usage != want {
		t.Errorf("usage is %+v; want %+v", response.Usage, want)
	}
}

// An agent that took it for a call without arguments would make the call.
func TestStream_CallCutOffByTheLimitKeepsPartialArguments(t *testing.T) {
	s := serve(t, stream(join([]event{start()}, callBlock(0, "toolu_a", "delete", `{"path":"/tm`), stop("max_tokens"))...))
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Clean up")))
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Message.ToolCalls[0].Args; got != `{"path":"/tm` || response.FinishReason != agent.FinishLength {
		t.Errorf("args are %q, finish %q", got, response.FinishReason)
	}
}

// A gateway may send usage again after the end. Without its finish reason the last call would not
// be marked as cut off.
func TestStream_TheReasonToStopIsKept(t *testing.T) {
	count := event{"message_delta", `{"type":"message_delta","delta":{"stop_reason":null,"stop_sequence":null},"usage":{"output_tokens":16}}`}
	end := stop("max_tokens")
	s := serve(t, stream(join([]event{start()}, callBlock(0, "toolu_a", "delete", `{}`), []event{end[0], count, end[1]})...))
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Clean up")))
	if err != nil {
		t.Fatal(err)
	}
	if response.FinishReason != agent.FinishLength || response.Usage.OutputTokens != 16 {
		t.Errorf("finish is %q, usage %+v", response.FinishReason, response.Usage)
	}
}

func TestStream_UnknownEventsAndBlocks_AreLeftOut(t *testing.T) {
	s := serve(t, stream(join([]event{
		start(),
		{"weather_report", `{"type":"weather_report"}`},
		begin(0, `{"type":"hologram","id":"h"}`),
		delta(0, "hologram_delta", "pixels", "…"),
		end(0),
		begin(1, `{"type":"tool_use","id":"toolu_a","name":"weather","input":{"city":"Rome"}}`),
		end(1),
	}, textBlock(2, "Hi"), stop("end_turn"))...))
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Hello")))
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Assistant("Hi", agent.ToolCall{ID: "toolu_a", Name: "weather", Args: `{"city":"Rome"}`})
	if diff := cmp.Diff(want, response.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestStream_BrokenOff_IsAnError(t *testing.T) {
	half := frame(join([]event{start()}, textBlock(0, "The answer is 4"))...)
	unstopped := frame(join([]event{start()}, textBlock(0, "The answer is 42."), stop("end_turn")[:1])...)
	cut := func(text string) reply {
		return func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
			modeltest.SendSlowly(w, text)
			panic(http.ErrAbortHandler)
		}
	}
	ended := func(text string) reply {
		return func(w http.ResponseWriter, _ *http.Request, _ wireRequest) { modeltest.SendSlowly(w, text) }
	}
	for name, broken := range map[string]reply{
		"connection cut":                    cut(half),
		"connection cut inside of an event": cut(half + "event: content_bl"),
		"connection cut before the end":     cut(unstopped),
		"response ended":                    ended(half),
		"response ended before the end":     ended(unstopped),
		"empty":                             ended(""),
		// A gateway whose own connection broke may still end its stream regularly.
		"done without a reason to stop": ended(half + frame(stop("end_turn")[1:]...)),
	} {
		t.Run(name, func(t *testing.T) {
			_, response, err := modeltest.Collect(serve(t, broken).model().Stream(t.Context(), modeltest.Ask("6 × 7?")))
			wantFailure(t, err, 0, true, "unexpected EOF")
			if response != nil || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v, %v", response, err)
			}
		})
	}
}

func TestStream_ErrorInside_HasTheStatusOfItsKind(t *testing.T) {
	for _, test := range []struct {
		kind      string
		status    int
		temporary bool
	}{
		{"overloaded_error", 529, true},
		{"api_error", 500, true},
		{"rate_limit_error", 429, true},
		{"timeout_error", 504, true},
		{"invalid_request_error", 400, false},
		{"authentication_error", 401, false},
		{"something_new_error", 0, true},
	} {
		t.Run(test.kind, func(t *testing.T) {
			data := fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":"Sorry"}}`, test.kind)
			s := serve(t, stream(join([]event{start()}, textBlock(0, "Well"), []event{{"error", data}})...))
			texts, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Hello")))
			wantFailure(t, err, test.status, test.temporary, "Sorry ("+test.kind+")")
			if response != nil || len(texts) != 1 {
				t.Errorf("got %q, %v", texts, response)
			}
		})
	}
}

func TestStream_Malformed_IsAnErrorAndNotTemporary(t *testing.T) {
	for name, bad := range map[string]event{
		"no JSON":               {"content_block_start", `{"type":`},
		"delta without a block": delta(5, "text_delta", "text", "?"),
	} {
		t.Run(name, func(t *testing.T) {
			_, response, err := modeltest.Collect(serve(t, stream(join([]event{start(), bad}, stop("end_turn"))...)).model().Stream(t.Context(), modeltest.Ask("Hello")))
			wantFailure(t, err, 0, false, "")
			if response != nil {
				t.Errorf("got %v", response)
			}
		})
	}
}

func TestStream_EndsWithTheMessage_NotWithTheConnection(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ wireRequest) {
		modeltest.SendSlowly(w, frame(streamed("Done")...))
		<-r.Context().Done()
		close(gone)
	})
	_, response, err := modeltest.Collect(s.model().Stream(t.Context(), modeltest.Ask("Hello")))
	if err != nil || !strings.HasPrefix(response.Message.Text, "Done") {
		t.Fatalf("got %v, %v", response, err)
	}
	<-gone
}
