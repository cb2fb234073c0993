package anthropic

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

func TestConformance(t *testing.T) {
	leak := fmt.Sprintf(`{"type":"error","error":{"type":"api_error","message":"headers: x-api-key: %s"}}`, key)
	modeltest.Conform(t, modeltest.Client[wireRequest]{
		Package: "anthropic", Key: key, KeyVariable: "ANTHROPIC_API_KEY", KeyHeader: "X-Api-Key", RequestID: "Request-Id",
		Home: "https://api.anthropic.com/v1/messages", Path: "/v1/messages", Owned: reservedFields,
		Extra: map[string]any{"thinking": map[string]any{"type": "adaptive"}},
		New: func(s modeltest.Settings) (agent.Streamer, error) {
			m, err := New(Config{Model: s.Model, APIKey: s.APIKey, BaseURL: s.BaseURL, MaxTokens: s.MaxTokens, MaxRetries: s.MaxRetries, Extra: s.Extra, HTTPClient: s.HTTPClient})
			if m == nil {
				return nil, err
			}
			return m, err
		},
		Examine: taken, Say: say, Echo: echoing,
		Refuse: func(status int, message string) reply { return refuse(status, "some_error", message) },
		Open: func(w http.ResponseWriter) {
			modeltest.SendSlowly(w, frame(join([]event{start()}, textBlock(0, "Well"))...))
		},
		Failures: map[string]modeltest.Failure[wireRequest]{
			"bad request":  modeltest.Fails(refuse(400, "invalid_request_error", "prompt is too long"), 400, false, "prompt is too long (invalid_request_error) [request req_7]"),
			"unauthorized": modeltest.Fails(refuse(401, "authentication_error", "invalid x-api-key"), 401, false, "invalid x-api-key"),
			"not found":    modeltest.Fails(refuse(404, "not_found_error", "model: x"), 404, false, "model: x"),
			"too large":    modeltest.Fails(refuse(413, "request_too_large", "Too large."), 413, false, "Too large."),
			"overloaded":   modeltest.Fails(refuse(529, "overloaded_error", "Overloaded"), 529, true, "Overloaded (overloaded_error)"),
		},
		InvalidAnswers: map[string]modeltest.Failure[wireRequest]{
			"other object": modeltest.Fails(send(200, nil, `{"hello":"world"}`), 0, false, "not a message"),
			"null":         modeltest.Fails(send(200, nil, `null`), 0, false, "not a message"),
			"no content":   modeltest.Fails(send(200, nil, `{"type":"message","role":"assistant","content":null}`), 0, false, "not a message"),
			"malformed":    modeltest.Fails(send(200, nil, `{"content":[{"type":"text"]}`), 0, false, "json"),
		},
		Leaks: map[string]reply{
			"in a stream": stream(start(), event{"error", leak}),
			"in bad JSON": stream(start(), event{"error", key}),
		},
	})
}
