package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/tool"
)

// paying is a clerk that pays once, after approval.
func paying(c *counter) agent.Agent {
	return chat(c, "clerk", tools(tool.Approve(booking(c))), script.Call("book", `{"to":"Paris"}`), script.Say("Done."))
}

func TestRobust_ResumedTwiceIsDoneOnce(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent { return paying(&c) }
		open := one(t, p.query("Go.").waits(t))
		p.answer(open, yes).finished(t)
		for name, again := range map[string]*recording{"the same answer": p.answer(open, yes), "another one": p.answer(open, no), "none": p.resume()} {
			if !errors.Is(again.err, graph.ErrFinished) || len(again.events) > 0 {
				t.Errorf("with %s: %q", name, again.log())
			}
		}
		c.want(t, map[string]int{"model clerk": 2, "book Paris": 1})
	})
}

func TestI1_OfEightResumesAtOnceOneWins(t *testing.T) {
	file := must(sqlite.Open(filepath.Join(t.TempDir(), "runs.db")))
	defer file.Close()
	for name, st := range map[string]store.Checkpoints{"memory": memory.New(), "file": file} {
		for round := range 5 {
			var c counter
			build := func() *agent.Runner {
				return newRunner(t, paying(&c), func(config *agent.RunnerConfig) { config.Store = st })
			}
			run := fmt.Sprint("run", round)
			open := one(t, record(build().Query(t.Context(), "Go.", agent.WithRun(run))).waits(t))
			results := make([]*recording, 8)
			begin := make(chan struct{})
			var wg sync.WaitGroup
			for i := range results {
				r := build()
				wg.Go(func() {
					<-begin
					results[i] = record(r.ResumeWithParams(t.Context(), run, answer(open, yes)))
				})
			}
			close(begin)
			wg.Wait()
			won := 0
			for _, p := range results {
				switch {
				case p.err == nil:
					p.finished(t)
					won++
				case !errors.Is(p.err, graph.ErrRunning) && !errors.Is(p.err, graph.ErrAlreadyAnswered) && !errors.Is(p.err, graph.ErrFinished), len(p.events) > 0:
					t.Errorf("%s: a loser got %q", name, p.log())
				}
			}
			if won != 1 {
				t.Errorf("%s: %d won", name, won)
			}
			c.want(t, map[string]int{"model clerk": 2, "book Paris": 1})
		}
	}
}

func TestI13_UnknownIDsChangeNothing(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(asking(&c, "ask"), asking(&c, "tell")),
				script.Calls(agent.ToolCall{Name: "ask", Args: `{"to":"A"}`}, agent.ToolCall{Name: "tell", Args: `{"to":"B"}`}), script.Say("Done."))
		}
		other := record(p.runner().Query(t.Context(), "Go.", agent.WithRun("other"))).waits(t)
		open := p.query("Go.").waits(t)
		first, second := find(t, open, "ask A?"), find(t, open, "tell B?")
		left := one(t, p.answer(first, "yes").waits(t))
		c.want(t, map[string]int{"model clerk": 2, "enter ask": 3, "enter tell": 2, "ask done": 1})
		for name, test := range map[string]struct {
			id   string
			want error
		}{
			"unknown":        {"int_nobody", graph.ErrUnknownInterrupt},
			"empty":          {"", graph.ErrUnknownInterrupt},
			"an address":     {second.Address.String(), graph.ErrUnknownInterrupt},
			"of another run": {find(t, other, "tell B?").ID, graph.ErrUnknownInterrupt},
			"answered":       {first.ID, graph.ErrAlreadyAnswered},
		} {
			if p := p.answers(map[string]any{test.id: "yes", second.ID: "yes"}); !errors.Is(p.err, test.want) || len(p.events) > 0 {
				t.Errorf("%s: %q", name, p.log())
			}
		}
		if again := one(t, p.resume().waits(t)); again.ID != left.ID || left.ID != second.ID {
			t.Errorf("it was asked as %s and is asked as %s", second.ID, again.ID)
		}
		c.want(t, map[string]int{"model clerk": 2, "enter ask": 3, "enter tell": 2, "ask done": 1})
	})
}

func TestI8_AnotherAccountCannotResumeOrSeeARun(t *testing.T) {
	var c counter
	st := memory.New()
	of := func(account string) *agent.Runner {
		return newRunner(t, paying(&c), func(config *agent.RunnerConfig) { config.Store, config.Account = st, account })
	}
	open := one(t, record(of("ours").Query(t.Context(), "Go.", agent.WithRun("run"))).waits(t))
	if p := record(of("theirs").ResumeWithParams(t.Context(), "run", answer(open, yes))); !errors.Is(p.err, graph.ErrUnknownRun) {
		t.Errorf("got %q", p.log())
	}
	if _, err := of("theirs").Inspect(t.Context(), "run"); !errors.Is(err, graph.ErrUnknownRun) {
		t.Errorf("got %v", err)
	}
}

func TestI13_OneWrongAnswerLeavesAllOpen(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(tool.Approve(booking(&c)), asking(&c, "ask"), tool.Respond(tool.New("reply", "", func(context.Context, city) (string, error) { return "", nil }))),
				script.Calls(call("book", "Paris"), call("ask", "A"), call("reply", "B")), script.Say("Done."))
		}
		open := p.query("Go.").waits(t)
		byKind := make(map[string]*fermata.InterruptCtx)
		for _, ic := range open {
			byKind[ic.Kind] = ic
		}
		right := map[string]any{fermata.Approval.Name(): yes, "test-question": "yes", tool.Response.Name(): tool.HumanResponse{Text: "hello"}}
		for kind, wrongs := range map[string][]any{
			fermata.Approval.Name(): {nil, true, "approve", map[string]any{"verb": "maybe"}, map[string]any{"Verb": "approve"}, json.RawMessage(`{"verb":"approve","args":{"to":"Rome"}}`), &struct{}{}},
			"test-question":         {nil, 1, true, []string{"yes"}, json.RawMessage(`"yes" "no"`), json.RawMessage("\"\xff\"")},
			tool.Response.Name():    {nil, "hello", map[string]any{}, map[string]any{"text": "x", "declined": true}},
		} {
			for _, wrong := range wrongs {
				targets := make(map[string]any)
				for k, ic := range byKind {
					targets[ic.ID] = right[k]
				}
				targets[byKind[kind].ID] = wrong
				bad := p.answers(targets)
				if got, ok := errors.AsType[*fermata.AnswerError](bad.err); !ok || got.ID != byKind[kind].ID || len(bad.events) > 0 {
					t.Errorf("%s answered with %v: %q", kind, wrong, bad.log())
				}
			}
		}
		if got := p.resume().waits(t); !slices.Equal(ids(got), ids(open)) {
			t.Errorf("%v are open, want %v", ids(got), ids(open))
		}
		c.want(t, map[string]int{"model clerk": 1, "enter ask": 1})
	})
}

// busy is a clerk whose run has everything that is saved: finished calls, an approved one,
// interrupts, an inner agent.
func busy(c *counter) agent.Agent {
	worker := chat(c, "worker", tools(booking(c), asking(c, "ask")),
		script.Calls(call("book", "Lima"), call("ask", "A")), script.Say("Dug."))
	return chat(c, "clerk", tools(booking(c), tool.Approve(tool.New("pay", "Pays.", func(ctx context.Context, in city) (string, error) {
		c.add("pay " + in.To)
		return "paid " + in.To, nil
	})), agent.AsTool(worker)),
		script.Calls(call("book", "Rome"), call("pay", "Oslo"), agent.ToolCall{Name: "worker", Args: `{"request":"dig"}`}), script.Say("Done."))
}

// persist continues a run until it ends, whatever the store does in between: it answers interrupts
// and retries.
func persist(t *testing.T, r *agent.Runner, c *counter, repair func()) (executions int) {
	t.Helper()
	shown := make(map[string]int)    // reported as done
	asked := make(map[string]string) // ids by place
	p := record(r.Query(t.Context(), "Go.", agent.WithRun("run")))
	for executions = 1; executions < 20; executions++ {
		for _, e := range p.events {
			if done, ok := e.Body.(agent.ToolDone); ok {
				shown[done.Call.Name+done.Call.Args]++
			}
		}
		var targets map[string]any
		switch {
		case p.err == nil && strings.HasSuffix(p.log()[len(p.events)-1], "finished"):
			for what, n := range shown {
				if n != 1 {
					t.Errorf("%s was reported as done %d times", what, n)
				}
			}
			return executions
		case p.err == nil:
			targets = make(map[string]any)
			snapshot, err := r.Inspect(t.Context(), "run")
			if errors.Is(err, errDisk) { // reading may also fail
				snapshot, err = r.Inspect(t.Context(), "run")
			}
			saved := ids(must(snapshot, err).Interrupts) // open interrupts are saved
			for _, ic := range p.waits(t) {
				if place := ic.Address.String() + ic.Kind; asked[place] != "" && asked[place] != ic.ID {
					t.Errorf("%s was asked as %s and is now asked as %s", place, asked[place], ic.ID)
				} else {
					asked[place] = ic.ID
				}
				if !slices.Contains(saved, ic.ID) {
					t.Errorf("%s is open and was not saved", ic.Address)
				}
				switch ic.Kind {
				case fermata.Approval.Name():
					targets[ic.ID] = yes
				case fermata.EffectInDoubt.Name():
					targets[ic.ID] = fermata.EffectResolution{Happened: c.of("pay Oslo") > 0, Receipt: receipt(c.of("pay Oslo") > 0)}
				default:
					targets[ic.ID] = "yes"
				}
			}
		// the failed attempt had saved more than it reported
		case errors.Is(p.err, graph.ErrAlreadyAnswered), errors.Is(p.err, graph.ErrRunning):
		case errors.Is(p.err, graph.ErrFinished):
			return executions
		case errors.Is(p.err, graph.ErrUnknownRun):
			p = record(r.Query(t.Context(), "Go.", agent.WithRun("run")))
			continue
		default:
			if p.err != nil && !errors.Is(p.err, storetest.ErrCrashed) && !errors.Is(p.err, errDisk) {
				t.Fatalf("got %q", p.log())
			}
			repair()
		}
		p = record(r.ResumeWithParams(t.Context(), "run", &agent.ResumeParams{Targets: targets}, agent.TakeOver()))
	}
	t.Fatal("the run does not end")
	return
}

func receipt(happened bool) json.RawMessage {
	if !happened {
		return nil
	}
	return json.RawMessage(`{"text":"paid Oslo"}`)
}

var errDisk = errors.New("the disk is full")

// faultyLoads is a store that fails to load once.
type faultyLoads struct {
	store.Checkpoints
	mu    sync.Mutex
	loads int
	fail  int
}

func (f *faultyLoads) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	f.mu.Lock()
	f.loads++
	fails := f.loads == f.fail
	f.mu.Unlock()
	if fails {
		return store.Checkpoint{}, errDisk
	}
	return f.Checkpoints.Load(ctx, key)
}

// Wherever the store fails or the process dies: no unsaved interrupt is reported, an approved call
// happens once, work that was reported as done is not repeated, and the run continues. This
// includes the points between an interrupt and its save, and between an answer and its effect.
func TestI9_AStoreThatFailsAnywhereLosesAndRepeatsNothing(t *testing.T) {
	build := func(c *counter, st store.Checkpoints) *agent.Runner {
		return newRunner(t, busy(c), func(config *agent.RunnerConfig) { config.Store = st })
	}
	check := func(what string, c *counter) {
		t.Helper()
		if c.of("pay Oslo") != 1 || c.of("ask done") < 1 || c.of("model clerk") < 2 {
			t.Errorf("%s: %v", what, c.n)
		}
	}
	var quiet counter
	whole := storetest.NewFaulty(memory.New())
	persist(t, build(&quiet, whole), &quiet, func() {})
	for n := 1; n <= whole.Saves()+2; n++ {
		for name, fault := range map[string]func(st *storetest.Faulty){
			"fails before":   func(st *storetest.Faulty) { st.FailSave(n, storetest.BeforeWrite, errDisk) },
			"fails after":    func(st *storetest.Faulty) { st.FailSave(n, storetest.AfterWrite, errDisk) },
			"crashes before": func(st *storetest.Faulty) { st.CrashSave(n, storetest.BeforeWrite) },
			"crashes after":  func(st *storetest.Faulty) { st.CrashSave(n, storetest.AfterWrite) },
		} {
			var c counter
			st := storetest.NewFaulty(memory.New())
			fault(st)
			persist(t, build(&c, st), &c, st.Restart)
			check(fmt.Sprint("save ", n, " ", name), &c)
		}
	}
	for n := 1; n < 8; n++ {
		var c counter
		persist(t, build(&c, &faultyLoads{Checkpoints: memory.New(), fail: n}), &c, func() {})
		check(fmt.Sprint("load ", n, " fails"), &c)
		if c.of("book Rome") != 1 || c.of("model clerk") != 2 {
			t.Errorf("load %d fails: %v", n, c.n)
		}
	}
}

// A run whose store is gone for good reports no interrupt.
func TestI9_FailedSaveReportsNoInterrupt(t *testing.T) {
	var c counter
	st := storetest.NewFaulty(memory.New())
	for n := 3; n < 50; n++ { // the start and the model's answer are saved
		st.FailSave(n, storetest.BeforeWrite, errDisk)
	}
	p := record(newRunner(t, paying(&c), func(config *agent.RunnerConfig) { config.Store = st }).Query(t.Context(), "Go."))
	if !errors.Is(p.err, errDisk) || strings.Contains(fmt.Sprint(p.log()), "waits") {
		t.Errorf("got %q", p.log())
	}
}

// A program that asks something else than the answered question does not use that answer for its
// own question.
func TestI5_AnswerToWithdrawnInterruptIsRejected(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		held := tool.Approve(booking(&c))
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(held), script.Call("book", `{"to":"Paris"}`), script.Say("Done."))
		}
		open := one(t, p.query("Go.").waits(t))
		held, p.now = tool.FollowUp(held, func(in city) []tool.Missing {
			if in.To != "Rome" {
				return []tool.Missing{{Field: "to", Question: "Really there?"}}
			}
			return nil
		}), nil
		next := p.answer(open, yes)
		completion := one(t, next.waits(t))
		if completion.Kind != tool.Completion.Name() || len(next.interrupted(t).BadAnswers) != 1 {
			t.Errorf("it asks %+v, and reports for the answer %v", completion, next.interrupted(t).BadAnswers)
		}
		again := one(t, p.answer(completion, tool.CompletedArgs{Fields: map[string]json.RawMessage{"to": json.RawMessage(`"Rome"`)}}).waits(t))
		if again.ID == open.ID {
			t.Error("the approval was for Paris")
		}
		p.answer(again, yes).finished(t)
		c.want(t, map[string]int{"model clerk": 2, "book Rome": 1})
	})
}

func TestRobust_AnotherAgentCannotResumeTheRun(t *testing.T) {
	var c counter
	st := memory.New()
	with := func(config *agent.RunnerConfig) { config.Store = st }
	open := one(t, record(newRunner(t, paying(&c), with).Query(t.Context(), "Go.", agent.WithRun("run"))).waits(t))
	other := newRunner(t, chat(&c, "other", nil, script.Say("Hello.")), with)
	if p := record(other.ResumeWithParams(t.Context(), "run", answer(open, yes))); !errors.Is(p.err, graph.ErrWrongGraph) {
		t.Errorf("got %q", p.log())
	}
	record(newRunner(t, paying(&c), with).ResumeWithParams(t.Context(), "run", answer(open, yes))).finished(t)
}

func TestRobust_AThousandQuestionsInOneTurn(t *testing.T) {
	const n = 1000
	var c counter
	calls := make([]agent.ToolCall, n)
	for i := range calls {
		calls[i] = call("book", fmt.Sprint(i))
	}
	r := newRunner(t, chat(&c, "clerk", tools(tool.Approve(booking(&c), tool.Summary(func(args json.RawMessage) string { return string(args) }))), script.Calls(calls...), script.Say("Done.")))
	open := record(r.Query(t.Context(), "Go.", agent.WithRun("run"))).waits(t)
	if len(open) != n {
		t.Fatalf("%d questions", len(open))
	}
	for i, ic := range open { // in the model's order
		if asked := must(fermata.Approval.Question(ic)); asked.Summary != fmt.Sprintf(`{"to":"%d"}`, i) {
			t.Fatalf("question %d is on %s", i, asked.Summary)
		}
	}
	for i := range 3 { // one by one
		left := record(r.ResumeWithParams(t.Context(), "run", answer(open[i], yes))).waits(t)
		if want := ids(open[i+1:]); !slices.Equal(ids(left), want) {
			t.Fatalf("after %d answers %d interrupts are left", i+1, len(left))
		}
	}
	all := make(map[string]any)
	for i, ic := range open[3:] {
		all[ic.ID] = []any{yes, no}[i%2]
	}
	end := record(r.ResumeWithParams(t.Context(), "run", &agent.ResumeParams{Targets: all}))
	if messages := end.finished(t).Output.Messages; len(messages) != n+2 {
		t.Errorf("the output has %d messages", len(messages))
	}
	booked := 0
	for i := range n {
		times := c.of(fmt.Sprint("book ", i))
		if booked += times; times > 1 || i < 3 && times != 1 {
			t.Errorf("call %d was made %d times", i, times)
		}
	}
	if want := 3 + (n-3+1)/2; booked != want {
		t.Errorf("%d calls were made, want %d", booked, want)
	}
}

// The stored size of a waiting run grows with its messages and, slightly, with the length of its
// addresses, but not with depth times stored data.
func TestRobust_StoredBytesGrowLinearlyWithDepth(t *testing.T) {
	const payload = 16 << 10
	size := func(depth int) int {
		var c counter
		big := tool.New("big", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
			return "", fermata.StatefulInterrupt(ctx, "Well?", strings.Repeat("x", payload))
		})
		a := chat(&c, "worker", tools(big), script.Call("big", "{}"))
		for range depth {
			a = chat(&c, "worker", tools(agent.AsTool(a)), script.Call("worker", `{"request":"go on"}`))
		}
		st := memory.New()
		record(newRunner(t, a, func(config *agent.RunnerConfig) { config.Store = st }).Query(t.Context(), "Go.", agent.WithRun("run"))).waits(t)
		total := 0
		for name, data := range must(st.Load(t.Context(), store.Key{Run: "run"})).Parts {
			total += len(name) + len(data)
		}
		return total
	}
	last := size(0)
	if last > payload+3000 {
		t.Errorf("without depth it keeps %d bytes", last)
	}
	for depth := 1; depth <= 12; depth++ {
		now := size(depth)
		if added, most := now-last, 700+300*depth; added > most {
			t.Errorf("depth %d adds %d bytes, more than %d", depth, added, most)
		}
		last = now
	}
}

// mirror is an agent that runs itself.
type mirror struct{ depth *int }

func (mirror) Name() string        { return "mirror" }
func (mirror) Description() string { return "" }
func (m mirror) Run(ctx context.Context, input *agent.Input) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) {
		*m.depth++
		_, err := agent.Run(ctx, m, input)
		yield(nil, err)
	}
}

func TestRobust_AgentsThatCallEachOtherForEverEnd(t *testing.T) {
	depth := 0
	p := record(newRunner(t, mirror{&depth}).Query(t.Context(), "Go."))
	if !errors.Is(p.err, agent.ErrTooDeep) || depth < 20 || depth > 100 {
		t.Errorf("at depth %d: %v", depth, p.err)
	}
	var ping, pong agent.Agent
	handOver := func(to string) agent.Model {
		return script.New(slices.Repeat([]script.Line{script.Call("transfer_to_agent", `{"agent_name":"`+to+`"}`)}, 60)...)
	}
	pong = must(agent.NewChat(agent.Chat{Name: "pong", Model: handOver("ping")}))
	ping = must(agent.NewChat(agent.Chat{Name: "ping", Model: handOver("pong"), Agents: []agent.Agent{pong}}))
	p = record(newRunner(t, ping).Query(t.Context(), "Go."))
	if !errors.Is(p.err, agent.ErrTooDeep) || !strings.Contains(p.err.Error(), "nested too deeply") {
		t.Errorf("got %v", p.err)
	}
}

func TestRobust_AHugeResultIsKeptOnce(t *testing.T) {
	const huge = 1 << 20
	var c counter
	st := storetest.NewFaulty(memory.New())
	r := newRunner(t, chat(&c, "clerk", tools(tool.New("read", "Reads.", func(context.Context, struct{}) (string, error) {
		return strings.Repeat("ä", huge/2), nil
	}), asking(&c, "ask")), script.Call("read", "{}"), askOnce, script.Say("Done.")), func(config *agent.RunnerConfig) { config.Store = st })
	open := one(t, record(r.Query(t.Context(), "Go.", agent.WithRun("run"))).waits(t))
	if put := st.BytesPut(); put > huge+huge/4 {
		t.Errorf("%d bytes were written for one result of %d", put, huge)
	}
	output := record(r.ResumeWithParams(t.Context(), "run", answer(open, "yes"))).finished(t).Output
	if got := output.Messages[1].Text; len(got) != huge || got[:2] != "ä" {
		t.Errorf("the result has %d bytes", len(got))
	}
}

// Models may write anything. Names and ids are the same before and after a resume.
func TestRobust_InvalidUTF8InModelMessages(t *testing.T) {
	odd := []string{"\xff", "\xfe", "a;b:c#d%e", "", " ", "\x00", "ä\u2028\U0001F600", "int_x", strings.Repeat("long", 300), "\xff", "../..", `"}{`}
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		calls := make([]agent.ToolCall, 0, 3*len(odd))
		for _, text := range odd {
			calls = append(calls, agent.ToolCall{ID: text, Name: "ask", Args: `{"to":"x"}`},
				agent.ToolCall{ID: "n" + text, Name: text, Args: `{}`}, agent.ToolCall{ID: "a" + text, Name: "book", Args: text})
		}
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(asking(&c, "ask"), booking(&c)), script.Message(agent.Assistant("\xffodd\x00", calls...)), script.Say("\xc3("))
		}
		open := p.query("Go.").waits(t)
		if len(open) != len(odd) {
			t.Fatalf("%d questions", len(open))
		}
		if again := p.resume().waits(t); !slices.Equal(ids(open), ids(again)) || !slices.Equal(addresses(open), addresses(again)) {
			t.Errorf("the ids changed")
		}
		left := p.answer(open[0], "yes").waits(t)
		if !slices.Equal(ids(left), ids(open[1:])) {
			t.Errorf("after one answer %d are left", len(left))
		}
		all := make(map[string]any)
		for _, ic := range left {
			all[ic.ID] = "yes"
		}
		p.answers(all).finished(t)
		c.want(t, map[string]int{"model clerk": 2, "enter ask": 2 * len(odd), "ask done": len(odd)})
	})
}

func TestRobust_InvalidNamesAreRejectedByConstructors(t *testing.T) {
	for _, name := range []string{"", " ", "a b", "a;b", "ä", "\xff", "a\x00", strings.Repeat("x", 65)} {
		if _, err := agent.NewChat(agent.Chat{Name: name, Model: script.New()}); err == nil {
			t.Errorf("an agent may be named %q", name)
		}
		if _, err := tool.Raw(name, "", json.RawMessage(`{"type":"object"}`), nil); err == nil {
			t.Errorf("a tool may be named %q", name)
		}
	}
}

func TestRobust_AModelThatSaysNothing(t *testing.T) {
	x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
		return must(agent.NewSequential("all", "", x.chat("mute", tools(x.tool("work")), script.Call("work", ""), script.Say("")), x.chat("next", nil, script.Say("Well."))))
	})
	end := x.start().finished(t)
	if end.Output.Text() != "Well." || len(end.Output.Messages) != 4 {
		t.Errorf("got %+v", end.Output)
	}
	none := modelFunc(func(context.Context, *agent.Request) (*agent.Response, error) { return nil, nil })
	p := record(newRunner(t, must(agent.NewChat(agent.Chat{Name: "none", Model: none}))).Query(t.Context(), "Go."))
	if p.err == nil || !strings.Contains(p.err.Error(), "returned nothing") {
		t.Errorf("got %q", p.log())
	}
}

func TestRobust_APanicAnywhereIsAnErrorOfTheRun(t *testing.T) {
	for _, place := range []string{"model clerk", "stream clerk", "tool work", "tool flow", "instruct", "more tools"} {
		for _, wide := range []bool{false, true} {
			x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
				a := must(agent.NewChat(agent.Chat{Name: "clerk", Tools: tools(x.tool("work"), x.streamingTool("flow")),
					InstructionFunc: func(ctx context.Context) (string, error) { return "", x.at(ctx, "instruct") },
					MoreTools:       func(ctx context.Context) ([]*tool.Tool, error) { return nil, x.at(ctx, "more tools") },
					Model:           &scriptedModel{x, "clerk", script.New(script.Calls(agent.ToolCall{Name: "work", Args: "{}"}, agent.ToolCall{Name: "flow", Args: "{}"}), script.Say("All done."))}}))
				if wide {
					return must(agent.NewParallel("lanes", "", a, x.chat("other", nil, script.Say("Me too."))))
				}
				return a
			}, streaming)
			x.moment = func(_ context.Context, what string) error {
				if what == place {
					panic("oh no")
				}
				return nil
			}
			p := x.start()
			if broken, ok := errors.AsType[*graph.PanicError](p.err); !ok || broken.Value != "oh no" || len(broken.Stack) == 0 {
				t.Errorf("%s: got %q", place, p.log())
			}
			x.goOn(nil).finished(t)
			if x.c.of("model clerk") > 3 || x.c.of("tool work") > 2 || wide && x.c.of("model other") != 1 {
				t.Errorf("%s: %v", place, x.c.n)
			}
		}
	}
}
