package anthropic

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

func mustAsk(t *testing.T, m *Model, streaming bool, request *agent.Request) *agent.Response {
	t.Helper()
	response, err := modeltest.Get(t.Context(), m, streaming, request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestError_StatusAndWordsOfTheService(t *testing.T) {
	page := "<html>\n<body>" + strings.Repeat(" upstream ä", 200) + "</body></html>"
	for _, test := range []struct {
		name      string
		reply     reply
		status    int
		temporary bool
		says      string
	}{
		{"bad request", refuse(400, "invalid_request_error", "prompt is too long"), 400, false, "prompt is too long (invalid_request_error) [request req_7]"},
		{"unauthorized", refuse(401, "authentication_error", "invalid x-api-key"), 401, false, "invalid x-api-key"},
		{"not found", refuse(404, "not_found_error", "model: x"), 404, false, "model: x"},
		{"timeout", refuse(408, "timeout_error", "Too slow."), 408, true, "Too slow."},
		{"conflict", refuse(409, "conflict_error", "Locked."), 409, true, "Locked."},
		{"too large", refuse(413, "request_too_large", "Too large."), 413, false, "Too large."},
		{"rate limit", refuse(429, "rate_limit_error", "Slow down."), 429, true, "Slow down."},
		{"server error", refuse(500, "api_error", "Sorry."), 500, true, "Sorry."},
		{"overloaded", refuse(529, "overloaded_error", "Overloaded"), 529, true, "Overloaded (overloaded_error)"},
		{"page of a gateway", send(502, http.Header{"Content-Type": {"text/html"}}, page), 502, true, "<html> <body> upstream ä"},
		{"no words", send(503, nil, ""), 503, true, "Service Unavailable"},
		{"no known words", send(422, nil, `{"detail":[{"msg":"field required"}]}`), 422, false, "field required"},
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
		"other object": {send(200, nil, `{"hello":"world"}`), false, "not a message"},
		"null":         {send(200, nil, `null`), false, "not a message"},
		"no content":   {send(200, nil, `{"type":"message","role":"assistant","content":null}`), false, "not a message"},
		"malformed":    {send(200, nil, `{"content":[{"type":"text"]}`), false, "json"},
		"a web page":   {send(200, html, `<html>Welcome</html>`), false, "text/html; is the base URL right?"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"content":[`)
		}, true, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFailure(t, modeltest.Hello(t.Context(), serve(t, test.reply).model(), false), 0, test.temporary, test.says)
		})
	}
	t.Run("an answer instead of a stream", func(t *testing.T) {
		whole := send(200, nil, `{"id":"m","type":"message","role":"assistant","content":[],"model":"x","stop_reason":"end_turn"}`)
		_, _, err := modeltest.Collect(serve(t, whole).model().Stream(t.Context(), modeltest.Ask("Hello")))
		wantFailure(t, err, 0, false, "not with a stream")
	})
	t.Run("a web page instead of a stream", func(t *testing.T) {
		err := modeltest.Hello(t.Context(), serve(t, send(200, html, `<html>Welcome</html>`)).model(), true)
		wantFailure(t, err, 0, false, "is the base URL right?")
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
		"orphan result": {agent.User("x"), {Role: agent.RoleTool, CallID: "toolu_9", Text: "y"}},
		"result first":  {{Role: agent.RoleTool, CallID: "toolu_9", Text: "y"}},
		"open call":     {agent.User("x"), agent.Assistant("", agent.ToolCall{ID: "toolu_9", Name: "t", Args: "{}"}), agent.User("y")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t).model().Generate(t.Context(), &agent.Request{Messages: messages})
			wantFailure(t, err, 400, false, "invalid_request_error")
		})
	}
}

func TestRetry_AfterRateLimitAndOverload(t *testing.T) {
	modeltest.Both(t, func(t *testing.T, streaming bool) {
		s := serve(t, refuse(429, "rate_limit_error", "Slow down."), refuse(529, "overloaded_error", "Overloaded"), echoing(strings.ToUpper))
		if err := modeltest.Hello(t.Context(), s.model(func(c *Config) { c.MaxRetries = nil }), streaming); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Requests()); n != 3 {
			t.Errorf("%d requests; want 3: two retries are the default", n)
		}
	})
}

func TestRetry_NoMoreThanConfigured(t *testing.T) {
	limit := refuse(429, "rate_limit_error", "Slow down.")
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
		s := serve(t, refuse(400, "invalid_request_error", "No."))
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
	leak := fmt.Sprintf(`{"type":"error","error":{"type":"api_error","message":"headers: x-api-key: %s"}}`, key)
	for name, reply := range map[string]reply{
		"in the message":  send(401, nil, leak),
		"in a page":       send(500, http.Header{"Content-Type": {"text/html"}}, "<html>"+key+"</html>"),
		"in the id":       send(400, http.Header{"Request-Id": {key}}, "{}"),
		"in a stream":     stream(start(), event{"error", leak}),
		"in bad JSON":     stream(start(), event{"error", key}),
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
			m := serve(t).model(func(c *Config) { c.HTTPClient = &http.Client{Transport: modeltest.Telltale{}} })
			modeltest.WantNoKey(t, modeltest.Hello(t.Context(), m, streaming), key)
		})
	})
	t.Run("of a wrong key", func(t *testing.T) {
		err := modeltest.Hello(t.Context(), serve(t).model(func(c *Config) { c.APIKey = "sk-wrong-" + key }), false)
		wantFailure(t, err, 401, false, "invalid x-api-key: [API key]")
	})
}

// Go follows redirects with all headers but a few that it knows; x-api-key is none of them.
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
	modeltest.WantFailure(t, err, agent.ModelError{Model: "claude-test", Status: status, Temporary: temporary}, says)
}
