package anthropic

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

// key is the valid API key. Errors must not contain it.
const key = "sk-ant-test-4f9c1d7e2b8a6035"

// service simulates Anthropic locally, including its errors.
type service struct {
	*modeltest.Service[wireRequest]
	t *testing.T
}

type reply = modeltest.Reply[wireRequest]

func serve(t *testing.T, replies ...reply) *service {
	t.Helper()
	return &service{modeltest.Serve(t, taken, replies...), t}
}

func taken(r *http.Request, body []byte) (wireRequest, modeltest.Refusal) {
	asked, no := examine(r, body)
	if no != nil {
		return asked, no.write
	}
	return asked, nil
}

func send(status int, header http.Header, body string) reply {
	return modeltest.Body[wireRequest](status, header, body)
}

// model returns a model for the service, without retries unless a change sets them.
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

// answer is a complete message with this content.
func answer(content, reason, usage string) reply {
	return send(200, nil, fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-test-20260901","content":%s,
		"stop_reason":%q,"stop_sequence":null,"usage":%s}`, content, reason, usage))
}

// say is a plain answer.
func say(text string) reply {
	return answer(fmt.Sprintf(`[{"type":"text","text":%s}]`, modeltest.Quote(text)), "end_turn", someUsage)
}

const someUsage = `{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}`

// refuse is an error in Anthropic's form.
func refuse(status int, kind, message string) reply {
	return func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
		(&refusal{status: status, kind: kind, message: message}).write(w)
	}
}

// event is one event of a stream.
type event struct{ name, data string }

// stream is an answer in events. It is sent a few bytes at a time, so that lines and multi-byte
// characters arrive in parts.
func stream(all ...event) reply {
	return func(w http.ResponseWriter, _ *http.Request, _ wireRequest) { modeltest.SendSlowly(w, frame(all...)) }
}

// frame encodes server-sent events, with the pings and comments that may occur at any time.
func frame(all ...event) string {
	text := ": keep-alive\n\n"
	for _, one := range all {
		text += "event: " + one.name + "\ndata: " + one.data + "\n\n" + "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	}
	return text
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
	return event{"content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, index, kind, field, modeltest.Quote(text))}
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
