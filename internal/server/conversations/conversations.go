// Package conversations has the operations on conversations with assistants: create, list, read,
// send a message, and follow.
//
//	GET  /assistants                     list the assistants
//	POST /conversations                  start a conversation
//	GET  /conversations                  list them
//	GET  /conversations/{id}             the whole record
//	POST /conversations/{id}/messages    say something; answered as JSON, or as an event stream
//	GET  /conversations/{id}/events      follow as an event stream
//	GET  /analytics/conversations        report what agents ask
//
// A user sees and continues only conversations of their own. Auditors read those of all users of
// their account. An API key with the role frontend holds conversations for end users that it names.
package conversations

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/server/admission"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/stream"
)

const path = api.Prefix + "/conversations"

// maxBody is the maximum size of a message with everything around its text, in bytes.
const maxBody = 128 << 10

// Handlers has the operations.
type Handlers struct {
	// Dialog holds the conversations; nil if the server has no assistant. Then nothing is found.
	Dialog *conversation.Handler
	// Messages limits the rate of messages of a conversation, and UserMessages that of a user over
	// all conversations.
	Messages, UserMessages *admission.Buckets
	// TakeStart returns a problem if the account has no quota for another run.
	TakeStart func(ctx context.Context, account string) error
	// Streams answers operations with event streams. They end when Done is closed.
	Streams *stream.Opener
	Done    <-chan struct{}
	// Tokens listens to what the models of a run write. forward is called once: it sends what a
	// caller may see, until ctx ends or send fails.
	Tokens func(me authn.Principal, run string) (forward func(ctx context.Context, send func(text string) error))
	// Failed records a problem that a stream sends, or that ends it.
	Failed func(p *problems.Problem, operation string)
}

// Register adds the operations.
func (h *Handlers) Register(to huma.API) {
	assistants := endpoint.New("list-assistants", http.MethodGet, api.Prefix+"/assistants", "List the assistants", authn.RoleUser, authn.RoleFrontend)
	assistants.Description = "The first one is the default of new conversations. Its id is empty if it belongs to a program that has only one."
	huma.Register(to, assistants, h.assistants)

	create := endpoint.New("create-conversation", http.MethodPost, path, "Start a conversation with an assistant", authn.RoleUser, authn.RoleFrontend)
	create.DefaultStatus, create.MaxBodyBytes = http.StatusCreated, maxBody
	huma.Register(to, create, h.create)

	list := endpoint.New("list-conversations", http.MethodGet, path, "List conversations", authn.RoleUser, authn.RoleFrontend, authn.RoleAuditor)
	list.Description = "Lists your own conversations, the last one used first: the newest 200. With all=true it lists those of all users by id, in pages; that needs the role auditor. A page may be empty although there is a next one."
	huma.Register(to, list, h.list)

	get := endpoint.New("get-conversation", http.MethodGet, path+"/{id}", "Get a conversation with its questions, transcript and runs", authn.RoleUser, authn.RoleFrontend, authn.RoleAuditor)
	get.Description = "Returns the complete record, also while a run works (working): each question with its options, stored data and tool results as the agent gave them, every turn, and the answer. A user sees own conversations, an auditor all of the account."
	huma.Register(to, get, h.get)

	send := endpoint.New("send-message", http.MethodPost, path+"/{id}/messages", "Send a message of the user", authn.RoleUser, authn.RoleFrontend)
	send.MaxBodyBytes = maxBody
	send.Description = "Sends a text, a button (question and choice), a form (question and fields), telephone keys (question and digits) or several answers at once (replies). " +
		"The response is the newest part of the conversation afterwards: earlier is the number of lines before it. If working is true, a run takes longer and more lines follow: read or follow the conversation. " +
		"A message with an id is idempotent. After a lost connection send it again.\n\n" +
		"With Accept: text/event-stream the response is a stream as of follow-conversation. It begins with the message, and ends when the assistant has answered or asks something."
	send.Responses = h.sendResponses(to)
	huma.Register(to, send, h.send)

	report := endpoint.New("conversation-report", http.MethodGet, api.Prefix+"/analytics/conversations", "Report what agents ask their users", authn.RoleApprover, authn.RoleAuditor)
	report.Description = "Counts the runs that have ended and those of them that asked something, and the questions that have ended, per agent and wording. waited is the sum of the times from question to answer, in nanoseconds. It names no users."
	huma.Register(to, report, h.report)

	follow := endpoint.New("follow-conversation", http.MethodGet, path+"/{id}/events", "Stream the lines of a conversation (server-sent events)", authn.RoleUser, authn.RoleFrontend, authn.RoleAuditor)
	follow.Description = "Sends the event line for each line of the transcript, with its number as the id, and the event state after each change; state has no id. " +
		"While a model writes, the event token has the next part of its text and the run, before the line with the whole text. Tokens have no id: they are sent live, not stored, and only for runs that this replica executes; a slow client misses some. " +
		"Last-Event-ID resumes after a line. The stream ends if the conversation is erased."
	follow.Responses = map[string]*huma.Response{"200": {Description: "The event stream.", Content: map[string]*huma.MediaType{stream.MediaType: streamSchema(to)}}}
	huma.Register(to, follow, h.follow)
}

type (
	createInput struct{ Body api.CreateConversation }
	listInput   struct {
		All    bool   `query:"all" doc:"List the conversations of all users."`
		Cursor string `query:"cursor" maxLength:"1024"`
		Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"100"`
		ForUser
	}
	getInput struct {
		ID string `path:"id" maxLength:"512"`
		ForUser
	}
	// ForUser is for callers that speak for end users.
	ForUser struct {
		EndUser string `query:"endUser" maxLength:"200" doc:"The person that the conversation is with, for API keys with the role frontend."`
	}
	recordOutput struct{ Body dialog.Record }
	createOutput struct {
		Location string `header:"Location"`
		Body     dialog.Record
	}
)

func (h *Handlers) assistants(context.Context, *struct{}) (*endpoint.Page[dialog.Assistant], error) {
	if h.Dialog == nil {
		return &endpoint.Page[dialog.Assistant]{Body: api.Page[dialog.Assistant]{Items: []dialog.Assistant{}}}, nil
	}
	list := h.Dialog.Assistants()
	return endpoint.Paged(list, len(list), func(a dialog.Assistant) dialog.Assistant { return a }, nil)
}

func (h *Handlers) create(ctx context.Context, in *createInput) (*createOutput, error) {
	if h.Dialog == nil {
		return nil, errNoAssistant()
	}
	who, err := speakerOf(ctx, in.Body.EndUser, "body.endUser")
	if err != nil {
		return nil, err
	}
	id := in.Body.ID
	if id == "" {
		id = ident.Random("conversation")
	}
	record, err := h.Dialog.Create(ctx, who.account, id, conversation.Opening{User: who.user, By: who.by, Assistant: in.Body.Assistant, Language: dialog.Language(in.Body.Language)})
	switch {
	case errors.Is(err, dialog.ErrInvalidID):
		return nil, badField("body.id", "letters, digits, hyphens, underscores and dots are allowed, at most 100")
	case errors.Is(err, conversation.ErrUnknownAssistant):
		return nil, badField("body.assistant", "there is no such assistant")
	case errors.Is(err, dialog.ErrNotFound), errors.Is(err, conversation.ErrExists), err == nil && !who.sees(record.By):
		return nil, badField("body.id", "the id is in use; choose another one")
	case err != nil:
		return nil, problems.Of(err)
	}
	return &createOutput{Location: path + "/" + url.PathEscape(id), Body: record}, nil
}

func (h *Handlers) list(ctx context.Context, in *listInput) (*endpoint.Page[api.Conversation], error) {
	me := endpoint.Principal(ctx)
	switch {
	case h.Dialog == nil:
		return &endpoint.Page[api.Conversation]{Body: api.Page[api.Conversation]{Items: []api.Conversation{}}}, nil
	case in.All && !me.Has(authn.RoleAuditor):
		return nil, problems.New("forbidden", "the conversations of other users need the role auditor")
	case in.All:
		return h.listAll(ctx, me.Account, in)
	}
	who, err := speakerOf(ctx, in.EndUser, "query.endUser")
	if err != nil {
		return nil, err
	}
	list, err := h.Dialog.List(ctx, who.account, who.user)
	if err != nil {
		return nil, problems.Of(err)
	}
	list = slices.DeleteFunc(list, func(s conversation.Summary) bool { return !who.sees(s.By) })
	return endpoint.Paged(list, len(list), summaryOf, nil)
}

func (h *Handlers) listAll(ctx context.Context, account string, in *listInput) (*endpoint.Page[api.Conversation], error) {
	var after string
	if err := endpoint.ReadCursor(in.Cursor, &after); err != nil {
		return nil, err
	}
	list, next, err := h.Dialog.All(ctx, account, after, in.Limit)
	if err != nil {
		return nil, problems.Of(err)
	}
	page, err := endpoint.Paged(list, len(list), summaryOf, nil)
	if err == nil && next != "" {
		page.Body.Next, err = endpoint.Cursor(next)
	}
	return page, err
}

func summaryOf(s conversation.Summary) api.Conversation {
	return api.Conversation{ID: s.ID, User: s.User, Assistant: s.Assistant, Title: s.Title, Open: s.Open, At: endpoint.TimeOrNil(s.At)}
}

func (h *Handlers) get(ctx context.Context, in *getInput) (*recordOutput, error) {
	if _, err := h.peek(ctx, in.ID, in.ForUser, true); err != nil {
		return nil, err
	}
	account := endpoint.Principal(ctx).Account
	if _, err := h.Dialog.AdvanceNow(ctx, account, in.ID); err != nil {
		return nil, problemOf(err)
	}
	record, err := h.Dialog.Whole(ctx, account, in.ID)
	if err != nil {
		return nil, problemOf(err)
	}
	return &recordOutput{record}, nil
}

// peek returns a conversation of the caller, and to auditors also those of others. Conversations of
// others are not found.
func (h *Handlers) peek(ctx context.Context, id string, asked ForUser, auditing bool) (dialog.Record, error) {
	if h.Dialog == nil {
		return dialog.Record{}, errNoAssistant()
	}
	who, err := speakerOf(ctx, asked.EndUser, "query.endUser")
	if err != nil {
		return dialog.Record{}, err
	}
	me := endpoint.Principal(ctx)
	record, err := h.Dialog.Peek(ctx, me.Account, id)
	if err != nil {
		return dialog.Record{}, problemOf(err)
	}
	if (record.User != who.user || !who.sees(record.By)) && (!auditing || !me.Has(authn.RoleAuditor)) {
		return dialog.Record{}, problemOf(dialog.ErrNotFound)
	}
	return record, nil
}

type reportInput struct {
	Days int `query:"days" minimum:"1" maximum:"3660" default:"30" doc:"How many days the report covers."`
}

func (h *Handlers) report(ctx context.Context, in *reportInput) (*struct{ Body dialog.Report }, error) {
	if h.Dialog == nil {
		return &struct{ Body dialog.Report }{dialog.Report{Rows: []dialog.Row{}}}, nil
	}
	report, err := h.Dialog.Report(ctx, endpoint.Principal(ctx).Account, time.Now().AddDate(0, 0, -in.Days), time.Time{})
	if err != nil {
		return nil, problems.Of(err)
	}
	return &struct{ Body dialog.Report }{report}, nil
}

func errNoAssistant() error { return problems.New("not_found", "the server has no assistant") }

func badField(location, message string) *problems.Problem {
	p := problems.New("bad_request", "%s", message)
	p.Fields = []api.Field{{Location: location, Message: message}}
	return p
}

// problemOf converts an error of package dialog.
func problemOf(err error) *problems.Problem {
	switch {
	case errors.Is(err, dialog.ErrNotFound):
		return problems.New("not_found", "the account has no such object")
	case errors.Is(err, dialog.ErrMessageReused):
		return problems.New("idempotency_key_reused", "%s; use a new one", plain(err))
	case errors.Is(err, dialog.ErrClosed):
		return problems.New("question_closed", "%s", plain(err))
	}
	return problems.Of(err)
}

// messageProblem converts the error of a message, and names the field that caused it.
func messageProblem(err error, body api.SendMessage) error {
	switch {
	case errors.Is(err, dialog.ErrUnknownQuestion):
		location := "body.question"
		if body.Question == "" {
			location = "body.replies"
		}
		return badField(location, plain(err))
	case errors.Is(err, dialog.ErrInvalidReply):
		location := "body.text"
		switch {
		case len(body.Text) > conversation.MaxText:
		case len(body.Replies) > 0:
			location = "body.replies"
		case body.Choice != "" && body.Question == "", body.Fields != nil && body.Question == "":
			location = "body.question"
		case body.Choice != "":
			location = "body.choice"
		case body.Fields != nil:
			location = "body.fields"
		case body.Digits != "":
			location = "body.digits"
		}
		return badField(location, plain(err))
	}
	return problemOf(err)
}

func plain(err error) string { return strings.TrimPrefix(err.Error(), "dialog: ") }

// rateLimited returns the problem of a conversation that gets too many messages, or of a user that
// sends too many, or nil.
func (h *Handlers) rateLimited(account, user, id string) error {
	what, delay := "the conversation gets", h.Messages.RetryAfter(account, id)
	if delay == 0 {
		what, delay = "you send", h.UserMessages.RetryAfter(account, user)
	}
	if delay == 0 {
		return nil
	}
	p := problems.New("rate_limited", "%s too many messages; wait %s", what, max(delay.Round(time.Second), time.Second))
	p.RetryAfter, p.Limit = delay, "messages"
	return p
}

// checkMessage returns an error for a message that says nothing, or several things.
func checkMessage(b api.SendMessage) error {
	said := 0
	for _, has := range []bool{b.Text != "", b.Choice != "", b.Fields != nil, b.Digits != "", len(b.Replies) > 0} {
		if has {
			said++
		}
	}
	switch said {
	case 0:
		return badField("body.text", "the message is empty: it needs a text, choice, fields, digits or replies")
	case 1:
		return nil
	}
	return badField("body", fmt.Sprintf("the message has %d of text, choice, fields, digits and replies; send one of them", said))
}
