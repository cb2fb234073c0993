package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/fermata-go/fermata/agent"
)

var (
	errNoChoice  = errors.New("the answer has no choices")
	errBrokenOff = fmt.Errorf("the stream ended before the answer was complete: %w", io.ErrUnexpectedEOF)
)

// fail turns what went wrong into what the caller is told. The client's own errors are not passed on if the service
// answered: they hold the request, and with it the key.
func (m *Model) fail(ctx context.Context, answered *http.Response, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	failure := &agent.ModelError{Model: m.name}
	if answered != nil && answered.StatusCode >= 300 {
		failure.Status = answered.StatusCode
		failure.Temporary = temporary(answered.StatusCode)
		failure.Err = m.conceal(errors.New(explain(answered)))
		return failure
	}
	if event, ok := errors.AsType[*ssestream.StreamError](err); ok {
		words := decode(event.Event.Data)
		failure.Status = words.status()
		// The service had taken the request, so that it failed later is its own fault unless it says otherwise.
		failure.Temporary = temporary(failure.Status) || failure.Status == 0 && !strings.HasPrefix(words.Type, "invalid_request")
		failure.Err = m.conceal(errors.New(words.text()))
		return failure
	}
	if answered != nil {
		if kind := foreignType(answered); kind != "" {
			err = fmt.Errorf("the service answered with %s; is the base URL right?", kind)
		} else {
			failure.Temporary = !malformed(err)
		}
	} else if _, ok := errors.AsType[*url.Error](err); ok {
		failure.Temporary = true
	}
	failure.Err = m.conceal(err)
	return failure
}

func temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// malformed tells an answer that arrived and makes no sense from one that did not arrive.
func malformed(err error) bool {
	if errors.Is(err, errNoChoice) {
		return true
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

// conceal keeps the key out of an error, whoever put it there.
func (m *Model) conceal(err error) error {
	if m.key == "" || !strings.Contains(err.Error(), m.key) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), m.key, "[API key]"))
}

// foreignType returns the type of an answer that cannot be one of chat completions, or "".
func foreignType(answered *http.Response) string {
	kind, _, _ := mime.ParseMediaType(answered.Header.Get("Content-Type"))
	if strings.HasSuffix(kind, "json") || kind == "text/event-stream" {
		return ""
	}
	return kind
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
	if id := answered.Header.Get("X-Request-Id"); id != "" {
		text += " [request " + id + "]"
	}
	return text
}

// words are what services say about an error.
type words struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"` // a word at OpenAI, the HTTP status elsewhere
}

// decode finds the words in an error's body. OpenAI has them in an object, other servers have a string there, or leave out
// the level around it, or send plain text.
func decode(body []byte) words {
	var outer struct {
		Error json.RawMessage `json:"error"`
		words
	}
	if json.Unmarshal(body, &outer) != nil {
		return words{Message: shorten(string(body))}
	}
	var inner words
	if json.Unmarshal(outer.Error, &inner) == nil && inner.Message != "" {
		return inner
	}
	if json.Unmarshal(outer.Error, &inner.Message) == nil && inner.Message != "" {
		return inner
	}
	if outer.Message != "" {
		return outer.words
	}
	return words{Message: shorten(string(body))}
}

func (w words) text() string {
	if code, ok := w.Code.(string); ok && code != "" {
		return fmt.Sprintf("%s (%s)", w.Message, code)
	}
	if w.Type != "" {
		return fmt.Sprintf("%s (%s)", w.Message, w.Type)
	}
	return w.Message
}

// status is the HTTP status that an error inside a stream names, or 0.
func (w words) status() int {
	if code, ok := w.Code.(float64); ok && code >= 400 && code < 600 {
		return int(code)
	}
	return 0
}

// shorten makes one line of a page that some gateway sent.
func shorten(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
