package openai

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

// Regression: a gateway that has begun to answer reports the failure of its provider with status
// 200. The partial answer was used, with an incomplete call in it.
func TestError_InAnAnswerThatBeganWell(t *testing.T) {
	const half = `"role":"assistant","content":"I delete","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"delete","arguments":"{}"}}]`
	stopped := func(said string) reply {
		return func(w http.ResponseWriter, r *http.Request, asked wireRequest) {
			if asked.Stream {
				last := strings.Replace(chunk(`{}`, "error"), `"logprobs":null`, `"logprobs":null`+said, 1)
				stream(chunk(`{`+half+`}`, ""), last)(w, r, asked)
				return
			}
			send(200, nil, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{`+half+`},"finish_reason":"error"`+said+`}]}`)(w, r, asked)
		}
	}
	for _, test := range []struct {
		name      string
		reply     reply
		status    int
		temporary bool
		says      string
	}{
		{"the provider's", stopped(`,"error":{"code":502,"message":"Provider disconnected"}`), 502, true, "Provider disconnected"},
		{"of the request", stopped(`,"error":{"code":400,"message":"too long"}`), 400, false, "too long"},
		{"in one word", stopped(`,"error":"crashed"`), 0, true, "crashed"},
		{"null", stopped(`,"error":null`), 0, true, "unspecified error"},
		{"without words", stopped(``), 0, true, "unspecified error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			modeltest.Both(t, func(t *testing.T, streaming bool) {
				wantFailure(t, modeltest.Hello(t.Context(), serve(t, test.reply).model(), streaming), test.status, test.temporary, test.says)
			})
		})
	}
	t.Run("instead of the answer", func(t *testing.T) {
		limited := send(200, nil, `{"error":{"code":429,"message":"Slow down.","metadata":{"provider_name":"x"}},"user_id":"u"}`)
		wantFailure(t, modeltest.Hello(t.Context(), serve(t, limited).model(), false), 429, true, "Slow down.")
	})
}

func TestError_ServiceRefusesBadConversations(t *testing.T) {
	for name, messages := range map[string][]agent.Message{
		"orphan result": {agent.User("x"), {Role: agent.RoleTool, CallID: "call_9", Text: "y"}},
		"open call":     {agent.User("x"), agent.Assistant("", agent.ToolCall{ID: "call_9", Name: "t", Args: "{}"}), agent.User("y")},
		"no messages":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t).model().Generate(t.Context(), &agent.Request{Messages: messages})
			wantFailure(t, err, 400, false, "invalid_request_error")
		})
	}
}

func wantFailure(t *testing.T, err error, status int, temporary bool, says string) {
	t.Helper()
	modeltest.WantFailure(t, err, agent.ModelError{Model: "gpt-test", Status: status, Temporary: temporary}, says)
}
