package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// A program starts a run, and another one, for a person, answers its request.
func Example() {
	ctx := context.Background()
	// a server whose graph inproc:memo lets a person sign a memo
	url, key, stop, err := startServer(ctx, plain)
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	c, err := client.New(url, key)
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := c.Start(ctx, "inproc:memo", "memo-1", json.RawMessage(`{"text":"Agreed. "}`))
	if err != nil {
		log.Fatal(err)
	}
	if waiting, ok := outcome.(fermata.NeedsInput); ok {
		request, err := c.Request(ctx, waiting.Interrupts[0].ID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", request.StateKey, request.Data)
		// Shown is the digest of what the person saw: if the request has changed, nothing is
		// decided.
		outcome, err = c.Decide(ctx, request.ID, api.Decide{Answer: json.RawMessage(`"Ann"`), Shown: request.Shown})
		if err != nil {
			log.Fatal(err)
		}
	}
	if done, ok := outcome.(fermata.Completed); ok {
		fmt.Printf("%s\n", done.Output)
	}
	// Output:
	// memo-1: "Agreed. "
	// {"text":"Agreed. Ann"}
}
