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

// Event is something that happened to a run, or happens at this moment, or what it came to. Its Type says which.
type Event struct {
	api.Event
	// Outcome is set for the event "outcome", Step and Token for "step" and "token", Interrupt for "interrupt".
	Outcome   fermata.Outcome
	Step      *api.Step
	Token     *api.Token
	Interrupt *fermata.OpenInterrupt
}

// Events follows a run from behind the event with an id on, until it is over; "" is the beginning. Behind an event of another run, which had the state key
// before, comes all of this one. If the connection is lost it connects again, and goes on where it was: as soon as the server is there, and for as long as
// ctx lasts, so give it an end if you do not want to wait. A server that was not there to begin with is an error, after the tries of any other call. Steps
// and tokens are seen as far as the server that one is connected with executes the run, and once at most.
func (c *Client) Events(ctx context.Context, stateKey, after string) iter.Seq2[Event, error] {
	return c.stream(ctx, after, func() request {
		return request{path: "/runs/" + url.PathEscape(stateKey) + "/events"}
	}, func(outcome fermata.Outcome) bool {
		_, waits := outcome.(fermata.NeedsInput)
		return !waits
	})
}

// ChatEvents starts or answers a run like [Client.Chat], and shows what happens until there is an outcome, which is the last event. If the
// connection is lost it sends the same again, which counts once, for as long as [Client.Events] would.
func (c *Client) ChatEvents(ctx context.Context, chat api.Chat) iter.Seq2[Event, error] {
	chat = withStateKey(chat)
	return c.stream(ctx, "", func() request {
		return request{method: http.MethodPost, path: "/ai/chat", body: chat}
	}, func(fermata.Outcome) bool { return true })
}

// stream reads connections, one after the other, until an outcome is the last.
func (c *Client) stream(ctx context.Context, after string, next func() request, last func(fermata.Outcome) bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		met := false // the server was there: that it is gone for a while, or a connection breaks while nothing happens, is no reason to give up
		for lost := 0; ; lost++ {
			again, err := c.follow(ctx, next(), after, func(e Event) bool {
				lost, met, after = 0, true, cmp.Or(e.ID, after)
				return yield(e, nil) && (e.Outcome == nil || !last(e.Outcome))
			})
			met = met || err == nil
			if err != nil && (again < 0 || ctx.Err() != nil || !met && lost == c.tries) {
				yield(Event{}, err)
				return
			}
			if again < 0 {
				return
			}
			if over := pause(ctx, max(again, time.Duration(1<<min(lost, 6))*50*time.Millisecond)); over != nil {
				yield(Event{}, errors.Join(over, err))
				return
			}
		}
	}
}

// follow reads one connection, from behind an event on. It returns after which time to make another one: never, if there is no more to read, or nobody who
// wants it.
func (c *Client) follow(ctx context.Context, r request, after string, yield func(Event) bool) (again time.Duration, err error) {
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
		if err != nil { // half of a refusal has no code; asked again, the server says it
			return 0, cmp.Or(streamIdleCause(ctx), err)
		}
		return responseError(response, data)
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "text/event-stream" {
		return noRetry, unexpectedResponse(response) // or one would wait for ever for the events of a page
	}
	for kind, data := range parseSSE(body) {
		if kind == api.EventRun {
			continue
		}
		event, err := readEvent(kind, []byte(data))
		if err != nil {
			if told, ok := errors.AsType[*api.Problem](err); ok && isRetryable(told.Status) {
				return 0, err
			}
			return noRetry, err // what cannot be read would come again
		}
		if !yield(event) {
			return noRetry, nil
		}
	}
	return 0, nil
}

// errStreamIdle is why a connection was given up.
var errStreamIdle = fmt.Errorf("client: the server has said nothing for %v", streamIdleTimeout)

// streamIdleCause is errStreamIdle if that is why a context has ended, and not because whoever called wanted it.
func streamIdleCause(ctx context.Context) error {
	if context.Cause(ctx) == errStreamIdle {
		return errStreamIdle
	}
	return nil
}

// idleTimeoutReader is a stream that ends if it is silent for too long: what it comes through may be dead without a word, or whoever sends it may stand still. The time that
// the reader takes for what has come does not count.
type idleTimeoutReader struct {
	io.Reader
	limit *time.Timer // ends it
}

// Read reads, and waits so long at most.
func (w *idleTimeoutReader) Read(p []byte) (int, error) {
	w.limit.Reset(streamIdleTimeout)
	defer w.limit.Stop()
	return w.Reader.Read(p)
}

// readEvent reads one event. A problem in the place of an outcome is an error.
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
		err = json.Unmarshal(data, &event.Event)
	}
	if err != nil && !errors.Is(err, ErrPending) {
		err = fmt.Errorf("client: the server's event %q: %w", kind, err)
	}
	return event, err
}

// parseSSE reads server-sent events.
func parseSSE(body io.Reader) iter.Seq2[string, string] {
	return func(yield func(kind, data string) bool) {
		var kind, data string
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, maxResponse)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "event":
				kind = value
			case "data":
				data += value
			}
			if lines.Text() != "" {
				continue
			}
			if data != "" && !yield(kind, data) {
				return
			}
			kind, data = "", ""
		}
	}
}
