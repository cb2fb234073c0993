package main

import (
	"testing"

	"github.com/fermata-go/fermata/examples/console/consoletest"
	"github.com/fermata-go/fermata/examples/console/target"
)

func TestMain(m *testing.M) { consoletest.Main(m, example) }

func TestPlanner(t *testing.T) {
	consoletest.Test(t, consoletest.Scenario{
		Example:    example,
		Answers:    []consoletest.Answer{{To: "deploy", Lines: []string{"y"}}},
		Refusals:   []consoletest.Answer{{To: "deploy", Lines: []string{"n not on a Friday"}}},
		Reason:     "not on a Friday",
		Effects:    func(data string) (int, int, error) { return target.Open(data, "production").Count() },
		ModelCalls: 10,
	})
}
