package langgraph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

var _ provider.Adopter = (*Provider)(nil)

// The values of the member "fermata" of a thread's metadata.
const (
	markOwned   = "owned"   // created by this package
	markAdopted = "adopted" // continued by this package
	markNone    = "none"    // was adopted, and has ended
)

// Paused is a thread that another client has started, and that waits for people. It has no thread
// id.
type Paused struct {
	// Graph is the graph of the thread.
	Graph string
	// StateKey and Input start the run that adopts the thread. Both are the same until the thread
	// continues, so that a repeated start adopts it once.
	StateKey string
	Input    json.RawMessage
}

// adoption is the input of a run that adopts a thread.
type adoption struct {
	// Thread is the hash of the thread id: the input of a run is visible.
	Thread string `json:"fermata_adopt"`
}

func threadHash(id string) string {
	sum := sha256.Sum256([]byte("fermata adopt " + id))
	return hex.EncodeToString(sum[:16])
}

// ListPaused lists the paused threads of a server that no run has adopted. Config.Assistants are
// not used.
func ListPaused(ctx context.Context, config Config) ([]Paused, error) {
	p, err := New(config)
	if err != nil {
		return nil, err
	}
	var list []Paused
	err = p.client.eachPaused(ctx, func(t threadInfo) bool {
		if t.Metadata.Fermata == markOwned || t.Metadata.Fermata == markAdopted || t.Metadata.Graph == "" {
			return true
		}
		hash := threadHash(t.ID)
		pause, _ := json.Marshal(t.Interrupts) // maps are sorted
		input, _ := json.Marshal(adoption{hash})
		list = append(list, Paused{Graph: t.Metadata.Graph, StateKey: "langgraph-" + hash[:16] + "-" + digestOf(pause)[:8], Input: input})
		return true
	})
	return list, err
}

// ListGraphs lists the graphs of a server by name.
func ListGraphs(ctx context.Context, config Config) ([]string, error) {
	p, err := New(config)
	if err != nil {
		return nil, err
	}
	return p.client.graphs(ctx)
}

// eachPaused calls each for the paused threads until it returns false.
func (c *client) eachPaused(ctx context.Context, each func(threadInfo) bool) error {
	return eachPage(opSearch, func(offset int) (int, error) {
		threads, err := c.search(ctx, offset)
		for _, t := range threads {
			if !each(t) {
				return 0, nil
			}
		}
		return len(threads), err
	})
}

// Adopts reports whether the input is that of a [Paused] thread.
func (p *Provider) Adopts(input json.RawMessage) bool {
	_, ok := adoptionOf(input)
	return ok
}

func adoptionOf(input json.RawMessage) (a adoption, ok bool) {
	if strictjson.Decode(input, &a) != nil || len(a.Thread) != 2*16 {
		return a, false
	}
	_, err := hex.DecodeString(a.Thread)
	return a, err == nil
}

// findAdopted returns the id of the thread with a hash; "" if it is not paused any more.
func (x *execution) findAdopted(ctx context.Context, a adoption) (id string, err error) {
	err = x.provider.client.eachPaused(ctx, func(t threadInfo) bool {
		if threadHash(t.ID) == a.Thread && t.Metadata.Fermata != markOwned && (t.Metadata.Graph == x.assistant.ID || t.Metadata.Assistant == x.assistant.ID) {
			id = t.ID
		}
		return id == ""
	})
	return id, err
}

// mark changes the metadata of the thread.
func (x *execution) mark(ctx context.Context, value string) error {
	return x.provider.client.call(ctx, "marking the thread", http.MethodPatch, "/threads/"+url.PathEscape(x.thread), object{"metadata": object{"fermata": value}}, nil)
}

// adopt shows what a paused thread asks.
func (x *execution) adopt(ctx context.Context) (provider.Result, error) {
	c := &x.provider.client
	t, err := c.thread(ctx, x.thread)
	switch {
	case hasStatus(err, http.StatusNotFound):
		return x.missing(ctx)
	case err != nil:
		return provider.Result{}, err
	case t.Status == "busy":
		return x.busy(ctx)
	}
	x.Adopted = true
	if err := x.mark(ctx, markAdopted); err != nil {
		return provider.Result{}, err
	}
	state, err := c.state(ctx, x.thread)
	if err != nil {
		return provider.Result{}, err
	}
	raised := state.interrupts()
	if len(raised) == 0 { // some servers list them only here
		for _, list := range t.Interrupts {
			raised = slices.Concat(raised, list)
		}
	}
	return x.pause(ctx, &state, raised)
}

// pause shows what a thread asks that another client has brought to its current state.
func (x *execution) pause(ctx context.Context, state *threadState, raised []rawInterrupt) (provider.Result, error) {
	switch {
	case len(raised) > 0:
		if !x.raise(x.Run, state, x.scrubAll(raised)) {
			return x.tooMany(ctx)
		}
	case len(state.Next) > 0:
		q := breakpointQuestion(state)
		q.Data = x.scrub(q.Data)
		q.ID = questionID(x.Run, q, x.Answered[""])
		x.Open, x.Checkpoint = []question{q}, state.Checkpoint.ID
	default:
		return x.completed(ctx, state.Values, "continued by another client")
	}
	return x.end(ctx, provider.Waiting{Interrupts: x.open(x.Run.Graph), Unused: x.unused})
}
