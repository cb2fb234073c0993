package modeltest

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
)

// capture is a transport that records the request and sends nothing.
type capture struct{ request *http.Request }

func (c *capture) RoundTrip(r *http.Request) (*http.Response, error) {
	c.request = r
	return nil, errors.New("captured")
}

// Sent returns the request that a model makes, without sending it.
func Sent(t *testing.T, open func(*http.Client) (agent.Streamer, error)) *http.Request {
	t.Helper()
	var transport capture
	m, err := open(&http.Client{Transport: &transport})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), Ask("Hello")); err == nil || transport.request == nil {
		t.Fatalf("no request was made: %v", err)
	}
	return transport.request
}

// sent returns the request that a model with these settings makes.
func (c *Client[Q]) sent(t *testing.T, settings Settings) *http.Request {
	t.Helper()
	return Sent(t, func(client *http.Client) (agent.Streamer, error) {
		settings.Model, settings.MaxRetries, settings.HTTPClient = modelName, new(0), client
		return c.New(settings)
	})
}

func (c *Client[Q]) testEnvironment(t *testing.T) {
	own := c.KeyScheme + c.Key
	for _, test := range []struct {
		name, variable  string
		settings        Settings
		wantURL, wantIn string
	}{
		// a trailing newline, as in files
		{"is for the vendor", c.Key + "\n", Settings{}, c.Home, own},
		{"comes after that of the config", "sk-other", Settings{APIKey: c.Key}, c.Home, own},
		{"goes nowhere else", c.Key, Settings{BaseURL: "http://localhost:4000/models/"}, "http://localhost:4000/models" + c.Path, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(c.KeyVariable, test.variable)
			request := c.sent(t, test.settings)
			if got := request.URL.String(); got != test.wantURL {
				t.Errorf("asked %s; want %s", got, test.wantURL)
			}
			if got := request.Header.Get(c.KeyHeader); got != test.wantIn {
				t.Errorf("%s is %q; want %q", c.KeyHeader, got, test.wantIn)
			}
		})
	}
}

func (c *Client[Q]) testConfigErrors(t *testing.T) {
	t.Setenv(c.KeyVariable, "")
	at := func(base string) Settings { return Settings{Model: "m", BaseURL: base} }
	type mistake struct {
		settings Settings
		says     string
	}
	all := map[string]mistake{
		"no model":            {Settings{APIKey: c.Key}, "Config.Model is empty"},
		"blank model":         {Settings{APIKey: c.Key, Model: " "}, "Config.Model is empty"},
		"no key":              {Settings{Model: "m"}, c.KeyVariable},
		"base URL is invalid": {at("http://a b/"), "not a URL"},
		"no scheme":           {at("localhost:4000"), "http://"},
		"other scheme":        {at("ftp://localhost"), "http://"},
		"no host":             {at("http:///v1"), "no host"},
		"password":            {at("http://me:secret@localhost"), "user"},
		"query":               {at("http://localhost?key=secret"), "query"},
		"negative limit":      {Settings{Model: "m", APIKey: c.Key, MaxTokens: -1}, "MaxTokens"},
		"negative retries":    {Settings{Model: "m", APIKey: c.Key, MaxRetries: new(-1)}, "MaxRetries"},
		"extra is not JSON":   {Settings{Model: "m", APIKey: c.Key, Extra: map[string]any{"f": func() {}}}, "Config.Extra"},
	}
	for _, owned := range c.Owned {
		all["extra "+owned] = mistake{Settings{Model: "m", APIKey: c.Key, Extra: map[string]any{owned: nil}}, `"` + owned + `"`}
	}
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			m, err := c.New(test.settings)
			if err == nil || m != nil {
				t.Fatalf("New returned %v, %v; want an error", m, err)
			}
			if text := err.Error(); !strings.HasPrefix(text, c.Package+": ") || !strings.Contains(text, test.says) || strings.Contains(text, "secret") {
				t.Errorf("the error is %q; want it to contain %q", text, test.says)
			}
		})
	}
}
