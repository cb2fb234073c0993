package modeltest

import (
	"net/http"
	"testing"

	"github.com/fermata-go/fermata/agent"
)

// Client is the package of one vendor as the suite sees it: everything in which one differs from another. Q is a request on the vendor's wire.
type Client[Q any] struct {
	// Package is what errors of New begin with, Key what the service takes, KeyVariable where the environment has it.
	Package, Key, KeyVariable string
	// Home is where a request goes if nothing else is said, and Path what it adds to a base URL. Base is what a base URL adds to a server's address.
	Home, Path, Base string
	// KeyHeader is the header that has the key, behind KeyScheme. RequestID is the header that names a request to the vendor's support.
	KeyHeader, KeyScheme, RequestID string
	// New makes a model.
	New func(Settings) (agent.Streamer, error)
	// Examine is how the service looks at a request.
	Examine func(*http.Request, []byte) (Q, Refusal)
	// Refuse is an error in the vendor's form, Say a whole answer, Open a streamed one that has begun with the text Well.
	Refuse func(status int, message string) Reply[Q]
	Say    func(text string) Reply[Q]
	Open   func(http.ResponseWriter)
	// Echo answers with what is made of the last message, whole or streamed as it is asked to.
	Echo func(echo func(string) string) Reply[Q]
	// Failures are further ways to refuse a request, Senseless answers that are none, and Leaks answers that hold the key.
	Failures       map[string]Failure[Q]
	InvalidAnswers map[string]Failure[Q]
	Leaks          map[string]Reply[Q]
	// Owned are the fields of a request that the package sets itself, Extra some that it does not know and the service does.
	Owned []string
	Extra map[string]any
}

// Settings are what every vendor's Config has.
type Settings struct {
	Model, APIKey, BaseURL string
	MaxTokens              int64
	MaxRetries             *int
	Extra                  map[string]any
	HTTPClient             *http.Client
}

// Failure is an answer, and the error that it makes.
type Failure[Q any] struct {
	reply     Reply[Q]
	status    int
	temporary bool
	says      string
}

// Fails is an answer that makes an error with this status, which may be temporary, and says this.
func Fails[Q any](reply Reply[Q], status int, temporary bool, says string) Failure[Q] {
	return Failure[Q]{reply, status, temporary, says}
}

// Body is an answer with this status, these headers and this body.
func Body[Q any](status int, header http.Header, body string) Reply[Q] {
	return func(w http.ResponseWriter, _ *http.Request, _ Q) { Send(w, status, header, body) }
}

const modelName = "model-of-the-suite"

// serve starts the vendor's service.
func (c *Client[Q]) serve(t *testing.T, replies ...Reply[Q]) *Service[Q] {
	t.Helper()
	return Serve(t, c.Examine, replies...)
}

// model is one that asks the service, without retries unless a change says otherwise.
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

// wants asks the service in one way, and wants this failure.
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
