package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/tool"
)

// The property: for any combination of agents, any waiting points, any order and portions of
// answers, any cancels and any crashes, the run ends as if every answer had been available at once,
// and each approved action is performed once.

// agentSpec is a tree of agents.
type agentSpec struct {
	kind, name string
	children   []*agentSpec
	// of a chat: the calls of each turn, a kind of tool or the name of a child
	turns    [][]string
	ending   string // of a chat: how it ends
	rounds   int    // of a loop, or steps of a plan
	oneByOne bool
}

func drawAgentSpec(t *rapid.T, depth int, budget *int, name string) *agentSpec {
	*budget--
	s := &agentSpec{name: name}
	kinds := []string{"chat", "chat", "func", "custom", "resumable"}
	if depth < 3 && *budget > 1 {
		kinds = []string{"chat", "chat", "chat", "sequential", "parallel", "loop", "plan", "func"}
	}
	s.kind = rapid.SampledFrom(kinds).Draw(t, name)
	child := func() *agentSpec {
		s.children = append(s.children, drawAgentSpec(t, depth+1, budget, fmt.Sprint(name, "-", len(s.children))))
		return s.children[len(s.children)-1]
	}
	roomy := depth < 3 && *budget > 0
	switch s.kind {
	case "chat":
		calls := []string{"look", "pay", "fix", "ask", "reply", "none"}
		if roomy && rapid.Bool().Draw(t, name+" has a worker") {
			calls = append(calls, child().name, s.children[0].name)
		}
		s.turns = rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(calls), 1, 3), 0, 2).Draw(t, name+" turns")
		endings := []string{"say", "say", "say", "final", "exit"}
		if roomy {
			endings = append(endings, "transfer")
		}
		if s.ending = rapid.SampledFrom(endings).Draw(t, name+" ends"); s.ending == "transfer" {
			child()
		}
		s.oneByOne = rapid.Bool().Draw(t, name+" one by one")
	case "sequential", "parallel", "loop":
		for range rapid.IntRange(1, 3).Draw(t, name+" agents") {
			child()
		}
		s.rounds = rapid.IntRange(1, 2).Draw(t, name+" rounds")
	case "plan", "func":
		if s.kind == "plan" || roomy && rapid.Bool().Draw(t, name+" runs another") {
			child()
		}
		s.rounds = rapid.IntRange(1, 2).Draw(t, name+" steps")
	}
	return s
}

// simulation is the environment of random agents, and the simulated people.
type simulation struct {
	inline bool // all answers are available at once
	works  counter
	mu     sync.Mutex
	paid   map[string]string // payments by idempotency key
	moment atomic.Pointer[func()]
	tools  []*tool.Tool
}

func newSimulation(inline bool) *simulation {
	v := &simulation{inline: inline, paid: make(map[string]string)}
	v.tools = append(v.equip(), agent.ExitTool())
	return v
}

func digest(text string) int {
	h := fnv.New32a()
	h.Write([]byte(text))
	return int(h.Sum32())
}

func brief(text string) string { return fmt.Sprintf("%08x", digest(text)) }

func replyTo(question string) string { return "answer to " + question }

// verdict is the simulated decision on a payment. By has the form of a policy's, so that models
// cannot distinguish them.
func verdict(id string, editable bool) fermata.Decision {
	switch n := digest(id) % 4; {
	case n == 0:
		return fermata.Decision{Verb: fermata.VerbReject, Reason: "too much", By: "policy ann"}
	case n == 1 && editable:
		return fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`{"id":"` + id + `-less"}`), By: "ann"}
	}
	return fermata.Decision{Verb: fermata.VerbApprove, By: "ann"}
}

// at is a point where the run may be cancelled.
func (v *simulation) at(what string) {
	v.works.add(what)
	if fn := v.moment.Load(); fn != nil {
		(*fn)()
	}
}

func (v *simulation) ask(ctx context.Context, asked string) (string, error) {
	if v.inline {
		return replyTo(asked), nil
	}
	return question.Ask(ctx, asked)
}

type payment struct {
	ID string `json:"id"`
}

func paymentOf(args json.RawMessage) (in payment) {
	if err := json.Unmarshal(args, &in); err != nil {
		panic(err)
	}
	return in
}

// pay is the effect that must happen once.
func (v *simulation) pay(ctx context.Context, in payment) (string, error) {
	v.mu.Lock()
	v.paid[tool.Key(ctx)] += in.ID + ";"
	v.mu.Unlock()
	v.at("pay " + in.ID)
	return "paid " + in.ID, nil
}

// equip creates the tools of all chat agents. Inline, a policy makes the decisions, and the tool
// itself makes the edits.
func (v *simulation) equip() []*tool.Tool {
	look := tool.New("look", "", func(_ context.Context, in payment) (string, error) {
		v.at("look " + in.ID)
		return "saw " + in.ID, nil
	})
	ask := tool.New("ask", "", func(ctx context.Context, in payment) (string, error) {
		prepared, err := fermata.Do(ctx, "prepare", func(context.Context) (string, error) {
			v.at("prepare " + in.ID)
			return brief(in.ID), nil
		})
		if err != nil {
			return "", err
		}
		return v.ask(ctx, prepared)
	})
	reply := tool.New("reply", "", func(_ context.Context, in payment) (string, error) { return replyTo(in.ID), nil })
	end := tool.New("end", "", func(_ context.Context, in payment) (string, error) { return "ends with " + in.ID, nil }, tool.Final())
	pay := tool.New("pay", "", v.pay)
	if !v.inline {
		return []*tool.Tool{look, ask, tool.Respond(reply), end, tool.Approve(pay), tool.Review(tool.New("fix", "", v.pay))}
	}
	fix := tool.New("fix", "", func(ctx context.Context, in payment) (string, error) {
		edit := verdict(in.ID, true).Args
		if edit == nil {
			return v.pay(ctx, in)
		}
		text, err := v.pay(ctx, payment{in.ID + "-less"})
		return fmt.Sprintf("(Before the call ann changed the arguments to %s.)\n%s", edit, text), err
	})
	policy := fermata.PolicyFunc(func(_ context.Context, action fermata.ActionRequest) (fermata.Ruling, error) {
		if decision := verdict(paymentOf(action.Args).ID, action.Action == "fix"); decision.Verb == fermata.VerbReject {
			return fermata.Ruling{Verdict: fermata.Deny, Rule: "ann", Reason: decision.Reason}, nil
		}
		return fermata.Ruling{Verdict: fermata.Allow}, nil
	})
	return []*tool.Tool{look, ask, reply, end, tool.Guard(pay, policy), tool.Guard(fix, policy)}
}

// simulatedModel is a model that follows its spec and includes a digest of the conversation in each
// message.
type simulatedModel struct {
	v    *simulation
	spec *agentSpec
}

func (m *simulatedModel) Generate(ctx context.Context, r *agent.Request) (*agent.Response, error) {
	m.v.at("model " + m.spec.name)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	seen, turn, done := "", 0, 0
	for _, message := range r.Messages {
		data, _ := json.Marshal(message)
		seen = brief(seen + string(data))
		if message.Role == agent.RoleAssistant {
			turn++
		}
		done += strings.Count(message.Text, ", done:")
	}
	message := m.line(seen, turn)
	if m.spec.kind == "plan" && done < m.spec.rounds {
		message = agent.Assistant("", agent.ToolCall{Name: "plan", Args: `{"steps":["` + seen + `"]}`})
	} else if m.spec.kind == "plan" {
		message = agent.Assistant("", agent.ToolCall{Name: "respond", Args: `{"response":"` + seen + `"}`})
	}
	return &agent.Response{Message: message, Usage: agent.Usage{InputTokens: int64(len(r.Messages)), OutputTokens: 1}}, nil
}

func (m *simulatedModel) line(seen string, turn int) agent.Message {
	if turn < len(m.spec.turns) {
		var calls []agent.ToolCall
		for i, name := range m.spec.turns[turn] {
			args := fmt.Sprintf(`{"id":"%s%d"}`, seen, i)
			if strings.HasPrefix(name, "a") && name != "ask" {
				args = fmt.Sprintf(`{"request":"%s%d"}`, seen, i)
			}
			calls = append(calls, agent.ToolCall{ID: "same", Name: name, Args: args})
		}
		return agent.Assistant("On it.", calls...)
	}
	if turn > len(m.spec.turns) {
		return agent.Assistant("I have nothing more to say about " + seen)
	}
	switch m.spec.ending {
	case "final":
		return agent.Assistant("", agent.ToolCall{Name: "end", Args: `{"id":"` + seen + `"}`})
	case "exit":
		return agent.Assistant("", agent.ToolCall{Name: "exit_loop", Args: `{}`})
	case "transfer":
		to := m.spec.children[len(m.spec.children)-1].name
		return agent.Assistant("", agent.ToolCall{Name: "transfer_to_agent", Args: `{"agent_name":"` + to + `"}`})
	}
	return agent.Assistant("I have seen " + seen)
}

func (v *simulation) build(s *agentSpec) agent.Agent {
	var children []agent.Agent
	for _, child := range s.children {
		children = append(children, v.build(child))
	}
	switch s.kind {
	case "sequential":
		return must(agent.NewSequential(s.name, "", children...))
	case "parallel":
		return must(agent.NewParallel(s.name, "", children...))
	case "loop":
		return must(agent.NewLoop(s.name, "", s.rounds, children...))
	case "plan":
		return must(agent.NewPlanExecute(agent.PlanExecute{Name: s.name, Planner: &simulatedModel{v, s}, Executor: children[0]}))
	case "func":
		return v.function(s, children)
	case "custom":
		return &player{s.name, v.monologue(s)}
	case "resumable":
		return v.holding(s)
	}
	c := agent.Chat{Name: s.name, Model: &simulatedModel{v, s}, Tools: slices.Clone(v.tools), Sequential: s.oneByOne}
	if s.ending == "transfer" {
		c.Agents = children[len(children)-1:]
		children = children[:len(children)-1]
	}
	for _, child := range children {
		c.Tools = append(c.Tools, agent.AsTool(child, agent.WithConversation()))
	}
	return must(agent.NewChat(c))
}

func conversation(input *agent.Input) string {
	data, _ := json.Marshal(input)
	return brief(string(data))
}

// function is an agent that uses Do, a session value, two interrupts at once, and another agent.
func (v *simulation) function(s *agentSpec, children []agent.Agent) agent.Agent {
	return must(agent.NewFunc(s.name, "", func(ctx context.Context, input *agent.Input) (*agent.Output, error) {
		seen := s.name + conversation(input)
		did, err := fermata.Do(ctx, "work", func(ctx context.Context) (string, error) {
			v.at("do " + seen)
			return brief(seen), agent.SetValue(ctx, seen, "value of "+seen)
		})
		if err != nil {
			return nil, err
		}
		a, errA := v.ask(ctx, did+"a")
		b, errB := v.ask(ctx, did+"b")
		kept, _, err := agent.Value[string](ctx, seen)
		if err := errors.Join(errA, errB, err); err != nil {
			return nil, err
		}
		output := &agent.Output{Messages: []agent.Message{agent.Assistant(a + b + kept)}}
		if len(children) > 0 {
			said, err := agent.Run(ctx, children[0], &agent.Input{Messages: append(slices.Clone(input.Messages), agent.User(a))})
			if err != nil {
				return nil, err
			}
			output.Messages = append(output.Messages, agent.Assistant("and "+brief(fmt.Sprint(said))))
		}
		return output, nil
	}))
}

// monologue adds a message, asks, and adds another.
func (v *simulation) monologue(s *agentSpec) func(ctx context.Context, input *agent.Input, yield yield) {
	return func(ctx context.Context, input *agent.Input, yield yield) {
		seen := s.name + conversation(input)
		if !yield(says("Aside: a question on "+seen), nil) {
			return
		}
		said, err := v.ask(ctx, seen)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(says("Aside: I heard "+said), nil)
	}
}

// holding adds a message, interrupts itself, and continues in Resume.
func (v *simulation) holding(s *agentSpec) agent.Agent {
	r := &resumer{player: player{name: s.name}}
	r.perform = func(ctx context.Context, input *agent.Input, yield yield) {
		seen := s.name + conversation(input)
		switch {
		case !yield(says("Aside: I hold at "+seen), nil):
		case v.inline:
			yield(says("Aside: I was told "+replyTo(seen)), nil)
		default:
			yield(agent.StatefulInterrupt(ctx, seen, seen), nil)
		}
	}
	r.resume = func(ctx context.Context, info *agent.ResumeInfo, yield yield) {
		_, _, seen := fermata.GetInterruptState[string](ctx)
		target, has, said := fermata.GetResumeContext[string](ctx)
		if !target || !has {
			yield(agent.StatefulInterrupt(ctx, seen, seen), nil)
			return
		}
		yield(says("Aside: I was told "+said), nil)
	}
	return r
}

// decide returns the simulated answers. They are truthful about payments.
func (v *simulation) decide(ic *fermata.InterruptCtx) any {
	switch ic.Kind {
	case fermata.Approval.Name():
		asked := must(fermata.Approval.Question(ic))
		return verdict(paymentOf(asked.Args).ID, asked.Action == "fix")
	case fermata.EffectInDoubt.Name():
		doubt := must(fermata.EffectInDoubt.Question(ic))
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.paid[doubt.Key] == "" {
			return fermata.EffectResolution{Happened: false}
		}
		return fermata.EffectResolution{Happened: true, Receipt: json.RawMessage(`{"text":"paid ` + paymentOf(doubt.Args).ID + `"}`)}
	case agent.OverLimit.Name():
		return agent.LimitDecision{Continue: true, More: 2}
	case tool.Response.Name():
		return tool.HumanResponse{Text: replyTo(paymentOf(must(tool.Response.Question(ic)).Args).ID)}
	}
	return replyTo(must(fermata.InfoAs[string](ic)))
}

// payments lists the payments, and fails if one was made twice.
func (v *simulation) payments(t rapid.TB) []string {
	var all []string
	for key, paid := range v.paid {
		if strings.Count(paid, ";") != 1 {
			t.Fatalf("%s was paid as %s", paid, key)
		}
		all = append(all, paid)
	}
	slices.Sort(all)
	return all
}

// simulatedRun is one run of random agents, in as many executions as needed. Each has its own
// program.
type simulatedRun struct {
	*rapid.T
	ctx    context.Context
	v      *simulation
	spec   *agentSpec
	st     *storetest.Faulty
	limits agent.Limits
	stream bool
	// disturb may crash or cancel the next execution.
	disturb func(p *simulatedRun, cancel agent.CancelFunc)

	events   []string
	asked    map[string]string // every question, by id
	open     map[string]bool
	answered map[string]bool
}

// play executes the run to its end.
func (p *simulatedRun) play() (*agent.Output, agent.Usage) {
	var targets map[string]any
	begun, options := false, []agent.RunOption(nil)
	for range 1000 {
		ctx, cancel := agent.WithCancel(p.ctx)
		p.v.moment.Store(nil)
		if p.disturb != nil {
			p.disturb(p, cancel)
		}
		r := must(agent.NewRunner(agent.RunnerConfig{Agent: p.v.build(p.spec), Store: p.st, Limits: p.limits, EnableStreaming: p.stream}))
		events := r.Query(ctx, "Go.", agent.WithRun("r"))
		if begun {
			events = r.ResumeWithParams(ctx, "r", &agent.ResumeParams{Targets: targets}, options...)
		}
		q, given := record(events), targets
		begun, options, targets = true, nil, nil
		for _, e := range q.events {
			switch e.Body.(type) {
			case agent.MessageAdded, agent.ToolDone, agent.Transferred, agent.Exit:
				p.events = append(p.events, e.Path.String()+" "+line(e.Body))
			case agent.Token, agent.ToolOutput, agent.Interrupted, agent.Finished:
			}
		}
		switch {
		case q.err == nil:
			if done, ok := q.events[len(q.events)-1].Body.(agent.Finished); ok {
				return done.Output, done.Usage
			}
			targets = p.answers(q.events[len(q.events)-1].Body.(agent.Interrupted))
		case errors.Is(q.err, storetest.ErrCrashed):
			p.st.Restart()
			options = append(options, agent.TakeOver())
			for id := range given { // it is unknown whether the answers were saved
				delete(p.answered, id)
				delete(p.open, id)
			}
		case errors.Is(q.err, graph.ErrUnknownRun):
			begun = false
		case errors.Is(q.err, graph.ErrFinished): // it crashed after its last save
			saved := must(r.Inspect(p.ctx, "r"))
			return saved.Output, saved.Spent.Usage
		default:
			if _, cancelled := errors.AsType[*agent.CancelError](q.err); !cancelled {
				p.Fatalf("the run failed: %v", q.err)
			}
		}
	}
	p.Fatal("the run does not end")
	return nil, agent.Usage{}
}

// answers answers some of the interrupts, and checks their ids.
func (p *simulatedRun) answers(waiting agent.Interrupted) map[string]any {
	for _, bad := range waiting.BadAnswers {
		p.Fatalf("a valid answer to %s was rejected: %v", p.asked[bad.ID], bad)
	}
	now := make(map[string]bool)
	for _, ic := range waiting.Interrupts {
		now[ic.ID], p.asked[ic.ID] = true, fmt.Sprintf("%s %s at %s", ic.Kind, ic.Data, ic.Address)
		if p.answered[ic.ID] {
			p.Fatalf("%s is asked again as %s", ic.Address, ic.ID)
		}
	}
	for id := range p.open {
		if !now[id] && !p.answered[id] {
			p.Fatalf("%s is no longer open", p.asked[id])
		}
	}
	p.open = now
	targets := make(map[string]any)
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(waiting.Interrupts)-1), 1, -1, rapid.ID[int]).Draw(p.T, "portion") {
		ic := waiting.Interrupts[i]
		targets[ic.ID], p.answered[ic.ID] = p.v.decide(ic), true
	}
	return targets
}

// compare runs random agents inline and disturbed, and compares the results.
func compare(t *testing.T, rt *rapid.T, disturb func(p *simulatedRun, cancel agent.CancelFunc)) (reference, p *simulatedRun, same bool) {
	budget := 7
	spec := drawAgentSpec(rt, 0, &budget, "a")
	reference = &simulatedRun{T: rt, ctx: t.Context(), v: newSimulation(true), spec: spec, st: storetest.NewFaulty(memory.New())}
	want, usage := reference.play()
	p = &simulatedRun{T: rt, ctx: t.Context(), v: newSimulation(false), spec: spec, st: storetest.NewFaulty(memory.New()),
		asked: make(map[string]string), answered: make(map[string]bool), disturb: disturb, stream: rapid.Bool().Draw(rt, "streaming")}
	if rapid.Bool().Draw(rt, "limited") {
		p.limits = agent.Limits{ModelCalls: rapid.IntRange(1, 4).Draw(rt, "model calls"), ToolCalls: rapid.IntRange(0, 3).Draw(rt, "tool calls")}
	}
	got, used := p.play()
	if d := cmp.Diff(want, got); d != "" {
		rt.Fatalf("the end differs (-inline +disturbed):\n%s", d)
	}
	if d := cmp.Diff(reference.v.payments(rt), p.v.payments(rt)); d != "" {
		rt.Fatalf("the payments differ (-inline +disturbed):\n%s", d)
	}
	return reference, p, usage == used
}

func TestProperty_RandomPartialAnswersEndLikeInlineOnes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		reference, p, used := compare(t, rt, nil)
		sameEvents(rt, reference, p)
		if d := cmp.Diff(reference.v.works.n, p.v.works.n); d != "" || !used {
			rt.Fatalf("the work differs (-inline +resumed):\n%s", d)
		}
	})
}

func TestProperty_CancelledAnywhereNothingIsLostOrRepeated(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		reference, p, used := compare(t, rt, func(p *simulatedRun, cancel agent.CancelFunc) {
			if !rapid.Bool().Draw(rt, "cancel now") {
				return
			}
			mode := rapid.SampledFrom([]agent.CancelMode{agent.CancelNow, agent.CancelAfterModel, agent.CancelAfterTools}).Draw(rt, "mode")
			left := new(atomic.Int64)
			left.Store(int64(rapid.IntRange(1, 6).Draw(rt, "at moment")))
			fn := func() {
				if left.Add(-1) == 0 {
					cancel(mode)
				}
			}
			p.v.moment.Store(&fn)
		})
		sameEvents(rt, reference, p)
		for what, n := range reference.v.works.n {
			if got := p.v.works.of(what); got < n || got > n && !strings.HasPrefix(what, "model ") {
				rt.Fatalf("%s happened %d times, want %d", what, got, n)
			}
		}
		if !used {
			rt.Fatal("the usage differs")
		}
	})
}

func TestProperty_CrashesBetweenAnyTwoSavesLoseNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		crashes := rapid.IntRange(1, 6).Draw(rt, "crashes")
		reference, p, _ := compare(t, rt, func(p *simulatedRun, cancel agent.CancelFunc) {
			if crashes == 0 || !rapid.Bool().Draw(rt, "crash now") {
				return
			}
			crashes--
			when := rapid.SampledFrom([]storetest.FaultTime{storetest.BeforeWrite, storetest.AfterWrite}).Draw(rt, "when")
			p.st.CrashSave(p.st.Saves()+rapid.IntRange(1, 6).Draw(rt, "save"), when)
			if rapid.Bool().Draw(rt, "and cancel") {
				fn := func() { cancel(agent.CancelNow) }
				p.v.moment.Store(&fn)
			}
		})
		for what, n := range reference.v.works.n {
			if got := p.v.works.of(what); got < n {
				rt.Fatalf("%s happened %d times, want at least %d", what, got, n)
			}
		}
		shown := make(map[string]int)
		for _, e := range reference.events {
			shown[e]++
		}
		for _, e := range p.events {
			// of a custom agent: it may be shown before it is saved
			aside := strings.Contains(e, "says Aside")
			if n, ok := shown[e]; !ok || n == 0 && !aside {
				rt.Fatalf("%q was shown too often", e)
			}
			shown[e] = max(0, shown[e]-1)
		}
	})
}

// sameEvents checks that every event was shown once.
func sameEvents(rt *rapid.T, reference, p *simulatedRun) {
	if d := cmp.Diff(slices.Sorted(slices.Values(reference.events)), slices.Sorted(slices.Values(p.events))); d != "" {
		rt.Fatalf("the events differ (-inline +disturbed):\n%s", d)
	}
}
