package view

import (
	"context"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// RunGraph returns the graph of the newest run of a state key and its id, as this program has it,
// with the nodes marked at which the run waits for requests that shown accepts.
func (r *Reader) RunGraph(ctx context.Context, account, stateKey string, shown func(request string) (bool, error)) (id string, g provider.Graph, err error) {
	run, err := r.docs.FindRun(ctx, account, stateKey)
	if err != nil {
		return "", g, err
	}
	id = run.Provider + ":" + run.Graph
	if _, g, err = r.providers.Find(id); err != nil || g.Drawing == nil {
		return id, g, err
	}
	asked, err := r.store.Interrupts(ctx, account, run.ID)
	if err != nil {
		return id, g, err
	}
	var waiting []fermata.Address
	for _, i := range asked {
		if i.State != store.InterruptPending {
			continue
		}
		visible, err := shown(i.ID)
		if err != nil {
			return id, g, err
		}
		if !visible {
			continue
		}
		// an address from elsewhere may not be in the drawing
		if at, err := fermata.ParseAddress(i.Address); err == nil {
			waiting = append(waiting, at)
		}
	}
	g.Drawing = g.Drawing.Marked(waiting...)
	return id, g, nil
}
