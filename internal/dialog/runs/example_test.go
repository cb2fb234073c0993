package runs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/dialog/runs"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

type booking struct {
	Room string `json:"room"`
}

// book is a tool that asks its user with one call. The first call returns an error, with which the
// run is saved; when the user has answered, the tool is called again and Ask returns the answer.
func book(ctx context.Context, args booking) (string, error) {
	answer, err := dialog.Ask(ctx, dialog.Question{
		Kind: dialog.Disambiguation, Text: "Which " + args.Room + " do you mean?", Agent: "rooms",
		Options: []dialog.Option{
			{ID: "r1", Label: "Rome", Facts: map[string]string{"floor": "ground floor"}},
			{ID: "r2", Label: "Rome", Facts: map[string]string{"floor": "second floor"}},
		},
	})
	if err != nil {
		return "", err
	}
	if answer.Escaped {
		return "Nothing was booked.", nil
	}
	return answer.Option + " is booked.", nil
}

// An agent with a tool that asks, a handler that speaks to the user, and a conversation.
func Example() {
	// In a program the model is one of agent/openai or agent/anthropic.
	model := script.New(
		script.Call("book", `{"room":"Rome"}`),
		func(request *agent.Request) (agent.Message, error) {
			return agent.Assistant(request.Messages[len(request.Messages)-1].Text), nil
		},
	)
	rooms, err := agent.NewChat(agent.Chat{Name: "rooms", Model: model, Tools: []*tool.Tool{tool.New("book", "Books a room.", book)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	own, err := inproc.New(inproc.Agent(agent.RunnerConfig{Agent: rooms}))
	if err != nil {
		fmt.Println(err)
		return
	}
	documents, sealer, stop, err := exampleStore()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	e, err := executor.New(executor.Config{Store: documents, Sealer: sealer, Providers: []provider.Provider{own}})
	if err != nil {
		fmt.Println(err)
		return
	}
	e.StartWorkers()
	defer func() { _ = e.Stop(context.Background()) }() // the program ends

	connected, err := runs.New(runs.Config{Executor: e, Graph: "inproc:rooms"})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := conversation.New(conversation.Config{Store: encrypted.New(documents, sealer), Runs: connected})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"Book Rome", "the one on the second floor"} {
		record, err := handler.Message(context.Background(), "acme", "c-1", dialog.Message{Text: text, Actor: "ada"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(">", text)
		fmt.Println(record.Lines[len(record.Lines)-1].Text)
	}
	// Output:
	// > Book Rome
	// Which Rome do you mean? (1) Rome (ground floor) or (2) Rome (second floor).
	// > the one on the second floor
	// r2 is booked.
}

// exampleStore returns a store in memory with a new key.
func exampleStore() (*memory.Store, encrypted.Sealer, func(), error) {
	dir, err := os.MkdirTemp("", "dialog")
	if err != nil {
		return nil, nil, nil, err
	}
	stop := func() { _ = os.RemoveAll(dir) } // in the directory of temporary files
	key := filepath.Join(dir, "key")
	if err := executor.CreateKeyFile(key); err != nil {
		return nil, nil, stop, err
	}
	sealer, err := executor.OpenKeyFile(key)
	return memory.NewStore(nil), sealer, stop, err
}
