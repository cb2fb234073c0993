package openai_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/openai"
)

// A local server needs no key.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"model":"qwen3","choices":[{"index":0,"message":{"role":"assistant","content":"Paris"},"finish_reason":"stop"}],
			"usage":{"prompt_tokens":21,"completion_tokens":1,"total_tokens":22}}`)
	}))
	defer server.Close()

	model, err := openai.New(openai.Config{BaseURL: server.URL + "/v1", Model: "qwen3"})
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
		for _, chunk := range []string{
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Par"}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"is"}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`[DONE]`,
		} {
			fmt.Fprintf(w, "data: %s\n\n", chunk)
		}
	}))
	defer server.Close()

	model, err := openai.New(openai.Config{BaseURL: server.URL + "/v1", Model: "qwen3"})
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
