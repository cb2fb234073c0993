package langgraph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/langgraph"
)

// ledger does the work of the graphs, and counts it.
type ledger struct {
	*httptest.Server
	mu    sync.Mutex
	done  []string
	fails int // the next calls fail
}

func newLedger(t testing.TB) *ledger {
	l := new(ledger)
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.fails > 0 {
			l.fails--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		l.done = append(l.done, strings.TrimPrefix(request.URL.Path, "/"))
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *ledger) work() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.done))
}

// relay passes calls on to a LangGraph server, and remembers them.
type relay struct {
	*httptest.Server
	target string
	mu     sync.Mutex
	bodies []string // of started runs
	// cut drops the response of the next started run after the server has received it.
	cut bool
}

func newRelay(t testing.TB, target string) *relay {
	r := &relay{target: target}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *relay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	starts := request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/runs/stream")
	r.mu.Lock()
	cut := starts && r.cut
	if starts {
		r.bodies, r.cut = append(r.bodies, string(body)), false
	}
	r.mu.Unlock()
	out, err := http.NewRequestWithContext(request.Context(), request.Method, r.target+request.URL.RequestURI(), strings.NewReader(string(body)))
	if err != nil {
		panic(err)
	}
	out.Header = request.Header.Clone()
	response, err := http.DefaultClient.Do(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = response.Body.Close() }()
	if cut {
		panic(http.ErrAbortHandler)
	}
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	flusher := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			_, _ = w.Write(buffer[:n])
			_ = flusher.Flush()
		}
		if err != nil {
			return
		}
	}
}

// resumes returns the answers that were sent, in order.
func (r *relay) resumes() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range r.bodies {
		var sent struct {
			Command struct {
				Resume map[string]json.RawMessage `json:"resume"`
			} `json:"command"`
			Strategy string `json:"multitask_strategy"`
		}
		if json.Unmarshal([]byte(body), &sent) != nil || sent.Strategy != "reject" {
			list = append(list, "bad: "+body)
		}
		var values []string
		for _, value := range sent.Command.Resume {
			values = append(values, string(value))
		}
		if len(values) > 0 {
			slices.Sort(values)
			list = append(list, strings.Join(values, " "))
		}
	}
	return list
}

// agent is an executor in front of one assistant of the shared server.
type agent struct {
	t *testing.T
	*executor.Executor
	store  store.Store
	relay  *relay
	ledger *ledger
	graph  string
	resume int
}

func newAgent(t *testing.T, graph string) *agent {
	t.Helper()
	return newAgentWith(t, graph, func(*langgraph.Config) {})
}

// newAgentWith is newAgent with another configuration of the provider.
func newAgentWith(t *testing.T, graph string, change func(*langgraph.Config)) *agent {
	t.Helper()
	a := &agent{t: t, store: memory.NewStore(nil), relay: newRelay(t, sharedPeer(t)), ledger: newLedger(t), graph: graph}
	at, _ := json.Marshal(a.ledger.URL)
	p := provided(t, a.relay.URL, func(c *langgraph.Config) {
		c.Assistants[graph] = langgraph.Assistant{Configurable: map[string]json.RawMessage{"work_url": at}}
		change(c)
	})
	sealer, err := seal.New(seal.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	a.Executor, err = executor.New(executor.Config{Store: a.store, Providers: []provider.Provider{p}, Sealer: sealer, Poll: 5 * time.Millisecond, Wait: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	a.StartWorkers()
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *agent) start(input string) fermata.Outcome {
	a.t.Helper()
	outcome, err := a.Run(a.t.Context(), executor.RunRequest{Account: "acme", StateKey: "run", Graph: "langgraph:" + a.graph, Input: json.RawMessage(input)})
	if err != nil {
		a.t.Fatal(err)
	}
	return outcome
}

// waits returns the interrupts of an outcome.
func (a *agent) waits(outcome fermata.Outcome, n int) []fermata.OpenInterrupt {
	a.t.Helper()
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok || len(waiting.Interrupts) != n {
		a.t.Fatalf("it does not wait for %d interrupts: %+v", n, outcome)
	}
	return waiting.Interrupts
}

func (a *agent) answer(i fermata.OpenInterrupt, value string) fermata.Outcome {
	a.t.Helper()
	a.resume++
	outcome, err := a.Run(a.t.Context(), executor.RunRequest{
		Account: "acme", StateKey: "run", ResumeID: fmt.Sprint("resume ", a.resume), Actor: "ann", Targets: map[string]executor.Answer{i.ID: {Value: json.RawMessage(value)}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return outcome
}

// completed waits until the run is completed, and returns its outcome.
func (a *agent) completed() fermata.Outcome {
	a.t.Helper()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-every.C {
		view, err := a.GetRun(a.t.Context(), "acme", "run")
		if err != nil {
			a.t.Fatal(err)
		}
		if done, ok := view.Outcome.(fermata.Completed); ok {
			return done
		}
	}
	a.t.Fatal("it is not completed within a minute")
	return nil
}

// output decodes the values of a completed run.
func (a *agent) output(outcome fermata.Outcome, into any) {
	a.t.Helper()
	done, ok := outcome.(fermata.Completed)
	if !ok {
		a.t.Fatalf("it is not completed: %+v", outcome)
	}
	if err := json.Unmarshal(done.Output, into); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) wantWork(want ...string) {
	a.t.Helper()
	if got := a.ledger.work(); !slices.Equal(got, want) {
		a.t.Errorf("the work was %q, want %q", got, want)
	}
}

const threeCalls = `{"calls":[{"name":"pay","args":{"n":1,"to":"ann"}},{"name":"pay","args":{"n":2,"to":"bob"}},{"name":"drop","args":{"n":3,"to":"tmp"}}]}`

// call is an executed or rejected call in the output of the graphs tools and inbox.
type call struct {
	Name     string
	Args     struct{ N int }
	By       string
	Rejected string
	Text     string
}

// Three people answer the calls of one model turn in any order. The agent gets one answer, with
// each decision in its place.
func TestLangGraph_MiddlewareCallsAreAnsweredInAnyOrderWithOneResume(t *testing.T) {
	answers := map[string]string{`{"n":1,"to":"ann"}`: `{"verb":"approve"}`, `{"n":2,"to":"bob"}`: `{"verb":"approve","args":{"n":7,"to":"bob"}}`, `{"n":3,"to":"tmp"}`: `{"verb":"reject","reason":"too early"}`}
	for round := range 5 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			a := newAgent(t, "tools")
			open := a.waits(a.start(threeCalls), 3)
			rand.Shuffle(len(open), func(i, k int) { open[i], open[k] = open[k], open[i] })
			var outcome fermata.Outcome
			for n, i := range open {
				var asked fermata.ApprovalRequest
				if err := json.Unmarshal(i.Data, &asked); err != nil || i.Kind != fermata.Approval.Name() || asked.Fixed || asked.Summary != "Call "+asked.Action {
					t.Fatalf("it asks %+v, %v", i, err)
				}
				if outcome = a.answer(i, answers[string(asked.Args)]); n < 2 {
					a.waits(outcome, 2-n)
					a.wantWork()
				}
			}
			var done struct{ Results []call }
			a.output(outcome, &done)
			want := []call{{Name: "pay", Args: struct{ N int }{1}, By: "approve"}, {Name: "pay", Args: struct{ N int }{7}, By: "edit"}, {Name: "drop", Rejected: "too early"}}
			if !slices.Equal(done.Results, want) {
				t.Errorf("the agent did %+v", done.Results)
			}
			a.wantWork("pay-1", "pay-7")
			sent := `{"decisions":[{"type":"approve"},{"edited_action":{"args":{"n":7,"to":"bob"},"name":"pay"},"type":"edit"},{"message":"too early","type":"reject"}]}`
			if got := a.relay.resumes(); !slices.Equal(got, []string{sent}) {
				t.Errorf("it sent %q", got)
			}
		})
	}
}

func TestLangGraph_InboxCallsAreAnsweredByInterruptID(t *testing.T) {
	a := newAgent(t, "inbox")
	open := a.waits(a.start(threeCalls), 3)
	for _, i := range open {
		var asked fermata.ApprovalRequest
		if err := json.Unmarshal(i.Data, &asked); err != nil || asked.Summary != "Call **"+asked.Action+"**" {
			t.Fatalf("it asks %s, %v", i.Data, err)
		}
	}
	a.waits(a.answer(open[1], `{"verb":"approve","args":{"n":8,"to":"bob"}}`), 2)
	a.wantWork("pay-8")
	a.waits(a.answer(open[2], `{"verb":"reject","reason":"no"}`), 1)
	var done struct{ Results []call }
	a.output(a.answer(open[0], `{"verb":"approve"}`), &done)
	want := []call{{Name: "pay", Args: struct{ N int }{1}, By: "accept"}, {Name: "pay", Args: struct{ N int }{8}, By: "edit"}, {Name: "drop", By: "response", Text: "Rejected: no"}}
	if !slices.Equal(done.Results, want) {
		t.Errorf("the agent did %+v", done.Results)
	}
	a.wantWork("pay-1", "pay-8")
}

func TestLangGraph_EditedArgumentsMustHaveTheTypesOfTheOriginals(t *testing.T) {
	a := newAgent(t, "inbox")
	open := a.waits(a.start(threeCalls), 3)
	for _, args := range []string{`{"n":"8","to":"bob"}`, `{"n":8,"to":"bob","admin":true}`, `[]`} {
		_, err := a.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "run", ResumeID: args, Actor: "ann", Targets: map[string]executor.Answer{open[1].ID: {Value: json.RawMessage(`{"verb":"approve","args":` + args + `}`)}}})
		if err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
	a.wantWork()
}

func TestLangGraph_SubgraphQuestionIsAnsweredWithText(t *testing.T) {
	a := newAgent(t, "parent")
	open := a.waits(a.start(`{"to":"ann"}`), 1)
	if at := open[0].Address.String(); at != "runnable:parent;node:letter;node:write" || open[0].Kind != fermata.PlainKind {
		t.Errorf("%s asks %s", at, open[0].Kind)
	}
	var done struct{ Text string }
	if a.output(a.answer(open[0], `"Dear Ann"`), &done); done.Text != "Dear Ann" {
		t.Errorf("the letter is %q", done.Text)
	}
}

// Two questions of one node have the same id and the same text. Each gets its own answer, also
// false.
func TestLangGraph_SuccessiveQuestionsOfOneNodeAreDistinct(t *testing.T) {
	a := newAgent(t, "twice")
	first := a.waits(a.start(`{}`), 1)[0]
	second := a.waits(a.answer(first, `false`), 1)[0]
	if first.ID == second.ID {
		t.Fatal("both questions have the same id")
	}
	var done struct{ Answers []bool }
	if a.output(a.answer(second, `true`), &done); !slices.Equal(done.Answers, []bool{false, true}) {
		t.Errorf("the answers are %v", done.Answers)
	}
}

// A response that is lost after the server has received the answer does not lead to a second one.
// The next question of the node has the same id, and would get it.
func TestLangGraph_LostResponseIsNotSentAgain(t *testing.T) {
	a := newAgent(t, "twice")
	first := a.waits(a.start(`{}`), 1)[0]
	a.relay.mu.Lock()
	a.relay.cut = true
	a.relay.mu.Unlock()
	second := a.waits(a.answer(first, `false`), 1)[0]
	if first.ID == second.ID {
		t.Fatal("both questions have the same id")
	}
	if got := a.relay.resumes(); !slices.Equal(got, []string{"false"}) {
		t.Errorf("it sent %q", got)
	}
	var done struct{ Answers []bool }
	if a.output(a.answer(second, `true`), &done); !slices.Equal(done.Answers, []bool{false, true}) {
		t.Errorf("the answers are %v", done.Answers)
	}
}

func TestLangGraph_BreakpointIsAHoldWhoseStateCanBeEdited(t *testing.T) {
	for answer, want := range map[string]int{"null": 3, `{"amount":50}`: 50} {
		t.Run(answer, func(t *testing.T) {
			a := newAgent(t, "breakpoint")
			open := a.waits(a.start(`{"amount":2}`), 1)
			if open[0].Kind != "hold" || !strings.Contains(string(open[0].Data), `"amount":3`) {
				t.Fatalf("it asks %+v", open[0])
			}
			a.wantWork()
			var done struct{ Sent int }
			if a.output(a.answer(open[0], answer), &done); done.Sent != want {
				t.Errorf("it sent %d, want %d", done.Sent, want)
			}
			a.wantWork("send")
		})
	}
}

// A breakpoint is approved or rejected like an action, and the state of the graph says by whom.
func TestLangGraph_BreakpointRecordsTheGrant(t *testing.T) {
	grant := func(c *langgraph.Config) { c.GrantField, c.ApproverField = "approval", "approver" }
	for answer, want := range map[string]int{`{"verb":"approve"}`: 3, `{"verb":"approve","args":{"amount":50,"approver":"eve"}}`: 50, `{"verb":"approve","args":{"amount":3,"sent":0,"approval":"","approver":""}}`: 3} {
		t.Run(answer, func(t *testing.T) {
			a := newAgentWith(t, "breakpoint", grant)
			var done struct {
				Sent               int
				Approval, Approver string
			}
			a.output(a.answer(a.waits(a.start(`{"amount":2}`), 1)[0], answer), &done)
			if done.Sent != want || done.Approval != "granted" || done.Approver != "ann" {
				t.Errorf("got %+v", done)
			}
			a.wantWork("send")
		})
	}
	a := newAgentWith(t, "breakpoint", grant)
	out := a.answer(a.waits(a.start(`{"amount":2}`), 1)[0], `{"verb":"reject","reason":"too early"}`)
	if failed, ok := out.(fermata.Failed); !ok || failed.Code != "rejected" {
		t.Errorf("got %#v", out)
	}
	a.wantWork()
}

// Another client continues the thread while people decide: their answer is not used.
func TestLangGraph_ThreadContinuedElsewhereAsksAgain(t *testing.T) {
	a := newAgent(t, "content_review")
	first := a.waits(a.start(`{"topic":"tea"}`), 1)[0]
	elsewhere(t, a.relay.target, "content_review", `{"command":{"resume":{"action":"revise","feedback":"more"}}}`)
	second := a.waits(a.answer(first, `{"action":"approve"}`), 1)[0]
	if !strings.Contains(string(second.Data), "draft-2") {
		t.Errorf("it asks %s", second.Data)
	}
	a.wantWork("draft")
	var done struct{ Published string }
	if a.output(a.answer(second, `{"action":"approve"}`), &done); done.Published != "A text about tea, more" {
		t.Errorf("%q was published", done.Published)
	}
}

// elsewhere starts a run in the newest paused thread of an assistant, as another client would.
func elsewhere(t *testing.T, url, graph, body string) {
	t.Helper()
	var threads []struct {
		ID string `json:"thread_id"`
	}
	post(t, url+"/threads/search", `{"status":"interrupted","metadata":{"graph_id":"`+graph+`"},"limit":1}`, &threads)
	runElsewhere(t, url, graph, threads[0].ID, body)
}

// startElsewhere starts a new thread as another client would, and returns its id.
func startElsewhere(t *testing.T, url, graph, body string) string {
	t.Helper()
	var thread struct {
		ID string `json:"thread_id"`
	}
	post(t, url+"/threads", `{}`, &thread)
	runElsewhere(t, url, graph, thread.ID, body)
	return thread.ID
}

func runElsewhere(t *testing.T, url, graph, thread, body string) {
	t.Helper()
	var result any
	post(t, url+"/threads/"+thread+"/runs/wait", strings.Replace(body, "{", `{"assistant_id":"`+graph+`",`, 1), &result)
}

func post(t *testing.T, url, body string, into any) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", response.StatusCode, err)
	}
}

func TestLangGraph_FailedNodeIsRetriedFromItsCheckpoint(t *testing.T) {
	a := newAgent(t, "content_review")
	open := a.waits(a.start(`{"topic":"tea"}`), 1)
	a.ledger.mu.Lock()
	a.ledger.fails = 1
	a.ledger.mu.Unlock()
	failed, ok := a.answer(open[0], `{"action":"approve"}`).(fermata.Failed)
	if !ok || failed.Code != "agent_failed" || strings.Contains(failed.Message, "publish") {
		t.Fatalf("it returned %+v", failed)
	}
	if err := a.Retry(t.Context(), "acme", "run", desk.From{Actor: desk.PersonActor("ops", "")}); err != nil {
		t.Fatal(err)
	}
	outcome := a.completed()
	var done struct{ Published string }
	if a.output(outcome, &done); done.Published != "A text about tea" {
		t.Errorf("%q was published", done.Published)
	}
	a.wantWork("draft", "publish")
}

// Another client has started the thread, and continues it after its run in Fermata has ended.
func TestLangGraph_PausedThreadIsAdopted(t *testing.T) {
	a := newAgent(t, "content_review")
	thread := startElsewhere(t, a.relay.target, "content_review", `{"input":{"topic":"adopted"}}`)
	find := func() (found []langgraph.Paused) {
		t.Helper()
		paused, err := langgraph.ListPaused(t.Context(), langgraph.Config{URL: a.relay.target})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(fmt.Sprint(paused), thread) {
			t.Error("the thread id is visible")
		}
		return paused
	}
	paused := find()
	if len(paused) != 1 || paused[0].Graph != "content_review" {
		t.Fatalf("the paused threads are %+v", paused)
	}
	outcome := a.start(string(paused[0].Input))
	open := a.waits(outcome, 1)
	if !strings.Contains(string(open[0].Data), "A text about adopted") || len(find()) != 0 {
		t.Fatalf("it asks %s", open[0].Data)
	}
	open = a.waits(a.answer(open[0], `{"action":"revise","feedback":"more"}`), 1)
	if again := find(); len(again) != 0 {
		t.Errorf("it could be adopted twice: %+v", again)
	}
	var done struct{ Published string }
	if a.output(a.answer(open[0], `{"action":"approve"}`), &done); done.Published != "A text about adopted, more" {
		t.Errorf("%q was published", done.Published)
	}
	a.wantWork("publish") // the draft was made before
	head, err := a.store.AuditHead(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := a.store.AuditLines(t.Context(), "acme", 0, int(head.Seq))
	if err != nil {
		t.Fatal(err)
	}
	adopted := 0
	for _, line := range lines {
		if strings.Contains(string(line.Raw), thread) {
			t.Error("the thread id is in the audit log")
		}
		if strings.Contains(string(line.Raw), `"adopted":true`) && strings.Contains(string(line.Raw), `"run.started"`) {
			adopted++
		}
	}
	if adopted != 1 {
		t.Errorf("%d lines say that the run was adopted", adopted)
	}
}

func TestLangGraph_UnknownAdoptionFails(t *testing.T) {
	a := newAgent(t, "content_review")
	failed, ok := a.start(`{"fermata_adopt":"00000000000000000000000000000000"}`).(fermata.Failed)
	if !ok || failed.Code != "thread_lost" {
		t.Errorf("it returned %+v", failed)
	}
}
