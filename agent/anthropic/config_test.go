package anthropic

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

// sent returns the request that a model with this config makes.
func sent(t *testing.T, config Config) *http.Request {
	t.Helper()
	var transport modeltest.Capture
	config.Model = "claude-test"
	config.HTTPClient = &http.Client{Transport: &transport}
	config.MaxRetries = new(0)
	m, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), modeltest.Ask("Hello")); err == nil || transport.Request == nil {
		t.Fatalf("no request was made: %v", err)
	}
	return transport.Request
}

func TestNew_WithoutAnythingElse_AsksAnthropicWithTheKeyOfTheEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", key+"\n") // as files have it
	request := sent(t, Config{})
	if got, want := request.URL.String(), "https://api.anthropic.com/v1/messages"; got != want {
		t.Errorf("asked %s; want %s", got, want)
	}
	if got := request.Header.Get("X-Api-Key"); got != key {
		t.Errorf("x-api-key is %q; want %q", got, key)
	}
}

func TestNew_KeyOfTheConfigComesFirst(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-other")
	if got := sent(t, Config{APIKey: key}).Header.Get("X-Api-Key"); got != key {
		t.Errorf("x-api-key is %q", got)
	}
}

func TestNew_KeyOfTheEnvironmentGoesNowhereElse(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", key)
	request := sent(t, Config{BaseURL: "http://localhost:4000/claude/"})
	if got := request.Header.Get("X-Api-Key"); got != "" {
		t.Errorf("x-api-key is %q; want none", got)
	}
	if got, want := request.URL.String(), "http://localhost:4000/claude/v1/messages"; got != want {
		t.Errorf("asked %s; want %s", got, want)
	}
}

func TestNew_OtherVariablesChangeNothing(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", key)
	t.Setenv("ANTHROPIC_BASE_URL", "http://evil.example")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "token")
	t.Setenv("ANTHROPIC_PROFILE", "other")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Other: yes")
	request := sent(t, Config{})
	if request.URL.Host != "api.anthropic.com" {
		t.Errorf("asked %s", request.URL.Host)
	}
	for header, want := range map[string]string{"X-Api-Key": key, "Authorization": "", "X-Other": "", "Anthropic-Beta": ""} {
		if got := request.Header.Get(header); got != want {
			t.Errorf("%s is %q; want %q", header, got, want)
		}
	}
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	for name, test := range map[string]struct {
		config Config
		says   string
	}{
		"no model":          {Config{APIKey: key}, "Config.Model is empty"},
		"blank model":       {Config{APIKey: key, Model: " "}, "Config.Model is empty"},
		"no key":            {Config{Model: "m"}, "ANTHROPIC_API_KEY"},
		"base URL is none":  {Config{Model: "m", BaseURL: "http://a b/"}, "not a URL"},
		"no scheme":         {Config{Model: "m", BaseURL: "localhost:4000"}, "http://"},
		"other scheme":      {Config{Model: "m", BaseURL: "ftp://localhost"}, "http://"},
		"no host":           {Config{Model: "m", BaseURL: "http:///v1"}, "no host"},
		"password":          {Config{Model: "m", BaseURL: "http://me:secret@localhost"}, "user"},
		"query":             {Config{Model: "m", BaseURL: "http://localhost?key=secret"}, "query"},
		"negative limit":    {Config{Model: "m", APIKey: key, MaxTokens: -1}, "MaxTokens"},
		"negative retries":  {Config{Model: "m", APIKey: key, MaxRetries: new(-1)}, "MaxRetries"},
		"extra of ours":     {Config{Model: "m", APIKey: key, Extra: map[string]any{"max_tokens": 5}}, `"max_tokens"`},
		"extra is not JSON": {Config{Model: "m", APIKey: key, Extra: map[string]any{"f": func() {}}}, "Config.Extra"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(test.config)
			if err == nil || m != nil {
				t.Fatalf("New gave %v, %v; want an error", m, err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "anthropic: ") || !strings.Contains(text, test.says) || strings.Contains(text, "secret") {
				t.Errorf("the error is %q; want it to say %q", text, test.says)
			}
		})
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
