package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
)

var (
	errNoMessage = errors.New("the answer is not a message")
	errDisorder  = errors.New("the stream continues a block that it did not begin")
	errBrokenOff = fmt.Errorf("the stream ended before the answer was complete: %w", io.ErrUnexpectedEOF)
)

// statuses are what the kinds of errors are as HTTP statuses. Inside of a stream there is only the kind.
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

// fail turns what went wrong into what the caller is told. The client's own errors are not passed on if the service
// answered: they hold the request, and with it the key.
func (m *Model) fail(ctx context.Context, answered *http.Response, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	failure := &agent.ModelError{Model: m.name}
	if answered != nil && answered.StatusCode >= 300 {
		failure.Status = answered.StatusCode
		failure.Temporary = modelhttp.Temporary(answered.StatusCode)
		failure.Err = modelhttp.Conceal(m.key, errors.New(explain(answered)))
		return failure
	}
	if event, ok := errors.AsType[*sdk.Error](err); ok {
		words := decode([]byte(event.RawJSON()))
		failure.Status = statuses[words.Type]
		// The service had taken the request, so that it failed later is its own fault unless it says otherwise.
		failure.Temporary = failure.Status == 0 || modelhttp.Temporary(failure.Status)
		failure.Err = modelhttp.Conceal(m.key, errors.New(words.text()))
		return failure
	}
	if answered != nil {
		if kind := modelhttp.ForeignType(answered); kind != "" {
			err = fmt.Errorf("the service answered with %s; is the base URL right?", kind)
		} else {
			failure.Temporary = !malformed(err)
		}
	} else if _, ok := errors.AsType[*url.Error](err); ok {
		failure.Temporary = true
	}
	failure.Err = modelhttp.Conceal(m.key, err)
	return failure
}

// malformed tells an answer that arrived and makes no sense from one that did not arrive.
func malformed(err error) bool {
	if errors.Is(err, errNoMessage) || errors.Is(err, errDisorder) {
		return true
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

// explain returns the service's words about its refusal.
func explain(answered *http.Response) string {
	if answered.StatusCode < 400 {
		return "the service redirects, which is not followed"
	}
	// The client has read the body and put it back.
	body, _ := io.ReadAll(io.LimitReader(answered.Body, 64<<10))
	text := decode(body).text()
	if text == "" {
		text = http.StatusText(answered.StatusCode)
	}
	if id := answered.Header.Get("Request-Id"); id != "" {
		text += " [request " + id + "]"
	}
	return text
}

// words are what the service says about an error.
type words struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// decode finds the words in an error's body. A gateway in between may have sent plain text.
func decode(body []byte) words {
	var envelope struct {
		Error words `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil || envelope.Error.Message == "" {
		return words{Type: envelope.Error.Type, Message: modelhttp.Shorten(string(body))}
	}
	return envelope.Error
}

func (w words) text() string {
	if w.Type == "" {
		return w.Message
	}
	return fmt.Sprintf("%s (%s)", w.Message, w.Type)
}
