// Package modeltest is a model service on this machine, for the tests of the clients of real ones: what it refuses is said by the tests of each
// client, in the words of its vendor; what is left gets the next of the replies that a test has given it.
package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/agent"
)

// Service is the service, Q a request on its wire.
type Service[Q any] struct {
	*httptest.Server
	t        *testing.T
	examine  func(*http.Request, []byte) (Q, Refusal)
	mu       sync.Mutex
	replies  []Reply[Q]
	accepted []Q
	bodies   []string
}

// Refusal writes why a request is not taken; nil if it is.
type Refusal func(http.ResponseWriter)

// Reply answers a request that was taken.
type Reply[Q any] func(w http.ResponseWriter, r *http.Request, asked Q)

// Serve starts a service, which ends with the test. It is an error to ask it more often than there are replies.
func Serve[Q any](t *testing.T, examine func(*http.Request, []byte) (Q, Refusal), replies ...Reply[Q]) *Service[Q] {
	t.Helper()
	s := &Service[Q]{t: t, examine: examine, replies: replies}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *Service[Q]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	asked, refusal := s.examine(r, body)
	if refusal != nil {
		refusal(w)
		return
	}
	s.mu.Lock()
	s.accepted = append(s.accepted, asked)
	s.bodies = append(s.bodies, string(body))
	var next Reply[Q]
	if len(s.replies) > 0 {
		next, s.replies = s.replies[0], s.replies[1:]
	}
	s.mu.Unlock()
	if next == nil {
		s.t.Errorf("the service was asked once more than expected: %s", body)
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	next(w, r, asked)
}

// Requests are those that the service had nothing against.
func (s *Service[Q]) Requests() []Q {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// LastBody is that of the last of them.
func (s *Service[Q]) LastBody() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[len(s.bodies)-1]
}

// Send writes an answer with this status, these headers and this body.
func Send(w http.ResponseWriter, status int, header http.Header, body string) {
	w.Header().Set("Content-Type", "application/json")
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// SendSlowly writes a stream a few bytes at a time, so that every line and many a letter arrives in parts.
func SendSlowly(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for len(text) > 0 {
		n := min(7, len(text))
		io.WriteString(w, text[:n])
		w.(http.Flusher).Flush()
		text = text[n:]
	}
}

// Quote writes a text as JSON.
func Quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

// Ask is a request with one message.
func Ask(text string) *agent.Request {
	return &agent.Request{Messages: []agent.Message{agent.User(text)}}
}

// Weather is a tool.
var Weather = agent.ToolSpec{
	Name:        "weather",
	Description: "The weather in a city.",
	Schema:      json.RawMessage(`{"type":"object","properties":{"why":{"type":"string"},"city":{"type":"string"}},"required":["why","city"]}`),
}

// WantResponse compares all of a response.
func WantResponse(t *testing.T, got, want *agent.Response) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got the response\n%+v; want\n%+v", got, want)
	}
}

// MustGenerate asks a model that has to answer.
func MustGenerate(t *testing.T, m agent.Model, request *agent.Request) *agent.Response {
	t.Helper()
	response, err := m.Generate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// Collect reads a stream to its end: the texts of its pieces, and the response, which comes last.
func Collect(stream iter.Seq2[*agent.Chunk, error]) (texts []string, response *agent.Response, err error) {
	for piece, err := range stream {
		if err != nil {
			return texts, response, err
		}
		if response != nil {
			return texts, response, errors.New("a piece came after the response")
		}
		if piece.Text != "" {
			texts = append(texts, piece.Text)
		}
		response = piece.Response
	}
	return texts, response, nil
}

// WantFailure wants an error to be that of a model, and to say this.
func WantFailure(t *testing.T, err error, want agent.ModelError, says string) {
	t.Helper()
	failure, ok := errors.AsType[*agent.ModelError](err)
	if !ok {
		t.Fatalf("got %v; want a ModelError", err)
	}
	if failure.Model != want.Model || failure.Status != want.Status || failure.Temporary != want.Temporary {
		t.Errorf("got %+v; want model %s, status %d, temporary %v", failure, want.Model, want.Status, want.Temporary)
	}
	if !strings.Contains(err.Error(), says) {
		t.Errorf("%q does not say %q", err, says)
	}
}

// WantNoKey wants an error, and no form of it to hold the key.
func WantNoKey(t *testing.T, err error, key string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for ; err != nil; err = errors.Unwrap(err) {
		for _, form := range []string{"%v", "%+v", "%#v"} {
			if text := fmt.Sprintf(form, err); strings.Contains(text, key) {
				t.Errorf("%T as %s holds the key: %s", err, form, text)
			}
		}
	}
}
