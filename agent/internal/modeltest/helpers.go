package modeltest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
)

// Both runs a test for both ways to call a model, because only the chunks may differ.
func Both(t *testing.T, do func(t *testing.T, streaming bool)) {
	t.Run("Generate", func(t *testing.T) { do(t, false) })
	t.Run("Stream", func(t *testing.T) { do(t, true) })
}

// Get calls the model in one of the two ways.
func Get(ctx context.Context, m agent.Streamer, streaming bool, request *agent.Request) (*agent.Response, error) {
	if !streaming {
		return m.Generate(ctx, request)
	}
	_, response, err := Collect(m.Stream(ctx, request))
	return response, err
}

// Hello returns the error of a simple request.
func Hello(ctx context.Context, m agent.Streamer, streaming bool) error {
	_, err := Get(ctx, m, streaming, Ask("Hello"))
	return err
}

// wantStreamsEnd checks that a stream ends when its reader does. open creates a model whose answer
// begins with the text Well and then blocks until the client is gone; then gone is closed.
func wantStreamsEnd(t *testing.T, open func(t *testing.T, gone chan<- struct{}) agent.Streamer) {
	t.Run("its context is cancelled", func(t *testing.T) {
		gone := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for piece, err := range open(t, gone).Stream(ctx, Ask("Hello")) {
			if last = err; err == nil && piece.Text == "Well" {
				cancel()
			}
		}
		if last != context.Canceled { // and not an error of the model
			t.Fatalf("stream ended with %v; want context.Canceled", last)
		}
		<-gone
	})
	t.Run("its reader leaves", func(t *testing.T) {
		gone := make(chan struct{})
		for _, err := range open(t, gone).Stream(t.Context(), Ask("Hello")) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		<-gone // otherwise the test ends by its time limit
	})
}

// headerLeakingTransport is a transport that puts the request's headers into its errors.
type headerLeakingTransport struct{}

func (headerLeakingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("cannot send %v", r.Header)
}

// OddNames returns a conversation with tool calls to invalid tool names and the error results.
func OddNames() *agent.Request {
	request := Ask("Rome?")
	request.Tools = []agent.ToolSpec{Weather}
	var calls []agent.ToolCall
	for i, name := range []string{"multi_tool_use.parallel", "", "погода", strings.Repeat("x", 300)} {
		calls = append(calls, agent.ToolCall{ID: fmt.Sprint("call_", i), Name: name, Args: "{}"})
	}
	request.Messages = append(request.Messages, agent.Assistant("", calls...))
	for _, call := range calls {
		request.Messages = append(request.Messages, agent.ToolResult(call, "There is no such tool."))
	}
	return request
}
