// Package httptool makes tools of HTTP endpoints:
//
//	t, err := httptool.New(httptool.Config{
//		Name: "cancel_order", Description: "Cancels an order.", Parameters: schema, Write: true,
//		Method: "POST", URL: "https://shop.example.com/orders/{order}/cancel", Client: client,
//	})
//
// Arguments with a placeholder in the URL are put there. The others are the query of GET and
// DELETE, and else the JSON body. An argument cannot replace a part of the query of the URL.
//
// A tool that only reads is called at once. A tool that writes is an action under the policy of the
// run, and an effect: the call happens once, with the approved arguments and an idempotency key.
package httptool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/internal/urltemplate"
	"github.com/fermata-go/fermata/tool"
)

// Config describes an endpoint. All fields are required, except for Header, Secrets and Idempotent.
type Config struct {
	Name, Description string
	// Parameters is the JSON Schema of the arguments, an object.
	Parameters json.RawMessage
	// Method is GET, POST, PUT, PATCH or DELETE.
	Method string
	// URL has placeholders for arguments: see [urltemplate.Parse].
	URL string
	// Header is sent with each call. Secrets are the values that must not get into results.
	Header  http.Header
	Secrets []string
	// Write says that a call changes something.
	Write bool
	// Preview is the URL that says what a call would change, with placeholders; "" if there is
	// none. It is read with GET before people are asked, and again before the call. It gets only
	// the arguments with a placeholder.
	Preview string
	// Idempotent says that the endpoint ignores a second call with the same idempotency key.
	Idempotent bool
	// Timeout limits a call, MaxResponse the bytes of its response that the model gets.
	Timeout     time.Duration
	MaxResponse int64
	Client      *outbound.Client
}

// KeyHeader has the idempotency key of a call that writes.
const KeyHeader = "Idempotency-Key"

// A call that did nothing is tried again so often, after a pause. Then the model is told.
const (
	retries    = 3
	retryPause = time.Second // unless the endpoint says when
	maxPause   = time.Minute
)

// New returns the tool.
func New(c Config) (*tool.Tool, error) {
	template, err := urltemplate.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	e := &endpoint{Config: c, url: template, secrets: formsOf(c.Secrets)}
	option := tool.Repeatable()
	if c.Write {
		option = func(*tool.Tool) {}
		if c.Idempotent {
			option = tool.Idempotent()
		}
	}
	t, err := tool.Raw(c.Name, c.Description, c.Parameters, e.call, option)
	if err != nil || !c.Write { //mutate:http-tool-under-policy
		return t, err
	}
	if c.Preview == "" {
		return tool.Guard(t, nil), nil
	}
	p := *e
	p.Method, p.Write, p.onlyURL = http.MethodGet, false, true
	if p.url, err = urltemplate.Parse(c.Preview); err != nil {
		return nil, err
	}
	return tool.Guard(t, nil, tool.Preview(p.preview)), nil
}

// preview returns what the approver sees of a call before it happens: JSON, or a text. If the
// endpoint does not answer, that is what they see.
func (e *endpoint) preview(ctx context.Context, args json.RawMessage) (any, error) {
	text, err := e.call(ctx, args)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return "The preview is not available: " + err.Error(), nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text), nil
	}
	return text, nil
}

type endpoint struct {
	Config
	url     urltemplate.Template
	secrets []string // see formsOf
	onlyURL bool     // arguments without a placeholder are not sent
}

func (e *endpoint) call(ctx context.Context, args json.RawMessage) (string, error) {
	request, err := e.request(ctx, args)
	if err != nil {
		return "", tool.Errorf("%s was not called: %v.", e.Name, err)
	}
	answer, err := e.Client.Call(ctx, e.Timeout, request, e.MaxResponse)
	if err != nil {
		return "", e.failed(err)
	}
	text := e.text(answer)
	switch {
	case answer.Status >= 200 && answer.Status < 300:
		return text, nil
	case !e.Write:
		return "", tool.Errorf("%s failed with status %d: %s", e.Name, answer.Status, text)
	case answer.Status == http.StatusTooManyRequests:
		return "", notDone(fmt.Errorf("%s answered 429", request.URL.Hostname()), tool.Errorf("%s was not done: the service has too much to do.", e.Name), answer.RetryAfter)
	case answer.Status < 400, answer.Status >= 500, answer.Status == http.StatusRequestTimeout, answer.Status == http.StatusConflict && e.Idempotent:
		// The endpoint, or a proxy in front of it, may have failed after the action, and redirects
		// often follow an action. Conflict is the answer to a key whose first call is still in
		// progress.
		return "", fmt.Errorf("%s answered %d", request.URL.Hostname(), answer.Status)
	}
	return "", tool.Errorf("%s was rejected with status %d. It was not done. %s", e.Name, answer.Status, text)
}

// failed converts the error of a call without a response. Only a call that was not sent has
// certainly done nothing.
func (e *endpoint) failed(err error) error {
	failure, ok := errors.AsType[*outbound.Error](err)
	switch {
	case !ok: // the context has ended
		return err
	case !e.Write:
		return tool.Errorf("%s failed: %v.", e.Name, failure)
	case failure.NotSent && failure.Final:
		return fermata.NotDone(tool.Errorf("%s was not done: %v.", e.Name, failure))
	case failure.NotSent:
		return notDone(failure, tool.Errorf("%s was not done: %v.", e.Name, failure), 0)
	}
	return err
}

// notDone returns the error of a call that did nothing and is tried again. At last, or at once if
// the pause would be too long, the model gets the explanation.
func notDone(cause, explanation error, after time.Duration) error {
	if after > maxPause {
		return fermata.NotDone(explanation)
	}
	return fermata.NotDone(fermata.Retry(explained{cause, explanation}, fermata.After(cmp.Or(after, retryPause)), fermata.AtMost(retries)))
}

// explained is an error that is logged as its cause, and that a model gets as an explanation.
type explained struct{ cause, explanation error }

func (e explained) Error() string { return e.cause.Error() }
func (e explained) Unwrap() error { return e.explanation }

// request puts the arguments into the URL, the query or the body.
func (e *endpoint) request(ctx context.Context, args json.RawMessage) (*http.Request, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for _, name := range e.url.Names() {
		values[name] = plain(given[name])
	}
	for name := range values {
		delete(given, name)
	}
	if e.onlyURL {
		clear(given)
	}
	text, err := e.url.Expand(values)
	if err != nil {
		return nil, err
	}
	target, err := e.Client.ParseURL(text)
	if err != nil {
		return nil, fmt.Errorf("its URL may not be called: %w", err)
	}
	var body []byte
	if e.Method == http.MethodGet || e.Method == http.MethodDelete {
		query := target.Query()
		fixed := slices.Collect(maps.Keys(query))
		for name, value := range given {
			if slices.ContainsFunc(fixed, func(other string) bool { return strings.EqualFold(other, name) }) {
				return nil, fmt.Errorf("the query of its URL has %s already", name)
			}
			query.Set(name, plain(value))
		}
		if len(given) > 0 {
			target.RawQuery = query.Encode()
		}
	} else if body, err = json.Marshal(given); err != nil {
		return nil, err
	}
	return e.newRequest(ctx, target, body)
}

func (e *endpoint) newRequest(ctx context.Context, target *url.URL, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, e.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range e.Header {
		request.Header[name] = slices.Clone(values)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key := tool.Key(ctx); key != "" {
		request.Header.Set(KeyHeader, key)
	}
	return request, nil
}

// plain returns a string without quotes, and any other value as JSON. A missing value and null are
// "".
func plain(value json.RawMessage) string {
	var text string
	if len(value) == 0 || string(value) == "null" || json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// text returns a response for the model, without secrets.
func (e *endpoint) text(answer outbound.Response) string {
	text := string(answer.Body)
	for _, secret := range e.secrets {
		text = strings.ReplaceAll(text, secret, "(secret)")
	}
	if answer.Truncated {
		text = text[:len(text)-e.begun(text)]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	switch {
	case answer.Truncated:
		return text + fmt.Sprintf("\n(The response is longer than %d bytes; the rest is missing.)", e.MaxResponse)
	case strings.TrimSpace(text) == "":
		return fmt.Sprintf("(The response is empty, with status %d.)", answer.Status)
	}
	return text
}

// begun returns how many bytes at the end of a text may be the beginning of a secret.
func (e *endpoint) begun(text string) (most int) {
	for _, secret := range e.secrets {
		for n := min(len(secret)-1, len(text)); n > most; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				most = n
			}
		}
	}
	return most
}

// formsOf returns the texts that reveal secrets, the longest ones first: the secrets, what follows
// an authentication scheme such as Bearer, and how encoders of JSON may write them.
func formsOf(secrets []string) (forms []string) {
	for _, secret := range secrets {
		_, credentials, _ := strings.Cut(secret, " ")
		for _, text := range []string{secret, strings.TrimSpace(credentials)} {
			for _, form := range []string{text, quoted(text, false), quoted(text, true)} {
				forms = append(forms, form, strings.ReplaceAll(form, "/", `\/`))
			}
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.DeleteFunc(slices.Compact(forms), func(form string) bool { return form == "" })
}

// quoted returns a text as in a string of JSON, without the quotes.
func quoted(text string, html bool) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(html)
	_ = encoder.Encode(text) // a string has JSON
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}
