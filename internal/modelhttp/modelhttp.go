// Package modelhttp contains the HTTP code shared by the model clients: a client that does not leak
// keys, and errors that do not contain them.
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

// CheckConfig validates the fields that every model Config has.
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

// Service holds a vendor's default URL and the environment variable of its API key.
type Service struct{ URL, KeyVariable string }

// Resolve returns the URL and the key to use: the configured ones or the vendor's. A key from the
// environment is used only for the vendor's URL.
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

// checkBaseURL validates the URL of a service. Its errors do not contain the URL, which may hold a
// password.
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

// CopyExtra copies additional request fields and rejects those in owned. It encodes them as JSON,
// so the copy is deep and values that cannot be sent are reported now and not during a run.
func CopyExtra(extra map[string]any, owned []string) (map[string]any, error) {
	if len(extra) == 0 {
		return nil, nil
	}
	for name := range extra {
		if slices.Contains(owned, name) {
			return nil, fmt.Errorf("Config.Extra must not set %q", name)
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

// Client returns a client that does not follow redirects. Neither the key nor the conversation may
// go to another host, and Go would forward the x-api-key header.
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

// defaultClient is shared by all models, so that they share connections. Its timeout ends calls to
// a service that accepts a request and never responds.
var defaultClient = sync.OnceValue(func() *http.Client {
	transport := http.DefaultTransport
	// the transport may be wrapped, for example for tracing
	if standard, ok := transport.(*http.Transport); ok {
		patient := standard.Clone()
		patient.ResponseHeaderTimeout = 10 * time.Minute
		transport = patient
	}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect}
})

// maxName is the longest tool name that every service accepts.
const maxName = 64

// ToolName returns the name of a call in a form that services accept. Models call tools that do not
// exist, with names such as "multi_tool_use.parallel", and services reject such names in the
// history.
func ToolName(name string) string {
	taken := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(taken[:min(len(taken), maxName)], "unnamed")
}
