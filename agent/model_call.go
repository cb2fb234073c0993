package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
)

// segmentModel is the address segment of a model call.
const segmentModel fermata.SegmentType = "model"

// generate calls a model once: its answer is recorded under its number and saved before it is
// shown. prepare builds the request if it is needed.
func (s *agentScope) generate(ctx context.Context, number string, m Model, prepare func(ctx context.Context) (*Request, error), tidy func(*Message) error) (Message, error) {
	var response *Response
	segment := fermata.Segment{Type: segmentModel, ID: number}
	reply, err := fermata.DoAt(ctx, segment, func(ctx context.Context) (savedReply, error) {
		if err := s.meter.admitModelCall(ctx, s.agent.Name()); err != nil {
			return savedReply{}, err
		}
		answered := false
		defer func() {
			if !answered {
				s.meter.releaseModelCall()
			}
		}()
		request, err := prepare(ctx)
		if err != nil {
			return savedReply{}, err
		}
		if response, err = s.callModel(ctx, m, request); err == nil {
			err = s.checkEmpty(response)
		}
		if err != nil {
			return savedReply{}, err
		}
		response.Message.replaceInvalidUTF8()
		response.markCutOff()
		err = tidy(&response.Message)
		answered = true
		message := response.Message
		return savedReply{message.Text, message.ToolCalls, message.Opaque}, errors.Join(err, s.meter.recordModelCall(ctx, response))
	})
	message := Message{Role: RoleAssistant, Agent: s.agent.Name(), Text: reply.Text, ToolCalls: reply.Calls, Opaque: reply.Opaque}
	if err == nil && response != nil {
		s.emit(MessageAdded{Message: message, Usage: response.Usage, Model: response.Model, FinishReason: response.FinishReason})
	}
	return message, err
}

// savedReply is the recorded part of an answer. Its address identifies the agent.
type savedReply struct {
	Text   string          `json:"text,omitempty"`
	Calls  []ToolCall      `json:"calls,omitempty"`
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// errNoResponse returns the error of a model that returns neither a response nor an error.
func (s *agentScope) errNoResponse(method, instead string) error {
	return fmt.Errorf("agent: the model of %s returned nothing: %s must %s or return an error", s.agent.Name(), method, instead)
}

// checkEmpty returns an error for an empty response without a reason. A model that has nothing to
// say after a tool call finishes with [FinishStop].
func (s *agentScope) checkEmpty(r *Response) error {
	if r.Message.Text != "" || len(r.Message.ToolCalls) > 0 {
		return nil
	}
	switch r.FinishReason {
	case "":
		return fmt.Errorf("agent: the model of %s returned an empty Response: set Message.Text or Message.ToolCalls, or FinishReason if the model has nothing to say", s.agent.Name())
	case FinishLength:
		return fmt.Errorf("agent: the model of %s was cut off before its answer began: raise the limit of its output tokens", s.agent.Name())
	default:
		return nil
	}
}

// callModel calls the model in the mode of the run.
func (s *agentScope) callModel(ctx context.Context, m Model, request *Request) (*Response, error) {
	streamer, ok := m.(Streamer)
	if !s.streaming || !ok {
		response, err := m.Generate(ctx, request)
		if err == nil && response == nil {
			err = s.errNoResponse("Generate", "return a *Response")
		}
		return cloneResponse(response), err
	}
	for piece, err := range streamer.Stream(ctx, request) {
		if err != nil {
			return nil, err
		}
		if piece.Text != "" {
			s.emit(Token{piece.Text})
		}
		if piece.Response != nil {
			return cloneResponse(piece.Response), nil
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, s.errNoResponse("Stream", "end with a piece that has a Response")
}

// cloneResponse copies the response, because a model may return the same one again.
func cloneResponse(r *Response) *Response {
	if r == nil {
		return nil
	}
	own := *r
	own.Usage = r.Usage.sanitized()
	own.Message.ToolCalls = append([]ToolCall(nil), r.Message.ToolCalls...)
	return &own
}

// uniqueCalls gives every call a unique id. Models repeat or omit ids, and answers and results are
// stored by id.
func uniqueCalls(turn int, calls []ToolCall, used map[string]bool) {
	for i := range calls {
		id := calls[i].ID
		if id == "" {
			id = fmt.Sprintf("call_%d_%d", turn, i+1)
		}
		unique := id
		for n := 2; used[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", id, n)
		}
		calls[i].ID, used[unique] = unique, true
	}
}
