package conversations

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/stream"
)

type sendInput struct {
	ID     string `path:"id" maxLength:"512"`
	Accept string `header:"Accept" doc:"text/event-stream streams the lines that follow."`
	Body   api.SendMessage
}

// sendOutput writes a record or a stream.
type sendOutput struct{ Body func(huma.Context) }

func (h *Handlers) sendResponses(to huma.API) map[string]*huma.Response {
	schemas := to.OpenAPI().Components.Schemas
	return map[string]*huma.Response{
		"200": {Description: "The conversation after the message.", Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(reflect.TypeFor[dialog.Record](), true, "")},
			stream.MediaType:   streamSchema(to),
		}},
		"default": {Description: "Error", Content: map[string]*huma.MediaType{
			"application/problem+json": {Schema: schemas.Schema(reflect.TypeFor[problems.Problem](), true, "")},
		}},
	}
}

// streamSchema describes the event stream of a conversation.
func streamSchema(to huma.API) *huma.MediaType {
	schemas := to.OpenAPI().Components.Schemas
	line := schemas.Schema(reflect.TypeFor[dialog.Line](), true, "")
	for _, t := range []reflect.Type{reflect.TypeFor[api.ConversationStatus](), reflect.TypeFor[api.Token]()} {
		schemas.Schema(t, true, "")
	}
	return &huma.MediaType{Schema: &huma.Schema{
		Type: "string", Description: "Server-sent events; the data of each is JSON: line is a " + line.Ref[len("#/components/schemas/"):] + ", state a ConversationStatus, token a Token, problem a Problem.",
	}}
}

func (h *Handlers) send(ctx context.Context, in *sendInput) (*sendOutput, error) {
	b := in.Body
	who, err := speakerOf(ctx, b.EndUser, "body.endUser")
	if err != nil {
		return nil, err
	}
	before, err := h.peek(ctx, in.ID, ForUser{b.EndUser}, false)
	if err != nil {
		return nil, err
	}
	if err := checkMessage(b); err != nil {
		return nil, err
	}
	if err := h.rateLimited(who.account, who.user, in.ID); err != nil {
		return nil, err
	}
	if len(before.Open()) == 0 { // otherwise it probably answers a question, and starts no run
		if err := h.TakeStart(ctx, who.account); err != nil {
			return nil, err
		}
	}
	if b.ID == "" {
		b.ID = ident.Random("message")
	}
	accepted, err := h.Dialog.Accept(ctx, who.account, in.ID, who.sign(messageOf(b)))
	if err != nil {
		return nil, messageProblem(err, in.Body)
	}
	if stream.Accepted(in.Accept) {
		f := &follower{Handlers: h, account: who.account, id: in.ID, reader: who.reader(ctx), after: lineBefore(accepted, b.ID)}
		return &sendOutput{func(hctx huma.Context) { h.Streams.Open(hctx, f.advance) }}, nil
	}
	record, err := h.Dialog.Advance(ctx, who.account, in.ID)
	if err != nil {
		return nil, problemOf(err)
	}
	return &sendOutput{func(hctx huma.Context) {
		hctx.SetHeader("Content-Type", "application/json")
		hctx.SetStatus(http.StatusOK)
		_ = json.NewEncoder(hctx.BodyWriter()).Encode(record) // a disconnected client does not read it
	}}, nil
}

func messageOf(b api.SendMessage) dialog.Message {
	msg := dialog.Message{
		ID: b.ID, Text: b.Text, Question: b.Question, Choice: b.Choice, Fields: b.Fields, Digits: b.Digits,
		Modality: dialog.Modality(b.Modality), Recognition: b.Recognition, Language: dialog.Language(b.Language), Channel: b.Channel,
	}
	for id, r := range b.Replies {
		if msg.Replies == nil {
			msg.Replies = make(map[string]dialog.Reply)
		}
		msg.Replies[id] = dialog.Reply(r)
	}
	return msg
}

// lineBefore returns the number of the line before a message.
func lineBefore(record dialog.Record, message string) int {
	at := slices.IndexFunc(record.Lines, func(l dialog.Line) bool { return l.Message == message })
	if at < 0 { // a repeated message without a line of its own
		return record.Earlier + len(record.Lines)
	}
	return record.Earlier + at
}

type followInput struct {
	ID          string `path:"id" maxLength:"512"`
	LastEventID string `header:"Last-Event-ID" maxLength:"20" doc:"The id of the last event received."`
	ForUser
}

func (h *Handlers) follow(ctx context.Context, in *followInput) (*huma.StreamResponse, error) {
	if _, err := h.peek(ctx, in.ID, in.ForUser, true); err != nil {
		return nil, err
	}
	who, err := speakerOf(ctx, in.EndUser, "query.endUser")
	if err != nil {
		return nil, err
	}
	f := &follower{Handlers: h, account: who.account, id: in.ID, reader: who.reader(ctx)}
	if n, err := strconv.Atoi(in.LastEventID); err == nil && n > 0 {
		f.after = n
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) { h.Streams.Open(hctx, f.serve) }}, nil
}

// pollEvery is how often a stream looks for changes of other processes.
const pollEvery = 2 * time.Second

// follower sends a conversation to one client.
type follower struct {
	*Handlers
	account, id string
	reader      authn.Principal
	after       int               // the number of the last line that was sent
	revision    int64             // of the state that was sent
	watched     map[string]func() // stops the tokens of a run
	mu          sync.Mutex        // guards out
	out         *stream.Writer
}

// serve writes the stream until the client disconnects or does not read, the conversation is
// erased, or the server shuts down.
func (f *follower) serve(ctx context.Context, out *stream.Writer) {
	changed, stop := f.Dialog.Watch(f.account, f.id)
	defer stop()
	defer f.unwatch()
	f.out = out
	if f.comment("hello") != nil {
		return
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	heartbeat := time.NewTicker(f.Streams.Heartbeat)
	defer heartbeat.Stop()
	for {
		record, err := f.Dialog.Peek(ctx, f.account, f.id)
		if err != nil {
			f.failed(ctx, err, "follow-conversation")
			return
		}
		if f.write(ctx, record) != nil {
			return // the client reconnects with its Last-Event-ID
		}
		select {
		case <-ctx.Done():
			return
		case <-f.Done:
			return
		case <-changed:
		case <-poll.C:
		case <-heartbeat.C:
			if f.comment("keep-alive") != nil {
				return
			}
		}
	}
}

// advance writes a stream until the assistant has answered a message.
func (f *follower) advance(ctx context.Context, out *stream.Writer) {
	changed, stop := f.Dialog.Watch(f.account, f.id)
	defer stop()
	defer f.unwatch()
	f.out = out
	type result struct {
		record dialog.Record
		err    error
	}
	poll := time.NewTicker(time.Second)
	defer poll.Stop()
	for {
		results := make(chan result, 1)
		go func() {
			record, err := f.Dialog.Advance(ctx, f.account, f.id)
			results <- result{record, err}
		}()
		for results != nil {
			select {
			case <-changed:
				if record, err := f.Dialog.Peek(ctx, f.account, f.id); err == nil && f.write(ctx, record) != nil {
					<-results
					return
				}
			case r := <-results:
				results = nil
				if r.err != nil {
					f.failed(ctx, r.err, "send-message")
					_ = f.event("", api.EventProblem, problemOf(r.err)) // a disconnected client sends the message again
					return
				}
				if f.write(ctx, r.record) != nil || !r.record.Working {
					return
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-f.Done:
			return
		case <-poll.C:
		}
	}
}

// failed records an error of the stream, unless it ends because the client has disconnected.
func (f *follower) failed(ctx context.Context, err error, operation string) {
	if ctx.Err() == nil {
		f.Failed(problemOf(err), operation)
	}
}

// write sends the lines and the state that the client does not have.
func (f *follower) write(ctx context.Context, record dialog.Record) error {
	f.watchTokens(ctx, record)
	lines, complete := record.Since(f.after)
	if !complete {
		whole, err := f.Dialog.Whole(ctx, f.account, f.id)
		if err != nil {
			return err
		}
		lines, _ = whole.Since(f.after)
	}
	for _, line := range lines {
		if err := f.event(strconv.Itoa(line.N), api.ConversationLine, line); err != nil {
			return err
		}
		f.after = line.N
	}
	if record.Revision == f.revision {
		return nil
	}
	f.revision = record.Revision
	state := api.ConversationStatus{Revision: record.Revision, Working: record.Working, Open: []string{}}
	for _, a := range record.Questions {
		if a.Status.Open() && a.Status != dialog.Queued && a.Status != dialog.HandedOver {
			state.Open = append(state.Open, a.ID)
		}
	}
	return f.event("", api.ConversationState, state)
}
