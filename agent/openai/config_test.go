package openai

import (
	"net/http"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

func TestNew_OtherVariablesChangeNothing(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("OPENAI_BASE_URL", "http://evil.example/v1")
	t.Setenv("OPENAI_ADMIN_KEY", "sk-admin")
	t.Setenv("OPENAI_ORG_ID", "org-other")
	t.Setenv("OPENAI_PROJECT_ID", "proj-other")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Other: yes")
	request := modeltest.Sent(t, func(client *http.Client) (agent.Streamer, error) {
		return New(Config{Model: "m", Organization: "org-1", Project: "proj-1", HTTPClient: client, MaxRetries: new(0)})
	})
	if request.URL.Host != "api.openai.com" {
		t.Errorf("asked %s", request.URL.Host)
	}
	for header, want := range map[string]string{
		"Authorization": "Bearer " + key, "OpenAI-Organization": "org-1", "OpenAI-Project": "proj-1", "X-Other": "",
	} {
		if got := request.Header.Get(header); got != want {
			t.Errorf("%s is %q; want %q", header, got, want)
		}
	}
}

func TestNew_ConfigIsCopied(t *testing.T) {
	s := serve(t, say("Hi"))
	temperature, effort := 0.5, map[string]any{"reasoning_effort": "low"}
	m := s.model(func(c *Config) { c.Temperature, c.Extra = &temperature, effort })
	temperature, effort["reasoning_effort"] = 2, "high"
	modeltest.MustGenerate(t, m, modeltest.Ask("Hello"))
	if got := s.Requests()[0]; *got.Temperature != 0.5 || got.ReasoningEffort != "low" {
		t.Errorf("sent %v, %q", *got.Temperature, got.ReasoningEffort)
	}
}
