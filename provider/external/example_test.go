package external_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
)

// An agent in any language asks for a decision, and is called with the answer.
func Example() {
	ctx := context.Background()
	secret := external.NewSecret()

	// The agent's side, with any library for Standard Webhooks.
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		log.Fatal(err)
	}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || hook.Verify(body, r.Header) != nil { // and store r.Header's webhook-id: it may arrive twice
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var message struct {
			Type string
			Data struct{ Answer struct{ Action string } }
		}
		if err := json.Unmarshal(body, &message); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Println("the agent hears:", message.Type, message.Data.Answer.Action)
	}))
	defer agent.Close()

	// Fermata's side.
	p, err := external.New(external.Config{
		Secrets: func(context.Context, string) ([]string, error) { return []string{secret}, nil },
		Allow:   []string{"127.0.0.1"}, // the agent of this example is not public
	})
	if err != nil {
		log.Fatal(err)
	}
	sealer, err := seal.New(seal.Key{1})
	if err != nil {
		log.Fatal(err)
	}
	e, err := executor.New(executor.Config{Store: memory.NewStore(nil), Providers: []provider.Provider{p}, Sealer: sealer})
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := e.Run(ctx, executor.RunRequest{Account: "acme", StateKey: "refund-17", Graph: "external:request", Input: json.RawMessage(
		`{"kind":"refund","data":{"order":17},"callback":{"url":"` + agent.URL + `"}}`)})
	if err != nil {
		log.Fatal(err)
	}
	asked := outcome.(fermata.NeedsInput).Interrupts[0]
	fmt.Printf("people see: %s %s\n", asked.Kind, asked.Data)

	outcome, err = e.Run(ctx, executor.RunRequest{Account: "acme", StateKey: "refund-17", ResumeID: "click-1", Actor: "ann", Value: json.RawMessage(`{"action":"approve"}`)})
	if err != nil {
		log.Fatal(err)
	}
	_, completed := outcome.(fermata.Completed)
	fmt.Println("completed:", completed)
	if err := e.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// people see: refund {"order":17}
	// the agent hears: request.answered approve
	// completed: true
}
