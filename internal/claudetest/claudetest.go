// Package claudetest has what tests need to drive the real Claude CLI without a network: the CLI
// from npm, and a scripted model behind a strict stub of the Messages API.
//
//	model := claudetest.NewModel(t, func(c claudetest.Conversation) []claudetest.Block {
//		if c.Turn == 0 {
//			return []claudetest.Block{claudetest.Call("Bash", map[string]any{"command": "date"})}
//		}
//		return []claudetest.Block{claudetest.Text("It is " + c.Last().Text)}
//	})
//	p, err := claude.New(claude.Config{Command: claudetest.CLI(t), BaseURL: model.URL, APIKeyFile: model.KeyFile, …})
//
// The script is a function of the conversation, so it needs no state and survives restarts.
package claudetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/testtier"
)

// CLI returns the path of the CLI that "make need-claude" installs. The test fails without it.
func CLI(t testing.TB) string {
	t.Helper()
	testtier.Needs(t, "the Claude CLI")
	_, file, _, _ := runtime.Caller(0)
	folder := filepath.Dir(file)
	if !filepath.IsAbs(folder) { // built with -trimpath
		folder = moduleFolder(t, "internal/claudetest")
	}
	matches, err := filepath.Glob(filepath.Join(folder, "cli/node_modules/@anthropic-ai/claude-agent-sdk-*/claude"))
	if err != nil || len(matches) != 1 {
		t.Fatalf("the Claude CLI is missing; run make need-claude (%d found, %v)", len(matches), err)
	}
	return matches[0]
}

// moduleFolder returns a folder of the module that contains the working directory.
func moduleFolder(t testing.TB, name string) string {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.work")); err == nil {
			return filepath.Join(at, name)
		}
		if at == filepath.Dir(at) {
			t.Fatal("the module's folder is not above the working directory")
		}
	}
}

// Block is a block of a message of the model.
type Block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text,omitempty"`
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

// Text is a text of the model.
func Text(text string) Block { return Block{Type: "text", Text: text} }

var calls atomic.Int64

// Call is a call of a tool, with a unique id.
func Call(tool string, input any) Block {
	data, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return Block{Type: "tool_use", ID: fmt.Sprintf("toolu_test%06d", calls.Add(1)), Name: tool, Input: data}
}

// Result is the result of a call, as the model gets it.
type Result struct {
	ID, Text string
	Failed   bool
}

// Conversation is what the model has seen.
type Conversation struct {
	// Prompt has the texts of the user's messages.
	Prompt string
	// Turn counts the model's own messages.
	Turn    int
	Results []Result
	Tools   []string
}

// Last returns the last result.
func (c Conversation) Last() Result {
	if len(c.Results) == 0 {
		return Result{}
	}
	return c.Results[len(c.Results)-1]
}

// Script returns the next message of the model.
type Script func(Conversation) []Block

// Model is a scripted model.
type Model struct {
	t testing.TB
	// URL is the base URL for the CLI. KeyFile contains the key that it must send.
	URL, KeyFile string
	script       Script

	mu       sync.Mutex
	calls    int
	failures bool
}

// AllowFailures lets the model reject calls without failing the test.
func (m *Model) AllowFailures() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures = true
}

const apiKey = "sk-ant-made-up-for-tests"

// NewModel starts a model. A request that the real API would reject fails the test.
func NewModel(t testing.TB, script Script) *Model {
	t.Helper()
	m := &Model{t: t, script: script, KeyFile: filepath.Join(t.TempDir(), "key")}
	if err := os.WriteFile(m.KeyFile, []byte(apiKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.URL = server.URL
	return m
}

// Calls returns how often the model was called.
func (m *Model) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	Messages  []message `json:"messages"`
	Tools     []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

type content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	ToolUseID string          `json:"tool_use_id"`
	Name      string          `json:"name"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the CLI was ended
	}
	switch {
	case r.Method == http.MethodHead && r.URL.Path == "/":
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages/count_tokens":
		_, _ = io.WriteString(w, `{"input_tokens":100}`)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		conversation, err := read(r, body)
		if err != nil {
			m.reject(w, err)
			return
		}
		m.mu.Lock()
		m.calls++
		number := m.calls
		m.mu.Unlock()
		if len(conversation.Tools) == 0 { // a title or a summary
			m.send(w, number, []Block{Text("none")})
			return
		}
		m.send(w, number, m.script(conversation))
	default:
		m.reject(w, fmt.Errorf("%s %s is not expected", r.Method, r.URL.Path))
	}
}

func (m *Model) reject(w http.ResponseWriter, err error) {
	m.mu.Lock()
	expected := m.failures
	m.mu.Unlock()
	if !expected {
		m.t.Errorf("the model: %v", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": err.Error()}})
}

// read checks a request as the API does, and returns the conversation.
func read(r *http.Request, body []byte) (Conversation, error) {
	var c Conversation
	var q request
	if err := json.Unmarshal(body, &q); err != nil {
		return c, err
	}
	switch {
	case r.Header.Get("X-Api-Key") != apiKey:
		return c, fmt.Errorf("the key %q is wrong", r.Header.Get("X-Api-Key"))
	case r.Header.Get("Anthropic-Version") == "":
		return c, fmt.Errorf("the header anthropic-version is missing")
	case q.Model == "" || q.MaxTokens < 1 || !q.Stream || len(q.Messages) == 0:
		return c, fmt.Errorf("a member is missing: model %q, max_tokens %d, stream %v, %d messages", q.Model, q.MaxTokens, q.Stream, len(q.Messages))
	case q.Messages[0].Role != "user":
		return c, fmt.Errorf("the first message is from the role %q", q.Messages[0].Role)
	}
	for _, tool := range q.Tools {
		c.Tools = append(c.Tools, tool.Name)
	}
	open := make(map[string]bool) // calls without a result
	for i, msg := range q.Messages {
		blocks, err := msg.blocks()
		if err != nil {
			return c, err
		}
		if msg.Role == "assistant" {
			if len(open) > 0 {
				return c, fmt.Errorf("message %d follows calls without results", i)
			}
			c.Turn++
		}
		for _, b := range blocks {
			switch {
			case b.Type == "text" && msg.Role == "user":
				c.Prompt += b.Text + "\n"
			case b.Type == "tool_use" && msg.Role == "assistant":
				open[b.ID] = true
			case b.Type == "tool_result" && msg.Role == "user":
				if !open[b.ToolUseID] {
					return c, fmt.Errorf("message %d has a result without a call", i)
				}
				delete(open, b.ToolUseID)
				c.Results = append(c.Results, Result{ID: b.ToolUseID, Text: text(b.Content), Failed: b.IsError})
			}
		}
		if msg.Role == "user" && len(open) > 0 {
			return c, fmt.Errorf("message %d does not have the results of all calls", i)
		}
	}
	return c, nil
}

func (m message) blocks() ([]content, error) {
	var plain string
	if json.Unmarshal(m.Content, &plain) == nil {
		return []content{{Type: "text", Text: plain}}, nil
	}
	var blocks []content
	err := json.Unmarshal(m.Content, &blocks)
	return blocks, err
}

// text returns the text of a result.
func text(data json.RawMessage) string {
	blocks, err := message{Content: data}.blocks()
	if err != nil {
		return string(data)
	}
	var all []string
	for _, b := range blocks {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// send streams a message.
func (m *Model) send(w http.ResponseWriter, number int, blocks []Block) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name string, members map[string]any) {
		members["type"] = name
		data, err := json.Marshal(members)
		if err != nil {
			m.t.Error(err)
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) // the CLI may have been ended
		w.(http.Flusher).Flush()
	}
	stop := "end_turn"
	usage := map[string]any{"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	event("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_test%06d", number), "type": "message", "role": "assistant", "model": "scripted", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	for i, b := range blocks {
		start, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": b.Text}
		if b.Type == "tool_use" {
			stop = "tool_use"
			start = map[string]any{"type": "tool_use", "id": b.ID, "name": b.Name, "input": map[string]any{}}
			delta = map[string]any{"type": "input_json_delta", "partial_json": string(b.Input)}
		}
		event("content_block_start", map[string]any{"index": i, "content_block": start})
		event("content_block_delta", map[string]any{"index": i, "delta": delta})
		event("content_block_stop", map[string]any{"index": i})
	}
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5}})
	event("message_stop", map[string]any{})
}
