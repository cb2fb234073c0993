package anthropic

import (
	"context"
	"iter"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/fermata-go/fermata/agent"
)

// Generate calls the model and waits for the complete answer. Answers that may take more than ten
// minutes, because of a high MaxTokens, are streamed internally: the service rejects them
// otherwise.
func (m *Model) Generate(ctx context.Context, request *agent.Request) (*agent.Response, error) {
	if m.mustStream {
		return last(m.Stream(ctx, request))
	}
	params, err := m.params(request)
	if err != nil {
		return nil, err
	}
	var answered *http.Response
	message, err := m.messages.New(ctx, params, option.WithResponseInto(&answered))
	if err != nil {
		return nil, m.fail(ctx, answered, err)
	}
	answer, err := fromMessage(message)
	if err != nil {
		return nil, m.fail(ctx, answered, err)
	}
	return answer.response(m.name)
}

func last(pieces iter.Seq2[*agent.Chunk, error]) (response *agent.Response, err error) {
	for piece, err := range pieces {
		if err != nil {
			return nil, err
		}
		response = piece.Response
	}
	return response, nil
}

// Stream calls the model and yields its answer as it arrives, without thinking. Each iteration
// sends a new request; leaving the loop closes the connection.
func (m *Model) Stream(ctx context.Context, request *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) {
		params, err := m.params(request)
		if err != nil {
			yield(nil, err)
			return
		}
		var answered *http.Response
		stream := m.messages.NewStreaming(ctx, params, option.WithResponseInto(&answered))
		defer stream.Close()

		var answer responseBuilder
		for !answer.done && stream.Next() {
			text, err := answer.add(stream.Current())
			if err != nil {
				yield(nil, m.fail(ctx, answered, err))
				return
			}
			if text != "" && !yield(&agent.Chunk{Text: text}, nil) {
				return
			}
		}
		if err := stream.Err(); err != nil {
			yield(nil, m.fail(ctx, answered, err))
			return
		}
		response, err := answer.response(m.name)
		if err != nil {
			yield(nil, m.fail(ctx, answered, err))
			return
		}
		yield(&agent.Chunk{Response: response}, nil)
	}
}
