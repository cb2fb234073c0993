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

// Failure is what went wrong with a call, as an agent.ModelError tells it.
type Failure struct {
	Status    int
	Temporary bool
	Err       error
}

// StatusFailure is an answer with an error's status; ok is false for any other. The service's words are found in its body by decode, and the header requestID names the
// request to its support.
func StatusFailure(answered *http.Response, requestID string, decode func(body []byte) string) (_ Failure, ok bool) {
	if answered == nil || answered.StatusCode < 300 {
		return Failure{}, false
	}
	return Failure{answered.StatusCode, Temporary(answered.StatusCode), errors.New(explain(answered, requestID, decode))}, true
}

func explain(answered *http.Response, requestID string, decode func(body []byte) string) string {
	if answered.StatusCode < 400 {
		return "the service redirects, which is not followed"
	}
	// The client has read the body and put it back.
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

// ErrTruncated is the error of a stream that did not come to the end of the answer.
var ErrTruncated = fmt.Errorf("the stream ended before the answer was complete: %w", io.ErrUnexpectedEOF)

// TransportFailure is a call that did not come to an end: no connection, an answer that broke off, or one that makes no sense. Of the errors that a vendor's package
// has for the last, senseless are those that are its own.
func TransportFailure(answered *http.Response, err error, senseless ...error) Failure {
	if answered == nil {
		_, onTheWay := errors.AsType[*url.Error](err)
		return Failure{Temporary: onTheWay, Err: err}
	}
	if kind := unexpectedContentType(answered); kind != "" {
		return Failure{Err: fmt.Errorf("the service answered with %s; is the base URL right?", kind)}
	}
	if err == ErrTruncated && !isEventStream(answered) {
		return Failure{Err: errors.New("the service answered at once, and not with a stream: it does not know how to stream, or says what is wrong as no error")}
	}
	return Failure{Temporary: !malformed(err, senseless), Err: err}
}

// malformed tells an answer that arrived and makes no sense from one that did not arrive.
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

// Redact keeps the key out of an error, whoever put it there.
func Redact(key string, err error) error {
	if key == "" || !strings.Contains(err.Error(), key) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), key, "[API key]"))
}

// isEventStream reports whether an answer is, or may be, a stream.
func isEventStream(answered *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(answered.Header.Get("Content-Type"))
	return kind == "" || kind == "text/event-stream"
}

// unexpectedContentType returns the type of an answer that no model service gives, or "".
func unexpectedContentType(answered *http.Response) string {
	kind, _, _ := mime.ParseMediaType(answered.Header.Get("Content-Type"))
	if strings.HasSuffix(kind, "json") || kind == "text/event-stream" {
		return ""
	}
	return kind
}

// Shorten makes one line of a page that some gateway sent.
func Shorten(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
