package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

func TestError_StatusAndWordsOfTheService(t *testing.T) {
	page := "<html>\n<body>" + strings.Repeat(" upstream ä", 200) + "</body></html>"
	for _, test := range []struct {
		name      string
		reply     reply
		status    int
		temporary bool
		says      string
	}{
		{"bad request", refuse(400, "invalid_request_error", "context_length_exceeded", "Too many tokens."), 400, false, "Too many tokens. (context_length_exceeded) [request req_7]"},
		{"unauthorized", refuse(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."), 401, false, "Incorrect API key provided."},
		{"not found", refuse(404, "invalid_request_error", "model_not_found", "No such model."), 404, false, "No such model."},
		{"timeout", refuse(408, "timeout", "", "Too slow."), 408, true, "Too slow. (timeout)"},
		{"conflict", refuse(409, "conflict", "", "Locked."), 409, true, "Locked."},
		{"rate limit", refuse(429, "requests", "rate_limit_exceeded", "Slow down."), 429, true, "Slow down."},
		{"server error", refuse(500, "server_error", "", "Sorry."), 500, true, "Sorry."},
		{"page of a gateway", send(502, http.Header{"Content-Type": {"text/html"}}, page), 502, true, "<html> <body> upstream ä"},
		{"no words", send(503, nil, ""), 503, true, "Service Unavailable"},
		{"no known words", send(422, nil, `{"detail":[{"msg":"field required"}]}`), 422, false, "field required"},
		{"a string for an error", send(404, nil, `{"error":"model 'x' not found"}`), 404, false, "model 'x' not found"},
		{"status as code", send(400, nil, `{"error":{"code":400,"message":"bad grammar","type":"invalid_request_error"}}`), 400, false, "bad grammar"},
		{"no level around it", send(400, nil, `{"object":"error","message":"too long","type":"BadRequestError","code":400}`), 400, false, "too long"},
		{"redirect", send(307, http.Header{"Location": {"/v1/elsewhere"}}, ""), 307, false, "redirects"},
	} {
		t.Run(test.name, func(t *testing.T) {
			modeltest.Both(t, func(t *testing.T, streaming bool) {
				err := modeltest.Hello(t.Context(), serve(t, test.reply).model(), streaming)
				wantFailure(t, err, test.status, test.temporary, test.says)
				if len(err.Error()) > 500 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			})
		})
	}
}

func TestError_AnswerThatIsNone(t *testing.T) {
	html := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	for name, test := range map[string]struct {
		reply     reply
		temporary bool
		says      string
	}{
		"no choices":   {send(200, nil, `{"id":"x","object":"chat.completion","choices":[],"usage":null}`), false, "no choices"},
		"other object": {send(200, nil, `{"hello":"world"}`), false, "no choices"},
		"null":         {send(200, nil, `null`), false, "no choices"},
		"malformed":    {send(200, nil, `{"choices":[{"index":0]}`), false, "json"},
		"a web page":   {send(200, html, `<html>Welcome</html>`), false, "text/html; is the base URL right?"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"choices":[`)
		}, true, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, test.reply).model().Generate(t.Context(), modeltest.Ask("Hello"))
			wantFailure(t, err, 0, test.temporary, test.says)
		})
	}
	t.Run("an answer instead of a stream", func(t *testing.T) {
		whole := send(200, nil, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`)
		_, _, err := modeltest.Collect(serve(t, whole).model().Stream(t.Context(), modeltest.Ask("Hello")))
		wantFailure(t, err, 0, false, "not with a stream")
	})
	t.Run("a web page instead of a stream", func(t *testing.T) {
		_, _, err := modeltest.Collect(serve(t, send(200, html, `<html>Welcome</html>`)).model().Stream(t.Context(), modeltest.Ask("Hello")))
		wantFailure(t, err, 0, false, "is the base URL right?")
	})
}

// A gateway that has begun to answer says with a status of 200 that its provider failed. What came until then was taken for the answer, with half a call in it.
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
		{"null", stopped(`,"error":null`), 0, true, "stopped with an error"},
		{"without words", stopped(``), 0, true, "stopped with an error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			modeltest.Both(t, func(t *testing.T, streaming bool) {
				wantFailure(t, modeltest.Hello(t.Context(), serve(t, test.reply).model(), streaming), test.status, test.temporary, test.says)
			})
		})
	}
	t.Run("in the place of the answer", func(t *testing.T) {
		limited := send(200, nil, `{"error":{"code":429,"message":"Slow down.","metadata":{"provider_name":"x"}},"user_id":"u"}`)
		wantFailure(t, modeltest.Hello(t.Context(), serve(t, limited).model(), false), 429, true, "Slow down.")
	})
}

func TestError_NobodyThere_IsTemporary(t *testing.T) {
	modeltest.Both(t, func(t *testing.T, streaming bool) {
		s := serve(t)
		m := s.model()
		s.Close()
		wantFailure(t, modeltest.Hello(t.Context(), m, streaming), 0, true, "refused")
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

func TestRetry_AfterTheRateLimit(t *testing.T) {
	modeltest.Both(t, func(t *testing.T, streaming bool) {
		s := serve(t, refuse(429, "requests", "rate_limit_exceeded", "Slow down."), refuse(500, "server_error", "", "Sorry."),
			echoing(strings.ToUpper))
		if err := modeltest.Hello(t.Context(), s.model(func(c *Config) { c.MaxRetries = nil }), streaming); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Requests()); n != 3 {
			t.Errorf("%d requests; want 3: two retries are the default", n)
		}
	})
}

func TestRetry_NoMoreThanConfigured(t *testing.T) {
	limit := refuse(429, "requests", "rate_limit_exceeded", "Slow down.")
	for _, retries := range []int{0, 1} {
		modeltest.Both(t, func(t *testing.T, streaming bool) {
			s := serve(t, limit, limit)
			err := modeltest.Hello(t.Context(), s.model(func(c *Config) { c.MaxRetries = &retries }), streaming)
			wantFailure(t, err, 429, true, "Slow down.")
			if n := len(s.Requests()); n != retries+1 {
				t.Errorf("%d requests; want %d", n, retries+1)
			}
		})
	}
}

func TestRetry_NotAfterARefusal(t *testing.T) {
	modeltest.Both(t, func(t *testing.T, streaming bool) {
		s := serve(t, refuse(400, "invalid_request_error", "", "No."))
		wantFailure(t, modeltest.Hello(t.Context(), s.model(func(c *Config) { c.MaxRetries = new(5) }), streaming), 400, false, "No.")
	})
}

func TestContext_EndedWhileWaiting_ReturnsItsError(t *testing.T) {
	modeltest.Both(t, func(t *testing.T, streaming bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := serve(t, func(_ http.ResponseWriter, r *http.Request, _ wireRequest) {
			cancel()
			<-r.Context().Done()
		})
		if err := modeltest.Hello(ctx, s.model(), streaming); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v; want context.Canceled", err)
		}
	})
}

func TestContext_EndedBefore_NothingIsAsked(t *testing.T) {
	modeltest.Both(t, func(t *testing.T, streaming bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if err := modeltest.Hello(ctx, serve(t).model(), streaming); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v; want context.DeadlineExceeded", err)
		}
	})
}

func TestError_NeverHoldsTheKey(t *testing.T) {
	leak := fmt.Sprintf(`{"error":{"message":"headers: Authorization: Bearer %s","type":"server_error"}}`, key)
	for name, reply := range map[string]reply{
		"in the message":  send(401, nil, leak),
		"in a page":       send(500, http.Header{"Content-Type": {"text/html"}}, "<html>Bearer "+key+"</html>"),
		"in the id":       send(400, http.Header{"X-Request-Id": {key}}, "{}"),
		"in a stream":     stream(textChunk("Well"), leak),
		"in no JSON":      send(200, nil, key),
		"in a media type": send(200, http.Header{"Content-Type": {"text/" + key}}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			modeltest.Both(t, func(t *testing.T, streaming bool) {
				modeltest.WantNoKey(t, modeltest.Hello(t.Context(), serve(t, reply).model(), streaming), key)
			})
		})
	}
	t.Run("in an error of the transport", func(t *testing.T) {
		modeltest.Both(t, func(t *testing.T, streaming bool) {
			modeltest.WantNoKey(t, modeltest.Hello(t.Context(), serve(t).model(func(c *Config) { c.HTTPClient = &http.Client{Transport: modeltest.Telltale{}} }), streaming), key)
		})
	})
	t.Run("of a wrong key", func(t *testing.T) {
		_, err := serve(t).model(func(c *Config) { c.APIKey = "sk-wrong-" + key }).Generate(t.Context(), modeltest.Ask("Hello"))
		wantFailure(t, err, 401, false, "Incorrect API key provided: [API key].")
	})
}

// A redirect to another host would take the conversation there.
func TestRedirect_ToAnotherHost_IsNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	modeltest.Both(t, func(t *testing.T, streaming bool) {
		s := serve(t, send(307, http.Header{"Location": {elsewhere.URL}}, ""))
		wantFailure(t, modeltest.Hello(t.Context(), s.model(), streaming), 307, false, "redirects")
	})
}

func wantFailure(t *testing.T, err error, status int, temporary bool, says string) {
	t.Helper()
	modeltest.WantFailure(t, err, agent.ModelError{Model: "gpt-test", Status: status, Temporary: temporary}, says)
}
