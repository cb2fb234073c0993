// Package modelhttp is what the clients of all model services need around their vendor's own: an HTTP client that keeps keys where they belong,
// and errors that do not hold them.
package modelhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// CheckBaseURL says what is wrong with the address of a service. It never repeats it: it may hold a password.
func CheckBaseURL(base string) error {
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
		client.CheckRedirect = stay
	}
	return &client
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// defaultClient is one for all models, so that they share connections. A service that accepts a request and never answers
// must not hold a run for ever.
var defaultClient = sync.OnceValue(func() *http.Client {
	transport := http.DefaultTransport
	if standard, ok := transport.(*http.Transport); ok { // somebody may have wrapped it, for tracing
		patient := standard.Clone()
		patient.ResponseHeaderTimeout = 10 * time.Minute
		transport = patient
	}
	return &http.Client{Transport: transport, CheckRedirect: stay}
})

// Temporary reports whether a request that got this status may succeed later.
func Temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// Conceal keeps the key out of an error, whoever put it there.
func Conceal(key string, err error) error {
	if key == "" || !strings.Contains(err.Error(), key) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), key, "[API key]"))
}

// ForeignType returns the type of an answer that no model service gives, or "".
func ForeignType(answered *http.Response) string {
	kind, _, _ := mime.ParseMediaType(answered.Header.Get("Content-Type"))
	if strings.HasSuffix(kind, "json") || kind == "text/event-stream" {
		return ""
	}
	return kind
}

// Shorten makes one line of a page that some gateway sent.
func Shorten(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
