package openai

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

func TestConformance(t *testing.T) {
	leak := fmt.Sprintf(`{"error":{"message":"headers: Authorization: Bearer %s","type":"server_error"}}`, key)
	modeltest.Conform(t, modeltest.Client[wireRequest]{
		Package: "openai", Key: key, KeyVariable: "OPENAI_API_KEY", KeyHeader: "Authorization", KeyScheme: "Bearer ", RequestID: "X-Request-Id",
		Home: "https://api.openai.com/v1/chat/completions", Base: "/v1", Path: "/chat/completions", Owned: reservedFields,
		Extra: map[string]any{"seed": 7},
		New: func(s modeltest.Settings) (agent.Streamer, error) {
			m, err := New(Config{Model: s.Model, APIKey: s.APIKey, BaseURL: s.BaseURL, MaxTokens: s.MaxTokens, MaxRetries: s.MaxRetries, Extra: s.Extra, HTTPClient: s.HTTPClient})
			if m == nil {
				return nil, err
			}
			return m, err
		},
		Examine: taken, Say: say, Echo: echoing,
		Refuse: func(status int, message string) reply { return refuse(status, "some_error", "", message) },
		Open:   func(w http.ResponseWriter) { modeltest.SendSlowly(w, events(textChunk("Well"))) },
		Failures: map[string]modeltest.Failure[wireRequest]{
			"bad request":           modeltest.Fails(refuse(400, "invalid_request_error", "context_length_exceeded", "Too many tokens."), 400, false, "Too many tokens. (context_length_exceeded) [request req_7]"),
			"unauthorized":          modeltest.Fails(refuse(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."), 401, false, "Incorrect API key provided."),
			"not found":             modeltest.Fails(refuse(404, "invalid_request_error", "model_not_found", "No such model."), 404, false, "No such model."),
			"type without a code":   modeltest.Fails(refuse(408, "timeout", "", "Too slow."), 408, true, "Too slow. (timeout)"),
			"a string for an error": modeltest.Fails(send(404, nil, `{"error":"model 'x' not found"}`), 404, false, "model 'x' not found"),
			"status as code":        modeltest.Fails(send(400, nil, `{"error":{"code":400,"message":"bad grammar","type":"invalid_request_error"}}`), 400, false, "bad grammar"),
			"no level around it":    modeltest.Fails(send(400, nil, `{"object":"error","message":"too long","type":"BadRequestError","code":400}`), 400, false, "too long"),
		},
		InvalidAnswers: map[string]modeltest.Failure[wireRequest]{
			"no choices":   modeltest.Fails(send(200, nil, `{"id":"x","object":"chat.completion","choices":[],"usage":null}`), 0, false, "no choices"),
			"other object": modeltest.Fails(send(200, nil, `{"hello":"world"}`), 0, false, "no choices"),
			"null":         modeltest.Fails(send(200, nil, `null`), 0, false, "no choices"),
			"malformed":    modeltest.Fails(send(200, nil, `{"choices":[{"index":0]}`), 0, false, "json"),
		},
		Leaks: map[string]reply{"in a stream": stream(textChunk("Well"), leak)},
	})
}
