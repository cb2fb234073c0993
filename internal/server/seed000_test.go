package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// The acceptance checks and the invariants of the HTTP contract of "Human-in-the-Loop (HIL)
// Design", in its order.

// Acceptance check: start → interrupt → resume(revise) → interrupt → resume(approve) → final.
func TestSeed000_StartReviseApproveFinal(t *testing.T) {
	s := open(t, nil)
	first := s.chat("agent@acme", startDemo)
	if first.status != 200 || first.field("status") != "needs_input" || first.field("stateKey") != "demo-1" || first.field("interrupt").(map[string]any)["kind"] != "content-review" {
		t.Fatalf("%+v", first)
	}
	second := s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"revise","feedback":"hot"}}`)
	if second.field("status") != "needs_input" || !strings.Contains(second.body, "about tea, hot") {
		t.Fatalf("%+v", second)
	}
	if third := s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"2","resumeValue":{"action":"approve"}}`); third.field("status") != "completed" || third.field("content") != "tea!" {
		t.Fatalf("%+v", third)
	}
}

// Acceptance check: a duplicate resumeId returns the cached outcome.
func TestSeed000_DuplicateResumeIDReturnsTheCachedOutcome(t *testing.T) {
	var executions atomic.Int32
	s := openWith(t, nil, nil, single(t, "counted", func(ctx context.Context, d draft) (draft, error) {
		_, err := review.Ask(ctx, d.Topic)
		if err == nil {
			executions.Add(1)
		}
		return d, err
	}))
	s.chat("agent@acme", `{"graphId":"inproc:counted","stateKey":"c","input":{"topic":"tea"}}`)
	const resume = `{"stateKey":"c","resumeId":"click","resumeValue":{"action":"approve"}}`
	first := s.chat("approver@acme", resume)
	for range 3 {
		if again := s.chat("approver@acme", resume); again.status != 200 || again.body != first.body {
			t.Errorf("%+v", again)
		}
	}
	if first.field("status") != "completed" || executions.Load() != 1 {
		t.Errorf("%+v, executed %d times", first, executions.Load())
	}
}

// Acceptance check: of concurrent resumes with different resumeIds one is recorded, and the others
// are conflicts.
func TestSeed000_ConcurrentResumeIsAConflict(t *testing.T) {
	gate := make(chan struct{})
	s := openWith(t, nil, nil, single(t, "slow", func(ctx context.Context, d draft) (draft, error) {
		if _, err := review.Ask(ctx, d.Topic); err != nil {
			return d, err
		}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return d, ctx.Err()
	}))
	s.chat("agent@acme", `{"graphId":"inproc:slow","stateKey":"c","input":{"topic":"tea"}}`)
	id := s.openRequests("acme")[0].ID
	var group sync.WaitGroup
	got := make([]answer, 4)
	for n := range got {
		group.Go(func() {
			got[n] = s.chat("approver@acme", fmt.Sprintf(`{"stateKey":"c","resumeId":"%d","interruptId":%q,"resumeValue":{"action":"approve"}}`, n, id), "Prefer", "respond-async")
		})
	}
	group.Wait()
	close(gate)
	accepted := 0
	for _, a := range got {
		switch {
		case a.status == 202:
			accepted++
		case a.status != 409 || a.field("code") != "already_decided":
			t.Errorf("%+v", a)
		}
	}
	if accepted != 1 {
		t.Errorf("%d were accepted", accepted)
	}
}

// Acceptance check: the lock of a process that died expires after 30 seconds. Another process then
// finishes the resume, and its resumeId has that outcome.
func TestSeed000_StaleLockIsTakenOver(t *testing.T) {
	t.Parallel() // it waits for workers
	var late atomic.Int64
	shared := memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(late.Load())) })
	reached := make(chan struct{}, 2)
	node := func(blocks bool) graph.Func[draft] {
		return func(ctx context.Context, d draft) (draft, error) {
			if _, err := review.Ask(ctx, d.Topic); err != nil {
				return d, err
			}
			if blocks {
				reached <- struct{}{}
				<-ctx.Done() // this process does no more
				return d, ctx.Err()
			}
			d.Text = "done"
			return d, nil
		}
	}
	use := func(c *executor.Config) { c.Store, c.Lease, c.Wait = shared, 30*time.Second, time.Minute }
	first := openWith(t, nil, use, single(t, "taken", node(true)))
	second := openWith(t, nil, use, single(t, "taken", node(false)))
	first.chat("agent@acme", `{"graphId":"inproc:taken","stateKey":"c","input":{"topic":"tea"}}`)
	const resume = `{"stateKey":"c","resumeId":"1","resumeValue":{"action":"approve"}}`
	if got := first.chat("approver@acme", resume, "Prefer", "respond-async"); got.status != 202 {
		t.Fatalf("%+v", got)
	}
	<-reached
	if got := second.chat("approver@acme", resume, "Prefer", "wait=1"); got.status != 202 {
		t.Fatalf("the lock is not held: %+v", got)
	}
	late.Store(int64(31 * time.Second))
	second.e.StartWorkers()
	if got := second.chat("approver@acme", resume, "Prefer", "wait=60"); got.status != 200 || got.field("status") != "completed" || !strings.Contains(got.body, `"done"`) {
		t.Errorf("%+v", got)
	}
}

// Invariant 3 and 12: the provider's reference, which begins with "ext", is in no response and not
// in the log.
func TestSeed000_ProviderRefIsNeverPublic(t *testing.T) {
	s := open(t, nil)
	all := s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"e","kind":"refund","data":{"order":17}}`).body
	for _, path := range []string{"/runs/e", "/runs", "/answers"} {
		all += s.call("agent@acme", "GET", "/api/v1"+path, "").body
	}
	if all += s.log.String(); strings.Contains(all, "ext_") || strings.Contains(all, `"ref"`) || !strings.Contains(all, "refund") {
		t.Errorf("%s", all)
	}
}

// Invariant 8: each outcome has exactly the fields of its status. The usage also has the names of
// the specification.
func TestSeed000_OutcomeIsADiscriminatedUnion(t *testing.T) {
	s := open(t, nil)
	waiting := s.chat("agent@acme", startDemo)
	done := s.chat("agent@acme", `{"graphId":"inproc:clerk","input":{"query":"hi"}}`)
	for _, absent := range []string{"content", "output", "usage", "error", "message"} {
		if waiting.field(absent) != nil {
			t.Errorf("needs_input has %s", absent)
		}
	}
	usage, _ := done.field("usage").(map[string]any)
	if done.field("interrupt") != nil || done.field("stateKey") != nil || usage["promptTokens"] == nil || usage["promptTokens"] != usage["inputTokens"] || usage["completionTokens"] != usage["outputTokens"] {
		t.Errorf("%+v", done)
	}
	outcome, err := fermata.UnmarshalOutcome([]byte(done.body))
	if completed, ok := outcome.(fermata.Completed); err != nil || !ok || completed.Usage == nil || float64(completed.Usage.OutputTokens) != usage["completionTokens"] {
		t.Errorf("%#v, %v", outcome, err)
	}
}

// Invariant 9: a resumeValue is JSON of at most 64 KiB.
func TestSeed000_ResumeValueIsBoundedJSON(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	for _, value := range []string{`{"action":"approve","feedback":"` + strings.Repeat("x", limits.MaxAnswerBytes) + `"}`, `{action:1}`, `NaN`} {
		if got := s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":`+value+`}`); got.status != 400 {
			t.Errorf("%.30s: %+v", value, got)
		}
	}
	if len(s.openRequests("acme")) != 1 {
		t.Error("the request is not open any more")
	}
}

// largeRequest is a request whose data has more than 256 KiB.
var largeRequest = `{"stateKey":"l","kind":"refund","data":"` + strings.Repeat("x", limits.MaxDataBytes) + `"}`

// Invariant 10: data of an interrupt has at most 256 KiB.
func TestSeed000_DataIsBounded(t *testing.T) {
	s := openWith(t, nil, nil, single(t, "large", func(ctx context.Context, d draft) (draft, error) {
		_, err := review.Ask(ctx, strings.Repeat("x", limits.MaxDataBytes))
		return d, err
	}))
	if got := s.call("agent@acme", "POST", "/api/v1/requests", largeRequest); got.status != 400 || got.field("code") != "data_too_large" {
		t.Errorf("%+v", got)
	}
	if got := s.chat("agent@acme", `{"graphId":"inproc:large","input":{"topic":"tea"}}`); got.field("status") != "error" || got.field("error") != "data_too_large" {
		t.Errorf("%+v", got)
	}
	if got := s.call("agent@acme", "GET", "/api/v1/runs/l", ""); got.status != 404 {
		t.Errorf("a run was created: %+v", got)
	}
}

// A start with invalid input is a problem, and no run is created. A repetition of a start that was
// accepted is not checked again.
func TestSeed000_InvalidInputIsRejectedBeforeTheRunExists(t *testing.T) {
	s := open(t, nil)
	for path, body := range map[string]string{
		"/api/v1/requests": `{"stateKey":"k","kind":"Hold","data":{}}`,
		"/api/v1/ai/chat":  `{"graphId":"inproc:content-review","stateKey":"k","input":{"topic":"` + canary + `","x":1}}`,
	} {
		got := s.call("agent@acme", "POST", path, body)
		if got.status != 400 || got.field("code") != "invalid_input" || strings.Contains(got.body, canary) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	for _, body := range []string{
		`{"graphId":"inproc:clerk","stateKey":"k","input":{}}`, `{"graphId":"inproc:clerk","stateKey":"k","input":{"query":7}}`, `{"graphId":"inproc:content-review","stateKey":"k","input":"tea"}`,
		`{"graphId":"external:request","stateKey":"k","input":{"kind":"refund"}}`, `{"graphId":"external:request","stateKey":"k","input":{"kind":"approval","data":{"action":"drop"}}}`,
	} {
		for _, accept := range []string{"application/json", acceptStream} {
			if got := s.chat("agent@acme", body, "Accept", accept); got.status != 400 || got.field("code") != "invalid_input" {
				t.Errorf("%s: %+v", body, got)
			}
		}
	}
	if got := s.call("agent@acme", "GET", "/api/v1/runs/k", ""); got.status != 404 {
		t.Errorf("a run was created: %+v", got)
	}
}

// A deviation: resumeValue alone does not answer an approval or a gate, because a repeated click
// with a new resumeId would answer the next one. The problem has the id of the open interrupt.
func TestSeed000_ResumeValueDoesNotPassAnApprovalByItself(t *testing.T) {
	s := open(t, nil)
	ask := func(key string) api.Request {
		s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"`+key+`","kind":"approval","data":{"action":"drop","args":{}}}`)
		view := decode[struct{ Requests []api.Request }](t, s.call("agent@acme", "GET", "/api/v1/runs/"+key, ""))
		if len(view.Requests) != 1 {
			t.Fatalf("%+v", view)
		}
		return view.Requests[0]
	}
	resume := func(key, more string) answer {
		return s.chat("approver@acme", `{"stateKey":"`+key+`","resumeId":"for `+key+`","resumeValue":{"verb":"approve"}`+more+`}`)
	}
	a, b, c := ask("a"), ask("b"), ask("c")
	if got := resume("a", ""); got.status != 400 || got.field("code") != "interrupt_id_required" || got.field("interruptId") != a.ID {
		t.Errorf("%+v", got)
	}
	if got := resume("a", `,"interruptId":"`+b.ID+`"`); got.status < 400 {
		t.Errorf("another interrupt: %+v", got)
	}
	if got := resume("b", `,"shown":{"`+b.ID+`":"else"}`); got.status != 412 || got.field("code") != "digest_mismatch" {
		t.Errorf("another digest: %+v", got)
	}
	for _, bad := range []string{`,"shown":{"x":"1","y":"2"}`, `,"interruptId":"` + a.ID + `","resumeTargets":{"` + a.ID + `":{}}`} {
		if got := resume("c", bad); got.status != 400 {
			t.Errorf("%s: %+v", bad, got)
		}
	}
	shown, err := json.Marshal(map[string]string{c.ID: c.Shown})
	if err != nil {
		t.Fatal(err)
	}
	if got := resume("c", `,"shown":`+string(shown)); got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}
	named := s.chat("approver@acme", `{"stateKey":"a","resumeId":"2","interruptId":"`+a.ID+`","resumeValue":{"verb":"approve"}}`)
	if named.field("status") != "completed" {
		t.Errorf("%+v", named)
	}
}

// A run whose request expired has the status of the specification.
func TestSeed000_ExpiredIsAStatus(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) { c.RequestTimeout = time.Nanosecond })
	s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"e","kind":"refund","data":{"order":17}}`)
	s.e.StartWorkers()
	if got := s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"e","kind":"refund","data":{"order":17}}`, "Prefer", "wait=60"); got.field("status") == "completed" {
		t.Fatalf("%+v", got)
	}
	for event, err := range s.e.FollowEvents(t.Context(), "acme", "e", store.Event{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == store.EventFailed {
			break
		}
	}
	if got := s.call("agent@acme", "GET", "/api/v1/runs/e", ""); got.field("status") != "expired" {
		t.Errorf("%+v", got)
	}
	for status, want := range map[string]int{"expired": 1, "failed": 0, "failed,expired": 1, "completed": 0} {
		page := decode[api.Page[api.Run]](t, s.call("agent@acme", "GET", "/api/v1/runs?status="+status, ""))
		if len(page.Items) != want || want == 1 && page.Items[0].Status != "expired" {
			t.Errorf("%s: %+v", status, page)
		}
	}
}
