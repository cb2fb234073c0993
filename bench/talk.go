package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/graph"
	dialogs "github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/dialog/runs"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// The scenarios dialog/… answer questions of conversations, next to the bare resume: the same runs
// without conversations, answered with Decide. A reply is interpreted without a model.

// talkPlan defines the precision of the measurement: the number of open conversations, and the
// number of them that one caller answers, one after the other.
type talkPlan struct{ conversations, single int }

var (
	talkFull  = talkPlan{conversations: 10_000, single: 500}
	talkQuick = talkPlan{conversations: 40, single: 5}
)

// talkCallers is the number of concurrent callers, and talkChunk how many conversations they answer
// before the bare runs have their turn.
const (
	talkCallers = 8
	talkChunk   = 500
)

// maxTalkHeap is how much the heap may grow from a tenth of the conversations to all.
const maxTalkHeap = 8 * mib

// asked is the state of a run that asks two questions.
type asked struct {
	Text    string `json:"text"`
	Subject string `json:"subject,omitempty"`
	When    string `json:"when,omitempty"`
}

const talkGraph = inproc.Name + ":talk"

func talkProvider() (*inproc.Provider, error) {
	g := graph.New[asked]("talk")
	ask := func(text string, set func(*asked, string)) func(context.Context, asked) (asked, error) {
		return func(ctx context.Context, s asked) (asked, error) {
			answer, err := dialog.Ask(ctx, dialog.Question{Kind: dialog.Clarification, Text: text, Agent: "bench"})
			set(&s, answer.Text)
			return s, err
		}
	}
	g.Node("subject", ask("What is it about?", func(s *asked, text string) { s.Subject = text }))
	g.Node("when", ask("When?", func(s *asked, text string) { s.When = text }))
	g.Edge(graph.Start, "subject")
	g.Edge("subject", "when")
	g.Edge("when", graph.End)
	flow, err := g.Compile()
	if err != nil {
		return nil, err
	}
	return inproc.New(inproc.Flow(flow, inproc.FlowConfig[asked]{}))
}

// talk is a handler with its executor.
type talk struct {
	executor *executor.Executor
	handler  *dialogs.Handler
}

func newTalk(st closableStore) (*talk, error) {
	sealer, err := newSealer()
	if err != nil {
		return nil, err
	}
	p, err := talkProvider()
	if err != nil {
		return nil, err
	}
	e, err := executor.New(executor.Config{Store: st, Sealer: sealer, Providers: []provider.Provider{p}, Wait: time.Minute, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return nil, err
	}
	connected, err := runs.New(runs.Config{Executor: e, Graph: talkGraph, Input: func(s dialog.Start) (json.RawMessage, error) {
		return json.Marshal(asked{Text: s.Lines[len(s.Lines)-1].Text})
	}})
	if err != nil {
		return nil, err
	}
	h, err := dialogs.New(dialogs.Config{Store: encrypted.New(st, sealer), Runs: connected})
	if err != nil {
		return nil, err
	}
	e.StartWorkers()
	return &talk{e, h}, nil
}

func (t *talk) message(ctx context.Context, n int, text string) (dialog.Record, error) {
	user := fmt.Sprint("user-", n)
	return t.handler.Message(ctx, benchAccount, fmt.Sprint("c", n), dialog.Message{ID: text, Text: text, Actor: user})
}

// open starts a conversation and a bare run, which wait for the first answer.
func (t *talk) open(ctx context.Context, n int) error {
	record, err := t.message(ctx, n, "mail Anna")
	if err != nil {
		return err
	}
	if len(record.Questions) != 1 || record.Questions[0].Status != dialog.Asked {
		return fmt.Errorf("conversation %d has no question", n)
	}
	_, err = t.executor.Run(ctx, executor.RunRequest{Account: benchAccount, StateKey: fmt.Sprint("bare-", n), Graph: talkGraph, Input: json.RawMessage(`{"text":"mail Anna"}`), Actor: benchActor})
	return err
}

// reply answers the first question of a conversation, and checks that the second is asked.
func (t *talk) reply(ctx context.Context, n int) error {
	record, err := t.message(ctx, n, "lunch on Friday")
	if err == nil && (len(record.Questions) != 2 || record.Questions[1].Status != dialog.Asked || record.Questions[0].Answer.Text != "lunch on Friday") {
		err = fmt.Errorf("conversation %d does not ask the second question", n)
	}
	return err
}

// decide answers the first question of a bare run, and checks that it asks the second.
func (t *talk) decide(ctx context.Context, n int) error {
	outcome, err := t.executor.Run(ctx, executor.RunRequest{
		Account: benchAccount, StateKey: fmt.Sprint("bare-", n), ResumeID: fmt.Sprint("r-", n), Actor: benchActor, Via: "bench", Value: json.RawMessage(`{"text":"lunch on Friday","method":"text"}`),
	})
	if err != nil {
		return err
	}
	if _, waits := outcome.(fermata.NeedsInput); !waits {
		return fmt.Errorf("bare run %d does not ask the second question: %T", n, outcome)
	}
	return nil
}

// measureTalk measures conversations on each database.
func measureTalk(ctx context.Context, c config, r *recorder) error {
	p := talkFull
	p.conversations = c.talking
	if c.quick {
		p = talkQuick
	}
	return c.onSelected("dialog", func(on, name string) error { return p.measure(ctx, on, name, r) })
}

func (p talkPlan) measure(ctx context.Context, on, name string, r *recorder) (err error) {
	st, remove, err := openDatabase(ctx, on, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	defer func() { err = errors.Join(err, st.Close()) }()
	t, err := newTalk(st)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.executor.Stop(context.Background())) }()
	r.printf("%s: opening %d conversations", name, p.conversations)
	if err := together(talkCallers, 0, p.conversations/10, func(n int) error { return t.open(ctx, n) }); err != nil {
		return err
	}
	tenth := heapInUse()
	if err := together(talkCallers, p.conversations/10, p.conversations, func(n int) error { return t.open(ctx, n) }); err != nil {
		return err
	}
	m := &scenarioMetrics{name: name}
	m.add("conversations", float64(p.conversations), "")
	m.add("heap of a tenth", float64(tenth), "B")
	m.add("more with all", float64(heapInUse()-tenth), "B").AtMost = maxTalkHeap
	r.printf("%s: answering", name)
	if err := p.answer(ctx, t, m); err != nil {
		return err
	}
	r.add(m)
	return nil
}

// answer answers all conversations and bare runs: the first ones one after the other, the others by
// all callers. Both sides take turns, so that other load on the machine affects both.
func (p talkPlan) answer(ctx context.Context, t *talk, m *scenarioMetrics) error {
	sides := []struct {
		name      string
		do        func(context.Context, int) error
		latencies []time.Duration
		load      measuredLoad
	}{{name: "reply", do: t.reply}, {name: "bare resume", do: t.decide}}
	for n := range p.single {
		for i := range sides {
			one, err := timed(func() error { return sides[i].do(ctx, n) })
			if err != nil {
				return err
			}
			sides[i].latencies = append(sides[i].latencies, one)
		}
	}
	for from := p.single; from < p.conversations; from += talkChunk {
		to := min(from+talkChunk, p.conversations)
		for i := range sides {
			s, before := &sides[i], cpuTime()
			one, err := timed(func() error { return together(talkCallers, from, to, func(n int) error { return s.do(ctx, n) }) })
			if err != nil {
				return err
			}
			s.load.wall += one
			s.load.cpu += cpuTime() - before
		}
	}
	replies := float64(p.conversations - p.single)
	for _, s := range sides {
		m.percentiles(s.name, s.latencies)
		m.add(s.name, replies/s.load.wall.Seconds(), unitRate)
		m.millis(s.name+" CPU", s.load.cpu/time.Duration(replies))
	}
	return nil
}

// together calls a function for each number with some callers, and returns the first error.
func together(callers, from, to int, do func(n int) error) error {
	numbers, failures := make(chan int), make(chan error, callers)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			var first error
			for n := range numbers {
				if first == nil {
					first = do(n)
				}
			}
			failures <- first
		})
	}
	for n := from; n < to; n++ {
		numbers <- n
	}
	close(numbers)
	all.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// heapInUse returns the bytes of live objects.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // the first one may have emptied pools only
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
