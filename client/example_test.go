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

// A program starts a run, and another one, for a person, answers what it asks.
func Example() {
	ctx := context.Background()
	url, key, stop, err := startServer(ctx, plain) // a server whose graph inproc:memo has somebody sign a memo
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
		asked, err := c.Request(ctx, waiting.Interrupts[0].ID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", asked.StateKey, asked.Data)
		// Shown says what the person has seen: if that is not what is asked any more, nothing is decided.
		outcome, err = c.Decide(ctx, asked.ID, api.Decide{Answer: json.RawMessage(`"Ann"`), Shown: asked.Shown})
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
