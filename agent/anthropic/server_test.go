package anthropic

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// key is what the service takes. No error may ever hold it.
const key = "sk-ant-test-4f9c1d7e2b8a6035"

// service stands in for Anthropic on this machine. What Anthropic refuses, it refuses in the same words; what is left gets
// the next of its replies.
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
	config := Config{Model: "claude-test", APIKey: key, BaseURL: s.URL, HTTPClient: s.Client(), MaxRetries: new(0)}
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

// answer is a whole message with this content.
func answer(content, reason, usage string) reply {
	return send(200, nil, fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-test-20260901","content":%s,
		"stop_reason":%q,"stop_sequence":null,"usage":%s}`, content, reason, usage))
}

// say is a plain answer.
func say(text string) reply {
	return answer(fmt.Sprintf(`[{"type":"text","text":%s}]`, quote(text)), "end_turn", someUsage)
}

const someUsage = `{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}`

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

// refuse is an error in Anthropic's form.
func refuse(status int, kind, message string) reply {
	return func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
		(&refusal{status: status, kind: kind, message: message}).write(w)
	}
}

// event is one event of a stream.
type event struct{ name, data string }

// stream is an answer in events. It is sent a few bytes at a time, so that every line and many a letter arrives in parts.
func stream(all ...event) reply {
	return func(w http.ResponseWriter, _ *http.Request, _ wireRequest) { dribble(w, frame(all...)) }
}

// frame makes server-sent events of them, with the pings and comments that may come at any time.
func frame(all ...event) string {
	text := ": keep-alive\n\n"
	for _, one := range all {
		text += "event: " + one.name + "\ndata: " + one.data + "\n\n" + "event: ping\ndata: {\"type\": \"ping\"}\n\n"
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

// start is the event that every stream begins with.
func start() event {
	return event{"message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-test-20260901",` +
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":10,` +
		`"cache_read_input_tokens":100,"output_tokens":1}}}`}
}

func begin(index int, block string) event {
	return event{"content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)}
}

func delta(index int, kind, field, text string) event {
	return event{"content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, index, kind, field, quote(text))}
}

func end(index int) event {
	return event{"content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)}
}

// textBlock is a block of text, a delta for each part.
func textBlock(index int, parts ...string) []event {
	all := []event{begin(index, `{"type":"text","text":""}`)}
	for _, part := range parts {
		all = append(all, delta(index, "text_delta", "text", part))
	}
	return append(all, end(index))
}

// callBlock is a call, a delta for each part of its arguments.
func callBlock(index int, id, name string, parts ...string) []event {
	all := []event{
		begin(index, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name)),
		delta(index, "input_json_delta", "partial_json", ""),
	}
	for _, part := range parts {
		all = append(all, delta(index, "input_json_delta", "partial_json", part))
	}
	return append(all, end(index))
}

// stop are the events that every stream ends with.
func stop(reason string) []event {
	return []event{
		{"message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":15}}`, reason)},
		{"message_stop", `{"type":"message_stop"}`},
	}
}

// streamed is a plain answer in events.
func streamed(text string) []event {
	return join([]event{start()}, textBlock(0, text), stop("end_turn"))
}

func join(parts ...[]event) (all []event) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}
