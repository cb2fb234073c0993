package modelhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// Failure describes a failed call for an agent.ModelError.
type Failure struct {
	Status    int
	Temporary bool
	Err       error
}

// StatusFailure returns the failure of a response with an error status; ok is false for other
// statuses. decode extracts the service's message from the body. requestID is the header with the
// request id for the service's support.
func StatusFailure(answered *http.Response, requestID string, decode func(body []byte) string) (_ Failure, ok bool) {
	if answered == nil || answered.StatusCode < 300 {
		return Failure{}, false
	}
	return Failure{answered.StatusCode, Temporary(answered.StatusCode), errors.New(explain(answered, requestID, decode))}, true
}

func explain(answered *http.Response, requestID string, decode func(body []byte) string) string {
	if answered.StatusCode < 400 {
		return "the service sent a redirect, which is not followed"
	}
	// The client has read the body and restored it.
	body, _ := io.ReadAll(io.LimitReader(answered.Body, 64<<10))
	text := decode(body)
	if text == "" {
		text = http.StatusText(answered.StatusCode)
	}
	if id := answered.Header.Get(requestID); id != "" {
		text += " [request " + id + "]"
	}
	return text
}

// ErrTruncated is returned if a stream ends before the response is complete.
var ErrTruncated = fmt.Errorf("the stream ended before the response was complete: %w", io.ErrUnexpectedEOF)

// TransportFailure returns the failure of a call without a complete, valid response: no connection,
// a truncated response, or a malformed one. senseless lists the vendor's errors for malformed
// responses.
func TransportFailure(answered *http.Response, err error, senseless ...error) Failure {
	if answered == nil {
		_, onTheWay := errors.AsType[*url.Error](err)
		return Failure{Temporary: onTheWay, Err: err}
	}
	if kind := unexpectedContentType(answered); kind != "" {
		return Failure{Err: fmt.Errorf("unexpected content type %s; check the base URL", kind)}
	}
	if err == ErrTruncated && !isEventStream(answered) {
		return Failure{Err: errors.New("the response is not a stream: the service does not support streaming or reported an error with status 200")}
	}
	return Failure{Temporary: !malformed(err, senseless), Err: err}
}

// malformed reports whether a complete but invalid response arrived.
func malformed(err error, senseless []error) bool {
	for _, known := range senseless {
		if errors.Is(err, known) {
			return true
		}
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

// Temporary reports whether a request that got this status may succeed later.
func Temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// Redact removes the key from an error.
func Redact(key string, err error) error {
	if key == "" || !strings.Contains(err.Error(), key) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), key, "[API key]"))
}

// isEventStream reports whether a response is, or may be, an event stream.
func isEventStream(answered *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(answered.Header.Get("Content-Type"))
	return kind == "" || kind == "text/event-stream"
}

// unexpectedContentType returns a content type that no model service uses, or "".
func unexpectedContentType(answered *http.Response) string {
	kind, _, _ := mime.ParseMediaType(answered.Header.Get("Content-Type"))
	if strings.HasSuffix(kind, "json") || kind == "text/event-stream" {
		return ""
	}
	return kind
}

// Shorten returns the text of an error page as one line.
func Shorten(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
