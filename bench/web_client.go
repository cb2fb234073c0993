package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/fermata-go/fermata"
)

// webClient is a runKeeper behind a server in its own process. It keeps as many connections open as
// there are callers.
type webClient struct {
	child *child
	url   string
	key   string
	text  string
	http  *rawHTTPClient
}

// maxStreams is the server's stream limit.
const maxStreams = 20_000

func newWebClient(ctx context.Context, first childOrder) (*webClient, error) {
	c, err := newChild(ctx, first)
	if err != nil {
		return nil, err
	}
	reply, err := c.ask(childOrder{Serve: maxStreams})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	w, err := newRawHTTPClient(reply.URL, chatPath, reply.Key)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return &webClient{child: c, url: reply.URL, key: reply.Key, text: first.Text, http: w}, nil
}

func (c *webClient) close() error {
	c.http.closeIdle()
	return c.child.close()
}

const chatPath = "/api/v1/ai/chat"

// chat is the body of a request.
type chat struct {
	Graph    string          `json:"graphId,omitempty"`
	StateKey string          `json:"stateKey"`
	Input    json.RawMessage `json:"input,omitempty"`
	ResumeID string          `json:"resumeId,omitempty"`
	Value    json.RawMessage `json:"resumeValue,omitempty"`
}

func (c *webClient) start(ctx context.Context, key string) error {
	reply, err := c.chat(ctx, chat{Graph: reviewGraph, StateKey: key, Input: json.RawMessage(reviewInput)})
	if err != nil {
		return err
	}
	var asked fermata.NeedsInput
	for _, i := range reply.Interrupts {
		asked.Interrupts = append(asked.Interrupts, fermata.OpenInterrupt{Envelope: fermata.Envelope{Data: i.Data}})
	}
	return checkAsked(asked, c.text)
}

func (c *webClient) decide(ctx context.Context, key string) error {
	reply, err := c.chat(ctx, chat{StateKey: key, ResumeID: key, Value: json.RawMessage(`"` + reviewVerdict + `"`)})
	if err != nil {
		return err
	}
	if reply.Status != "completed" {
		return fmt.Errorf("the response is %q", reply.Status)
	}
	return checkPublished(fermata.Completed{Output: reply.Output}, c.text)
}

// chatReply is the part of a response that is checked.
type chatReply struct {
	Status     string
	Output     json.RawMessage
	Interrupts []struct{ Data json.RawMessage }
}

// statusError is an error response, usually a rejection.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the server returned %d: %s", e.status, e.body)
}

// isRejection reports whether the server was at its limit.
func (e *statusError) isRejection() bool {
	return e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable
}

func (c *webClient) chat(ctx context.Context, body chat) (reply chatReply, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return reply, err
	}
	status, answer, err := c.http.post(ctx, data)
	if err != nil {
		return reply, err
	}
	if status != http.StatusOK {
		return reply, &statusError{status, string(answer)}
	}
	return reply, json.Unmarshal(answer, &reply)
}
