package anthropic

import (
	"net/http"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

func TestNew_OtherVariablesChangeNothing(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", key)
	t.Setenv("ANTHROPIC_BASE_URL", "http://evil.example")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "token")
	t.Setenv("ANTHROPIC_PROFILE", "other")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Other: yes")
	request := modeltest.Sent(t, func(client *http.Client) (agent.Streamer, error) {
		return New(Config{Model: "m", HTTPClient: client, MaxRetries: new(0)})
	})
	if request.URL.Host != "api.anthropic.com" {
		t.Errorf("asked %s", request.URL.Host)
	}
	for header, want := range map[string]string{"X-Api-Key": key, "Authorization": "", "X-Other": "", "Anthropic-Beta": ""} {
		if got := request.Header.Get(header); got != want {
			t.Errorf("%s is %q; want %q", header, got, want)
		}
	}
}

func TestNew_ConfigIsCopied(t *testing.T) {
	s := serve(t, say("Hi"))
	temperature, thinking := 0.5, map[string]any{"type": "adaptive"}
	m := s.model(func(c *Config) { c.Temperature, c.Extra = &temperature, map[string]any{"thinking": thinking} })
	temperature, thinking["type"] = 2, "disabled"
	modeltest.MustGenerate(t, m, modeltest.Ask("Hello"))
	if got := s.Requests()[0]; *got.Temperature != 0.5 || got.Thinking.Type != "adaptive" {
		t.Errorf("sent %v, %q", *got.Temperature, got.Thinking.Type)
	}
}
