package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
)

var (
	errNoChoice = errors.New("the answer has no choices")
	errFailed   = errors.New("the model stopped with an unspecified error")
)

// fail converts an error for the caller. The vendor client's own errors are not passed on if the
// service answered: they contain the request and the key.
func (m *Model) fail(ctx context.Context, answered *http.Response, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	failure, ok := modelhttp.StatusFailure(answered, "X-Request-Id", func(body []byte) string { return decodeError(body).text() })
	if event, apiErr := errors.AsType[*ssestream.StreamError](err); !ok && apiErr {
		failure, ok = decodeError(event.Event.Data).failure(), true
	}
	if inside, apiErr := errors.AsType[*inBandError](err); !ok && apiErr {
		failure, ok = inside.failure(), true
	}
	if !ok {
		failure = modelhttp.TransportFailure(answered, err, errNoChoice)
	}
	return &agent.ModelError{Model: m.name, Status: failure.Status, Temporary: failure.Temporary, Err: modelhttp.Redact(m.key, failure.Err)}
}

// apiError is an error message of a service.
type apiError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"` // a string at OpenAI, the HTTP status elsewhere
}

// decodeError decodes an error body. OpenAI sends an object; other servers send a string, omit the
// outer level, or send plain text.
func decodeError(body []byte) apiError {
	var outer struct {
		Error json.RawMessage `json:"error"`
		apiError
	}
	if json.Unmarshal(body, &outer) != nil {
		return apiError{Message: modelhttp.Shorten(string(body))}
	}
	var inner apiError
	if json.Unmarshal(outer.Error, &inner) == nil && inner.Message != "" {
		return inner
	}
	if json.Unmarshal(outer.Error, &inner.Message) == nil && inner.Message != "" {
		return inner
	}
	if outer.Message != "" {
		return outer.apiError
	}
	return apiError{Message: modelhttp.Shorten(string(body))}
}

func (w apiError) text() string {
	if code, ok := w.Code.(string); ok && code != "" {
		return fmt.Sprintf("%s (%s)", w.Message, code)
	}
	if w.Type != "" {
		return fmt.Sprintf("%s (%s)", w.Message, w.Type)
	}
	return w.Message
}

// status returns the HTTP status that an error inside a stream names, or 0.
func (w apiError) status() int {
	if code, ok := w.Code.(float64); ok && code >= 400 && code < 600 {
		return int(code)
	}
	return 0
}

// inBandError is an error in a response with a success status: gateways may have begun to answer
// when their provider fails.
type inBandError struct{ apiError }

func (e *inBandError) Error() string { return e.text() }

// errorIn returns the error in an answer, where the API does not define one; nil if there is none.
func errorIn(extra map[string]respjson.Field) error {
	field, ok := extra["error"]
	if !ok || field.Raw() == respjson.Null {
		return nil
	}
	return &inBandError{decodeError([]byte(`{"error":` + field.Raw() + `}`))}
}

// failure converts an error inside an answer. The service had accepted the request, so the failure
// counts as temporary unless it says otherwise.
func (w apiError) failure() modelhttp.Failure {
	status := w.status()
	temporary := modelhttp.Temporary(status) || status == 0 && !strings.HasPrefix(w.Type, "invalid_request")
	return modelhttp.Failure{Status: status, Temporary: temporary, Err: errors.New(w.text())}
}
