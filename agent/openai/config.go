package openai

import (
	"fmt"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
)

// Config configures a model. Only Model is required.
type Config struct {
	// Model is the service's name of the model.
	Model string
	// APIKey is sent as bearer token. The default is $OPENAI_API_KEY, or none if BaseURL is set.
	APIKey string
	// BaseURL is the URL of the service including its version, for example
	// http://localhost:11434/v1. It must not contain a user, query or fragment. The default is
	// OpenAI's.
	BaseURL string
	// Organization and Project are billed by OpenAI. The default depends on the key.
	Organization, Project string
	// MaxTokens limits each answer, including reasoning. 0 means the model's limit. OpenAI receives
	// it as max_completion_tokens; a BaseURL receives max_tokens, because some compatible servers
	// support only that.
	MaxTokens int64
	// Temperature is the randomness of the answers, from 0 to 2. nil means the model's default.
	Temperature *float64
	// Extra contains additional fields of the request body by name, for example "reasoning_effort"
	// or "seed". It must not contain the model, the messages, the tools, or stream settings.
	Extra map[string]any
	// MaxRetries is the number of retries after a temporary failure, with exponential backoff or
	// the delay that the service requests. nil means 2.
	MaxRetries *int
	// HTTPClient sends the requests. The default waits ten minutes for the start of an answer. Its
	// timeout, if any, includes the whole stream.
	HTTPClient *http.Client
}

// Model is a client of the chat completions API. It is safe for concurrent use.
type Model struct {
	name        string
	key         string // for conceal
	completions sdk.ChatCompletionService
	maxTokens   int64
	modernLimit bool // the service supports max_completion_tokens
	temperature *float64
	extra       map[string]any
}

var _ agent.Streamer = (*Model)(nil)

var vendor = modelhttp.Service{URL: "https://api.openai.com/v1", KeyVariable: "OPENAI_API_KEY"}

// reservedFields are the request fields that Extra must not contain.
var reservedFields = []string{"model", "messages", "tools", "tool_choice", "stream", "stream_options"}

// New returns the model for the Config. It does not connect. The Config may be changed afterwards.
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
	if err := modelhttp.CheckConfig(config.Model, config.MaxTokens, config.MaxRetries); err != nil {
		return nil, nil, err
	}
	base, key, err := vendor.Resolve(config.BaseURL, config.APIKey)
	if err != nil {
		return nil, nil, err
	}
	extra, err := modelhttp.CopyExtra(config.Extra, reservedFields)
	if err != nil {
		return nil, nil, err
	}
	m := &Model{
		name:        config.Model,
		key:         key,
		maxTokens:   config.MaxTokens,
		modernLimit: config.BaseURL == "",
		extra:       extra,
	}
	if config.Temperature != nil {
		m.temperature = new(*config.Temperature)
	}
	options := []option.RequestOption{option.WithBaseURL(base), option.WithHTTPClient(modelhttp.Client(config.HTTPClient))}
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
