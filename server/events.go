package server

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

func eventOf(e store.Event) api.Event {
	return api.Event{ID: eventID(e), Type: string(e.Kind), Request: e.Interrupt, CreatedAt: e.At}
}

// eventID is what a stream calls an event. It names the run, because the state key may be another run's by the time a reader comes back with it.
func eventID(e store.Event) string { return e.Run + ":" + strconv.FormatInt(e.Seq, 10) }

type eventsInput struct {
	StateKey    string `path:"stateKey" maxLength:"512"`
	LastEventID string `header:"Last-Event-ID" doc:"The id of the last event that was seen."`
}

func (s *Server) registerEvents() {
	op := operation("run-events", http.MethodGet, api.Prefix+"/runs/{stateKey}/events", "What happens to a run, as it happens (server-sent events)", RoleAgent, RoleApprover, RoleAuditor)
	op.Description = "Last-Event-ID goes on behind an event of the run; behind one of another run, which had the same state key before, comes all of this one. When the run waits or is over, the event outcome says what it came to; then, if it is over, the stream ends. " +
		"The events step and token have no id: they are told as they happen, are not kept, and come only from runs that this very server executes; a slow reader misses some. " +
		"A comment now and then keeps the connection alive. A client that does not read is cut off, and goes on with its Last-Event-ID."
	op.Responses = map[string]*huma.Response{"200": {Description: "The stream.", Content: map[string]*huma.MediaType{eventStream: s.streamSchema()}}}
	huma.Register(s.api, op, s.events)
}

// eventStream is the media type of streams.
const eventStream = "text/event-stream"

// streamed describes a stream. What its events hold are schemas of the document: named here, because OpenAPI 3.1 cannot say it.
func (s *Server) streamSchema() *huma.MediaType {
	registry := s.api.OpenAPI().Components.Schemas
	Outcome{}.Schema(registry)
	for _, t := range []reflect.Type{reflect.TypeFor[api.Event](), reflect.TypeFor[api.Step](), reflect.TypeFor[api.Token](), reflect.TypeFor[api.Pending]()} {
		registry.Schema(t, true, "")
	}
	return &huma.MediaType{Schema: &huma.Schema{
		Type:        "string",
		Description: "Server-sent events; the data of each is JSON: run is a Pending, step a Step, token a Token, interrupt an OpenInterrupt, outcome an Outcome, problem a Problem; any other name is an Event.",
	}}
}

func (s *Server) events(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	account := principalOf(ctx).Account
	view, err := s.config.Executor.GetRun(ctx, account, in.StateKey)
	if err != nil {
		return nil, problemOf(err)
	}
	after, err := s.resumePosition(ctx, account, view.ID, in.LastEventID)
	if err != nil {
		return nil, problemOf(err)
	}
	t := &stream{Server: s, account: account, stateKey: in.StateKey, run: view.ID, after: after, ended: !view.Status.Active()}
	t.atRest = t.ended || view.Status == store.StatusWaiting
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		s.stream(hctx, t.follow)
	}}, nil
}

// follow shows a run until it is over.
func (t *stream) follow(ctx context.Context, out *sse) {
	var stop func()
	t.progress, stop = t.config.Executor.WatchProgress(t.account, t.stateKey)
	defer stop()
	if t.out = out; out.comment("hello") == nil {
		t.serve(ctx)
	}
}

// behind is where to go on in a run behind the event that a reader has seen last: at its beginning, if that is no event of the run. It was one of another
// run then, which had the same state key before.
func (s *Server) resumePosition(ctx context.Context, account, run, last string) (int64, error) {
	number, ok := strings.CutPrefix(last, run+":")
	after, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || after < 1 {
		return 0, nil
	}
	events, err := s.config.Executor.Events(ctx, account, run, after-1)
	if err != nil || len(events) == 0 || events[0].Seq != after {
		return 0, err
	}
	return after, nil
}

// maxChatStream is how long a chat is shown: until the run rests, for all that matters.
const maxChatStream = 24 * time.Hour

// chatStream does what is wanted, and shows what becomes of it. What is wrong with the request is told before the stream begins.
func (s *Server) chatStream(ctx context.Context, request executor.RunRequest, last string) (*outcomeOutput, error) {
	t := &stream{Server: s, account: request.Account, stateKey: request.StateKey}
	var err error
	if last == "" && request.ResumeID != "" { // what was before is of no interest
		if last, err = s.newestEvent(ctx, request.Account, request.StateKey); err != nil {
			return nil, problemOf(err)
		}
	}
	progress, stop := s.config.Executor.WatchProgress(t.account, t.stateKey)
	t.progress = progress
	first := request
	first.Wait = -1
	outcome, err := s.config.Executor.Run(ctx, first)
	if pending, ok := errors.AsType[*executor.PendingError](err); ok {
		t.run = pending.Run
	} else if err != nil {
		stop()
		return nil, startProblem(request, err)
	} else {
		t.run = runIDOf(outcome)
	}
	if t.after, err = s.resumePosition(ctx, t.account, t.run, last); err != nil { // the run may be another one: the state key was taken, or this is a repetition
		stop()
		return nil, problemOf(err)
	}
	if request.Wait == 0 {
		request.Wait = maxChatStream
	}
	return &outcomeOutput{Body: func(hctx huma.Context) {
		s.stream(hctx, func(ctx context.Context, out *sse) {
			defer stop()
			if t.out = out; out.event("", api.EventRun, api.Pending{RunID: t.run, StateKey: t.stateKey}) == nil {
				t.chat(ctx, request, outcome)
			}
		})
	}}, nil
}

// chat waits for what was begun, and shows it meanwhile.
func (t *stream) chat(ctx context.Context, request executor.RunRequest, known fermata.Outcome) {
	settled := make(chan chatResult, 1)
	t.result = settled
	if known != nil {
		_ = t.finish(ctx, chatResult{outcome: known}) // whoever is gone asks again
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		outcome, err := t.config.Executor.Await(ctx, request, t.run)
		settled <- chatResult{outcome, err}
	}()
	defer func() { cancel(); <-gone }()
	t.serve(ctx)
}

// newestEvent is the id of the newest event of a run.
func (s *Server) newestEvent(ctx context.Context, account, stateKey string) (id string, err error) {
	view, err := s.config.Executor.GetRun(ctx, account, stateKey)
	if err != nil {
		return "", err
	}
	for after := int64(0); ; {
		events, err := s.config.Executor.Events(ctx, account, view.ID, after)
		if err != nil || len(events) == 0 {
			return id, err
		}
		newest := events[len(events)-1]
		id, after = eventID(newest), newest.Seq
	}
}
