package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/dialog/runs"
	"github.com/fermata-go/fermata/graph"
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

// talkResult is the result on one kind of database.
type talkResult struct {
	Name          string `json:"name"`
	Database      string `json:"database"`
	Conversations int    `json:"conversations"`
	// HeapTenth and Heap are the heap in use with a tenth of the conversations and with all.
	HeapTenth int64    `json:"heapTenth"`
	Heap      int64    `json:"heap"`
	Dialog    talkSide `json:"dialog"`
	Bare      talkSide `json:"bare"`
}

// talkSide is one side: the time from a reply to the next question, of one caller, and the replies
// of all callers.
type talkSide struct {
	P50     time.Duration `json:"p50Ns"`
	P99     time.Duration `json:"p99Ns"`
	Replies int           `json:"replies"`
	Took    time.Duration `json:"tookNs"`
	CPU     time.Duration `json:"cpuNs"`
}

func (s talkSide) rate() float64 { return float64(s.Replies) / s.Took.Seconds() }

func talkName(database string) string { return "dialog/" + database }

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
	handler  *dialog.Handler
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
	h, err := dialog.New(dialog.Config{Store: encrypted.New(st, sealer), Runs: connected})
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

func (p talkPlan) measure(ctx context.Context, name string, progress io.Writer) (r talkResult, err error) {
	r = talkResult{Name: talkName(name), Conversations: p.conversations}
	st, version, remove, err := openDatabase(ctx, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r.Database = version
	defer func() { err = errors.Join(err, st.Close()) }()
	t, err := newTalk(st)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.executor.Stop(context.Background())) }()
	fmt.Fprintf(progress, "%s: opening %d conversations\n", r.Name, p.conversations)
	if err := together(0, p.conversations/10, func(n int) error { return t.open(ctx, n) }); err != nil {
		return r, err
	}
	r.HeapTenth = heapInUse()
	if err := together(p.conversations/10, p.conversations, func(n int) error { return t.open(ctx, n) }); err != nil {
		return r, err
	}
	r.Heap = heapInUse()
	fmt.Fprintf(progress, "%s: answering; heap %s with a tenth, %s with all\n", r.Name, mebibytes(r.HeapTenth), mebibytes(r.Heap))
	return r, p.answer(ctx, t, &r)
}

// answer answers all conversations and bare runs: the first ones one after the other, the others by
// all callers. Both sides take turns, so that other load on the machine affects both.
func (p talkPlan) answer(ctx context.Context, t *talk, r *talkResult) error {
	sides := []struct {
		side *talkSide
		do   func(context.Context, int) error
	}{{&r.Dialog, t.reply}, {&r.Bare, t.decide}}
	took := make([][]time.Duration, len(sides))
	for n := range p.single {
		for i, s := range sides {
			one, err := timed(func() error { return s.do(ctx, n) })
			if err != nil {
				return err
			}
			took[i] = append(took[i], one)
		}
	}
	for i, s := range sides {
		slices.Sort(took[i])
		s.side.P50, s.side.P99 = percentile(took[i], 50), percentile(took[i], 99)
	}
	for from := p.single; from < p.conversations; from += talkChunk {
		to := min(from+talkChunk, p.conversations)
		for _, s := range sides {
			before := cpuTime()
			one, err := timed(func() error { return together(from, to, func(n int) error { return s.do(ctx, n) }) })
			if err != nil {
				return err
			}
			s.side.Took += one
			s.side.CPU += cpuTime() - before
			s.side.Replies += to - from
		}
	}
	return nil
}

// together calls a function for each number with all callers, and returns the first error.
func together(from, to int, do func(n int) error) error {
	numbers, failures := make(chan int), make(chan error, talkCallers)
	var callers sync.WaitGroup
	for range talkCallers {
		callers.Go(func() {
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
	callers.Wait()
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
