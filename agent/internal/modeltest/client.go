package modeltest

import (
	"net/http"
	"testing"

	"github.com/fermata-go/fermata/agent"
)

// Client describes the client package of one vendor: everything that differs between vendors. Q is
// a request in the vendor's wire format.
type Client[Q any] struct {
	// Package is the prefix of errors of New, Key a valid API key, KeyVariable its environment
	// variable.
	Package, Key, KeyVariable string
	// Home is the default URL of a request; Path is the path that is added to a base URL. Base is
	// the path that a base URL adds to a server's address.
	Home, Path, Base string
	// KeyHeader is the header with the key, after KeyScheme. RequestID is the header with the
	// vendor's request id.
	KeyHeader, KeyScheme, RequestID string
	// New creates a model.
	New func(Settings) (agent.Streamer, error)
	// Examine validates a request like the service.
	Examine func(*http.Request, []byte) (Q, Refusal)
	// Refuse returns an error in the vendor's form, Say a complete answer. Open starts a streamed
	// answer with the text Well.
	Refuse func(status int, message string) Reply[Q]
	Say    func(text string) Reply[Q]
	Open   func(http.ResponseWriter)
	// Echo answers with a function of the last message, complete or streamed as requested.
	Echo func(echo func(string) string) Reply[Q]
	// Failures are further error replies, InvalidAnswers invalid answers, and Leaks answers that
	// contain the key.
	Failures       map[string]Failure[Q]
	InvalidAnswers map[string]Failure[Q]
	Leaks          map[string]Reply[Q]
	// Owned are the request fields that the package sets; Extra are fields that it does not know
	// but the service does.
	Owned []string
	Extra map[string]any
}

// Settings are the settings that every vendor's Config has.
type Settings struct {
	Model, APIKey, BaseURL string
	MaxTokens              int64
	MaxRetries             *int
	Extra                  map[string]any
	HTTPClient             *http.Client
}

// Failure is a reply and the expected error.
type Failure[Q any] struct {
	reply     Reply[Q]
	status    int
	temporary bool
	says      string
}

// Fails returns a reply with the expected status, temporary flag and error text.
func Fails[Q any](reply Reply[Q], status int, temporary bool, says string) Failure[Q] {
	return Failure[Q]{reply, status, temporary, says}
}

// Body returns a reply with this status, header and body.
func Body[Q any](status int, header http.Header, body string) Reply[Q] {
	return func(w http.ResponseWriter, _ *http.Request, _ Q) { Send(w, status, header, body) }
}

const modelName = "model-of-the-suite"

// serve starts the vendor's service.
func (c *Client[Q]) serve(t *testing.T, replies ...Reply[Q]) *Service[Q] {
	t.Helper()
	return Serve(t, c.Examine, replies...)
}

// model returns a model for the service, without retries unless a change sets them.
func (c *Client[Q]) model(t *testing.T, s *Service[Q], changes ...func(*Settings)) agent.Streamer {
	t.Helper()
	settings := Settings{Model: modelName, APIKey: c.Key, BaseURL: s.URL + c.Base, HTTPClient: s.Client(), MaxRetries: new(0)}
	for _, change := range changes {
		change(&settings)
	}
	m, err := c.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wantFailure calls the service once and checks the failure.
func (c *Client[Q]) wantFailure(t *testing.T, want Failure[Q], streaming bool) {
	t.Helper()
	err := Hello(t.Context(), c.model(t, c.serve(t, want.reply)), streaming)
	wantFailure(t, err, want.status, want.temporary, want.says)
	if err != nil && len(err.Error()) > 500 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func wantFailure(t *testing.T, err error, status int, temporary bool, says string) {
	t.Helper()
	WantFailure(t, err, agent.ModelError{Model: modelName, Status: status, Temporary: temporary}, says)
}
