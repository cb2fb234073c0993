package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/anthropic"
)

func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"Paris"}],
			"stop_reason":"end_turn","usage":{"input_tokens":21,"output_tokens":1}}`)
	}))
	defer server.Close()

	// Without a BaseURL it calls Anthropic, with the key in ANTHROPIC_API_KEY.
	model, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-5", BaseURL: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	response, err := model.Generate(context.Background(), &agent.Request{Messages: []agent.Message{
		agent.System("Answer in one word."),
		agent.User("What is the capital of France?"),
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Message.Text, response.Usage.InputTokens, response.Usage.OutputTokens)
	// Output: Paris 21 1
}

// The last chunk contains the complete answer.
func ExampleModel_Stream() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []struct{ name, data string }{
			{"message_start", `{"type":"message_start","message":{"model":"claude-sonnet-5","content":[],"usage":{"input_tokens":21,"output_tokens":0}}}`},
			{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`},
			{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Par"}}`},
			{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"is"}}`},
			{"content_block_stop", `{"type":"content_block_stop","index":0}`},
			{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`},
			{"message_stop", `{"type":"message_stop"}`},
		} {
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event.name, event.data)
		}
	}))
	defer server.Close()

	model, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-5", BaseURL: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	request := &agent.Request{Messages: []agent.Message{agent.User("What is the capital of France?")}}
	for piece, err := range model.Stream(context.Background(), request) {
		if err != nil {
			log.Fatal(err)
		}
		if piece.Response != nil {
			fmt.Println("finished:", piece.Response.Message.Text, piece.Response.FinishReason)
			break
		}
		fmt.Println(piece.Text)
	}
	// Output:
	// Par
	// is
	// finished: Paris stop
}
