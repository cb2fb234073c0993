package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// An idle stream sends heartbeats.
func TestEvents_SendHeartbeats(t *testing.T) {
	s := open(t, func(c *server.Config) { c.Limits.Heartbeat = time.Millisecond })
	s.chat("agent@acme", startDemo)
	lines := bufio.NewScanner(s.follow("/api/v1/runs/demo-1/events").Body)
	for beats := 0; beats < 3; {
		if !lines.Scan() {
			t.Fatal("the stream ended")
		}
		if lines.Text() == ": keep-alive" {
			beats++
		}
	}
}

// Over HTTP/2 a write deadline ends a stream even if nothing is written. So idle streams used to
// end after the write timeout.
func TestEvents_HTTP2StreamStaysOpenWhenIdle(t *testing.T) {
	t.Parallel() // it waits for long: a slow machine would take too long to write
	s := open(t, func(c *server.Config) { c.Limits.WriteTimeout, c.Limits.Heartbeat = 5*time.Second, 6*time.Second })
	s.chat("agent@acme", startDemo)
	h := httptest.NewUnstartedServer(s.handler)
	h.EnableHTTP2 = true
	h.StartTLS()
	defer h.Close()
	r := s.request("auditor@acme", "GET", "/api/v1/runs/demo-1/events", "", "Accept", acceptStream)
	r.URL.Scheme, r.URL.Host = "https", h.Listener.Addr().String()
	response, err := h.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && lines.Text() != ": keep-alive" {
	}
	if response.ProtoMajor != 2 || lines.Text() != ": keep-alive" {
		t.Errorf("%s: it ended: %v", response.Proto, lines.Err())
	}
}

// A client that reconnects gets the events that it missed, in order and each once.
func TestEvents_ResumeAfterLastEventID(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`)
	all := eventsIn(s.follow("/api/v1/runs/demo-1/events").Body, nil)
	if kinds(all) != "created asked waiting decided completed outcome" {
		t.Fatalf("%v", all)
	}
	for n, last := range all[:5] {
		if rest := eventsIn(s.follow("/api/v1/runs/demo-1/events", "Last-Event-ID", last.id).Body, nil); !slices.Equal(rest, all[n+1:]) {
			t.Errorf("after %s come %v, not %v", last.id, rest, all[n+1:])
		}
	}
	run, _, _ := strings.Cut(all[0].id, ":")
	for _, none := range []string{"x", "2", "run_x:2", ":2", run, run + ":", run + ":0", run + ":-1", run + ":2.0", run + ":6", run + ":99999999999999999999"} {
		if got := eventsIn(s.follow("/api/v1/runs/demo-1/events", "Last-Event-ID", none).Body, nil); !slices.Equal(got, all) {
			t.Errorf("after %q, which is not an event of the run, come %v", none, got)
		}
	}
}

// overtakenStore is a store in which a run continues immediately after its last event was read.
type overtakenStore struct {
	store.Store
	onEvents atomic.Pointer[func()]
}

func (o *overtakenStore) Events(ctx context.Context, account, run string, after int64, limit int) ([]store.Event, error) {
	events, err := o.Store.Events(ctx, account, run, after, limit)
	if after > 0 && len(events) == 1 { // that one is known
		if goesOn := o.onEvents.Swap(nil); goesOn != nil {
			(*goesOn)()
		}
	}
	return events, err
}

// Clients wait for the outcome as the last event. It used to precede the events that led to it if a
// decision came at the right moment, and such clients never saw them.
func TestEvents_OutcomeFollowsItsEvents(t *testing.T) {
	for want, answers := range map[string][]string{
		"created asked waiting decided completed outcome":                               {`{"action":"approve"}`},
		"created asked waiting decided asked waiting outcome decided completed outcome": {`{"action":"revise","feedback":"more"}`, `{"action":"approve"}`},
	} {
		runs := &overtakenStore{Store: memory.NewStore(nil)}
		s := openWith(t, nil, func(c *executor.Config) { c.Store = runs })
		s.chat("agent@acme", startDemo)
		answer := func() {
			s.chat("approver@acme", fmt.Sprintf(`{"stateKey":"demo-1","resumeId":"%d","resumeValue":%s}`, len(answers), answers[0]))
			answers = answers[1:]
		}
		runs.onEvents.Store(&answer)
		var seen []event
		eventsIn(s.follow("/api/v1/runs/demo-1/events").Body, func(e event) bool {
			if e.kind != "step" {
				seen = append(seen, e)
			}
			if e.kind == "outcome" && len(answers) > 0 {
				answer()
			}
			return true
		})
		if kinds(seen) != want {
			t.Errorf("%s, and not %s", kinds(seen), want)
		}
	}
}

// A client that reconnects to a waiting run gets the outcome, also if nothing happened since.
func TestEvents_ReconnectToWaitingRunSendsOutcome(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	var all []event
	eventsIn(s.follow("/api/v1/runs/demo-1/events").Body, func(e event) bool {
		all = append(all, e)
		return e.kind != "outcome"
	})
	waiting := all[len(all)-2]
	var again []event
	eventsIn(s.follow("/api/v1/runs/demo-1/events", "Last-Event-ID", waiting.id).Body, func(e event) bool {
		again = append(again, e)
		return false
	})
	if waiting.kind != "waiting" || !slices.Equal(again, all[len(all)-1:]) {
		t.Errorf("behind %v comes %v", waiting, again)
	}
}

// A client may reconnect with an event of an earlier run with the same state key. When event ids
// were plain numbers, it missed events of the new run up to that number.
func TestEvents_LastEventOfAnotherRunStartsOver(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", `{"graphId":"inproc:content-review","stateKey":"demo-1","input":{"topic":"coffee"}}`)
	before := s.firstEvents("demo-1", 2)[1]
	s.call("agent@acme", "POST", "/api/v1/runs/demo-1/cancel", "")
	s.chat("agent@acme", startDemo)
	var seen []event
	eventsIn(s.follow("/api/v1/runs/demo-1/events", "Last-Event-ID", before.id).Body, func(e event) bool {
		if seen = append(seen, e); e.kind == "outcome" && strings.Contains(e.data, "needs_input") {
			s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`)
		}
		return true
	})
	seen = slices.DeleteFunc(seen, func(e event) bool { return e.kind == "step" })
	if kinds(seen) != "created asked waiting outcome decided completed outcome" {
		t.Errorf("%v", seen)
	}
	chat := eventsIn(strings.NewReader(s.chat("agent@acme", startDemo, "Accept", acceptStream, "Last-Event-ID", before.id).body), nil)
	if got := kinds(chat); got != "run created asked waiting decided completed outcome" {
		t.Errorf("a chat: %s", got)
	}
}

// A repeated answer may belong to an earlier run with the same state key. The progress of the newer
// run does not affect it.
func TestChatStream_RepeatAfterNewerRunShowsOwnRun(t *testing.T) {
	s := open(t, nil)
	const approve = `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`
	s.chat("agent@acme", startDemo)
	s.chat("approver@acme", approve)
	s.chat("agent@acme", strings.Replace(startDemo, "tea", "coffee", 1))
	again := eventsIn(strings.NewReader(s.chat("approver@acme", approve, "Accept", acceptStream).body), nil)
	if got := kinds(again); got != "run created asked waiting decided completed outcome" {
		t.Errorf("%s", got)
	}
}

// firstEvents returns the stored events of a run so far.
func (s *site) firstEvents(stateKey string, count int) (first []event) {
	s.Helper()
	eventsIn(s.follow("/api/v1/runs/"+stateKey+"/events").Body, func(e event) bool {
		if e.id != "" {
			first = append(first, e)
		}
		return len(first) < count
	})
	if len(first) < count {
		s.Fatalf("%s has only %v", stateKey, first)
	}
	return first
}

// A proxy that buffers responses would hold back a stream; nginx does, unless told otherwise.
func TestEvents_DisableProxyBuffering(t *testing.T) {
	s := open(t, nil)
	if got := s.chat("agent@acme", startDemo, "Accept", acceptStream); got.header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("a chat: %v", got.header)
	}
	if got := s.follow("/api/v1/runs/demo-1/events"); got.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("a run: %v", got.Header)
	}
}

// A HEAD request does not keep a stream open.
func TestEvents_HeadDoesNotStream(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	if got := s.call("agent@acme", "HEAD", "/api/v1/runs/demo-1/events", ""); got.status != 200 || got.header.Get("Content-Type") != acceptStream {
		t.Errorf("%+v", got)
	}
	s.until("the request has ended", func() bool {
		return strings.Contains(s.metrics(), `fermata_http_request_seconds_count{method="HEAD",route="/api/v1/runs/{stateKey}/events",status="200"} 1`)
	})
}

// Steps are sent live, and never afterwards.
func TestEvents_StepsAreNotStored(t *testing.T) {
	s, release := openHeld(t)
	s.chat("agent@acme", startHeld, "Prefer", "respond-async")
	stream := s.follow("/api/v1/runs/held%2F1/events")
	var seen []event
	eventsIn(stream.Body, func(e event) bool {
		if seen = append(seen, e); e.kind == "created" { // it is running, and the stream is open
			release()
		}
		return true
	})
	var steps []string
	for _, e := range seen {
		if e.kind == "step" {
			steps = append(steps, e.data)
		}
	}
	if len(steps) == 0 || !strings.Contains(steps[len(steps)-1], `"finished"`) || seen[len(seen)-1].kind != "outcome" {
		t.Errorf("it saw %v", seen)
	}
	if again := eventsIn(s.follow("/api/v1/runs/held%2F1/events").Body, nil); kinds(again) != "created completed outcome" {
		t.Errorf("afterwards: %v", again)
	}
}

// A stream ends when its run is superseded.
func TestEvents_EndWhenTheRunIsSuperseded(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	stream := s.follow("/api/v1/runs/demo-1/events", "Last-Event-ID", s.firstEvents("demo-1", 3)[2].id)
	var seen []event
	eventsIn(stream.Body, func(e event) bool {
		if seen = append(seen, e); len(seen) == 1 { // the outcome; now it is followed
			s.chat("agent@acme", `{"graphId":"inproc:content-review","stateKey":"demo-1","input":{"topic":"coffee"},"supersede":true}`)
		}
		return true
	})
	if kinds(seen) != "outcome withdrawn superseded outcome" || !strings.Contains(seen[3].data, `"error":"superseded"`) {
		t.Errorf("%v", seen)
	}
}

// Streams are limited, and the Accept header does not bypass the limit of other requests.
func TestStreams_AreLimited(t *testing.T) {
	s := open(t, func(c *server.Config) { c.Limits.Streams = 1 })
	s.chat("agent@acme", startDemo)
	first := s.follow("/api/v1/runs/demo-1/events")
	if got := s.call("agent@acme", "GET", "/api/v1/runs/demo-1/events", ""); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("one more: %+v", got)
	}
	if got := s.chat("agent@acme", startDemo, "Accept", acceptStream); got.status != 503 {
		t.Errorf("one more, of a chat: %+v", got)
	}
	if got := s.call("agent@acme", "GET", "/api/v1/runs", "", "Accept", acceptStream); got.status != 200 {
		t.Errorf("not a stream: %+v", got)
	}
	// a run may have this name, and reading it is not following it
	for _, path := range []string{"/api/v1/runs/events", "/api/v1/runs/demo-1%2Fevents"} {
		if got := s.call("agent@acme", "GET", path, ""); got.status != 404 {
			t.Errorf("%s is not a stream: %+v", path, got)
		}
	}
	first.Body.Close()
	s.until("there is a slot again", func() bool { return s.chat("agent@acme", startDemo, "Accept", acceptStream).status == 200 })
	if !strings.Contains(s.metrics(), `fermata_http_limit_rejections_total{limit="streams"}`) {
		t.Error(s.metrics())
	}
}

// There may be ten thousand streams, each with a stack: the frames of the operation are not kept on
// it.
func TestEvents_IdleStreamReleasesItsPermit(t *testing.T) {
	s := open(t, func(c *server.Config) { c.Limits.Heartbeat = time.Hour })
	s.chat("agent@acme", startDemo)
	eventsIn(s.follow("/api/v1/runs/demo-1/events").Body, func(e event) bool { return e.kind != "outcome" })
	var stack string
	s.until("the stream waits", func() bool {
		all := make([]byte, 1<<20)
		for _, one := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
			if strings.Contains(one, "(*runStream).wait(") {
				stack = one
				return true
			}
		}
		return false
	})
	if strings.Contains(stack, "huma") || strings.Contains(stack, "ServeMux") {
		t.Errorf("it has a stack of %d calls:\n%s", strings.Count(stack, "\n")/2, stack)
	}
}

// hookedStore calls a hook when a run is read for the second time.
type hookedStore struct {
	store.Store
	gets  atomic.Int64
	onGet func(store.Run)
}

func (s *hookedStore) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	if s.gets.Add(1) == 2 {
		run, err := s.Store.Get(ctx, account, stateKey)
		if err != nil {
			return run, err
		}
		s.onGet(run)
	}
	return s.Store.Get(ctx, account, stateKey)
}

// countingWrites counts starts and decisions.
type countingWrites struct {
	store.Store
	creates, decides atomic.Int64
}

func (b *countingWrites) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	b.creates.Add(1)
	return b.Store.Create(ctx, run)
}

func (b *countingWrites) Decide(ctx context.Context, d store.Decision) (store.DecisionReceipt, error) {
	b.decides.Add(1)
	return b.Store.Decide(ctx, d)
}

// To wait for an outcome the server used to repeat the request. If the state key was reused in
// between, that started one more run, or superseded the other one.
func TestChatStream_OneRequestStartsOnce(t *testing.T) {
	kept := &countingWrites{Store: memory.NewStore(nil)}
	s := openWith(t, nil, func(c *executor.Config) { c.Store = kept })
	s.chat("agent@acme", startDemo, "Accept", acceptStream)
	s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`, "Accept", acceptStream)
	if kept.creates.Load() != 1 || kept.decides.Load() != 1 {
		t.Errorf("one request each started %d runs, and decided %d times", kept.creates.Load(), kept.decides.Load())
	}
}

// And the other run is not changed.
func TestChatStream_SupersededRun(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	s := openWith(t, nil, nil, single(t, "held", func(ctx context.Context, n int) (int, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return n, ctx.Err()
	}))
	response, err := http.DefaultClient.Do(s.request("agent@acme", "POST", "/api/v1/ai/chat", `{"graphId":"inproc:held","stateKey":"k","input":1,"supersede":true}`, "Accept", acceptStream))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var seen []event
	eventsIn(response.Body, func(e event) bool {
		if seen = append(seen, e); len(seen) == 1 {
			s.chat("agent@acme", `{"graphId":"inproc:content-review","stateKey":"k","input":{"topic":"coffee"},"supersede":true}`)
		}
		return true
	})
	if last := seen[len(seen)-1]; last.kind != "outcome" || !strings.Contains(last.data, `"error":"superseded"`) {
		t.Errorf("it ends with %v", last)
	}
	if got := s.call("agent@acme", "GET", "/api/v1/runs/k", ""); got.field("status") != "waiting" {
		t.Errorf("the other one is %s", got.body)
	}
}

// A stream reports the end of its own run, whichever run has its state key then.
func TestEvents_FinalStatusIsReported(t *testing.T) {
	for want, meanwhile := range map[string]func(*site, store.Store, store.Run){
		`"error":"deleted"`: func(s *site, kept store.Store, run store.Run) {
			if err := kept.DeleteRun(s.Context(), run.Account, run.ID, store.Writes{}); err != nil {
				s.Error(err)
			}
		},
		`"status":"completed"`: func(s *site, _ store.Store, _ store.Run) {
			s.chat("agent@acme", `{"graphId":"inproc:content-review","stateKey":"demo-1","input":{"topic":"coffee"}}`)
		},
	} {
		sleepy := &hookedStore{Store: memory.NewStore(nil)}
		s := openWith(t, nil, func(c *executor.Config) { c.Store = sleepy })
		s.chat("agent@acme", startDemo)
		s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`)
		sleepy.onGet = func(run store.Run) { meanwhile(s, sleepy.Store, run) }
		sleepy.gets.Store(0)
		all := eventsIn(s.follow("/api/v1/runs/demo-1/events").Body, nil)
		if last := all[len(all)-1]; last.kind != "outcome" || !strings.Contains(last.data, want) {
			t.Errorf("not %s: %v", want, all)
		}
	}
}
