package openai

import (
	"context"
	"iter"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/fermata-go/fermata/agent"
)

// Generate calls the model and waits for the complete answer.
func (m *Model) Generate(ctx context.Context, request *agent.Request) (*agent.Response, error) {
	params, err := m.params(request)
	if err != nil {
		return nil, err
	}
	var answered *http.Response
	completion, err := m.completions.New(ctx, params, option.WithResponseInto(&answered))
	if err != nil {
		return nil, m.fail(ctx, answered, err)
	}
	response, err := fromCompletion(completion)
	if err != nil {
		return nil, m.fail(ctx, answered, err)
	}
	return response, nil
}

// Stream calls the model and yields its answer as it arrives. Each iteration sends a new request;
// leaving the loop closes the connection.
func (m *Model) Stream(ctx context.Context, request *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) {
		params, err := m.params(request)
		if err != nil {
			yield(nil, err)
			return
		}
		params.StreamOptions.IncludeUsage = sdk.Bool(true)
		var answered *http.Response
		stream := m.completions.NewStreaming(ctx, params, option.WithResponseInto(&answered))
		defer stream.Close()

		var answer responseBuilder
		for stream.Next() {
			if text := answer.add(stream.Current()); text != "" && !yield(&agent.Chunk{Text: text}, nil) {
				return
			}
		}
		if err := stream.Err(); err != nil {
			yield(nil, m.fail(ctx, answered, err))
			return
		}
		response, err := answer.response()
		if err != nil {
			yield(nil, m.fail(ctx, answered, err))
			return
		}
		yield(&agent.Chunk{Response: response}, nil)
	}
}
