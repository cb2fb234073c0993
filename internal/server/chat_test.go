package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
)

// event is one event of a stream.
type event struct{ id, kind, data string }

// eventsIn reads a stream to its end, or until more returns false.
func eventsIn(body io.Reader, more func(event) bool) (all []event) {
	var e event
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		}
		if lines.Text() != "" || e.kind == "" {
			continue
		}
		all = append(all, e)
		if more != nil && !more(e) {
			return all
		}
		e = event{}
	}
	return all
}

func kinds(events []event) string {
	var list []string
	for _, e := range events {
		list = append(list, e.kind)
	}
	return strings.Join(list, " ")
}

const acceptStream = "text/event-stream"

// A chat stream has all events before the outcome.
func TestChatStream_SendsRunEventsThenOutcome(t *testing.T) {
	s := open(t, nil)
	got := s.chat("agent@acme", startDemo, "Accept", acceptStream)
	events := eventsIn(strings.NewReader(got.body), nil)
	if got.status != 200 || kinds(events) != "run created step step asked waiting interrupt outcome" && kinds(events) != "run step step created asked waiting interrupt outcome" &&
		kinds(events) != "run step created step asked waiting interrupt outcome" {
		t.Fatalf("%d, %s", got.status, kinds(events))
	}
	if first := events[0].data; !strings.Contains(first, `"stateKey":"demo-1"`) {
		t.Errorf("it begins with %s", first)
	}
	var steps []string
	for _, e := range events {
		if e.kind == "step" {
			steps = append(steps, e.data)
		}
	}
	if !strings.Contains(steps[0], `human_review`) || !strings.Contains(steps[0], `"started"`) || !strings.Contains(steps[1], `"waits"`) {
		t.Errorf("steps: %v", steps)
	}
	outcome := events[len(events)-1].data
	if !strings.HasPrefix(outcome, `{"status":"needs_input"`) || !strings.Contains(outcome, events[len(events)-2].data) {
		t.Errorf("it ends with %s, after %s", outcome, events[len(events)-2].data)
	}

	again := eventsIn(strings.NewReader(s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`, "Accept", acceptStream).body), nil)
	durable := slices.DeleteFunc(slices.Clone(again), func(e event) bool { return e.kind == "step" })
	if kinds(durable) != "run decided completed outcome" || !strings.HasSuffix(durable[1].id, ":4") {
		t.Errorf("the answer shows %v", again)
	}
	once := eventsIn(strings.NewReader(s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`, "Accept", acceptStream).body), nil)
	if kinds(once) != "run outcome" || once[1] != again[len(again)-1] {
		t.Errorf("the repeated request shows %v", once)
	}
}

// Tokens of an agent's model are streamed live, and are not stored.
func TestChatStream_SendsModelTokens(t *testing.T) {
	s := open(t, nil)
	const start = `{"graphId":"inproc:clerk","stateKey":"hello","input":{"query":"hi"}}`
	var said strings.Builder
	events := eventsIn(strings.NewReader(s.chat("agent@acme", start, "Accept", acceptStream).body), nil)
	for _, e := range events {
		if e.kind == "token" {
			var token struct{ Agent, Text string }
			if err := json.Unmarshal([]byte(e.data), &token); err != nil || token.Agent != "clerk" || e.id != "" {
				t.Errorf("%+v, %v", e, err)
			}
			said.WriteString(token.Text)
		}
	}
	if last := events[len(events)-1]; said.String() != "Good morning to you." || last.kind != "outcome" || !strings.Contains(last.data, `"completed"`) {
		t.Errorf("it received %q, and %+v", said.String(), last)
	}
	if again := s.chat("agent@acme", start, "Accept", acceptStream).body; strings.Contains(again, "token") {
		t.Errorf("stored tokens were sent: %s", again)
	}
}

// Errors have an HTTP status, as without a stream.
func TestChatStream_RejectsInvalidRequestBeforeStreaming(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	for body, want := range map[string]int{
		`{"graphId":"inproc:x","input":{}}`:                                         404,
		`{"stateKey":"demo-1","resumeId":"1","resumeValue":"` + canary + `"}`:       400,
		`{"stateKey":"unknown","resumeId":"1","resumeValue":{"action":"approve"}}`:  404,
		`{"stateKey":"demo-1","resumeId":"2","resumeTargets":{"int_x":{}}}`:         404,
		strings.Replace(startDemo, "tea", "coffee", 1):                              409,
		`{"graphId":"inproc:content-review","input":` + deep(200) + `}`:             400,
		`{"graphId":"inproc:content-review","input":{},"resumeValue":{"action":1}}`: 400,
	} {
		got := s.chat("admin@acme", body, "Accept", acceptStream)
		if got.status != want || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %+v", body[:min(len(body), 80)], got)
		}
		s.checkNoCanary("a problem", got.body)
	}
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// openHeld is a server with a graph whose only node blocks until it is released.
func openHeld(t *testing.T) (s *site, release func()) {
	t.Helper()
	return openHeldWith(t, nil)
}

func openHeldWith(t *testing.T, change func(*server.Config)) (s *site, release func()) {
	t.Helper()
	gate := make(chan struct{})
	s = openWith(t, change, nil, single(t, "held", func(ctx context.Context, d draft) (draft, error) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return d, ctx.Err()
	}))
	return s, func() { close(gate) }
}

const startHeld = `{"graphId":"inproc:held","stateKey":"held/1","input":{"topic":"tea"}}`

// A caller need not wait: the start is recorded, and Location names the run.
func TestChat_RespondAsyncReturnsAtOnce(t *testing.T) {
	s, release := openHeld(t)
	got := s.chat("agent@acme", startHeld, "Prefer", "respond-async")
	if got.status != 202 || got.field("status") != "pending" || got.field("stateKey") != "held/1" || got.header.Get("Location") != "/api/v1/runs/held%2F1" {
		t.Fatalf("%+v", got)
	}
	for _, prefer := range []string{"wait=0", `wait="0"`, "respond-async, wait=0", "handling=lenient; respond-async", "RESPOND-ASYNC"} {
		if again := s.chat("agent@acme", startHeld, "Prefer", prefer); again.status != 202 || again.body != got.body {
			t.Errorf("%s: %+v", prefer, again)
		}
	}
	if look := s.call("agent@acme", "GET", got.header.Get("Location"), ""); look.status != 200 || look.field("status") != "running" || look.field("outcome") != nil {
		t.Errorf("%+v", look)
	}
	for _, prefer := range []string{"wait=1000", "wait=-1", "wait=x", "wait"} {
		if got := s.chat("agent@acme", startHeld, "Prefer", prefer); got.status != 400 {
			t.Errorf("%s: %+v", prefer, got)
		}
	}
	release()
	if got := s.chat("agent@acme", startHeld, "Prefer", "wait=60"); got.status != 200 || got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}
	if got := s.chat("agent@acme", startHeld, "Prefer", "respond-async"); got.status != 202 {
		t.Errorf("a known outcome for a caller that does not wait: %+v", got)
	}
}

func TestChat_WaitPreferenceIsHonoured(t *testing.T) {
	s, release := openHeld(t)
	defer release()
	if got := s.chat("agent@acme", startHeld, "Prefer", "wait=1"); got.status != 202 || got.header.Get("Location") == "" {
		t.Errorf("%+v", got)
	}
	events := eventsIn(strings.NewReader(s.chat("agent@acme", startHeld, "Prefer", "wait=1", "Accept", acceptStream).body), nil)
	if last := events[len(events)-1]; last.kind != "outcome" || !strings.Contains(last.data, `"status":"pending"`) {
		t.Errorf("%v", events)
	}
}

// With both preferences, in any order (RFC 7240, 4.3), the server waits before it answers 202; the
// last one used to win.
func TestChat_WaitAndRespondAsyncCombined(t *testing.T) {
	s := open(t, nil)
	for n, prefer := range []string{"respond-async, wait=30", "wait=30, respond-async", "wait=30, wait=0"} {
		start := strings.Replace(startDemo, "demo-1", fmt.Sprint("demo-", n), 1)
		if got := s.chat("agent@acme", start, "Prefer", prefer); got.status != 200 || got.field("status") != "needs_input" {
			t.Errorf("%s: %+v", prefer, got)
		}
	}
}

// Media type names are case-insensitive.
func TestChat_AcceptsJSONMediaTypeVariants(t *testing.T) {
	s := open(t, nil)
	if got := s.chat("agent@acme", startDemo, "Content-Type", "Application/JSON; charset=UTF-8"); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

// Browsers and proxies treat these as path navigation in any spelling: the run could not be read.
func TestChat_RejectsDotStateKeys(t *testing.T) {
	s := open(t, nil)
	for _, key := range []string{".", ".."} {
		got := s.chat("agent@acme", strings.Replace(startDemo, "demo-1", key, 1))
		if got.status != 400 || got.field("code") != "bad_request" || !strings.Contains(got.body, "path segment") {
			t.Errorf("%q: %+v", key, got)
		}
	}
}

// Location is a valid URL, also for a state key with dots and slashes.
func TestChat_LocationHeaderNamesTheRun(t *testing.T) {
	s := open(t, nil)
	for _, key := range []string{"...", "a/../b", "a b?#%"} {
		start := strings.Replace(startDemo, "demo-1", key, 1)
		got := s.chat("agent@acme", start, "Prefer", "respond-async")
		if look := s.call("agent@acme", "GET", got.header.Get("Location"), ""); look.status != 200 || look.field("stateKey") != key {
			t.Errorf("%q is at %s: %+v", key, got.header.Get("Location"), look)
		}
	}
}

// Clients that support one interrupt find it separately; others get the request id and deadline of
// each.
func TestChat_MissingFieldsAreNamed(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) { c.RequestTimeout = time.Hour })
	before := time.Now()
	var got struct {
		Interrupt  json.RawMessage
		Interrupts []fermata.OpenInterrupt
	}
	first := s.chat("agent@acme", startDemo)
	if err := json.Unmarshal([]byte(first.body), &got); err != nil || len(got.Interrupts) != 1 {
		t.Fatal(first, err)
	}
	i := got.Interrupts[0]
	if string(got.Interrupt) != `{"kind":"content-review","data":"about tea"}` || i.Kind != "content-review" || string(i.Data) != `"about tea"` {
		t.Errorf("it asks %s, and %+v", got.Interrupt, i)
	}
	if q := s.openRequests("acme")[0]; i.RequestID != q.ID || i.Deadline == nil || !i.Deadline.Equal(q.Deadline) || i.Deadline.Before(before.Add(time.Hour)) {
		t.Errorf("request %q until %v; the queue has %q until %v", i.RequestID, i.Deadline, q.ID, q.Deadline)
	}
	if again := s.chat("agent@acme", startDemo); again.body != first.body {
		t.Errorf("the repeated request: %+v", again)
	}
	var run struct{ Outcome json.RawMessage }
	if err := json.Unmarshal([]byte(s.call("agent@acme", "GET", "/api/v1/runs/demo-1", "").body), &run); err != nil || string(run.Outcome) != strings.TrimSpace(first.body) {
		t.Errorf("the run has %s, %v", run.Outcome, err)
	}
}

// follow opens a stream, which is closed with the test at the latest.
func (s *site) follow(path string, headers ...string) *http.Response {
	s.Helper()
	response, err := http.DefaultClient.Do(s.request("auditor@acme", "GET", path, "", append(headers, "Accept", acceptStream)...))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { response.Body.Close() })
	return response
}
