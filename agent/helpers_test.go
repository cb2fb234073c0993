package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/tool"
)

// question is the kind of most tests: a string question and a string answer.
var question = fermata.NewKind[string, string]("test-question")

// must is for set-up code that cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// counter counts events from any goroutine and across the processes of a test.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[what]++
}

func (c *counter) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

// want compares all counts.
func (c *counter) want(t testing.TB, want map[string]int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(c.n, want) {
		t.Errorf("this happened: %v, want %v", c.n, want)
	}
}

// model is a script that counts its calls as "model name".
func model(c *counter, name string, lines ...script.Line) *script.Model {
	counted := make([]script.Line, len(lines))
	for i, line := range lines {
		counted[i] = func(r *agent.Request) (agent.Message, error) {
			c.add("model " + name)
			return line(r)
		}
	}
	return script.New(counted...)
}

// chat is a chat agent with a script.
func chat(c *counter, name string, tools []*tool.Tool, lines ...script.Line) agent.Agent {
	return must(agent.NewChat(agent.Chat{Name: name, Description: "does " + name, Model: model(c, name, lines...), Tools: tools}))
}

type city struct {
	To string `json:"to"`
}

// booking is a tool that counts its calls as "book Paris".
func booking(c *counter) *tool.Tool {
	return tool.New("book", "Books a ticket.", func(_ context.Context, in city) (string, error) {
		c.add("book " + in.To)
		return "booked " + in.To, nil
	})
}

// asking is a tool that asks a person and counts its entries as "enter name" and its ends as "name
// done".
func asking(c *counter, name string) *tool.Tool {
	return tool.New(name, "Asks.", func(ctx context.Context, in city) (string, error) {
		c.add("enter " + name)
		said, err := question.Ask(ctx, name+" "+in.To+"?")
		if err != nil {
			return "", err
		}
		c.add(name + " done")
		return name + " heard " + said, nil
	})
}

func tools(list ...*tool.Tool) []*tool.Tool { return list }

// newRunner creates a runner with a store in memory.
func newRunner(t testing.TB, a agent.Agent, changes ...func(*agent.RunnerConfig)) *agent.Runner {
	t.Helper()
	config := agent.RunnerConfig{Agent: a, Store: memory.New()}
	for _, change := range changes {
		change(&config)
	}
	r, err := agent.NewRunner(config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answer returns the params of a resume that answers one interrupt.
func answer(ic *fermata.InterruptCtx, data any) *agent.ResumeParams {
	return &agent.ResumeParams{Targets: map[string]any{ic.ID: data}}
}

var yes, no = fermata.Decision{Verb: fermata.VerbApprove}, fermata.Decision{Verb: fermata.VerbReject}

// recording contains the events of one start or resume of a run.
type recording struct {
	events []*agent.Event
	err    error
}

// record collects the events of a run until it ends or waits.
func record(events iter.Seq2[*agent.Event, error]) *recording {
	p := new(recording)
	for event, err := range events {
		if err != nil {
			p.err = err
			continue
		}
		p.events = append(p.events, event)
	}
	return p
}

// waits returns the open interrupts. Interrupted must be the last event and the only one of its
// type.
func (p *recording) waits(t testing.TB) []*fermata.InterruptCtx {
	t.Helper()
	return p.interrupted(t).Interrupts
}

func (p *recording) interrupted(t testing.TB) agent.Interrupted {
	t.Helper()
	if p.err != nil {
		t.Fatalf("the run should wait, but: %v", p.err)
	}
	at := slices.IndexFunc(p.events, func(e *agent.Event) bool { _, ok := e.Body.(agent.Interrupted); return ok })
	if at < 0 || at != len(p.events)-1 {
		t.Fatalf("the run should wait, with one Interrupted event at the end, but: %q", p.log())
	}
	body := p.events[at].Body.(agent.Interrupted)
	checkPlaces(t, body.Interrupts)
	return body
}

// checkPlaces checks the public view: ids, addresses of agents and tools only, parents that lead
// outwards, and one pointer per place.
func checkPlaces(t testing.TB, open []*fermata.InterruptCtx) {
	t.Helper()
	known := make(map[string]*fermata.InterruptCtx)
	ids := make(map[string]bool)
	for _, ic := range open {
		if ic.ID == "" || ids[ic.ID] || !ic.IsRootCause {
			t.Errorf("%s has id %q, root cause %v", ic.Address, ic.ID, ic.IsRootCause)
		}
		ids[ic.ID] = true
		for _, segment := range ic.Address {
			if segment.Type != fermata.SegmentAgent && segment.Type != fermata.SegmentTool {
				t.Errorf("the public view should not contain %s in %s", segment, ic.Address)
			}
		}
		outer := ic.Address
		for parent := ic.Parent; parent != nil; parent = parent.Parent {
			outer = outer[:len(outer)-1]
			text := parent.Address.String()
			if text != outer.String() || parent.IsRootCause || known[text] != nil && known[text] != parent {
				t.Errorf("the parent at %s should be that of %s, shared, and not a root cause", text, outer)
			}
			known[text] = parent
		}
		if len(outer) > 1 {
			t.Errorf("the parents of %s end at %s", ic.Address, outer)
		}
	}
}

// finished returns the end of a finished run.
func (p *recording) finished(t testing.TB) agent.Finished {
	t.Helper()
	if p.err != nil {
		t.Fatalf("the run should finish, but: %v", p.err)
	}
	at := slices.IndexFunc(p.events, func(e *agent.Event) bool {
		switch e.Body.(type) {
		case agent.Interrupted, agent.Finished:
			return true
		}
		return false
	})
	if at < 0 || at != len(p.events)-1 {
		t.Fatalf("the run should finish, but: %q", p.log())
	}
	done, ok := p.events[at].Body.(agent.Finished)
	if !ok {
		t.Fatalf("the run should finish, but: %q", p.log())
	}
	return done
}

// log returns one line per event, with its agent.
func (p *recording) log() []string {
	var lines []string
	for _, e := range p.events {
		lines = append(lines, e.Agent+" "+line(e.Body))
	}
	if p.err != nil {
		lines = append(lines, "error "+p.err.Error())
	}
	return lines
}

func line(body agent.Body) string {
	switch b := body.(type) {
	case agent.Token:
		return "token " + b.Text
	case agent.MessageAdded:
		text := "says " + b.Message.Text
		for _, call := range b.Message.ToolCalls {
			text += fmt.Sprintf("calls %s(%s)", call.Name, call.Args)
		}
		return text
	case agent.ToolOutput:
		return "output " + b.Text
	case agent.ToolDone:
		return fmt.Sprintf("did %s: %s", b.Call.Name, b.Result.Text)
	case agent.Transferred:
		return "transfers to " + b.To
	case agent.Exit:
		return "exits"
	case agent.Interrupted:
		return fmt.Sprint("waits for ", infos(b.Interrupts))
	case agent.Finished:
		return "finished"
	}
	return fmt.Sprintf("%T", body)
}

// wantLog compares the events with lines of log.
func (p *recording) wantLog(t testing.TB, want ...string) {
	t.Helper()
	if got := p.log(); !slices.Equal(got, want) {
		t.Errorf("the events were\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func infos(open []*fermata.InterruptCtx) []string {
	var list []string
	for _, ic := range open {
		list = append(list, fmt.Sprint(ic.Info))
	}
	slices.Sort(list)
	return list
}

func ids(open []*fermata.InterruptCtx) []string {
	var list []string
	for _, ic := range open {
		list = append(list, ic.ID)
	}
	slices.Sort(list)
	return list
}

func addresses(open []*fermata.InterruptCtx) []string {
	var list []string
	for _, ic := range open {
		list = append(list, ic.Address.String())
	}
	slices.Sort(list)
	return list
}

// one returns the only open interrupt.
func one(t testing.TB, open []*fermata.InterruptCtx) *fermata.InterruptCtx {
	t.Helper()
	if len(open) != 1 {
		t.Fatalf("want one open interrupt, not %v", infos(open))
	}
	return open[0]
}

// find returns the open interrupt with this question.
func find(t testing.TB, open []*fermata.InterruptCtx, asked string) *fermata.InterruptCtx {
	t.Helper()
	i := slices.IndexFunc(open, func(ic *fermata.InterruptCtx) bool { return fmt.Sprint(ic.Info) == asked })
	if i < 0 {
		t.Fatalf("no interrupt asks %q, but: %v", asked, infos(open))
	}
	return open[i]
}

// processStory is a program that runs an agent and may end and be started again: everything but the
// store is then created again.
type processStory struct {
	t     testing.TB
	build func() agent.Agent
	// change modifies the runner's config; nil for the default.
	change func(*agent.RunnerConfig)
	// begin starts a process and returns its store.
	begin   func() store.Checkpoints
	account string
	now     *agent.Runner
}

// inEveryStore runs a test twice: in one process with a store in memory, and with a file, where
// every start and resume is a separate process.
func inEveryStore(t *testing.T, story func(t *testing.T, p *processStory)) {
	t.Run("memory", func(t *testing.T) {
		st := memory.New()
		story(t, &processStory{t: t, begin: func() store.Checkpoints { return st }})
	})
	t.Run("file", func(t *testing.T) {
		p := &processStory{t: t, account: fmt.Sprint(t.Name(), " ", file.stories.Add(1))}
		processes := 0
		p.begin = func() store.Checkpoints {
			p.now = nil
			processes++
			return file.handles()[processes%2]
		}
		story(t, p)
	})
}

// file is a database that all tests share, each with its own account. It is opened twice: two
// consecutive processes share only the file.
var file database

type database struct {
	stories atomic.Int64
	once    sync.Once
	dir     string
	open    [2]*sqlite.Store
}

func (d *database) handles() [2]*sqlite.Store {
	d.once.Do(func() {
		d.dir = must(os.MkdirTemp("", "fermata-agent-"))
		for i := range d.open {
			d.open[i] = must(sqlite.Open(filepath.Join(d.dir, "runs.db")))
		}
	})
	return d.open
}

func TestMain(m *testing.M) {
	code := m.Run()
	if file.dir != "" {
		for _, handle := range file.open {
			_ = handle.Close()
		}
		_ = os.RemoveAll(file.dir)
	}
	os.Exit(code)
}

// runner returns the runner of the current process; with a file it is a new one each time.
func (p *processStory) runner() *agent.Runner {
	p.t.Helper()
	st := p.begin()
	if p.now == nil {
		p.now = newRunner(p.t, p.build(), func(config *agent.RunnerConfig) {
			config.Store, config.Account = st, p.account
			if p.change != nil {
				p.change(config)
			}
		})
	}
	return p.now
}

func (p *processStory) query(text string, options ...agent.RunOption) *recording {
	p.t.Helper()
	return record(p.runner().Query(p.t.Context(), text, append(options, agent.WithRun("run"))...))
}

func (p *processStory) resume(options ...agent.RunOption) *recording {
	p.t.Helper()
	return record(p.runner().Resume(p.t.Context(), "run", options...))
}

func (p *processStory) answer(ic *fermata.InterruptCtx, data any, options ...agent.RunOption) *recording {
	p.t.Helper()
	return p.answers(map[string]any{ic.ID: data}, options...)
}

func (p *processStory) answers(targets map[string]any, options ...agent.RunOption) *recording {
	p.t.Helper()
	return record(p.runner().ResumeWithParams(p.t.Context(), "run", &agent.ResumeParams{Targets: targets}, options...))
}

func isErr(err, target error) bool { return errors.Is(err, target) }
