package openai

import (
	"fmt"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
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

var vendor = modelhttp.Service{URL: "https://api.openai.com/v1", KeyVariable: "OPENAI_API_KEY"}

// reservedFields are the fields of a request that Extra cannot have.
var reservedFields = []string{"model", "messages", "tools", "tool_choice", "stream", "stream_options"}

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
