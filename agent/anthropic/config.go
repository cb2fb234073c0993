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

// Config says which model to ask and how. Only Model is required.
type Config struct {
	// Model is the name of the model, as the service knows it.
	Model string
	// APIKey is sent as x-api-key. The default is $ANTHROPIC_API_KEY, and none if BaseURL is set.
	APIKey string
	// BaseURL is where the service is, without the /v1 that is part of each request's path. It has no user, query or
	// fragment. The default is Anthropic's.
	BaseURL string
	// MaxTokens limits each answer, thinking included. The API requires a limit; the default, for 0, is 8192.
	MaxTokens int64
	// Temperature is the randomness of the answers, from 0 to 1. The default, nil, is the model's own.
	Temperature *float64
	// Extra are further fields of each request's body by name, as "thinking", "output_config" or "cache_control". The
	// default is none. It cannot hold what this Config or the request says.
	Extra map[string]any
	// Betas are the features in preview that requests may use, by the names that go into the header anthropic-beta. The
	// default is none.
	Betas []string
	// MaxRetries is how often a request is repeated after a temporary failure, with growing pauses or those that the
	// service asks for. The default, nil, is 2.
	MaxRetries *int
	// HTTPClient makes the requests. The default waits ten minutes for an answer to begin. Its timeout, if it has one,
	// covers a stream to its end.
	HTTPClient *http.Client
}

// Model is a model behind the Messages API. New makes one; its methods may be called from several goroutines at once.
type Model struct {
	name        string
	key         string // for conceal
	messages    sdk.MessageService
	maxTokens   int64
	temperature *float64
	extra       map[string]any
	thinking    string // the type of thinking that extra asks for
	mustStream  bool   // an answer may take too long for a connection without a sign of life
}

var _ agent.Streamer = (*Model)(nil)

const defaultMaxTokens = 8192

var vendor = modelhttp.Service{URL: "https://api.anthropic.com", KeyVariable: "ANTHROPIC_API_KEY"}

// reservedFields are the fields of a request that Extra cannot have.
var reservedFields = []string{"model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "temperature"}

// New returns the model that the Config describes. It does not connect. The Config may be changed afterwards.
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
