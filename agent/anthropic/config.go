package anthropic

import (
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
)

// Config configures a model. Only Model is required.
type Config struct {
	// Model is the service's name of the model.
	Model string
	// APIKey is sent as x-api-key. The default is $ANTHROPIC_API_KEY, or none if BaseURL is set.
	APIKey string
	// BaseURL is the URL of the service, without the /v1 of the request paths. It must not contain
	// a user, query or fragment. The default is Anthropic's.
	BaseURL string
	// MaxTokens limits each answer, including thinking. The API requires a limit; 0 means 8192.
	MaxTokens int64
	// Temperature is the randomness of the answers, from 0 to 1. nil means the model's default.
	Temperature *float64
	// Extra contains additional fields of the request body by name, for example "thinking",
	// "output_config" or "cache_control". It must not contain fields that this Config or the
	// request sets.
	Extra map[string]any
	// Betas are the preview features for the header anthropic-beta.
	Betas []string
	// MaxRetries is the number of retries after a temporary failure, with exponential backoff or
	// the delay that the service requests. nil means 2.
	MaxRetries *int
	// HTTPClient sends the requests. The default waits ten minutes for the start of an answer. Its
	// timeout, if any, includes the whole stream.
	HTTPClient *http.Client
}

// Model is a client of the Messages API. It is safe for concurrent use.
type Model struct {
	name        string
	key         string // for conceal
	messages    sdk.MessageService
	maxTokens   int64
	temperature *float64
	extra       map[string]any
	thinking    string // the thinking type in extra
	mustStream  bool   // an answer may take too long for an idle connection
}

var _ agent.Streamer = (*Model)(nil)

const defaultMaxTokens = 8192

var vendor = modelhttp.Service{URL: "https://api.anthropic.com", KeyVariable: "ANTHROPIC_API_KEY"}

// reservedFields are the request fields that Extra must not contain.
var reservedFields = []string{"model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "temperature"}

// New returns the model for the Config. It does not connect. The Config may be changed afterwards.
func New(config Config) (*Model, error) {
	m, options, err := configure(config)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	// The service and not the client: the client would read the environment.
	m.messages = sdk.NewMessageService(options...)
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
		name:      config.Model,
		key:       key,
		maxTokens: config.MaxTokens,
		extra:     extra,
		thinking:  thinkingType(extra),
	}
	if m.maxTokens == 0 {
		m.maxTokens = defaultMaxTokens
	}
	_, err = sdk.CalculateNonStreamingTimeout(int(m.maxTokens), sdk.Model(m.name), nil)
	m.mustStream = err != nil
	if config.Temperature != nil {
		m.temperature = new(*config.Temperature)
	}
	options := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(modelhttp.Client(config.HTTPClient)), option.WithoutOpenTelemetry(),
	}
	if m.key != "" {
		options = append(options, option.WithAPIKey(m.key))
	}
	if len(config.Betas) > 0 {
		options = append(options, option.WithHeader("anthropic-beta", strings.Join(config.Betas, ",")))
	}
	if config.MaxRetries != nil {
		options = append(options, option.WithMaxRetries(*config.MaxRetries))
	}
	return m, options, nil
}
