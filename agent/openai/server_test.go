package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// key is what the service takes. No error may ever hold it.
const key = "sk-test-4f9c1d7e2b8a6035"

// service stands in for OpenAI on this machine. What OpenAI refuses, it refuses in the same words; what is left gets the next
// of its replies.
type service struct {
	*httptest.Server
	t        *testing.T
	mu       sync.Mutex
	replies  []reply
	accepted []wireRequest
	bodies   []string
}

type reply func(w http.ResponseWriter, r *http.Request, asked wireRequest)

func serve(t *testing.T, replies ...reply) *service {
	t.Helper()
	s := &service{t: t, replies: replies}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// model is one that asks the service, without retries unless a change says otherwise.
func (s *service) model(changes ...func(*Config)) *Model {
	s.t.Helper()
	config := Config{Model: "gpt-test", APIKey: key, BaseURL: s.URL + "/v1", HTTPClient: s.Client(), MaxRetries: new(0)}
	for _, change := range changes {
		change(&config)
	}
	m, err := New(config)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	asked, no := examine(r, body)
	if no != nil {
		no.write(w)
		return
	}
	s.mu.Lock()
	s.accepted = append(s.accepted, asked)
	s.bodies = append(s.bodies, string(body))
	var next reply
	if len(s.replies) > 0 {
		next, s.replies = s.replies[0], s.replies[1:]
	}
	s.mu.Unlock()
	if next == nil {
		s.t.Errorf("the service was asked once more than expected: %s", body)
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	next(w, r, asked)
}

// requests are those that the service had nothing against.
func (s *service) requests() []wireRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

func (s *service) lastBody() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[len(s.bodies)-1]
}

// answer is a whole completion with this message.
func answer(message, finish, usage string) reply {
	return send(200, nil, fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"gpt-test-2026-09-01",
		"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":%s,
		"service_tier":"default","system_fingerprint":"fp_1"}`, message, finish, usage))
}

// say is a plain answer.
func say(text string) reply {
	return answer(fmt.Sprintf(`{"role":"assistant","content":%s,"refusal":null,"annotations":[]}`, quote(text)), "stop", noUsage)
}

const noUsage = `{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`

// send is an answer with this status, these headers and this body.
func send(status int, header http.Header, body string) reply {
	return func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
		w.Header().Set("Content-Type", "application/json")
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// refuse is an error in OpenAI's form.
func refuse(status int, kind, code, message string) reply {
	return func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
		(&refusal{status: status, kind: kind, code: code, message: message}).write(w)
	}
}

// stream is an answer in chunks, to the end. It is sent a few bytes at a time, so that every line and many a letter arrives
// in parts.
func stream(chunks ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request, asked wireRequest) {
		dribble(w, events(append(chunks, "[DONE]")...))
	}
}

// events frames chunks as server-sent events, with a comment as gateways send to keep a connection open.
func events(chunks ...string) string {
	text := ": keep-alive\n\n"
	for _, chunk := range chunks {
		text += "data: " + chunk + "\n\n"
	}
	return text
}

func dribble(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for len(text) > 0 {
		n := min(7, len(text))
		io.WriteString(w, text[:n])
		w.(http.Flusher).Flush()
		text = text[n:]
	}
}

// chunk is a part of a streamed answer. finish is "" in all but the last.
func chunk(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = quote(finish)
	}
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-test-2026-09-01",`+
		`"service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],`+
		`"usage":null,"obfuscation":"x9"}`, delta, reason)
}

// textChunk is a chunk with text alone.
func textChunk(text string) string { return chunk(fmt.Sprintf(`{"content":%s}`, quote(text)), "") }

// usageChunk is the chunk after the last, which has no choice.
func usageChunk(usage string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-test-2026-09-01",`+
		`"choices":[],"usage":%s}`, usage)
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

// lines joins the parts of a JSON text that is written over several lines.
func lines(parts ...string) string { return strings.Join(parts, "") }
