package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/dialog/runs"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const (
	account = "acme"
	user    = "ada"
)

var annas = []dialog.Option{
	{ID: "anna-m", Label: "Anna Meier", Facts: map[string]string{"team": "legal"}},
	{ID: "anna-s", Label: "Anna Schmidt", Facts: map[string]string{"team": "sales"}},
}

const exactBytes = "{\"b\":1,  \"a\":\"<ü>\"}\n"

// questions are what the agent asks for the words of a message.
var questions = map[string]dialog.Question{
	"anna": {
		Kind: dialog.Disambiguation, Text: "Which Anna?", Options: annas, AllowOther: true, Facts: []dialog.Fact{{Name: "likes", Value: "tea"}},
		Agent: "assistant", Node: "contacts", StoredData: exactBytes, ToolResults: exactBytes,
	},
	"usual": {Kind: dialog.Disambiguation, Text: "Which Anna, as usual?", Options: annas, Remember: &dialog.Remember{Key: "anna", Scope: dialog.ScopeUser}},
	"send":  {Kind: dialog.Confirmation, Text: "Send it?", Risk: dialog.RiskHigh},
	"room": {Kind: dialog.Disambiguation, Text: "Which room?", Options: []dialog.Option{
		{ID: "rome", Label: "Rome"}, {ID: "paris", Label: "Paris"}, {ID: "bern", Label: "Bern"}, {ID: "lima", Label: "Lima"}, {ID: "oslo", Label: "Oslo"},
	}},
	"wire":    {Kind: dialog.Confirmation, Text: "Wire 5,000 €?", Risk: dialog.RiskCritical},
	"subject": {Kind: dialog.Clarification, Text: "Which subject?"},
	"soon":    {Kind: dialog.Confirmation, Text: "Right now?", ExpiresAfter: time.Hour},
	"aside":   {Kind: dialog.Disambiguation, Text: "Which Anna did you mean?", Say: "Done.", Relevance: dialog.NonBlocking, Default: "anna-m", Options: annas, Facts: []dialog.Fact{{Name: "met", Value: "today"}}},
}

type work struct {
	Text string `json:"text"`
	// Got has the answers by word.
	Got  map[string]dialog.Answer `json:"got,omitempty"`
	Done string                   `json:"done,omitempty"`
}

// assistant asks a question for each known word of the message, all at once.
func assistant(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[work]("assistant")
	g.Node("work", func(ctx context.Context, s work) (work, error) {
		s.Got = make(map[string]dialog.Answer)
		var waits []error
		for _, word := range strings.Fields(s.Text) {
			name, _, _ := strings.Cut(word, "-") // subject-1, subject-2
			q, ok := questions[name]
			if !ok {
				continue
			}
			answer, err := dialog.Ask(ctx, q)
			waits = append(waits, err)
			s.Got[word] = answer
		}
		if err := errors.Join(waits...); err != nil {
			return s, err
		}
		s.Done = "Did: " + s.Text
		return s, nil
	})
	g.Edge(graph.Start, "work")
	g.Edge("work", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[work]{Content: func(s work) string { return s.Done }})
}

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a store with an executor and a handler, which can be restarted.
type world struct {
	t         *testing.T
	store     store.Store
	sealer    encrypted.Sealer
	clock     *clock
	machine   conversation.Machine
	model     dialog.Model
	config    func(*executor.Config)
	retention time.Duration
	graph     inproc.Graph
	input     func(dialog.Start) (json.RawMessage, error)
	wrap      func(conversation.Documents, conversation.Runs) (conversation.Documents, conversation.Runs)

	executor *executor.Executor
	handler  *conversation.Handler
}

func openStore(t *testing.T, kind string) store.Store {
	t.Helper()
	switch kind {
	case "memory":
		return memory.NewStore(nil)
	case "clock":
		return nil // newWorld makes one in memory, with its clock
	case "postgres":
		database := pgtest.Prepared(t, func(empty string) error {
			s, err := postgres.Open(t.Context(), empty, postgres.Config{})
			if err != nil {
				return err
			}
			return s.Close()
		})
		s, err := postgres.Open(t.Context(), database, postgres.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newWorld(t *testing.T, s store.Store) *world {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := executor.CreateKeyFile(key); err != nil {
		t.Fatal(err)
	}
	sealer, err := executor.OpenKeyFile(key)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: s, sealer: sealer, clock: &clock{now: time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)}}
	if s == nil {
		w.store = memory.NewStore(w.clock.Now)
	}
	w.machine.HandOver = true
	w.graph, w.input = assistant(t), textInput
	w.start()
	t.Cleanup(w.stop)
	return w
}

func textInput(s dialog.Start) (json.RawMessage, error) {
	return json.Marshal(work{Text: s.Lines[len(s.Lines)-1].Text})
}

func (w *world) start() {
	w.t.Helper()
	person, err := runs.HandOver()
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := inproc.New(w.graph, person)
	if err != nil {
		w.t.Fatal(err)
	}
	config := executor.Config{
		Store: w.store, Sealer: w.sealer, Providers: []provider.Provider{p}, Log: slog.New(slog.DiscardHandler), Poll: 20 * time.Millisecond, Wait: time.Minute, RequestTimeout: -1,
	}
	if w.config != nil {
		w.config(&config)
	}
	w.executor, err = executor.New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.executor.StartWorkers()
	connected, err := runs.New(runs.Config{Executor: w.executor, Graph: "inproc:assistant", Person: "inproc:" + runs.HandOverGraph, Input: w.input})
	if err != nil {
		w.t.Fatal(err)
	}
	var documents conversation.Documents = encrypted.New(w.store, w.sealer)
	var port conversation.Runs = connected
	if w.wrap != nil {
		documents, port = w.wrap(documents, port)
	}
	w.handler, err = conversation.New(conversation.Config{Store: documents, Runs: port, Machine: w.machine, Model: w.model, Now: w.clock.Now, Retention: w.retention})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.executor.Stop(ctx); err != nil {
		w.t.Error(err)
	}
}

func (w *world) restart() {
	w.stop()
	w.start()
}

// say sends a message and returns the conversation.
func (w *world) say(id string, msg dialog.Message) dialog.Record {
	w.t.Helper()
	w.clock.add(time.Minute)
	msg.Actor = user
	record, err := w.handler.Message(w.t.Context(), account, id, msg)
	if err != nil {
		w.t.Fatal(err)
	}
	return record
}

// settled returns a conversation when its runs wait or have ended: a sweep does not wait for them.
func (w *world) settled(id string) (dialog.Record, error) {
	for {
		if r, err := w.handler.Get(w.t.Context(), account, id); err != nil || !r.Working {
			return r, err
		}
		runtime.Gosched()
	}
}

// last returns the text of the last line.
func last(r dialog.Record) string { return r.Lines[len(r.Lines)-1].Text }
