package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/store"
)

func eventOf(e store.Event) api.Event {
	return api.Event{ID: e.Number, Type: string(e.Kind), Request: e.Interrupt, CreatedAt: e.At}
}

type eventsInput struct {
	StateKey    string `path:"stateKey" maxLength:"512"`
	LastEventID string `header:"Last-Event-ID" doc:"The id of the last event that was seen."`
}

const (
	heartbeat     = 15 * time.Second
	writePatience = 10 * time.Second // a client that does not read for so long is let go
)

func (s *Server) registerEvents() {
	op := operation("run-events", http.MethodGet, api.Prefix+"/runs/{stateKey}/events", "What happens to a run, as it happens (server-sent events)", Agent, Approver, Auditor)
	op.Description = "Each event has its number as id; Last-Event-ID goes on behind it. A comment every 15 seconds keeps the connection alive. The stream ends with the run; its last message is the event \"outcome\" with what the run came to."
	op.Responses = map[string]*huma.Response{"200": {Description: "The stream.", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: "string"}}}}}
	huma.Register(s.api, op, s.events)
}

func (s *Server) events(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	after := int64(0)
	if in.LastEventID != "" {
		var err error
		if after, err = strconv.ParseInt(in.LastEventID, 10, 64); err != nil || after < 0 {
			return nil, problem("bad_request", "Last-Event-ID is a number")
		}
	}
	account := who(ctx).Account
	if _, err := s.config.Executor.Look(ctx, account, in.StateKey); err != nil {
		return nil, explain(err)
	}
	leave, ok := enter(s.limits.streams)
	if !ok {
		return nil, busy("there are too many streams")
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		defer leave()
		_, w := humago.Unwrap(hctx)
		s.stream(hctx.Context(), w, account, in.StateKey, after)
	}}, nil
}

// stream writes events until the run is over, the client is gone, or does not read.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, account, stateKey string, after int64) {
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &sse{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if out.comment("hello") != nil {
		return
	}
	events := make(chan store.Event)
	go func() {
		defer close(events)
		for event, err := range s.config.Executor.Follow(ctx, account, stateKey, after) {
			if err != nil {
				return // the client comes back with its Last-Event-ID
			}
			select {
			case events <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range events { // until the other one is gone
		}
	}()
	s.pump(ctx, out, events, account, stateKey)
}

func (s *Server) pump(ctx context.Context, out *sse, events <-chan store.Event, account, stateKey string) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			if out.comment("still here") != nil {
				return
			}
		case event, open := <-events:
			if !open || out.event(strconv.FormatInt(event.Number, 10), string(event.Kind), eventOf(event)) != nil {
				return
			}
			if !event.Kind.Final() && event.Kind != store.EventWaiting {
				continue
			}
			view, err := s.config.Executor.Look(ctx, account, stateKey)
			if err != nil || view.Outcome == nil {
				continue
			}
			if out.event("", "outcome", Outcome{Outcome: view.Outcome}) != nil || event.Kind.Final() {
				return
			}
		}
	}
}

// sse writes server-sent events. A client that does not read is an error after a while.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (o *sse) comment(text string) error { return o.write(": " + text + "\n\n") }

func (o *sse) event(id, kind string, data any) error {
	body, err := json.Marshal(data) // on one line
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return o.write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, kind, body))
}

func (o *sse) write(text string) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(writePatience)); err != nil {
		return err
	}
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	return o.control.Flush()
}
