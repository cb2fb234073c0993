package main

import (
	"path/filepath"
	"testing"

	"github.com/fermata-go/fermata/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, "ticket", run) }

func TestTicket(t *testing.T) {
	exampletest.Test(t, exampletest.Scenario{
		Answers: []exampletest.Answer{{To: "Approve?", Line: "y"}},
		Refusal: []string{"perhaps", "n the meeting was moved"},
		Reason:  "I have booked nothing. book_ticket was refused by you: the meeting was moved",
		Effects: func(t testing.TB, dir string) int { return exampletest.Files(t, filepath.Join(dir, "tickets")) },
	})
}
