// Package modelhttp is what the clients of all model services need around their vendor's own: an HTTP client that keeps keys where they belong,
// and errors that do not hold them.
package modelhttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// CheckConfig says what is wrong with what every model's Config has.
func CheckConfig(model string, maxTokens int64, maxRetries *int) error {
	switch {
	case strings.TrimSpace(model) == "":
		return errors.New("no model: Config.Model is empty")
	case maxTokens < 0:
		return fmt.Errorf("Config.MaxTokens is %d", maxTokens)
	case maxRetries != nil && *maxRetries < 0:
		return fmt.Errorf("Config.MaxRetries is %d", *maxRetries)
	}
	return nil
}

// Service is where a vendor's models are by default, and which variable of the environment has the key for that.
type Service struct{ URL, KeyVariable string }

// Find returns the address and the key to use: those that were configured, or the vendor's own. A key of the environment is for the vendor alone.
func (s Service) Resolve(baseURL, apiKey string) (base, key string, err error) {
	key = strings.TrimSpace(apiKey)
	if baseURL != "" {
		return baseURL, key, checkBaseURL(baseURL)
	}
	if key == "" {
		key = strings.TrimSpace(os.Getenv(s.KeyVariable))
	}
	if key == "" {
		return "", "", fmt.Errorf("no API key: set %s or Config.APIKey, or Config.BaseURL for a server without keys", s.KeyVariable)
	}
	return s.URL, key, nil
}

// checkBaseURL says what is wrong with the address of a service. It never repeats it: it may hold a password.
func checkBaseURL(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return errors.New("Config.BaseURL is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("Config.BaseURL does not begin with http:// or https://")
	case u.Hostname() == "":
		return errors.New("Config.BaseURL has no host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("Config.BaseURL has a user, a query or a fragment")
	}
	return nil
}

// CopyExtra copies further fields of a request, none of which may be an owned one. It goes through JSON: the copy is deep, and what cannot be
// sent is found now and not in the middle of a run.
func CopyExtra(extra map[string]any, owned []string) (map[string]any, error) {
	if len(extra) == 0 {
		return nil, nil
	}
	for name := range extra {
		if slices.Contains(owned, name) {
			return nil, fmt.Errorf("Config.Extra has %q, which is not its to set", name)
		}
	}
	text, err := json.Marshal(extra)
	if err != nil {
		return nil, fmt.Errorf("Config.Extra: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("Config.Extra: %w", err)
	}
	copied := make(map[string]any, len(fields))
	for name, value := range fields {
		copied[name] = value
	}
	return copied, nil
}

// Client returns a client that does not follow redirects: neither the key nor the conversation is for another place
// than the configured one, and Go would send the header x-api-key along.
func Client(given *http.Client) *http.Client {
	if given == nil {
		return defaultClient()
	}
	client := *given
	if client.CheckRedirect == nil {
		client.CheckRedirect = noRedirect
	}
	return &client
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// defaultClient is one for all models, so that they share connections. A service that accepts a request and never answers
// must not hold a run for ever.
var defaultClient = sync.OnceValue(func() *http.Client {
	transport := http.DefaultTransport
	if standard, ok := transport.(*http.Transport); ok { // somebody may have wrapped it, for tracing
		patient := standard.Clone()
		patient.ResponseHeaderTimeout = 10 * time.Minute
		transport = patient
	}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect}
})

// maxName is the longest name of a tool that every service takes.
const maxName = 64

// ToolName is the name of a call as services take it back. Models call tools that there are not, by names that no tool could have, as
// "multi_tool_use.parallel": whoever sends such a name back is refused, each time.
func ToolName(name string) string {
	taken := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(taken[:min(len(taken), maxName)], "unnamed")
}
