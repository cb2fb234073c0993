package client

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/dialog"
)

const conversationsPath = "/conversations"

// ForEndUser returns a client whose conversations are those of an end user of the account. It needs
// an API key with the role frontend.
func (c *Client) ForEndUser(user string) *Client {
	speaking := *c
	speaking.endUser = user
	return &speaking
}

// userQuery returns the parameters of a read for an end user.
func (c *Client) userQuery() url.Values {
	if c.endUser == "" {
		return nil
	}
	return url.Values{"endUser": {c.endUser}}
}

// Assistants lists the assistants of the server. The first one is the default.
func (c *Client) Assistants(ctx context.Context) (page api.Page[dialog.Assistant], err error) {
	return page, c.call(ctx, request{path: "/assistants"}, &page)
}

// CreateConversation starts a conversation with an assistant of the server. Without an id it gets
// one, so that retries are safe.
func (c *Client) CreateConversation(ctx context.Context, begin api.CreateConversation) (record dialog.Record, err error) {
	if begin.ID == "" {
		begin.ID = NewID()
	}
	begin.EndUser = cmp.Or(begin.EndUser, c.endUser)
	return record, c.call(ctx, request{method: http.MethodPost, path: conversationsPath, body: begin}, &record)
}

// Conversations returns the caller's conversations, the last one used first.
func (c *Client) Conversations(ctx context.Context) (page api.Page[api.Conversation], err error) {
	return page, c.call(ctx, request{path: conversationsPath, query: c.userQuery()}, &page)
}

// AllConversations returns a page of the conversations of all users, by id, for auditors.
func (c *Client) AllConversations(ctx context.Context, cursor string) (page api.Page[api.Conversation], err error) {
	query := url.Values{"all": {"true"}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return page, c.call(ctx, request{path: conversationsPath, query: query}, &page)
}

// Conversation returns a conversation with its questions, transcript and runs.
func (c *Client) Conversation(ctx context.Context, id string) (record dialog.Record, err error) {
	return record, c.call(ctx, request{path: conversationsPath + "/" + url.PathEscape(id), query: c.userQuery()}, &record)
}

// ConversationReport counts what agents asked their users in the last days.
func (c *Client) ConversationReport(ctx context.Context, days int) (report dialog.Report, err error) {
	r := request{path: "/analytics/conversations", query: url.Values{"days": {strconv.Itoa(days)}}}
	return report, c.call(ctx, r, &report)
}

// SendMessage sends a message of the user and returns the conversation afterwards. A message
// without an id gets one, so that retries are safe.
func (c *Client) SendMessage(ctx context.Context, id string, message api.SendMessage) (record dialog.Record, err error) {
	if message.ID == "" {
		message.ID = NewID()
	}
	message.EndUser = cmp.Or(message.EndUser, c.endUser)
	r := request{method: http.MethodPost, path: conversationsPath + "/" + url.PathEscape(id) + "/messages", body: message}
	return record, c.call(ctx, r, &record)
}
