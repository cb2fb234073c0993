package tool_test

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata/tool"
)

type booking struct {
	From string `json:"from" jsonschema:"IATA code"`
	To   string `json:"to"`
}

// The schema for the model is derived from the Go type; a wrapper may ask a person, but does not change
// what the model sees.
func Example() {
	book := tool.New("book_ticket", "Books a train ticket.", func(ctx context.Context, b booking) (string, error) {
		return "booked from " + b.From + " to " + b.To, nil
	}, tool.Idempotent())
	held := tool.Review(book) // a person approves, rejects, or approves with edits
	fmt.Println(held.Name(), string(held.Schema()))
	// Output: book_ticket {"type":"object","properties":{"from":{"type":"string","description":"IATA code"},"to":{"type":"string"}},"required":["from","to"],"additionalProperties":false}
}
