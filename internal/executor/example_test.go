package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

type trip struct {
	To   string `json:"to"`
	Goes bool   `json:"goes,omitempty"`
}

var mayGo = fermata.NewKind[string, bool]("example-may-go")

// A program with durable runs: people decide while several processes work on one store, without a
// separate server.
func Example() {
	dir, err := os.MkdirTemp("", "fermata")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	g := graph.New[trip]("trip")
	g.Node("ask", func(ctx context.Context, t trip) (trip, error) {
		goes, err := mayGo.Ask(ctx, "To "+t.To+"?")
		t.Goes = goes
		return t, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	flow, err := g.Compile()
	if err != nil {
		log.Fatal(err)
	}
	own, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[trip]{}))
	if err != nil {
		log.Fatal(err)
	}

	store, err := sqlite.Open(filepath.Join(dir, "fermata.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := executor.CreateKeyFile(filepath.Join(dir, "key")); err != nil {
		log.Fatal(err)
	}
	box, err := executor.OpenKeyFile(filepath.Join(dir, "key"))
	if err != nil {
		log.Fatal(err)
	}
	e, err := executor.New(executor.Config{Store: store, Sealer: box, Providers: []provider.Provider{own}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	e.StartWorkers() // takes over runs of lost owners and expires requests
	defer e.Stop(ctx)

	outcome, err := e.Run(ctx, executor.RunRequest{Account: "acme", StateKey: "trip-1", Graph: "inproc:trip", Input: json.RawMessage(`{"to":"Paris"}`)})
	if err != nil {
		log.Fatal(err)
	}
	question := outcome.(fermata.NeedsInput).Interrupts[0]
	fmt.Println(question.Kind, string(question.Data))

	// The same call with the same resume id counts once.
	outcome, err = e.Run(ctx, executor.RunRequest{
		Account: "acme", StateKey: "trip-1", ResumeID: "ann-1", Actor: "ann",
		Targets: map[string]executor.Answer{question.ID: {Value: json.RawMessage(`true`)}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(outcome.(fermata.Completed).Output))
	// Output:
	// example-may-go "To Paris?"
	// {"to":"Paris","goes":true}
}
