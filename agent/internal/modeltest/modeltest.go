// Package modeltest is a local model service for testing the clients of real ones. The tests of
// each client define which requests it rejects, as the vendor does; accepted requests get the next
// reply of the test.
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

// Service is the service. Q is a request in its wire format.
type Service[Q any] struct {
	*httptest.Server
	t        *testing.T
	examine  func(*http.Request, []byte) (Q, Refusal)
	mu       sync.Mutex
	replies  []Reply[Q]
	accepted []Q
	bodies   []string
}

// Refusal writes the rejection of a request; nil accepts it.
type Refusal func(http.ResponseWriter)

// Reply answers an accepted request.
type Reply[Q any] func(w http.ResponseWriter, r *http.Request, asked Q)

// Serve starts a service that ends with the test. More requests than replies are an error.
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
		s.t.Errorf("unexpected request after the last reply: %s", body)
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	next(w, r, asked)
}

// Requests returns the accepted requests.
func (s *Service[Q]) Requests() []Q {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// LastBody returns the body of the last accepted request.
func (s *Service[Q]) LastBody() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[len(s.bodies)-1]
}

// Send writes an answer with this status, header and body.
func Send(w http.ResponseWriter, status int, header http.Header, body string) {
	w.Header().Set("Content-Type", "application/json")
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// SendSlowly writes a stream a few bytes at a time, so that lines and multi-byte characters arrive
// in parts.
func SendSlowly(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for len(text) > 0 {
		n := min(7, len(text))
		io.WriteString(w, text[:n])
		w.(http.Flusher).Flush()
		text = text[n:]
	}
}

// Quote encodes a text as JSON.
func Quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

// Ask returns a request with one message.
func Ask(text string) *agent.Request {
	return &agent.Request{Messages: []agent.Message{agent.User(text)}}
}

// Weather is a tool.
var Weather = agent.ToolSpec{
	Name:        "weather",
	Description: "The weather in a city.",
	Schema:      json.RawMessage(`{"type":"object","properties":{"why":{"type":"string"},"city":{"type":"string"}},"required":["why","city"]}`),
}

// WantResponse compares complete responses.
func WantResponse(t *testing.T, got, want *agent.Response) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got the response\n%+v; want\n%+v", got, want)
	}
}

// MustGenerate calls a model that must answer.
func MustGenerate(t *testing.T, m agent.Model, request *agent.Request) *agent.Response {
	t.Helper()
	response, err := m.Generate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// Collect reads a stream to its end: the texts of its chunks, and the response, which comes last.
func Collect(stream iter.Seq2[*agent.Chunk, error]) (texts []string, response *agent.Response, err error) {
	for piece, err := range stream {
		if err != nil {
			return texts, response, err
		}
		if response != nil {
			return texts, response, errors.New("a chunk came after the response")
		}
		if piece.Text != "" {
			texts = append(texts, piece.Text)
		}
		response = piece.Response
	}
	return texts, response, nil
}

// WantFailure checks that err is this ModelError and contains the text.
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
		t.Errorf("%q does not contain %q", err, says)
	}
}

// WantNoKey checks that err is an error and does not contain the key in any form.
func WantNoKey(t *testing.T, err error, key string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for ; err != nil; err = errors.Unwrap(err) {
		for _, form := range []string{"%v", "%+v", "%#v"} {
			if text := fmt.Sprintf(form, err); strings.Contains(text, key) {
				t.Errorf("%T as %s contains the key: %s", err, form, text)
			}
		}
	}
}
