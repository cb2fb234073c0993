package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// deskRules let support do everything with a refund.
const deskRules = `
version: "1"
default: allow
rules:
- id: refunds
  when: req.tool == "refund"
  then: ask
  reason: support checks refunds
  ask: {groups: [{from: ["group:support"]}], editable: [""], deadline: 96h, remember_max: 24h}
`

// openDesk starts a server where ann and bob are in support and where deadlines can be extended.
func openDesk(t *testing.T) *webtest.Server {
	t.Helper()
	rules, err := policy.Load("policy.yaml", []byte(deskRules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hours := func(n time.Duration) timespan.Duration { return timespan.Duration(n * time.Hour) }
	return open(t, func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, refundGraph(t, func(refund) {}))
		c.Desk = executor.DeskConfig{
			Policy: rules, Directory: desk.StaticDirectory{"group:support": {"ann", "bob"}},
			Routes: map[string]desk.Route{"default": {Name: "default", Cap: hours(240), Steps: []desk.Step{
				{Notify: []string{"group:support"}}, {At: hours(1), Page: []string{"oncall:support"}}, {At: hours(24), Expire: "stale"},
			}}},
		}
	})
}

// postJSON calls the API with the session of a browser.
func postJSON(b *webtest.Browser, path string, body any) webtest.Response {
	b.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.URL+path, strings.NewReader(string(text)))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", b.URL)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.Do(r)
}

// call is the same call by form and by API.
type call struct {
	act    string
	key    string // of several calls of one act
	fields []string
	// path is the operation, body its body.
	path string
	body func(r api.Request) any
	// graph and input start the run; refund by default.
	graph, input string
	// before are calls by form that come first.
	before []string
}

func decideBody(answer string) func(api.Request) any {
	return func(r api.Request) any {
		return api.Decide{ResumeID: "resume-" + r.ID, Answer: json.RawMessage(answer), Shown: r.Shown}
	}
}

func actBody(a api.RequestAction) func(api.Request) any { return func(api.Request) any { return a } }

func untilBody(span time.Duration, fromDeadline bool) func(api.Request) any {
	return func(r api.Request) any {
		until := time.Now().Add(span)
		if fromDeadline {
			until = r.Deadline.Add(span)
		}
		until = until.Truncate(time.Minute)
		return api.RequestAction{Until: &until}
	}
}

var calls = []call{
	{act: "approve", path: "decision", body: decideBody(`{"verb":"approve"}`)},
	{
		act: "approve", key: "conditions", fields: []string{"onlyif", "args.order > 0", "until", "2999-01-01T00:00:00Z"}, path: "decision",
		body: decideBody(`{"verb":"approve","conditions":{"until":"2999-01-01T00:00:00Z","onlyIf":"args.order > 0"}}`),
	},
	{
		act: "edit", fields: []string{"v/order", "17", "v/payment", "9007199254740993", "v/amount", "80.00", "op", "send"}, path: "decision",
		body: decideBody(`{"verb":"approve","args":{"order":17,"payment":9007199254740993,"amount":"80.00"}}`),
	},
	{act: "reject", fields: []string{"text", "too much", "code", "too_risky"}, path: "decision", body: decideBody(`{"verb":"reject","reason":"too much","codes":["too_risky"]}`)},
	{act: "respond", fields: []string{"s/action", "0"}, path: "decision", body: decideBody(`{"action":"approve"}`), graph: "inproc:content-review", input: `{"topic":"tea"}`},
	{act: "approve", path: "decision", body: decideBody(`{"verb":"approve"}`), graph: "inproc:deploy", input: `{"service":"shop","version":"2"}`},
	{
		act: "respond", fields: []string{"s/happened", "0"}, path: "decision", body: decideBody(`{"happened":true}`),
		graph: "inproc:payout", input: `{"supplier":"Blum","amount":1840,"currency":"EUR"}`,
	},
	{act: "comment", fields: []string{"text", "looks fine"}, path: "comment", body: actBody(api.RequestAction{Text: "looks fine"})},
	{act: "ask", fields: []string{"text", "Why 120?"}, path: "clarify", body: actBody(api.RequestAction{Text: "Why 120?"})},
	{act: "claim", path: "claim", body: actBody(api.RequestAction{})},
	{act: "release", path: "release", body: actBody(api.RequestAction{}), before: []string{"claim"}},
	{act: "delegate", fields: []string{"to", "bob"}, path: "delegate", body: actBody(api.RequestAction{To: "bob"})},
	{act: "snooze", fields: []string{"span", "1h"}, path: "snooze", body: untilBody(time.Hour, false)},
	{act: "extend", fields: []string{"span", "1d"}, path: "extend", body: untilBody(24*time.Hour, true)},
	{act: "escalate", fields: []string{"text", "urgent"}, path: "escalate", body: actBody(api.RequestAction{Text: "urgent"})},
	{act: "cancel", fields: []string{"text", "not needed"}, path: "abandon", body: actBody(api.RequestAction{Text: "not needed"})},
}

// A call has the same effect and the same audit record by form and by API.
func TestRequest_FormAndAPIAreTheSame(t *testing.T) {
	s := openDesk(t)
	ann := s.SignIn("ann")
	for _, c := range calls {
		var effects, records [2]string
		for i, way := range []string{"form", "json"} {
			r := c.start(t, s, ann, way)
			for _, act := range c.before {
				post(t, ann, r.ID, act)
			}
			logged := strings.Count(auditOf(ann, r.ID), "\n")
			if way == "form" {
				post(t, ann, r.ID, c.act, c.fields...)
			} else if got := postJSON(ann, "/api/v1/requests/"+r.ID+"/"+c.path, c.body(r)); got.Status >= 300 {
				t.Fatalf("%s: %d %s", c.path, got.Status, got.Body)
			}
			effects[i] = effectOf(t, ann, r.ID)
			records[i] = strings.Join(strings.SplitAfter(auditOf(ann, r.ID), "\n")[logged:], "")
		}
		if effects[0] != effects[1] {
			t.Errorf("%s: effect\nform %s\nJSON %s", c.act, effects[0], effects[1])
		}
		if records[0] != records[1] || records[0] == "" {
			t.Errorf("%s: audit log\nform %s\nJSON %s", c.act, records[0], records[1])
		}
	}
}

// openDefaults starts a server where anyone decides, with a field of the requirement.
func openDefaults(t *testing.T, field string) *webtest.Server {
	t.Helper()
	rules, err := policy.Load("policy.yaml", []byte("default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 24h, "+field+"}}\nrules: []\n"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return open(t, func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, refundGraph(t, func(refund) {}))
		c.Desk = executor.DeskConfig{Policy: rules}
	})
}

// A request is sent back for redesign where the rules allow it, and only there is it offered.
func TestRequest_ReturnByFormAndAPIAreTheSame(t *testing.T) {
	s := openDefaults(t, "on_escalate: return")
	ann := s.SignIn("ann")
	var effects, records [2]string
	for i, way := range []string{"form", "json"} {
		r := call{act: "return"}.start(t, s, ann, way)
		page := ann.Get("/requests/" + r.ID)
		if !strings.Contains(page.Body, "Send back for redesign") || strings.Contains(page.Body, "/escalate") {
			t.Error("the menu does not offer to send it back, or offers to escalate it")
		}
		if way == "form" {
			post(t, ann, r.ID, "return", "text", "split it")
		} else if got := postJSON(ann, "/api/v1/requests/"+r.ID+"/decision", decideBody(`{"verb":"return","reason":"split it"}`)(r)); got.Status >= 300 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		effects[i], records[i] = effectOf(t, ann, r.ID), auditOf(ann, r.ID)
	}
	if effects[0] != effects[1] || records[0] != records[1] || !strings.Contains(effects[0], `"verdict":"return"`) {
		t.Errorf("form %s%s\nJSON %s%s", effects[0], records[0], effects[1], records[1])
	}
	other := openDesk(t)
	bob := other.SignIn("bob")
	if page := bob.Get("/requests/" + (call{act: "return"}.start(t, other, bob, "form")).ID); strings.Contains(page.Body, "Send back for redesign") {
		t.Error("the menu offers what the rules do not allow")
	}
}

// The state of a held run is edited where the rules allow it, and only there is it offered.
func TestRequest_EditedStateByFormAndAPIIsTheSame(t *testing.T) {
	s := openDefaults(t, `editable: [""]`)
	ann := s.SignIn("ann")
	c := call{act: "hold", graph: "inproc:deploy", input: `{"service":"shop","version":"2"}`}
	var effects, records [2]string
	for i, way := range []string{"form", "json"} {
		r := c.start(t, s, ann, way)
		want(t, ann.Get("/requests/"+r.ID), http.StatusOK, "Edit…")
		state := strings.Replace(string(r.Data), `"version":"2"`, `"version":"3"`, 1)
		if way == "form" {
			form := ann.Post("/requests/"+r.ID+"/edit", hidden(ann.Get("/requests/"+r.ID+"/edit"), "op", "json")...)
			if got := ann.Post("/requests/"+r.ID+"/edit", hidden(form, "raw", state, "op", "send")...); got.Status != http.StatusSeeOther {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
		} else if got := postJSON(ann, "/api/v1/requests/"+r.ID+"/decision", decideBody(state)(r)); got.Status >= 300 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		effects[i], records[i] = effectOf(t, ann, r.ID), auditOf(ann, r.ID)
	}
	if effects[0] != effects[1] || records[0] != records[1] || !strings.Contains(effects[0], `"version":"3"`) {
		t.Errorf("form %s%s\nJSON %s%s", effects[0], records[0], effects[1], records[1])
	}
	other := openDesk(t)
	bob := other.SignIn("bob")
	if page := bob.Get("/requests/" + c.start(t, other, bob, "form").ID); !strings.Contains(page.Body, "Approve…") || strings.Contains(page.Body, "/edit") {
		t.Error("the page offers what the rules do not allow")
	}
}

// Withdrawing a vote within its undo window.
func TestRequest_UndoByFormAndAPIAreTheSame(t *testing.T) {
	s := openDefaults(t, "undo: 10m")
	ann := s.SignIn("ann")
	var effects, records [2]string
	for i, way := range []string{"form", "json"} {
		r := call{act: "undo"}.start(t, s, ann, way)
		post(t, ann, r.ID, "approve")
		logged := strings.Count(auditOf(ann, r.ID), "\n")
		if way == "form" {
			post(t, ann, r.ID, "undo")
		} else if got := postJSON(ann, "/api/v1/requests/"+r.ID+"/undo", api.RequestAction{}); got.Status >= 300 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		effects[i] = effectOf(t, ann, r.ID)
		records[i] = strings.Join(strings.SplitAfter(auditOf(ann, r.ID), "\n")[logged:], "")
	}
	if effects[0] != effects[1] || records[0] != records[1] || records[0] == "" {
		t.Errorf("form %s%s\nJSON %s%s", effects[0], records[0], effects[1], records[1])
	}
}

// A request of a batch is decided as by the API.
func TestBatch_FormAndAPIAreTheSame(t *testing.T) {
	for op, answer := range map[string]string{"approve": `{"verb":"approve"}`, "reject": `{"verb":"reject","reason":"too much"}`} {
		s := openDesk(t)
		ann := s.SignIn("ann")
		var effects, records [2]string
		for i, way := range []string{"form", "json"} {
			r := call{act: "batch"}.start(t, s, ann, way)
			if way == "form" {
				form := ann.Get("/batch?like=" + r.ID)
				want(t, ann.Post("/batch", hidden(form, "op", "send-"+op, "text", "too much", "item", batchItem.FindStringSubmatch(form.Body)[1])...), http.StatusOK, "Recorded")
			} else if got := postJSON(ann, "/api/v1/requests/"+r.ID+"/decision", decideBody(answer)(r)); got.Status >= 300 {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
			effects[i], records[i] = effectOf(t, ann, r.ID), auditOf(ann, r.ID)
		}
		if effects[0] != effects[1] || records[0] != records[1] || records[0] == "" {
			t.Errorf("%s\nform %s\n%s\nJSON %s\n%s", op, effects[0], records[0], effects[1], records[1])
		}
	}
}

// An approval that is remembered is an approval and a grant.
func TestRequest_RememberByFormAndAPIAreTheSame(t *testing.T) {
	var grants [2]string
	for i, way := range []string{"form", "json"} {
		s := openDesk(t)
		ann := s.SignIn("ann")
		r := call{act: "remember"}.start(t, s, ann, way)
		if way == "form" {
			post(t, ann, r.ID, "remember", "span", "4h", "uses", "3")
		} else {
			postJSON(ann, "/api/v1/requests/"+r.ID+"/decision", decideBody(`{"verb":"approve"}`)(r))
			if got := postJSON(ann, "/api/v1/requests/"+r.ID+"/grant", api.CreateGrant{Seconds: 4 * 3600, Uses: 3}); got.Status >= 300 {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
		}
		grants[i] = volatile(ann.Get("/api/v1/grants").Body)
	}
	if grants[0] != grants[1] || !strings.Contains(grants[0], `"ann"`) {
		t.Errorf("form %s\nJSON %s", grants[0], grants[1])
	}
}

func (c call) start(t *testing.T, s *webtest.Server, b *webtest.Browser, way string) (r api.Request) {
	t.Helper()
	graph, input := "inproc:refund", refundInput
	if c.graph != "" {
		graph, input = c.graph, c.input
	}
	id := ask(t, s, graph, "key-"+c.act+c.key+strings.TrimPrefix(graph, "inproc:")+"-"+way, input)
	if err := json.Unmarshal([]byte(b.Get("/api/v1/requests/"+id).Body), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// post sends the form of an action, which must succeed.
func post(t *testing.T, b *webtest.Browser, id, act string, fields ...string) {
	t.Helper()
	path := "/requests/" + id + "/" + act
	if got := b.Post(path, hidden(b.Get(path), fields...)...); got.Status != http.StatusSeeOther {
		t.Fatalf("%s: %d %s", act, got.Status, got.Body)
	}
}

// effectOf returns a request without what differs from run to run, and without views: pages record
// them, programs do not.
func effectOf(t *testing.T, b *webtest.Browser, id string) string {
	t.Helper()
	var r api.Request
	if err := json.Unmarshal([]byte(b.Get("/api/v1/requests/"+id).Body), &r); err != nil {
		t.Fatal(err)
	}
	if r.Activity != nil {
		r.Activity.Renderings, r.Activity.Viewers, r.Activity.Revision = nil, nil, 0
		r.Activity.History = slices.DeleteFunc(r.Activity.History, func(e api.HistoryEntry) bool { return e.Event == "viewed" })
		for i := range r.Activity.History {
			r.Activity.History[i].Revision = 0
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return volatile(string(text))
}

var volatileParts = []struct{ pattern, with string }{
	{`20\d\d-\d\d-\d\dT[0-9:.]+Z|20\d\d-\d\d-\d\d \d\d:\d\d[^"]*`, "TIME"}, {`\b[a-z]{3,5}_[a-z0-9]{16,}`, "ID"}, {`[0-9a-f]{32,}`, "HASH"}, {`key-[a-z-]+-(form|json)`, "KEY"},
	{`"(seq|revision|number|expires|created|fence)":\d+`, "NUMBER"}, {`"(resume|resumeId|idempotencyKey|rendering|key|request_key)":"[^"]*",?`, ""}, {`"prev":"[^"]*"|"hash":"[^"]*"`, ""},
	{`"shown":\{(?:[^{}]|\{[^{}]*\})*\},?`, ""}, {`"timing":\{[^{}]*\},?`, ""}, {`,}`, "}"}, // pages say what they showed, and since when
}

// volatile replaces what differs from run to run.
func volatile(text string) string {
	for _, v := range volatileParts {
		text = regexp.MustCompile(v.pattern).ReplaceAllString(text, v.with)
	}
	return text
}

// auditOf returns the audit records about a request, without views.
func auditOf(b *webtest.Browser, id string) (lines string) {
	after := 0
	for {
		page := b.Get(fmt.Sprintf("/api/v1/audit?limit=200&after=%d", after)).Body
		n := 0
		for line := range strings.Lines(page) {
			n++
			if strings.Contains(line, id) && !strings.Contains(line, `"kind":"request.rendered"`) && !strings.Contains(line, `"kind":"request.viewed"`) {
				lines += volatile(line)
			}
		}
		if n < 200 {
			return lines
		}
		after += n
	}
}
