package main

import (
	"testing"

	"github.com/fermata-go/fermata/examples/console/consoletest"
	"github.com/fermata-go/fermata/examples/console/target"
)

func TestMain(m *testing.M) { consoletest.Main(m, example) }

func TestTicket(t *testing.T) {
	consoletest.Test(t, consoletest.Scenario{
		Example:    example,
		Answers:    []consoletest.Answer{{To: "book_ticket", Lines: []string{"y"}}},
		Refusals:   []consoletest.Answer{{To: "book_ticket", Lines: []string{"n", "the meeting was moved"}}},
		Reason:     "the meeting was moved",
		Effects:    func(data string) (int, int, error) { return target.Open(data, "ticket-office").Count() },
		ModelCalls: 3,
	})
}
