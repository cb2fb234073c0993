package external_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/providertest"
)

// publisher is an agent that runs elsewhere: it publishes when it receives the approval, once for
// all deliveries of a message.
type publisher struct {
	mu    sync.Mutex
	world *providertest.World
	heard map[string]*hearing
}

// hearing is the result of a message.
type hearing struct {
	over   chan struct{}
	failed bool
}

// patience is how long a duplicate delivery waits for the result of the first. The caller may have
// closed the connection, and then it fails.
const patience = 2 * time.Second

func (p *publisher) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var message received
	if err := json.NewDecoder(request.Body).Decode(&message); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if message.Type != "request.answered" {
		return
	}
	world, mine, before := p.begin(request.Header.Get("webhook-id"))
	for before != nil {
		select {
		case <-before.over:
			if !before.failed {
				return
			}
			world, mine, before = p.begin(request.Header.Get("webhook-id"))
		case <-time.After(patience): // in progress
			return
		}
	}
	defer close(mine.over)
	if err := world.Work(request.Context(), "publish"); err != nil {
		mine.failed = true
		p.mu.Lock()
		delete(p.heard, request.Header.Get("webhook-id"))
		p.mu.Unlock()
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// begin returns the earlier result of a message, or starts processing it.
func (p *publisher) begin(id string) (world *providertest.World, mine, before *hearing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before = p.heard[id]; before == nil {
		mine = &hearing{over: make(chan struct{})}
		p.heard[id] = mine
	}
	return p.world, mine, before
}

// in returns the world that it publishes in. Each world starts without messages.
func (p *publisher) in(world *providertest.World) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.world != world {
		p.world, p.heard = world, make(map[string]*hearing)
	}
}

func TestExternal_PassesTheSuite(t *testing.T) {
	agent := new(publisher)
	server := httptest.NewServer(agent)
	defer server.Close()
	input := `{"kind":"content-review","data":"about tea","answerSchema":` + action + `,"callback":{"url":"` + server.URL + `"}}`
	providertest.Run(t, providertest.Subject{
		Store: func(*testing.T) store.Store { return memory.NewStore(nil) },
		New: func(t *testing.T, world *providertest.World) provider.Provider {
			agent.in(world)
			return newProvider(t, func(c *external.Config) {
				c.Secrets = func(context.Context, string) ([]string, error) { return []string{secret}, nil }
			})
		},
		Review: providertest.Review{
			Graph: "request", Input: json.RawMessage(input), SingleQuestion: true, NoDraft: true,
			BadInputs: []json.RawMessage{
				json.RawMessage(`{"kind":"x","data":1,"extra":"CANARY"}`), json.RawMessage(`{"kind":{"of":"CANARY"},"data":1}`), json.RawMessage(`["CANARY"]`),
				json.RawMessage(`{"kind":"x","data":1,"callback":{"url":"http://CANARY/"}}`), json.RawMessage(`{"kind":4711`), json.RawMessage(`{"kind":4711,"data":"CANARY"}`),
			},
		},
	})
}
