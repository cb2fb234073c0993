package app

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/dialog/runs"
	"github.com/fermata-go/fermata/examples/assistant/office"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/provider/inproc"
)

// DialogConfig configures the assistant that end users talk to.
type DialogConfig struct {
	// Graph is the graph or agent that a message of a user starts, such as "inproc:assistant". It
	// is required; add it with [Graphs] or [Provider].
	Graph string
	// Input returns the input of a run. The default is the input of an agent.
	Input func(dialog.Start) (json.RawMessage, error)
	// Machine has the wording and the rules of the conversation. With Machine.HandOver, people
	// answer in the inbox what a user does not answer clearly.
	Machine dialog.Machine
	// Model judges replies that exact rules do not understand; nil for none.
	Model dialog.Model
	// Retention is how long a conversation is kept after the last message of its user; 0 means
	// until its account is erased.
	Retention time.Duration
	// Language is that of conversations that name none; "" is English.
	Language dialog.Language
}

// Dialog has the server hold conversations with end users: with the API at /api/v1/conversations,
// and with the page /chat.
func Dialog(config DialogConfig) Option { return func(p *program) { p.dialog = &config } }

// graphsWithDialog returns the graphs of the program, and those that conversations need.
func (p *program) graphsWithDialog() ([]inproc.Graph, error) {
	if p.dialog == nil || !p.dialog.Machine.HandOver {
		return p.graphs, nil
	}
	person, err := runs.HandOver()
	if err != nil {
		return nil, err
	}
	return append(p.graphs[:len(p.graphs):len(p.graphs)], person), nil
}

// openDialog returns the handler of conversations; nil if the program has none.
func (r *runningServer) openDialog(config *DialogConfig, sealer encrypted.Sealer) (*dialog.Handler, error) {
	if config == nil {
		return nil, nil
	}
	person := ""
	if config.Machine.HandOver {
		person = "inproc:" + runs.HandOverGraph
	}
	connected, err := runs.New(runs.Config{Executor: r.Executor, Graph: config.Graph, Input: config.Input, Person: person})
	if err != nil {
		return nil, err
	}
	return dialog.New(dialog.Config{Store: encrypted.New(r.store, sealer), Runs: connected, Machine: config.Machine, Model: config.Model, Language: config.Language, Retention: config.Retention})
}

// sweepEvery is how often conversations are looked for that a process left behind, or that have an
// expired question.
const sweepEvery = 2 * time.Second

// sweepDialog continues conversations until ctx ends.
func (r *runningServer) sweepDialog(ctx context.Context) {
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

// demoDialog gives the demo the assistant of examples/assistant, unless the program has its own.
func (p *program) demoDialog(dir string) error {
	if p.dialog != nil {
		return nil
	}
	assistant, err := office.New(filepath.Clean(dir), office.Script())
	if err != nil {
		return err
	}
	p.graphs = append(p.graphs, inproc.Agent(agent.RunnerConfig{Agent: assistant}))
	p.dialog = &DialogConfig{Graph: "inproc:assistant", Machine: dialog.Machine{HandOver: true}}
	return nil
}
