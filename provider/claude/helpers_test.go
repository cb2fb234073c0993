package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/claudetest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/claude"
)

// noNetwork returns variables with which the CLI uses a proxy for everything that is not on this
// machine, and a proxy that fails the test if it is used.
func noNetwork(t testing.TB) []string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			first := make([]byte, 200)
			n, _ := conn.Read(first)
			line, _, _ := strings.Cut(string(first[:n]), "\n")
			t.Errorf("the CLI connects to another host: %s", line)
			conn.Close()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	proxy := "http://" + listener.Addr().String()
	return []string{"HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "http_proxy=" + proxy, "https_proxy=" + proxy}
}

// newProvider returns a provider with the real CLI and a scripted model.
func newProvider(t testing.TB, model *claudetest.Model, graphs ...claude.Graph) *claude.Provider {
	t.Helper()
	p, err := claude.New(config(t, model, graphs...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func config(t testing.TB, model *claudetest.Model, graphs ...claude.Graph) claude.Config {
	t.Helper()
	return claude.Config{
		Command: claudetest.CLI(t), APIKeyFile: model.KeyFile, BaseURL: model.URL, TempDir: t.TempDir(), Environment: noNetwork(t), Graphs: graphs,
	}
}

// driver executes one run.
type driver struct {
	testing.TB
	provider *claude.Provider
	run      provider.Run
	input    json.RawMessage
	answers  []provider.Answer
	ledger   *ledger
	ctx      context.Context
}

func start(t testing.TB, p *claude.Provider, prompt string) *driver {
	t.Helper()
	data, err := json.Marshal(map[string]string{"prompt": prompt})
	if err != nil {
		t.Fatal(err)
	}
	return &driver{
		TB: t, provider: p, input: data, ledger: &ledger{lines: make(map[string]fermata.LedgerEntry)}, ctx: context.Background(),
		run: provider.Run{Account: "acme", ID: "run_1", StateKey: "demo-1", Graph: p.Graphs()[0].Name, State: memory.NewStore(nil)},
	}
}

// SetRef stores the ref.
func (d *driver) SetRef(_ context.Context, ref string) error {
	d.run.Ref = ref
	return nil
}

// Ledger returns the ledger.
func (d *driver) Ledger() fermata.Ledger { return d.ledger }

func (d *driver) execute() (provider.Result, error) {
	return d.provider.Execute(d.ctx, provider.Execution{Run: d.run, Input: d.input, Answers: d.answers, Owner: d})
}

// waits executes until the run waits for a person.
func (d *driver) waits() provider.Interrupt {
	d.Helper()
	result, err := d.execute()
	if err != nil {
		d.fatal(err)
	}
	d.answers = nil
	waiting, ok := result.Outcome.(provider.Waiting)
	if !ok || len(waiting.Interrupts) != 1 {
		d.Fatalf("it does not wait: %#v", result.Outcome)
	}
	return waiting.Interrupts[0]
}

func (d *driver) fatal(err error) {
	d.Helper()
	if cause := errors.Unwrap(err); cause != nil {
		d.Fatalf("%v: %v", err, cause)
	}
	d.Fatal(err)
}

// completes executes until the run ends.
func (d *driver) completes() provider.Completed {
	d.Helper()
	result, err := d.execute()
	if err != nil {
		d.fatal(err)
	}
	completed, ok := result.Outcome.(provider.Completed)
	if !ok {
		d.Fatalf("it is not completed: %#v", result.Outcome)
	}
	return completed
}

// decide answers an interrupt.
func (d *driver) decide(q provider.Interrupt, answer string) {
	d.Helper()
	checked, err := d.provider.CheckAnswer(d.ctx, d.run, q.ID, json.RawMessage(answer))
	if err != nil {
		d.fatal(err)
	}
	d.answers = []provider.Answer{{InterruptID: q.ID, Data: checked, By: "ann"}}
}

// ledger is a ledger in memory.
type ledger struct {
	mu    sync.Mutex
	lines map[string]fermata.LedgerEntry
	begun []fermata.Intent
	void  error // of the next Begin
}

func lineKey(i fermata.Intent) string { return i.InterruptID + " " + string(rune('0'+i.Attempt)) }

func (l *ledger) Begin(_ context.Context, intent fermata.Intent) (fermata.LedgerEntry, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.void; err != nil {
		l.void = nil
		return fermata.LedgerEntry{}, false, err
	}
	if line, ok := l.lines[lineKey(intent)]; ok {
		return line, false, nil
	}
	l.begun = append(l.begun, intent)
	l.lines[lineKey(intent)] = fermata.LedgerEntry{State: fermata.EffectBegun}
	return fermata.LedgerEntry{State: fermata.EffectBegun}, true, nil
}

func (l *ledger) End(_ context.Context, intent fermata.Intent, line fermata.LedgerEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[lineKey(intent)] = line
	return nil
}

var _ store.Checkpoints = (*memory.Store)(nil)
