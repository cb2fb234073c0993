package inproc_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// countedLoads is a store that counts its loads.
type countedLoads struct {
	store.Checkpoints
	loads int
}

func (c *countedLoads) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	c.loads++
	return c.Checkpoints.Load(ctx, key)
}

// An execution with answers loads the checkpoint once, for graphs and for agents.
func TestExecute_ResumeLoadsTheCheckpointOnce(t *testing.T) {
	flows, err := inproc.New(heldTwice[struct{ A string }](t))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		p      provider.Provider
		graph  string
		input  string
		answer string
	}{
		"graph": {flows, "held", `{}`, `null`},
		"agent": {clerkWhoAsks(t), "clerk", `{"query":"Go."}`, `"Paris"`},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &countedLoads{Checkpoints: memory.New()}
			execution := provider.Execution{
				Run:   provider.Run{Account: "acme", ID: "run_1", Graph: test.graph, State: counted},
				Input: json.RawMessage(test.input), Owner: noOwner{},
			}
			open := asked(t, test.p, execution)
			counted.loads = 0
			execution.Answers = []provider.Answer{{InterruptID: open[0].ID, Data: json.RawMessage(test.answer)}}
			if _, err := test.p.Execute(t.Context(), execution); err != nil {
				t.Fatal(err)
			}
			if counted.loads != 1 {
				t.Errorf("%d loads, want 1", counted.loads)
			}
		})
	}
}
