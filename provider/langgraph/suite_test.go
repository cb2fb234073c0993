package langgraph_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/langgraph"
	"github.com/fermata-go/fermata/provider/providertest"
)

// topicOnly is the input of the graphs of the suite.
const topicOnly = `{"type":"object","properties":{"topic":{"type":"string"}},"required":["topic"],"additionalProperties":false}`

// contextOf returns a context that the test ends, because the agent must not end its work early.
func contextOf(request *http.Request) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithoutCancel(request.Context()))
}

// release lets an agent continue whose work is blocked: work that heeds its context is done again,
// and other work ends when the test releases it.
func (o *office) release(p *place, name string, cancel context.CancelFunc, done chan error) {
	cancel()
	select {
	case err := <-done:
		if err != nil {
			_ = p.world.Work(context.Background(), name)
		}
	case <-time.After(200 * time.Millisecond):
	}
}

func TestLangGraph_PassesTheSuite(t *testing.T) {
	url := sharedPeer(t)
	work := newOffice(t)
	providertest.Run(t, providertest.Subject{
		Store: func(*testing.T) store.Store { return memory.NewStore(nil) },
		New: func(t *testing.T, world *providertest.World) provider.Provider {
			at, _ := json.Marshal(work.in(world))
			return provided(t, url, func(c *langgraph.Config) {
				for name, id := range map[string]string{"content-review": "content_review", "pair": "pair"} {
					c.Assistants[name] = langgraph.Assistant{ID: id, Input: json.RawMessage(topicOnly), Configurable: map[string]json.RawMessage{"work_url": at}}
				}
			})
		},
	})
}
