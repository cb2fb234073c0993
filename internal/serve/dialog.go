package serve

import (
	"context"
	"slices"
	"time"

	embed "github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/dialog/runs"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/provider/inproc"
)

// graphsWithDialog returns the graphs of the program, and those that conversations need.
func (p *Program) graphsWithDialog(c *config.Config) ([]inproc.Graph, error) {
	assistants, err := assistantGraphs(c.Assistants)
	if err != nil {
		return nil, err
	}
	graphs := slices.Concat(p.Graphs, assistants)
	if p.Dialog == nil || !p.Dialog.Machine.HandOver {
		return graphs, nil
	}
	person, err := runs.HandOver()
	if err != nil {
		return nil, err
	}
	return append(graphs, person), nil
}

// openDialog returns the handler of conversations; nil if the program has none.
func (r *Server) openDialog(config *embed.DialogConfig, sealer encrypted.Sealer) (*conversation.Handler, error) {
	if config == nil {
		return nil, nil
	}
	person := ""
	if config.Machine.HandOver {
		person = "inproc:" + runs.HandOverGraph
	}
	connected, err := runs.New(runs.Config{Executor: r.Executor, Graph: config.Graph, Assistants: config.Assistants, Input: config.Input, Person: person})
	if err != nil {
		return nil, err
	}
	return conversation.New(conversation.Config{Store: encrypted.New(r.Store, sealer), Runs: connected, Assistants: connected.Assistants(), Machine: conversation.Machine(config.Machine), Model: config.Model, Language: config.Language, Retention: config.Retention})
}

// sweepEvery is how often conversations are looked for that a process left behind, or that have an
// expired question.
const sweepEvery = 2 * time.Second

// sweepDialog continues conversations until ctx ends.
func (r *Server) sweepDialog(ctx context.Context) {
	if r.dialog == nil {
		return
	}
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if _, err := r.dialog.Sweep(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("continuing conversations failed", "err", err)
		}
	}
}
