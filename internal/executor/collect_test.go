package executor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/provider"
)

// atOnce is a provider with three parallel calls and without partial resume. It accepts only all
// answers at once, and completes with the value at each address.
type atOnce struct {
	scripted
	mu      sync.Mutex
	calls   []map[string]string // the answers of each call with answers
	called  chan struct{}       // receives at a call with answers, if there is room
	partial bool
	fails   int // so many calls with answers fail after the answers arrived
	kind    string
	data    func(place string) string
}

var places = []string{"left", "middle", "right"}

func newAtOnce(kind string, data func(place string) string) *atOnce {
	p := &atOnce{kind: kind, data: data, called: make(chan struct{}, 1)}
	p.execute = func(_ int64, e provider.Execution) (provider.Result, error) { return p.run(e) }
	return p
}

func (p *atOnce) Capabilities() provider.Capabilities {
	return provider.Capabilities{Parallel: true, PartialResume: p.partial}
}

func (p *atOnce) run(e provider.Execution) (result provider.Result, err error) {
	if len(e.Answers) == 0 {
		var waiting provider.Waiting
		for _, place := range places {
			waiting.Interrupts = append(waiting.Interrupts, provider.Interrupt{
				ID: e.Run.ID + "-" + place, Address: fermata.Address{{Type: fermata.SegmentTool, ID: place}},
				Envelope: fermata.Envelope{Kind: p.kind, Data: json.RawMessage(p.data(place))},
			})
		}
		result.Outcome = waiting
		return result, nil
	}
	got := make(map[string]string)
	for _, a := range e.Answers {
		value := string(a.Data)
		if a.Expired {
			value = "expired"
		}
		got[a.InterruptID[len(e.Run.ID)+1:]] = value
		result.Applied = append(result.Applied, a.InterruptID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, got)
	select {
	case p.called <- struct{}{}:
	default:
	}
	if len(got) != len(places) || len(e.Answers) != len(places) {
		return result, fmt.Errorf("%d answers of %d", len(e.Answers), len(places))
	}
	if p.fails > 0 {
		p.fails--
		return result, errors.New("the connection was lost after the answers arrived")
	}
	output, err := json.Marshal(got)
	result.Outcome = provider.Completed{Output: output}
	return result, err
}

// taken returns the calls so far.
func (p *atOnce) taken() []map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

func anyData(string) string { return `1` }

// decideIn decides the three interrupts in an order, by three people in three channels, and
// returns the last outcome. next returns the process that records an answer.
func decideIn(t *testing.T, p *atOnce, next func() *executor.Executor, key string, order []int) fermata.Outcome {
	t.Helper()
	outcome := began(t, next(), key, "scripted:it", `{}`)
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok || len(waiting.Interrupts) != len(places) {
		t.Fatalf("%#v", outcome)
	}
	calls := len(p.taken())
	for n, i := range order {
		request := word([]string{"ann", "ben", "cat"}[i], key, fmt.Sprint(key, i), waiting.Interrupts[i].ID, fmt.Sprintf(`"%s of %s"`, places[i], key))
		request.Via, request.Wait = []string{"web", "slack", "email"}[n], time.Minute
		outcome = mustRun(t, next(), request)
		if rest, ok := outcome.(fermata.NeedsInput); n < len(order)-1 && (!ok || len(rest.Interrupts) != len(order)-1-n || len(p.taken()) != calls) {
			t.Fatalf("%s, after %d answers: %#v, %d calls", key, n+1, outcome, len(p.taken())-calls)
		}
	}
	return outcome
}

// want is the value at each address.
func want(key string) map[string]string {
	all := make(map[string]string)
	for _, place := range places {
		all[place] = fmt.Sprintf(`"%s of %s"`, place, key)
	}
	return all
}

// Three approvers answer three parallel calls in any order: one call of the provider, with the
// right value at each address.
func TestI2_CollectsAllAnswersBeforeOneResume(t *testing.T) {
	s := memory.NewStore(nil)
	p := newAtOnce("k", anyData)
	e := executorOf(t, s, p, nil)
	random := rand.New(rand.NewPCG(31, 5))
	for n := range testtier.Count(50, 1000, 1000) {
		key, order := fmt.Sprint("order-", n), random.Perm(len(places))
		completed(t, decideIn(t, p, func() *executor.Executor { return e }, key, order))
		calls := p.taken()
		if len(calls) != n+1 || !maps.Equal(calls[n], want(key)) {
			t.Fatalf("%s in the order %v: call %d of %d got %v", key, order, n+1, len(calls), calls[len(calls)-1])
		}
	}
}

// Each answer arrives at another process, on every store, and the first call with all answers
// fails: it is repeated with the same answers.
func TestI2_CollectedAnswersSurviveTheirProcess(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p := newAtOnce("k", anyData)
		p.fails = 1
		next := func() *executor.Executor {
			e := executorOf(t, s, p, nil)
			e.StartWorkers()
			return e
		}
		completed(t, decideIn(t, p, next, "processes", []int{2, 0, 1}))
		if calls := p.taken(); len(calls) != 2 || !maps.Equal(calls[0], want("processes")) || !maps.Equal(calls[1], calls[0]) {
			t.Errorf("%v", calls)
		}
	})
}

// People decide at the same time. The executor waits for the last of them.
func TestI2_CollectsAnswersOfTheSameMoment(t *testing.T) {
	s := memory.NewStore(nil)
	p := newAtOnce("k", anyData)
	e := executorOf(t, s, p, nil)
	e.StartWorkers()
	for n := range 50 {
		key := fmt.Sprint("moment-", n)
		waiting := began(t, e, key, "scripted:it", `{}`).(fermata.NeedsInput)
		var all sync.WaitGroup
		for i, q := range waiting.Interrupts {
			all.Go(func() {
				request := word("ann", key, fmt.Sprint(key, i), q.ID, fmt.Sprintf(`"%s of %s"`, places[i], key))
				request.Wait = -1
				if _, err := e.Run(t.Context(), request); err != nil && !errors.Is(err, executor.ErrPending) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		last := word("ann", key, key+"0", waiting.Interrupts[0].ID, fmt.Sprintf(`"%s of %s"`, places[0], key))
		last.Wait = time.Minute
		mustRun(t, e, last)
		for len(p.taken()) == n {
			if _, err := e.Run(t.Context(), last); err != nil {
				t.Fatal(err)
			}
		}
		if calls := p.taken(); !maps.Equal(calls[n], want(key)) {
			t.Fatalf("%v", calls[n])
		}
	}
}

// With partial resume each answer is delivered at once.
func TestExecute_PartialResumeDeliversEachAnswer(t *testing.T) {
	p := newAtOnce("k", anyData)
	p.partial = true
	e := executorOf(t, memory.NewStore(nil), p, nil)
	waiting := began(t, e, "partial", "scripted:it", `{}`).(fermata.NeedsInput)
	request := word("ann", "partial", "r", waiting.Interrupts[1].ID, `"x"`)
	request.Wait = -1
	if _, err := e.Run(t.Context(), request); err != nil && !errors.Is(err, executor.ErrPending) {
		t.Fatal(err)
	}
	<-p.called
	if calls := p.taken(); len(calls[0]) != 1 || calls[0]["middle"] != `"x"` {
		t.Errorf("%v", calls)
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A rule answers one of three approvals. Its answer is delivered with those of people.
func TestI2_CollectsAnswersOfRules(t *testing.T) {
	approval := func(place string) string {
		request := fermata.ApprovalRequest{Action: place, Args: json.RawMessage(`{}`), Fixed: true}
		digest, err := request.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: request.Args})
		noError(t, err)
		request.Digest = digest
		data, err := json.Marshal(request)
		noError(t, err)
		return string(data)
	}
	p := newAtOnce("approval", approval)
	e := executorOf(t, memory.NewStore(nil), p, func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, `
default: ask
defaults: {ask: {groups: [{from: ["group:dba"]}], deadline: 24h}}
rules:
- {id: middle-is-free, when: 'req.tool == "middle"', then: allow}
`)
		c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "ben"}}
	})
	waiting := began(t, e, "rules", "scripted:it", `{}`).(fermata.NeedsInput)
	if len(waiting.Interrupts) != 2 || len(p.taken()) != 0 {
		t.Fatalf("%#v", waiting)
	}
	var outcome fermata.Outcome
	for i, verb := range []string{"approve", "reject"} {
		request := word("ann", "rules", fmt.Sprint("r", i), waiting.Interrupts[i].ID, fmt.Sprintf(`{"verb":%q}`, verb))
		request.Via, request.Auth = "test", requirement.AuthSSO
		outcome = mustRun(t, e, request)
	}
	completed(t, outcome)
	calls := p.taken()
	if len(calls) != 1 {
		t.Fatalf("%v", calls)
	}
	for place, verb := range map[string]fermata.Verb{"left": fermata.VerbApprove, "middle": fermata.VerbApprove, "right": fermata.VerbReject} {
		var decision fermata.Decision
		if err := json.Unmarshal([]byte(calls[0][place]), &decision); err != nil || decision.Verb != verb {
			t.Errorf("%s: %s, %v", place, calls[0][place], err)
		}
	}
}
