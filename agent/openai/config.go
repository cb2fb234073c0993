package openai

import (
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

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/fermata-go/fermata/agent"
)

// Config says which model to ask and how. Only Model is required.
type Config struct {
	// Model is the name of the model, as the service knows it.
	Model string
	// APIKey is sent as bearer token. The default is $OPENAI_API_KEY, and none if BaseURL is set.
	APIKey string
	// BaseURL is where the service is, up to and including its version, as in http://localhost:11434/v1. It has no user,
	// query or fragment. The default is OpenAI's.
	BaseURL string
	// Organization and Project are what OpenAI bills. The default is what the key belongs to.
	Organization, Project string
	// MaxTokens limits each answer, reasoning included. The default, 0, is the model's own limit. OpenAI gets it as
	// max_completion_tokens; a BaseURL gets it as max_tokens, because some compatible servers know only that.
	MaxTokens int64
	// Temperature is the randomness of the answers, from 0 to 2. The default, nil, is the model's own.
	Temperature *float64
	// Extra are further fields of each request's body by name, as "reasoning_effort" or "seed". The default is none. It
	// cannot hold the model, the messages, the tools, or how to stream.
	Extra map[string]any
	// MaxRetries is how often a request is repeated after a temporary failure, with growing pauses or those that the
	// service asks for. The default, nil, is 2.
	MaxRetries *int
	// HTTPClient makes the requests. The default waits ten minutes for an answer to begin. Its timeout, if it has one,
	// covers a stream to its end.
	HTTPClient *http.Client
}

// Model is a model behind chat completions. New makes one; its methods may be called from several goroutines at once.
type Model struct {
	name        string
	key         string // for conceal
	completions sdk.ChatCompletionService
	maxTokens   int64
	modernLimit bool // the service knows max_completion_tokens
	temperature *float64
	extra       map[string]any
}

var _ agent.Streamer = (*Model)(nil)

const defaultBaseURL = "https://api.openai.com/v1"

// owned are the fields of a request that Extra cannot have.
var owned = []string{"model", "messages", "tools", "tool_choice", "stream", "stream_options"}

// New returns the model that the Config describes. It does not connect. The Config may be changed afterwards.
func New(config Config) (*Model, error) {
	m, options, err := configure(config)
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	// The service and not the client: the client would read the environment.
	m.completions = sdk.NewChatCompletionService(options...)
	return m, nil
}

func configure(config Config) (*Model, []option.RequestOption, error) {
	if strings.TrimSpace(config.Model) == "" {
		return nil, nil, errors.New("no model: Config.Model is empty")
	}
	if config.MaxTokens < 0 {
		return nil, nil, fmt.Errorf("Config.MaxTokens is %d", config.MaxTokens)
	}
	if config.MaxRetries != nil && *config.MaxRetries < 0 {
		return nil, nil, fmt.Errorf("Config.MaxRetries is %d", *config.MaxRetries)
	}
	extra, err := copyExtra(config.Extra)
	if err != nil {
		return nil, nil, err
	}
	m := &Model{
		name:        config.Model,
		key:         strings.TrimSpace(config.APIKey),
		maxTokens:   config.MaxTokens,
		modernLimit: config.BaseURL == "",
		extra:       extra,
	}
	if config.Temperature != nil {
		m.temperature = new(*config.Temperature)
	}
	base := defaultBaseURL
	if config.BaseURL != "" {
		base = config.BaseURL
		if err := checkBaseURL(base); err != nil {
			return nil, nil, err
		}
	} else if m.key == "" {
		if m.key = strings.TrimSpace(os.Getenv("OPENAI_API_KEY")); m.key == "" {
			return nil, nil, errors.New("no API key: set OPENAI_API_KEY or Config.APIKey, or Config.BaseURL for a server without keys")
		}
	}

	options := []option.RequestOption{option.WithBaseURL(base), option.WithHTTPClient(httpClient(config.HTTPClient))}
	if m.key != "" {
		options = append(options, option.WithAPIKey(m.key))
	}
	if config.Organization != "" {
		options = append(options, option.WithOrganization(config.Organization))
	}
	if config.Project != "" {
		options = append(options, option.WithProject(config.Project))
	}
	if config.MaxRetries != nil {
		options = append(options, option.WithMaxRetries(*config.MaxRetries))
	}
	return m, options, nil
}

// checkBaseURL never repeats the URL: it may hold a password.
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

// copyExtra goes through JSON: the copy is deep, and what cannot be sent is found now and not in the middle of a run.
func copyExtra(extra map[string]any) (map[string]any, error) {
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

// httpClient returns a client that does not follow redirects: neither the key nor the conversation is for another place
// than the configured one.
func httpClient(given *http.Client) *http.Client {
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
