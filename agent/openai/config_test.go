package openai

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
	config.Model = "gpt-test"
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

func TestNew_WithoutAnythingElse_AsksOpenAIWithTheKeyOfTheEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key+"\n") // as files have it
	request := sent(t, Config{})
	if got, want := request.URL.String(), "https://api.openai.com/v1/chat/completions"; got != want {
		t.Errorf("asked %s; want %s", got, want)
	}
	if got, want := request.Header.Get("Authorization"), "Bearer "+key; got != want {
		t.Errorf("authorization is %q; want %q", got, want)
	}
}

func TestNew_KeyOfTheConfigComesFirst(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-other")
	if got := sent(t, Config{APIKey: key}).Header.Get("Authorization"); got != "Bearer "+key {
		t.Errorf("authorization is %q", got)
	}
}

func TestNew_KeyOfTheEnvironmentGoesNowhereElse(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	request := sent(t, Config{BaseURL: "http://localhost:11434/v1"})
	if got := request.Header.Get("Authorization"); got != "" {
		t.Errorf("authorization is %q; want none", got)
	}
	if got, want := request.URL.String(), "http://localhost:11434/v1/chat/completions"; got != want {
		t.Errorf("asked %s; want %s", got, want)
	}
}

func TestNew_OtherVariablesChangeNothing(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("OPENAI_BASE_URL", "http://evil.example/v1")
	t.Setenv("OPENAI_ADMIN_KEY", "sk-admin")
	t.Setenv("OPENAI_ORG_ID", "org-other")
	t.Setenv("OPENAI_PROJECT_ID", "proj-other")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Other: yes")
	request := sent(t, Config{Organization: "org-1", Project: "proj-1"})
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

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	for name, test := range map[string]struct {
		config Config
		says   string
	}{
		"no model":            {Config{APIKey: key}, "Config.Model is empty"},
		"blank model":         {Config{APIKey: key, Model: " "}, "Config.Model is empty"},
		"no key":              {Config{Model: "m"}, "OPENAI_API_KEY"},
		"base URL is none":    {Config{Model: "m", BaseURL: "http://a b/"}, "not a URL"},
		"no scheme":           {Config{Model: "m", BaseURL: "localhost:11434/v1"}, "http://"},
		"other scheme":        {Config{Model: "m", BaseURL: "ftp://localhost/v1"}, "http://"},
		"no host":             {Config{Model: "m", BaseURL: "http:///v1"}, "no host"},
		"password":            {Config{Model: "m", BaseURL: "http://me:secret@localhost/v1"}, "user"},
		"query":               {Config{Model: "m", BaseURL: "http://localhost/v1?key=secret"}, "query"},
		"negative limit":      {Config{Model: "m", APIKey: key, MaxTokens: -1}, "MaxTokens"},
		"negative retries":    {Config{Model: "m", APIKey: key, MaxRetries: new(-1)}, "MaxRetries"},
		"extra of ours":       {Config{Model: "m", APIKey: key, Extra: map[string]any{"messages": nil}}, `"messages"`},
		"extra is not JSON":   {Config{Model: "m", APIKey: key, Extra: map[string]any{"f": func() {}}}, "Config.Extra"},
		"stream is not extra": {Config{Model: "m", APIKey: key, Extra: map[string]any{"stream": true}}, `"stream"`},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(test.config)
			if err == nil || m != nil {
				t.Fatalf("New gave %v, %v; want an error", m, err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "openai: ") || !strings.Contains(text, test.says) || strings.Contains(text, "secret") {
				t.Errorf("the error is %q; want it to say %q", text, test.says)
			}
		})
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
