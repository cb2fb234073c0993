package runs

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/outcomes"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/stream"
	"github.com/fermata-go/fermata/internal/server/visibility"
	"github.com/fermata-go/fermata/internal/store"
)

func eventOf(e store.Event) api.Event {
	return api.Event{ID: eventID(e), Type: string(e.Kind), Request: e.Interrupt, CreatedAt: e.At}
}

// eventID returns the id of an event in a stream. It includes the run id, because the state key may
// belong to another run when a client reconnects.
func eventID(e store.Event) string { return e.Run + ":" + strconv.FormatInt(e.Seq, 10) }

type eventsInput struct {
	StateKey    string `path:"stateKey" maxLength:"512"`
	LastEventID string `header:"Last-Event-ID" doc:"The id of the last event received."`
}

func (h *Handlers) registerEvents(to huma.API) {
	op := endpoint.New("run-events", http.MethodGet, api.Prefix+"/runs/{stateKey}/events", "Stream the events of a run (server-sent events)", authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor)
	op.Description = "Last-Event-ID resumes after an event of the run. After an event of an earlier run with the same state key, all events of this run are sent. When the run waits or ends, the event outcome carries its outcome; after the end of the run the stream closes. " +
		"The events step and token have no id: they are sent live, not stored, and only for runs that this replica executes; a slow client misses some. " +
		"Comments keep the connection alive. A client that does not read is disconnected and can resume with Last-Event-ID."
	op.Responses = map[string]*huma.Response{"200": {Description: "The event stream.", Content: map[string]*huma.MediaType{stream.MediaType: streamSchema(to)}}}
	huma.Register(to, op, h.events)
}

// streamSchema describes an event stream. The event data schemas are listed in the description,
// because OpenAPI 3.1 cannot express them.
func streamSchema(to huma.API) *huma.MediaType {
	registry := to.OpenAPI().Components.Schemas
	outcomes.Outcome{}.Schema(registry)
	for _, t := range []reflect.Type{reflect.TypeFor[api.Event](), reflect.TypeFor[api.Step](), reflect.TypeFor[api.Token](), reflect.TypeFor[api.Pending]()} {
		registry.Schema(t, true, "")
	}
	return &huma.MediaType{Schema: &huma.Schema{
		Type:        "string",
		Description: "Server-sent events; the data of each is JSON: run is a Pending, step a Step, token a Token, interrupt an OpenInterrupt, outcome an Outcome, problem a Problem; any other name is an Event.",
	}}
}

func (h *Handlers) events(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	account := endpoint.Principal(ctx).Account
	view, err := h.Executor.GetRun(ctx, account, in.StateKey)
	if err != nil {
		return nil, problems.Of(err)
	}
	after, err := h.resumePosition(ctx, account, view.ID, in.LastEventID)
	if err != nil {
		return nil, problems.Of(err)
	}
	tokens, err := h.maySeeTokens(endpoint.Principal(ctx), view)
	if err != nil {
		return nil, problems.Of(err)
	}
	t := &runStream{Handlers: h, me: endpoint.Principal(ctx), account: account, stateKey: in.StateKey, run: view.ID, after: after, ended: !view.Status.Active(), maySeeTokens: tokens}
	t.atRest = t.ended || view.Status == store.StatusWaiting
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		h.Streams.Open(hctx, t.follow)
	}}, nil
}

// maySeeTokens reports whether a caller may see what the models of a run write: no request of the
// run is hidden from them or has values that are masked for them, because models repeat both.
func (h *Handlers) maySeeTokens(me authn.Principal, view executor.RunView) (bool, error) {
	shown, err := h.Visibility.Requests(me, view)
	if err != nil {
		return false, err
	}
	masks := slices.ContainsFunc(shown, func(q executor.RequestView) bool { return q.Request != nil && visibility.Masks(me, q.Request) })
	return !visibility.HidesRequests(view, shown) && !masks && visibility.MaySeeResult(me, view.EndUser), nil
}

// follow streams a run until it ends.
func (t *runStream) follow(ctx context.Context, out *stream.Writer) {
	var stop func()
	t.progress, stop = t.Executor.WatchProgress(t.account, t.stateKey)
	defer stop()
	if t.out = out; out.Comment("hello") == nil {
		t.serve(ctx)
	}
}

// resumePosition returns the position after the last event that a client received. It is the start
// of the run if that event belongs to another run, which had the same state key before.
func (h *Handlers) resumePosition(ctx context.Context, account, run, last string) (int64, error) {
	number, ok := strings.CutPrefix(last, run+":")
	after, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || after < 1 {
		return 0, nil
	}
	events, err := h.Executor.Events(ctx, account, run, after-1)
	if err != nil || len(events) == 0 || events[0].Seq != after {
		return 0, err
	}
	return after, nil
}

// maxChatStream is how long a chat is streamed. In practice the run waits or ends earlier.
const maxChatStream = 24 * time.Hour

// chatStream starts or resumes a run and streams its events. Errors of the request are returned
// before the stream starts.
func (h *Handlers) chatStream(ctx context.Context, request executor.RunRequest, last string) (*outcomes.Output, error) {
	t := &runStream{Handlers: h, me: endpoint.Principal(ctx), account: request.Account, stateKey: request.StateKey}
	var err error
	if last == "" && request.ResumeID != "" { // skip the events before this answer
		if last, err = h.newestEvent(ctx, request.Account, request.StateKey); err != nil {
			return nil, problems.Of(err)
		}
	}
	progress, stop := h.Executor.WatchProgress(t.account, t.stateKey)
	t.progress = progress
	first := request
	first.Wait = -1
	outcome, err := h.Executor.Run(ctx, first)
	var undo *executor.PendingError
	if pending, ok := errors.AsType[*executor.PendingError](err); ok {
		t.run = pending.Run
		if !pending.EffectiveAt.IsZero() { // nothing happens before that
			undo = pending
		}
	} else if err != nil {
		stop()
		return nil, startProblem(request, err)
	} else {
		t.run = visibility.RunID(outcome)
	}
	view, err := h.Executor.GetRun(ctx, t.account, t.stateKey)
	if err == nil && view.ID == t.run { // otherwise that run is over, and writes nothing more
		t.maySeeTokens, err = h.maySeeTokens(t.me, view)
	}
	if err != nil {
		stop()
		return nil, problems.Of(err)
	}
	// the run may differ: the state key was reused, or this is a repeated request
	if t.after, err = h.resumePosition(ctx, t.account, t.run, last); err != nil {
		stop()
		return nil, problems.Of(err)
	}
	if request.Wait == 0 {
		request.Wait = maxChatStream
	}
	return &outcomes.Output{Body: func(hctx huma.Context) {
		h.Streams.Open(hctx, func(ctx context.Context, out *stream.Writer) {
			defer stop()
			if t.out = out; out.Event("", api.EventRun, api.Pending{RunID: t.run, StateKey: t.stateKey}) == nil {
				if undo != nil {
					_ = t.finish(ctx, chatResult{err: undo}) // a disconnected client sends the request again
					return
				}
				t.chat(ctx, request, outcome)
			}
		})
	}}, nil
}

// chat streams a run until its outcome is known.
func (t *runStream) chat(ctx context.Context, request executor.RunRequest, known fermata.Outcome) {
	results := make(chan chatResult, 1)
	t.result = results
	if known != nil {
		// a disconnected client sends the request again
		_ = t.finish(ctx, chatResult{outcome: known})
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		outcome, err := t.Executor.Await(ctx, request, t.run)
		results <- chatResult{outcome, err}
	}()
	defer func() { cancel(); <-gone }()
	t.serve(ctx)
}

// newestEvent returns the id of the newest event of a run.
func (h *Handlers) newestEvent(ctx context.Context, account, stateKey string) (id string, err error) {
	view, err := h.Executor.GetRun(ctx, account, stateKey)
	if err != nil {
		return "", err
	}
	for after := int64(0); ; {
		events, err := h.Executor.Events(ctx, account, view.ID, after)
		if err != nil || len(events) == 0 {
			return id, err
		}
		newest := events[len(events)-1]
		id, after = eventID(newest), newest.Seq
	}
}
