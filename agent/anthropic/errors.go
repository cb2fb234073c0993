package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
)

var (
	errNoMessage       = errors.New("the answer is not a message")
	errUnexpectedEvent = errors.New("the stream continues a block that was not started")
)

// statuses maps error types to HTTP statuses. Inside a stream there is only the type.
var statuses = map[string]int{
	"invalid_request_error": 400,
	"authentication_error":  401,
	"billing_error":         402,
	"permission_error":      403,
	"not_found_error":       404,
	"request_too_large":     413,
	"rate_limit_error":      429,
	"api_error":             500,
	"timeout_error":         504,
	"overloaded_error":      529,
}

// fail converts an error for the caller. The vendor client's own errors are not passed on if the
// service answered: they contain the request and the key.
func (m *Model) fail(ctx context.Context, answered *http.Response, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	failure, ok := modelhttp.StatusFailure(answered, "Request-Id", func(body []byte) string { return decodeError(body).text() })
	if event, apiErr := errors.AsType[*sdk.Error](err); !ok && apiErr {
		failure, ok = decodeError([]byte(event.RawJSON())).failure(), true
	}
	if !ok {
		failure = modelhttp.TransportFailure(answered, err, errNoMessage, errUnexpectedEvent)
	}
	return &agent.ModelError{Model: m.name, Status: failure.Status, Temporary: failure.Temporary, Err: modelhttp.Redact(m.key, failure.Err)}
}

// apiError is an error message of the service.
type apiError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// decodeError decodes an error body. A gateway may have sent plain text.
func decodeError(body []byte) apiError {
	var envelope struct {
		Error apiError `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil || envelope.Error.Message == "" {
		return apiError{Type: envelope.Error.Type, Message: modelhttp.Shorten(string(body))}
	}
	return envelope.Error
}

func (w apiError) text() string {
	if w.Type == "" {
		return w.Message
	}
	return fmt.Sprintf("%s (%s)", w.Message, w.Type)
}

// failure converts an error inside a stream. The service had accepted the request, so the failure
// counts as temporary unless it says otherwise.
func (w apiError) failure() modelhttp.Failure {
	status := statuses[w.Type]
	return modelhttp.Failure{Status: status, Temporary: status == 0 || modelhttp.Temporary(status), Err: errors.New(w.text())}
}
