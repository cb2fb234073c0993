package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store/sqlite"
)

type Refund struct {
	Order string `json:"order"`
	Euros int    `json:"euros"`
	Paid  string `json:"paid,omitempty"`
}

// refund is a graph that pays only what was approved.
func refund() *graph.Flow[Refund] {
	g := graph.New[Refund]("refund")
	g.Node("pay", func(ctx context.Context, r Refund) (Refund, error) {
		approved, err := fermata.Approve(ctx, fermata.Action[Refund]{Name: "refund", Args: r})
		if err != nil {
			return r, err
		}
		r.Paid, err = fermata.Effect(ctx, approved, func(_ context.Context, r Refund, key string) (string, error) {
			return fmt.Sprint(r.Euros, " € for ", r.Order), nil // call the bank with the idempotency key
		})
		return r, err
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		log.Fatal(err)
	}
	return flow
}

// readme:start
func serve(ctx context.Context, flow *graph.Flow[Refund]) error {
	st, err := sqlite.Open("fermata.db") // or postgres.Open(ctx, url, postgres.Config{}), or memory.New()
	if err != nil {
		return err
	}
	srv, err := server.New(server.Config{Executor: executor.Config{
		Store: st, KeyFile: "fermata.key", PolicyFile: "policy.yaml", Graphs: []inproc.Graph{inproc.Flow(flow, inproc.FlowConfig[Refund]{})},
	}})
	if err != nil {
		return err
	}
	return errors.Join(srv.ListenAndServe(ctx, "localhost:8080"), st.Close())
}

// readme:end

// The program of docs/embedding.md: it ends when the program is interrupted.
func ExampleServer_ListenAndServe() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, refund()); err != nil {
		log.Print(err)
	}
}

// A server with the program's own graph, a policy file and a store. Small refunds are paid at once,
// others wait for an approver.
func Example() {
	dir, err := os.MkdirTemp("", "fermata")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	st, err := sqlite.Open(filepath.Join(dir, "fermata.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	srv, err := server.New(server.Config{Executor: executor.Config{
		Store: st, KeyFile: filepath.Join(dir, "fermata.key"), PolicyFile: "testdata/policy.yaml", Groups: map[string][]string{"finance": {"ann"}},
		Graphs: []inproc.Graph{inproc.Flow(refund(), inproc.FlowConfig[Refund]{})},
	}})
	if err != nil {
		log.Fatal(err)
	}
	srv.Start() // ListenAndServe does this, too
	defer srv.Stop(ctx)

	key, err := srv.CreateKey(ctx, "acme", "shop", "agent")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(chat(srv, key, `{"graphId": "inproc:refund", "stateKey": "a-1", "input": {"order": "a-1", "euros": 5}}`))
	fmt.Println(chat(srv, key, `{"graphId": "inproc:refund", "stateKey": "a-2", "input": {"order": "a-2", "euros": 500}}`))

	for asked, err := range srv.Executor().OpenRequests(ctx, "acme") {
		if err != nil {
			log.Fatal(err)
		}
		outcome, err := srv.Executor().Decide(ctx, executor.Decision{
			Account: "acme", StateKey: asked.StateKey, ID: "click-" + asked.ID, Actor: "ann", Answers: map[string]any{asked.ID: fermata.Yes("ann")},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(outcome.(fermata.Completed).Output))
	}
	// Output:
	// completed
	// needs_input
	// {"order":"a-2","euros":500,"paid":"500 € for a-2"}
}

// chat posts to the chat endpoint and returns the status of the run.
func chat(srv http.Handler, key, body string) string {
	r := httptest.NewRequest("POST", "/api/v1/ai/chat", bytes.NewReader([]byte(body)))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, r)
	var outcome struct{ Status string }
	if err := json.Unmarshal(w.Body.Bytes(), &outcome); err != nil {
		log.Fatal(err)
	}
	return outcome.Status
}
