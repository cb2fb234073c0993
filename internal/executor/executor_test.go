package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// The content-review graph of the seed, in short.
type review struct {
	Topic   string   `json:"topic"`
	Draft   string   `json:"draft,omitempty"`
	Verdict string   `json:"verdict,omitempty"`
	Log     []string `json:"log,omitempty"`
}

type verdict struct {
	Action   string `json:"action"`
	Feedback string `json:"feedback,omitempty"`
}

func (v verdict) Validate() error {
	switch v.Action {
	case "approve", "revise", "reject":
		return nil
	}
	return fmt.Errorf("%q is not an action", v.Action)
}

var contentReview = fermata.NewKind[string, verdict]("content-review")

// world is the outside world of these tests.
type world struct {
	published atomic.Int64
	entered   atomic.Int64
	hold      chan struct{} // if not nil, a publisher waits for it
}

func reviewFlow(t *testing.T, w *world) *graph.Flow[review] {
	t.Helper()
	g := graph.New[review]("content-review")
	g.Node("draft", func(_ context.Context, s review) (review, error) {
		s.Draft = "about " + s.Topic
		return s, nil
	})
	g.Node("human_review", func(ctx context.Context, s review) (review, error) {
		v, err := contentReview.Ask(ctx, s.Draft)
		if err != nil {
			return s, err
		}
		s.Verdict = v.Action
		if v.Action == "revise" {
			s.Draft += ", " + v.Feedback
		}
		return s, nil
	})
	g.Node("publish", func(ctx context.Context, s review) (review, error) {
		w.entered.Add(1)
		if w.hold != nil {
			select {
			case <-w.hold:
			case <-ctx.Done():
				return s, ctx.Err()
			}
		}
		w.published.Add(1)
		s.Log = append(s.Log, "published: "+s.Draft)
		return s, nil
	})
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "human_review")
	g.Branch("human_review", func(s review) string {
		switch s.Verdict {
		case "approve":
			return "publish"
		case "revise":
			return "human_review"
		}
		return graph.End
	}, "publish", "human_review", graph.End)
	g.Edge("publish", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

func newExecutor(t *testing.T, runs *memory.Store, w *world, change func(*executor.Config)) *executor.Executor {
	t.Helper()
	return executorOf(t, runs, reviewProvider(t, w), change)
}

func reviewProvider(t *testing.T, w *world) provider.Provider {
	t.Helper()
	p, err := inproc.New(inproc.Flow(reviewFlow(t, w), inproc.FlowConfig[review]{Content: func(s review) string { return s.Draft }}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func start(t *testing.T, e *executor.Executor, key string) fermata.NeedsInput {
	t.Helper()
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: key, Graph: "inproc:content-review", Input: json.RawMessage(`{"topic":"tea"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return waits(t, outcome)
}

func waits(t *testing.T, outcome fermata.Outcome) fermata.NeedsInput {
	t.Helper()
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok {
		t.Fatalf("the run does not wait: %#v", outcome)
	}
	return waiting
}

func answer(key, resumeID, action string) executor.RunRequest {
	return executor.RunRequest{Account: "acme", StateKey: key, ResumeID: resumeID, Actor: "ann", Value: json.RawMessage(fmt.Sprintf(`{"action":%q,"feedback":"shorter"}`, action))}
}

// The first acceptance check of the specification.
func TestRun_StartInterruptReviseInterruptApproveFinal(t *testing.T) {
	w := new(world)
	e := newExecutor(t, memory.NewStore(nil), w, nil)
	first := start(t, e, "demo-1")
	if len(first.Interrupts) != 1 || first.StateKey != "demo-1" || first.Interrupts[0].Kind != "content-review" || string(first.Interrupts[0].Data) != `"about tea"` {
		t.Fatalf("the run asks %+v", first)
	}
	outcome, err := e.Run(t.Context(), answer("demo-1", "1", "revise"))
	if err != nil {
		t.Fatal(err)
	}
	second := waits(t, outcome)
	if string(second.Interrupts[0].Data) != `"about tea, shorter"` || second.Interrupts[0].ID == first.Interrupts[0].ID {
		t.Fatalf("the run then asks %+v", second)
	}
	if outcome, err = e.Run(t.Context(), answer("demo-1", "2", "approve")); err != nil {
		t.Fatal(err)
	}
	done, ok := outcome.(fermata.Completed)
	if !ok || done.Content != "about tea, shorter" || w.published.Load() != 1 {
		t.Errorf("outcome %#v, published %d times", outcome, w.published.Load())
	}
}

// The second acceptance check: a resume id is applied once.
func TestI3_RepeatedResumeReturnsTheSameOutcomeWithoutExecution(t *testing.T) {
	w := new(world)
	e := newExecutor(t, memory.NewStore(nil), w, nil)
	start(t, e, "demo-1")
	first, err := e.Run(t.Context(), answer("demo-1", "1", "revise"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), answer("demo-1", "2", "approve")); err != nil {
		t.Fatal(err)
	}
	// after another gate was passed
	again, err := e.Run(t.Context(), answer("demo-1", "1", "revise"))
	if err != nil {
		t.Fatal(err)
	}
	if waits(t, again).Interrupts[0].ID != waits(t, first).Interrupts[0].ID || w.published.Load() != 1 {
		t.Errorf("first %#v, then %#v", first, again)
	}
	if _, err := e.Run(t.Context(), answer("demo-1", "1", "approve")); !errors.Is(err, executor.ErrResumeIDReused) {
		t.Errorf("the same id with another answer: %v", err)
	}
}

// noClaim is a store on which a process records a decision and dies before it continues the run.
type noClaim struct{ *memory.Store }

func (noClaim) Claim(context.Context, store.Claim) (*store.ClaimedRun, error) { return nil, nil }

func (n noClaim) Decide(ctx context.Context, decision store.Decision) (store.DecisionReceipt, error) {
	decision.Claim = nil
	return n.Store.Decide(ctx, decision)
}

// A client repeats an old resume while the run is ready because of a later decision.
func TestI3_RepeatedResumeReturnsItsOutcomeWhileTheRunIsReady(t *testing.T) {
	runs, w := memory.NewStore(nil), new(world)
	e := newExecutor(t, runs, w, nil)
	start(t, e, "demo-1")
	first := waits(t, mustRun(t, e, answer("demo-1", "1", "revise")))
	dead := newExecutor(t, runs, w, func(c *executor.Config) { c.Store = noClaim{runs} })
	later := answer("demo-1", "2", "approve")
	later.Wait = -1
	if _, err := dead.Run(t.Context(), later); !errors.Is(err, executor.ErrPending) {
		t.Fatal(err)
	}
	if again := waits(t, mustRun(t, e, answer("demo-1", "1", "revise"))); again.Interrupts[0].ID != first.Interrupts[0].ID {
		t.Errorf("the repeated resume returns %+v", again)
	}
	completed(t, mustRun(t, e, answer("demo-1", "2", "approve"))) // the later decision is not lost
}

// A client waits for the outcome of a resume. Between two polls the run ends the execution and then
// completes. The final outcome is not the outcome of the resume.
func TestI3_SlowPollReturnsTheOutcomeOfItsResume(t *testing.T) {
	for name, ends := range map[string]func(*testing.T, *executor.Executor){
		"completed": func(t *testing.T, e *executor.Executor) {
			completed(t, mustRun(t, e, answer("demo-1", "2", "approve")))
		},
		"cancelled": func(t *testing.T, e *executor.Executor) {
			if err := e.Cancel(t.Context(), "acme", "demo-1", desk.From{}); err != nil {
				t.Fatal(err)
			}
		},
		"superseded": func(t *testing.T, e *executor.Executor) {
			mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "demo-1", Graph: "inproc:content-review", Input: json.RawMessage(`{"topic":"coffee"}`), Supersede: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			runs, w := memory.NewStore(nil), new(world)
			e := newExecutor(t, runs, w, nil)
			start(t, e, "demo-1")
			between := bar(noClaim{runs}, "Get")
			slow := newExecutor(t, runs, w, func(c *executor.Config) { c.Store = between })
			heard := make(chan fermata.Outcome)
			go func() {
				outcome, err := slow.Run(t.Context(), answer("demo-1", "1", "revise"))
				if err != nil {
					t.Error(err)
				}
				heard <- outcome
			}()
			<-between.reached
			first := waits(t, mustRun(t, e, answer("demo-1", "1", "revise")))
			ends(t, e)
			close(between.open)
			if late := waits(t, <-heard); late.Interrupts[0].ID != first.Interrupts[0].ID {
				t.Errorf("the slow poll returns %+v, others received %+v", late, first)
			}
		})
	}
}

func TestI1_ConcurrentDecisionsOneCounts(t *testing.T) {
	w := new(world)
	e := newExecutor(t, memory.NewStore(nil), w, nil)
	start(t, e, "demo-1")
	var accepted, refused atomic.Int64
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			request := answer("demo-1", fmt.Sprint(n), "approve")
			request.Actor = fmt.Sprint("person-", n)
			_, err := e.Run(t.Context(), request)
			if r, ok := errors.AsType[*executor.RefusedError](err); ok && (r.Result == store.ResultAlreadyDecided && r.By != "" || r.Result == store.ResultWithdrawn) {
				refused.Add(1)
			} else if err == nil {
				accepted.Add(1)
			} else {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if accepted.Load() != 1 || refused.Load() != 7 || w.published.Load() != 1 {
		t.Errorf("%d accepted, %d refused, published %d times", accepted.Load(), refused.Load(), w.published.Load())
	}
}

// The fourth acceptance check: a run is taken over from a dead owner, and an owner that resumes
// late can do no harm.
func TestI16_RunIsTakenOverAfterTheLeaseEnds(t *testing.T) {
	runs := memory.NewStore(nil)
	dead := &world{hold: make(chan struct{})}
	first := newExecutor(t, runs, dead, func(c *executor.Config) { c.Lease, c.Wait = time.Hour, time.Millisecond })
	deadline := time.Now().Add(time.Minute)
	if _, err := first.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "demo-1", Graph: "inproc:content-review", Input: json.RawMessage(`{"topic":"tea"}`)}); err != nil && !errors.Is(err, executor.ErrPending) {
		t.Fatal(err)
	}
	for {
		_, err := first.Run(t.Context(), answer("demo-1", "1", "approve"))
		if errors.Is(err, executor.ErrPending) && dead.entered.Load() == 1 {
			break // the owner is stuck while it publishes
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	expire(t, runs, "demo-1")
	w := new(world)
	second := newExecutor(t, runs, w, nil)
	second.StartWorkers()
	outcome, err := second.Run(t.Context(), answer("demo-1", "1", "approve"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := outcome.(fermata.Completed); !ok || w.published.Load() != 1 {
		t.Errorf("outcome %#v, published %d times", outcome, w.published.Load())
	}
	close(dead.hold) // the old owner continues
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	run, err := runs.Get(t.Context(), "acme", "demo-1")
	if err != nil || run.Status != store.StatusCompleted {
		t.Errorf("the old owner made the run %s, %v", run.Status, err)
	}
}

// expire ends the lease of the current owner, as the passage of time would.
func expire(t *testing.T, runs *memory.Store, key string) {
	t.Helper()
	run, err := runs.Get(t.Context(), "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	if err := runs.Renew(t.Context(), store.Lease{Account: "acme", Run: run.ID, Fence: run.Fence}, -time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestI13_InvalidAnswerChangesNothing(t *testing.T) {
	e := newExecutor(t, memory.NewStore(nil), new(world), nil)
	first := start(t, e, "demo-1")
	for name, value := range map[string]string{
		"wrong type":   `"approve"`,
		"unknown verb": `{"action":"maybe"}`,
		"two keys":     `{"action":"reject","Action":"approve"}`,
		"no JSON":      `{`,
		"extra field":  `{"action":"approve","admin":true}`,
		"too large":    fmt.Sprintf(`{"action":"approve","feedback":%q}`, make([]byte, limits.MaxAnswerBytes)),
	} {
		request := answer("demo-1", name, "")
		request.Value = json.RawMessage(value)
		_, err := e.Run(t.Context(), request)
		_, unfit := errors.AsType[*fermata.AnswerError](err)
		if !unfit && !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	outcome, err := e.Run(t.Context(), answer("demo-1", "1", "revise"))
	if err != nil || waits(t, outcome).Interrupts[0].ID == first.Interrupts[0].ID {
		t.Errorf("a valid answer after that: %#v, %v", outcome, err)
	}
}

func TestRun_InvalidStartIsRejected(t *testing.T) {
	e := newExecutor(t, memory.NewStore(nil), new(world), nil)
	start(t, e, "demo-1")
	for name, c := range map[string]struct {
		request executor.RunRequest
		want    error
	}{
		"unknown provider":       {executor.RunRequest{Graph: "langgraph:x", Input: json.RawMessage(`{}`)}, executor.ErrGraphNotFound},
		"unknown graph":          {executor.RunRequest{Graph: "inproc:x", Input: json.RawMessage(`{}`)}, executor.ErrGraphNotFound},
		"invalid JSON":           {executor.RunRequest{Graph: "inproc:content-review", Input: json.RawMessage(`{`)}, executor.ErrInvalid},
		"too large":              {executor.RunRequest{Graph: "inproc:content-review", Input: make([]byte, executor.MaxInput+1)}, executor.ErrInvalid},
		"in use":                 {executor.RunRequest{Account: "acme", StateKey: "demo-1", Graph: "inproc:content-review", Input: json.RawMessage(`{"topic":"coffee"}`)}, executor.ErrStateKeyInUse},
		"unknown key":            {answer("demo-2", "1", "approve"), executor.ErrRunNotFound},
		"key of another account": {executor.RunRequest{Account: "other", StateKey: "demo-1", ResumeID: "1", Value: json.RawMessage(`{}`)}, executor.ErrRunNotFound},
		"no answer":              {executor.RunRequest{Account: "acme", StateKey: "demo-1", ResumeID: "1"}, executor.ErrInvalid},
	} {
		if _, err := e.Run(t.Context(), c.request); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again := start(t, e, "demo-1"); again.Interrupts[0].Kind != "content-review" {
		t.Errorf("the same start again: %+v", again)
	}
}
