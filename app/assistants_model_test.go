package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/claudetest"
)

// chatModel is a scripted model behind chat completions. It looks orders up, refunds them, and then
// repeats the result of the refund word by word. A request that the real API would reject fails the
// test.
type chatModel struct {
	*testing.T
	url string
}

const chatModelKey = "sk-of-the-chat-model"

// chatRequest has the members that the adapter may send.
type chatRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []struct {
		Role       string `json:"role"`
		Content    string `json:"content"`
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

func newChatModel(t *testing.T) *chatModel {
	m := &chatModel{T: t}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *chatModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the server was killed
	}
	var q chatRequest
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&q); err != nil {
		m.Errorf("the model got %s: %v", body, err)
	}
	last := len(q.Messages) - 1
	if !q.Stream && len(q.Tools) == 0 && last > 0 && strings.Contains(q.Messages[last].Content, "The person who decides wants to know: Why?") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-5-mini","choices":[{"index":0,"message":{"role":"assistant","content":"It was scratched."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		return
	}
	switch {
	case r.Method != http.MethodPost, r.URL.Path != "/v1/chat/completions", r.Header.Get("Authorization") != "Bearer "+chatModelKey, !q.Stream, !q.StreamOptions.IncludeUsage,
		q.Model != "gpt-5-mini", last < 1, q.Messages[0].Role != "system", !strings.Contains(q.Messages[0].Content, "customers of a shop"), len(q.Tools) != 2:
		m.Errorf("the model got %s %s %s", r.Method, r.URL, body)
		http.Error(w, `{"error":{"message":"invalid"}}`, http.StatusBadRequest)
		return
	}
	names := make(map[string]string) // of calls by id
	prompt := ""
	for _, message := range q.Messages {
		for _, call := range message.ToolCalls {
			names[call.ID] = call.Function.Name
		}
		switch {
		case message.Role == "user":
			prompt = message.Content
		case message.Role == "tool" && names[message.ToolCallID] == "":
			m.Errorf("a result without a call: %s", body)
		}
	}
	tool := ""
	if q.Messages[last].Role == "tool" {
		tool = names[q.Messages[last].ToolCallID]
	}
	name, args, text := nextStep(prompt, tool, q.Messages[last].Content)
	m.send(w, fmt.Sprint("call_", last), name, args, text)
}

var wantsRefund = regexp.MustCompile(`Refund (\d+) € of order (\S+),`)

// nextStep returns the call or the text that follows a prompt and the result of a tool.
func nextStep(prompt, tool, result string) (name, args, text string) {
	refund := wantsRefund.FindStringSubmatch(prompt)
	switch {
	case refund == nil:
		return "", "", "Hello. Which order is it about?"
	case tool == "":
		return "get_order", fmt.Sprintf(`{"order":%q}`, refund[2]), ""
	case tool == "get_order":
		return "refund", fmt.Sprintf(`{"order":%q,"euros":%s.00,"reason":"scratched"}`, refund[2], refund[1]), ""
	}
	return "", "", "The shop says: " + result
}

// send streams a call or a text.
func (m *chatModel) send(w http.ResponseWriter, id, name, args, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta, finish string) {
		_, _ = fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-5-mini","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
		w.(http.Flusher).Flush()
	}
	if name != "" {
		chunk(fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, id, name, args), "null")
		chunk("{}", `"tool_calls"`)
	} else {
		for _, word := range strings.SplitAfter(text, " ") {
			content, err := json.Marshal(word)
			if err != nil {
				m.Error(err)
			}
			chunk(fmt.Sprintf(`{"content":%s}`, content), "null")
		}
		chunk("{}", `"stop"`)
	}
	_, _ = fmt.Fprint(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-5-mini\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":15}}\n\ndata: [DONE]\n\n")
}

// messagesScript is the same for a model of Anthropic.
func messagesScript(c claudetest.Conversation) []claudetest.Block {
	name, args, text := nextStep(c.Prompt, []string{"", "get_order", "refund"}[len(c.Results)], c.Last().Text)
	if name != "" {
		return []claudetest.Block{claudetest.Call(name, json.RawMessage(args))}
	}
	return []claudetest.Block{claudetest.Text(text)}
}

// shop is the server with the tools of the example.
type shop struct {
	url string

	mu      sync.Mutex
	calls   []string // method, path, token and body
	keys    []string // idempotency keys of refunds
	refund  http.HandlerFunc
	stopped chan struct{}
}

const shopToken = "Bearer token-of-the-shop"

func newShop(t *testing.T) *shop {
	s := &shop{stopped: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(s.stopped) })
	s.url = server.URL
	s.refund = func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "refund R-1 is done, authorized by "+shopToken)
	}
	return s
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // the record shows what is missing
	s.mu.Lock()
	s.calls = append(s.calls, fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header.Get("Authorization") == shopToken, " ", string(body)))
	refund := s.refund
	if r.Method == http.MethodPost {
		s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	}
	s.mu.Unlock()
	if r.Method == http.MethodPost {
		refund(w, r)
		return
	}
	fmt.Fprint(w, `{"order":"A-17","state":"delivered"}`)
}

// made returns the calls so far.
func (s *shop) made() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}
