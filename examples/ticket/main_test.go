package main

import (
	"testing"

	"github.com/fermata-go/fermata/examples/console/consoletest"
	"github.com/fermata-go/fermata/examples/console/outside"
)

func TestMain(m *testing.M) { consoletest.Main(m, example) }

func TestTicket(t *testing.T) {
	consoletest.Tell(t, consoletest.Story{
		Example:    example,
		Answers:    []consoletest.Answer{{To: "book_ticket", Lines: []string{"y"}}},
		Refusals:   []consoletest.Answer{{To: "book_ticket", Lines: []string{"n", "the meeting was moved"}}},
		Reason:     "the meeting was moved",
		Effects:    func(data string) (int, int, error) { return outside.Open(data, "ticket-office").Count() },
		ModelCalls: 3,
	})
}
