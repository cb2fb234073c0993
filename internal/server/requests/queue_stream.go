package requests

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/stream"
	"github.com/fermata-go/fermata/internal/store"
)

// EventsPath is the path of the stream of changes. A stream needs no permit to execute.
const EventsPath = api.Prefix + "/requests/events"

func (h *Handlers) registerQueueEvents(to huma.API) {
	op := endpoint.New("request-events", http.MethodGet, EventsPath, "Stream changes of requests (server-sent events)", authn.RoleApprover, authn.RoleAuditor)
	op.Description = "Sends an event for each change of a request that the caller may see, with its id and revision; read the request for its content. " +
		"The first event is ready: list the requests after it. Last-Event-ID resumes after an event. If that is too long ago, the first event is reset: list the requests again. " +
		"The event viewing has no id: it names the people who report that they look at a request, on this replica, and is not stored."
	to.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.QueueEvent](), true, "")
	op.Responses = map[string]*huma.Response{"200": {Description: "The event stream.", Content: map[string]*huma.MediaType{stream.MediaType: {Schema: &huma.Schema{
		Type: "string", Description: "Server-sent events; the data of each is a QueueEvent in JSON.",
	}}}}}
	huma.Register(to, op, h.queueEvents)
	viewing := endpoint.New("report-viewing", http.MethodPost, endpoint.RequestPath+"/viewing", "Report that you are looking at a request", authn.RoleApprover, authn.RoleAuditor)
	viewing.Description = "Other viewers see it for 30 seconds; repeat it while the request is on the screen. It is kept in memory, by the replica that receives it, and is not audited."
	viewing.DefaultStatus = http.StatusNoContent
	huma.Register(to, viewing, h.viewing)
}

func (h *Handlers) viewing(ctx context.Context, in *requestInput) (*struct{}, error) {
	me := endpoint.Principal(ctx)
	if _, err := h.Executor.GetRequest(ctx, me.Account, in.ID); err != nil {
		return nil, problems.Of(err)
	}
	h.presence.Report(me.Account, in.ID, me.ID)
	return nil, nil
}

// viewersOf returns the people who are looking at a request.
func (h *Handlers) viewersOf(account, request string) (viewers []api.Stamp) {
	for _, v := range h.presence.Viewers(account, request) {
		viewers = append(viewers, api.Stamp{By: v.ID, At: v.At.UTC()})
	}
	return viewers
}

type queueEventsInput struct {
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"The id of the last event received."`
}

func (h *Handlers) queueEvents(ctx context.Context, in *queueEventsInput) (*huma.StreamResponse, error) {
	me := endpoint.Principal(ctx)
	newest, err := h.Executor.LastChange(ctx, me.Account)
	if err != nil {
		return nil, problems.Of(err)
	}
	q := &queueStream{Handlers: h, me: me, after: newest, first: api.QueueReady}
	if in.LastEventID != "" {
		q.first = api.QueueReset
		if last, err := strconv.ParseInt(in.LastEventID, 10, 64); err == nil && last >= 0 && last <= newest && newest-last <= maxQueueReplay {
			q.after, q.first = last, ""
		}
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) { h.Streams.Open(hctx, q.serve) }}, nil
}

const (
	// maxQueueReplay is how many audit records are read to resume a stream. Reading the list costs
	// less than more of them.
	maxQueueReplay = 10000
	// queuePause is the minimum time between two reads of a stream, so that a busy account costs
	// each of its streams at most ten reads a second.
	queuePause = 100 * time.Millisecond
)

// A queueStream sends changes of requests to one client. Like a runStream it has no goroutine of
// its own.
type queueStream struct {
	*Handlers
	me    authn.Principal
	out   *stream.Writer
	after int64  // the last change read
	first string // the event to begin with, if any
}

// serve writes the stream until the client disconnects or does not read, or the server shuts down.
func (q *queueStream) serve(ctx context.Context, out *stream.Writer) {
	changed, stop := q.Executor.WatchRequests(q.me.Account)
	defer stop()
	present, leave := q.presence.Watch(q.me.Account)
	defer leave()
	heartbeat := time.NewTicker(q.Streams.Heartbeat)
	defer heartbeat.Stop()
	q.out = out
	if q.begin() != nil {
		return
	}
	for {
		if q.catchUp(ctx) != nil {
			return
		}
		read := time.Now()
		if !q.wait(ctx, changed, present, heartbeat.C) {
			return
		}
		if !sleep(ctx, queuePause-time.Since(read)) {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (q *queueStream) begin() error {
	if q.first == "" {
		return q.out.Comment("hello")
	}
	id := strconv.FormatInt(q.after, 10)
	return q.out.Event(id, q.first, api.QueueEvent{ID: id, Type: q.first, CreatedAt: time.Now().UTC()})
}

// wait returns true when there may be changes.
func (q *queueStream) wait(ctx context.Context, changed <-chan struct{}, present <-chan string, heartbeat <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-q.Executor.Done():
			return false
		case <-changed:
			return true
		case <-heartbeat:
			return q.out.Comment("keep-alive") == nil
		case request := <-present:
			if q.writeViewers(ctx, request) != nil {
				return false
			}
		}
	}
}

// writeViewers sends the viewers of a request.
func (q *queueStream) writeViewers(ctx context.Context, request string) error {
	visible, err := q.visible(ctx, request)
	if err != nil || !visible {
		return err
	}
	return q.out.Event("", api.QueueViewing, api.QueueEvent{
		Type: api.QueueViewing, Request: request, Viewers: q.viewersOf(q.me.Account, request), CreatedAt: time.Now().UTC(),
	})
}

// catchUp sends the changes since the last one.
func (q *queueStream) catchUp(ctx context.Context) error {
	visible := make(map[string]bool)
	for {
		changes, next, err := q.Executor.RequestChanges(ctx, q.me.Account, q.after)
		if err != nil {
			return err // the client reconnects with its Last-Event-ID
		}
		for _, c := range changes {
			show, known := visible[c.Request]
			if !known {
				if show, err = q.visible(ctx, c.Request); err != nil {
					return err
				}
				visible[c.Request] = show
			}
			if !show {
				continue
			}
			id := strconv.FormatInt(c.Seq, 10)
			if err := q.out.Event(id, string(c.Kind), api.QueueEvent{ID: id, Type: string(c.Kind), Request: c.Request, Revision: c.Revision, CreatedAt: c.At.UTC()}); err != nil {
				return err
			}
		}
		if next == q.after {
			return nil
		}
		q.after = next
	}
}

// visible reports whether the client may see a request.
func (q *queueStream) visible(ctx context.Context, request string) (bool, error) {
	doc, visible, err := q.Visibility.MaySeeID(ctx, q.me, request)
	if err != nil || doc != nil {
		return visible, err
	}
	_, err = q.Executor.GetRequest(ctx, q.me.Account, request)
	if errors.Is(err, store.ErrNotFound) { // it was deleted
		return false, nil
	}
	return err == nil, err
}
