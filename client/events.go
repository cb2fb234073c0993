package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
)

// Event is a stored event, a live step or token, or the outcome of a run, as its Type says.
type Event struct {
	api.Event
	// Outcome is set for the event "outcome", Step and Token for "step" and "token", Interrupt for
	// "interrupt".
	Outcome   fermata.Outcome
	Step      *api.Step
	Token     *api.Token
	Interrupt *fermata.OpenInterrupt

	data []byte // of a stored event
}

// Events follows a run after the event with the id after, until the run ends; "" is the beginning.
// After an event of an earlier run with the same state key, it returns all events of this run. If
// the connection is lost, Events reconnects and continues for as long as ctx lasts, so set a
// deadline if you do not want to wait. If the server cannot be reached at first, it returns an
// error after the usual retries. Steps and tokens are delivered at most once, and only if the
// connected replica executes the run.
func (c *Client) Events(ctx context.Context, stateKey, after string) iter.Seq2[Event, error] {
	return c.stream(ctx, after, func() request {
		return request{path: "/runs/" + url.PathEscape(stateKey) + "/events"}
	}, func(outcome fermata.Outcome) bool {
		_, waits := outcome.(fermata.NeedsInput)
		return !waits
	})
}

// ChatEvents starts or answers a run like [Client.Chat], and returns its events until the outcome,
// which is the last event. If the connection is lost, it repeats the request, which is applied
// once, for as long as [Client.Events] would.
func (c *Client) ChatEvents(ctx context.Context, chat api.Chat) iter.Seq2[Event, error] {
	chat = withStateKey(chat)
	return c.stream(ctx, "", func() request {
		return request{method: http.MethodPost, path: "/ai/chat", body: chat}
	}, func(fermata.Outcome) bool { return true })
}

// QueueEvents follows the changes of the requests that the caller may see, after the event with the
// id after. With "" the first event is [api.QueueReady]: list the requests after it. It reconnects
// and continues like [Client.Events], until ctx ends.
func (c *Client) QueueEvents(ctx context.Context, after string) iter.Seq2[api.QueueEvent, error] {
	events := c.stream(ctx, after, func() request { return request{path: "/requests/events"} }, nil)
	return func(yield func(api.QueueEvent, error) bool) {
		for e, err := range events {
			var event api.QueueEvent
			if err == nil {
				err = json.Unmarshal(e.data, &event)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// ReportViewing reports that the caller is looking at a request. Others see it for 30 seconds.
func (c *Client) ReportViewing(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/requests/" + url.PathEscape(id) + "/viewing"}, nil)
}

// stream reads one connection after another until last accepts an outcome.
func (c *Client) stream(ctx context.Context, after string, next func() request, last func(fermata.Outcome) bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		// after a first connection, an outage or a broken connection is not a reason to give up
		met := false
		for lost := 0; ; lost++ {
			retryAfter, err := c.follow(ctx, next(), after, func(e Event) bool {
				lost, met, after = 0, true, cmp.Or(e.ID, after)
				return yield(e, nil) && (e.Outcome == nil || !last(e.Outcome))
			})
			met = met || err == nil
			if err != nil && (retryAfter < 0 || ctx.Err() != nil || !met && lost == c.tries) {
				yield(Event{}, err)
				return
			}
			if retryAfter < 0 {
				return
			}
			if over := pause(ctx, max(retryAfter, time.Duration(1<<min(lost, 6))*50*time.Millisecond)); over != nil {
				yield(Event{}, errors.Join(over, err))
				return
			}
		}
	}
}

// follow reads one connection, starting after an event. It returns when to reconnect: noRetry, if
// there is nothing more to read or the consumer has stopped.
func (c *Client) follow(ctx context.Context, r request, after string, yield func(Event) bool) (retryAfter time.Duration, err error) {
	r.headers = map[string]string{"Accept": "text/event-stream"}
	if after != "" {
		r.headers["Last-Event-ID"] = after
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := time.AfterFunc(streamIdleTimeout, func() { cancel(errStreamIdle) })
	defer limit.Stop()
	response, err := c.send(ctx, r)
	if err != nil {
		return retryAfterSendError(err), cmp.Or(streamIdleCause(ctx), err)
	}
	defer response.Body.Close()
	body := &idleTimeoutReader{response.Body, limit}
	if response.StatusCode != http.StatusOK {
		data, err := io.ReadAll(io.LimitReader(body, maxResponse))
		if err != nil { // a truncated problem has no code; a retry returns the whole one
			return 0, cmp.Or(streamIdleCause(ctx), err)
		}
		return responseError(response, data)
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "text/event-stream" {
		// otherwise the client would wait indefinitely for events of an HTML page
		return noRetry, unexpectedResponse(response)
	}
	for kind, data := range parseSSE(body) {
		if kind == api.EventRun {
			continue
		}
		event, err := readEvent(kind, []byte(data))
		if err != nil {
			if problem, ok := errors.AsType[*api.Problem](err); ok && isRetryable(problem.Status) {
				return 0, err
			}
			return noRetry, err // an invalid event would be sent again
		}
		if !yield(event) {
			return noRetry, nil
		}
	}
	return 0, nil
}

// errStreamIdle is the cause of a reconnect.
var errStreamIdle = fmt.Errorf("client: no data received for %v", streamIdleTimeout)

// streamIdleCause returns errStreamIdle if a context ended because of the idle timeout, and not
// because of the caller.
func streamIdleCause(ctx context.Context) error {
	if context.Cause(ctx) == errStreamIdle {
		return errStreamIdle
	}
	return nil
}

// idleTimeoutReader ends a stream that is silent for too long: the connection may be dead, or the
// sender may hang. The consumer's processing time does not count.
type idleTimeoutReader struct {
	io.Reader
	limit *time.Timer // ends the stream
}

// Read reads, and waits at most the idle timeout.
func (w *idleTimeoutReader) Read(p []byte) (int, error) {
	w.limit.Reset(streamIdleTimeout)
	defer w.limit.Stop()
	return w.Reader.Read(p)
}

// readEvent decodes one event. A problem instead of an outcome is an error.
func readEvent(kind string, data []byte) (event Event, err error) {
	event.Type = kind
	switch kind {
	case api.EventOutcome:
		event.Outcome, err = readOutcome(data)
	case api.EventStep:
		err = json.Unmarshal(data, &event.Step)
	case api.EventToken:
		err = json.Unmarshal(data, &event.Token)
	case api.EventInterrupt:
		err = json.Unmarshal(data, &event.Interrupt)
	case api.EventProblem:
		problem := new(api.Problem)
		if err = json.Unmarshal(data, problem); err == nil {
			return event, problem
		}
	default:
		event.data = data
		err = json.Unmarshal(data, &event.Event)
	}
	if err != nil && !errors.Is(err, ErrPending) {
		err = fmt.Errorf("client: decode event %q: %w", kind, err)
	}
	return event, err
}

// parseSSE parses server-sent events. It ends at an event that is too large, with all its lines.
func parseSSE(body io.Reader) iter.Seq2[string, string] {
	return func(yield func(kind, data string) bool) {
		var kind string
		var data strings.Builder
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, maxResponse)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "event":
				kind = value
			case "data":
				if data.Len()+len(value) > maxResponse {
					return
				}
				data.WriteString(value)
			}
			if lines.Text() != "" {
				continue
			}
			if data.Len() > 0 && !yield(kind, data.String()) {
				return
			}
			kind = ""
			data.Reset()
		}
	}
}
