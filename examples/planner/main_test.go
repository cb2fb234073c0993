package main

import (
	"path/filepath"
	"testing"

	"github.com/fermata-go/fermata/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, "planner", run) }

func TestPlanner(t *testing.T) {
	exampletest.Test(t, exampletest.Scenario{
		Answers: []exampletest.Answer{{To: "Approve?", Line: "y"}},
		Refusal: []string{"n not on a Friday"},
		Reason:  "Release 2.4 is not live. deploy was refused by you: not on a Friday",
		Effects: func(t testing.TB, dir string) int { return exampletest.Files(t, filepath.Join(dir, "production")) },
	})
}
