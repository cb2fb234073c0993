package client

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
)

// Event is something that happened to a run, or what it came to.
type Event struct {
	api.Event
	// Outcome is set for the event "outcome".
	Outcome fermata.Outcome
}

// Events follows a run from behind an event on, until it is over. If the connection is lost it connects again, and goes on where it was.
func (c *Client) Events(ctx context.Context, stateKey string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for lost := 0; ; lost++ {
			over, err := c.follow(ctx, stateKey, &after, func(e Event) bool {
				lost = 0
				return yield(e, nil)
			})
			if err != nil && (over || ctx.Err() != nil || lost >= c.tries) {
				yield(Event{}, err)
				return
			}
			if over {
				return
			}
			select {
			case <-time.After(time.Duration(1<<min(lost, 6)) * 50 * time.Millisecond):
			case <-ctx.Done():
				yield(Event{}, ctx.Err())
				return
			}
		}
	}
}

// follow reads one connection. over says that there is no more to read, or nobody who wants it.
func (c *Client) follow(ctx context.Context, stateKey string, after *int64, yield func(Event) bool) (over bool, err error) {
	response, err := c.send(ctx, http.MethodGet, "/runs/"+url.PathEscape(stateKey)+"/events", nil, nil, map[string]string{
		"Accept": "text/event-stream", "Last-Event-ID": strconv.FormatInt(*after, 10),
	})
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		again, err := refusal(response, data)
		return again == never, err
	}
	final := false
	for kind, data := range messages(response.Body) {
		event := Event{Event: api.Event{Type: kind}}
		if kind == "outcome" {
			event.Outcome, err = fermata.UnmarshalOutcome([]byte(data))
		} else if err = json.Unmarshal([]byte(data), &event.Event); err == nil {
			*after = event.ID
		}
		if err != nil {
			return false, err
		}
		switch event.Outcome.(type) {
		case fermata.Completed, fermata.Failed:
			final = true
		case fermata.NeedsInput:
		}
		if !yield(event) || final {
			return true, nil
		}
	}
	return false, nil
}

// messages reads server-sent events.
func messages(body io.Reader) iter.Seq2[string, string] {
	return func(yield func(kind, data string) bool) {
		var kind, data string
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, maxAnswer)
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
