package openai

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

// key is the valid API key. Errors must not contain it.
const key = "sk-test-4f9c1d7e2b8a6035"

// service simulates OpenAI locally, including its errors.
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

// answer is a complete completion with this message.
func answer(message, finish, usage string) reply {
	return send(200, nil, fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"gpt-test-2026-09-01",
		"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":%s,
		"service_tier":"default","system_fingerprint":"fp_1"}`, message, finish, usage))
}

// say is a plain answer.
func say(text string) reply {
	return answer(fmt.Sprintf(`{"role":"assistant","content":%s,"refusal":null,"annotations":[]}`, modeltest.Quote(text)), "stop", noUsage)
}

const noUsage = `{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`

// refuse is an error in OpenAI's form.
func refuse(status int, kind, code, message string) reply {
	return func(w http.ResponseWriter, _ *http.Request, _ wireRequest) {
		(&refusal{status: status, kind: kind, code: code, message: message}).write(w)
	}
}

// stream is a complete answer in chunks. It is sent a few bytes at a time, so that lines and
// multi-byte characters arrive in parts.
func stream(chunks ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request, asked wireRequest) {
		modeltest.SendSlowly(w, events(append(chunks, "[DONE]")...))
	}
}

// events encodes chunks as server-sent events, with a comment as gateways send to keep a connection
// open.
func events(chunks ...string) string {
	text := ": keep-alive\n\n"
	for _, chunk := range chunks {
		text += "data: " + chunk + "\n\n"
	}
	return text
}

// chunk is a part of a streamed answer. finish is "" in all but the last.
func chunk(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = modeltest.Quote(finish)
	}
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-test-2026-09-01",`+
		`"service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],`+
		`"usage":null,"obfuscation":"x9"}`, delta, reason)
}

// textChunk is a chunk with text alone.
func textChunk(text string) string {
	return chunk(fmt.Sprintf(`{"content":%s}`, modeltest.Quote(text)), "")
}

// usageChunk is the chunk after the last, which has no choice.
func usageChunk(usage string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-test-2026-09-01",`+
		`"choices":[],"usage":%s}`, usage)
}

// lines joins the parts of a JSON text that is written over several lines.
func lines(parts ...string) string { return strings.Join(parts, "") }
