package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/box"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store/memory"
)

type draft struct {
	Topic string `json:"topic"`
	Text  string `json:"text,omitempty"`
}

type verdict struct {
	Action   string `json:"action"`
	Feedback string `json:"feedback,omitempty"`
}

var review = fermata.NewKind[string, verdict]("content-review")

// reviewing is seed 000's graph, in short.
func reviewing(t *testing.T) provider.Provider {
	t.Helper()
	g := graph.New[draft]("content-review")
	g.Node("human_review", func(ctx context.Context, d draft) (draft, error) {
		v, err := review.Ask(ctx, "about "+d.Topic+d.Text)
		if err != nil {
			return d, err
		}
		d.Text = map[string]string{"revise": ", " + v.Feedback, "approve": "!"}[v.Action]
		return d, nil
	})
	g.Edge(graph.Start, "human_review")
	g.Branch("human_review", func(d draft) string {
		if strings.HasPrefix(d.Text, ",") {
			return "human_review"
		}
		return graph.End
	}, "human_review", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[draft]{Content: func(d draft) string { return d.Topic + d.Text }}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tokens are who may come in, in these tests: role@account.
var tokens = server.AuthenticatorFunc(func(r *http.Request) (server.Principal, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	role, account, good := strings.Cut(token, "@")
	if !ok || !good {
		return server.Principal{}, server.ErrUnauthenticated
	}
	return server.Principal{Account: account, ID: role, Roles: []server.Role{server.Role(role)}}, nil
})

// site is a server at work.
type site struct {
	*testing.T
	url string
	e   *executor.Executor
	api *huma.OpenAPI
}

func open(t *testing.T, change func(*server.Config)) *site {
	t.Helper()
	b, err := box.New(box.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	e, err := executor.New(executor.Config{Store: memory.NewRuns(nil), Box: b, Providers: []provider.Provider{reviewing(t)}, Poll: 5 * time.Millisecond, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	config := server.Config{Executor: e, Auth: tokens, Limits: server.Limits{Rate: 1e6, Burst: 1e6}}
	if change != nil {
		change(&config)
	}
	s, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.Close()
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &site{t, h.URL, e, s.OpenAPI()}
}

// answer is what a server said.
type answer struct {
	status int
	header http.Header
	body   string
}

// field is a member of the body.
func (a answer) field(name string) any {
	var members map[string]any
	if json.Unmarshal([]byte(a.body), &members) != nil {
		return nil
	}
	return members[name]
}

func (s *site) call(token, method, path, body string, headers ...string) answer {
	s.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, content)
	if err != nil {
		s.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

func (s *site) chat(token, body string, headers ...string) answer {
	s.Helper()
	return s.call(token, "POST", "/api/v1/ai/chat", body, headers...)
}

const startDemo = `{"graphId":"inproc:content-review","stateKey":"demo-1","input":{"topic":"tea"}}`

// Seed 000, over HTTP.
func TestChat_StartReviseApprove(t *testing.T) {
	s := open(t, nil)
	first := s.chat("agent@acme", startDemo)
	if first.status != 200 || first.field("status") != "needs_input" || first.field("stateKey") != "demo-1" {
		t.Fatalf("%+v", first)
	}
	second := s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"revise","feedback":"hot"}}`)
	if second.field("status") != "needs_input" || !strings.Contains(second.body, "about tea, hot") {
		t.Fatalf("%+v", second)
	}
	third := s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"2","resumeValue":{"action":"approve"}}`)
	if third.status != 200 || third.field("status") != "completed" || third.field("content") != "tea!" {
		t.Fatalf("%+v", third)
	}
	if again := s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"2","resumeValue":{"action":"approve"}}`); again.body != third.body {
		t.Errorf("the same again: %+v", again)
	}
}

func TestChat_SaysWhatIsWrong(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	for name, c := range map[string]struct {
		token, body string
		status      int
		code        string
	}{
		"nobody":             {"", startDemo, 401, "unauthenticated"},
		"no JSON":            {"agent@acme", `{`, 400, "bad_request"},
		"duplicate key":      {"agent@acme", `{"graphId":"a","graphId":"b"}`, 400, "bad_request"},
		"case variant":       {"agent@acme", `{"graphid":"a"}`, 400, "bad_request"},
		"unknown key":        {"agent@acme", `{"graphId":"a","x":1}`, 400, "bad_request"},
		"trailing data":      {"agent@acme", startDemo + `{}`, 400, "bad_request"},
		"invalid UTF-8":      {"agent@acme", "{\"graphId\":\"\xff\"}", 400, "bad_request"},
		"unknown graph":      {"agent@acme", `{"graphId":"inproc:x","input":{}}`, 404, "unknown_graph"},
		"in use":             {"agent@acme", strings.Replace(startDemo, "tea", "coffee", 1), 409, "state_key_in_use"},
		"start as approver":  {"approver@acme", startDemo, 403, "forbidden"},
		"resume as agent":    {"agent@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`, 403, "forbidden"},
		"another account":    {"approver@other", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`, 404, "not_found"},
		"a bad answer":       {"approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":"approve"}`, 400, "bad_answer"},
		"nothing to answer":  {"approver@acme", `{"stateKey":"demo-1","resumeId":"1"}`, 400, "bad_request"},
		"both at once":       {"admin@acme", `{"graphId":"inproc:content-review","stateKey":"demo-1","resumeId":"1","resumeValue":{}}`, 400, "bad_request"},
		"unknown question":   {"approver@acme", `{"stateKey":"demo-1","resumeId":"x","resumeTargets":{"int_x":{}}}`, 404, "not_found"},
		"too large":          {"agent@acme", `{"graphId":"` + strings.Repeat("x", 3<<20) + `"}`, 413, "too_large"},
		"not what was shown": {"approver@acme", "", 412, "digest_mismatch"},
	} {
		if c.body == "" {
			var list struct{ Items []struct{ ID string } }
			if err := json.Unmarshal([]byte(s.call("approver@acme", "GET", "/api/v1/requests", "").body), &list); err != nil || len(list.Items) != 1 {
				t.Fatal(list, err)
			}
			c.body = `{"stateKey":"demo-1","resumeId":"shown","resumeTargets":{"` + list.Items[0].ID + `":{"action":"approve"}},"shown":{"` + list.Items[0].ID + `":"else"}}`
		}
		got := s.chat(c.token, c.body)
		if got.status != c.status || got.field("code") != c.code || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

func TestChat_NumbersAreKeptExactly(t *testing.T) {
	s := open(t, nil)
	got := s.chat("agent@acme", `{"graphId":"inproc:content-review","input":{"topic":"9007199254740993"},"stateKey":"9007199254740993"}`)
	if got.field("stateKey") != "9007199254740993" {
		t.Errorf("%+v", got)
	}
}

func TestChat_NeedNotWait(t *testing.T) {
	s := open(t, nil)
	got := s.chat("agent@acme", startDemo, "Prefer", "respond-async")
	if got.status != 202 && got.status != 200 || got.field("stateKey") != "demo-1" {
		t.Errorf("%+v", got)
	}
	if got := s.chat("agent@acme", startDemo, "Prefer", "wait=10"); got.status != 200 || got.field("status") != "needs_input" {
		t.Errorf("%+v", got)
	}
	if got := s.chat("agent@acme", startDemo, "Prefer", "wait=1000"); got.status != 400 {
		t.Errorf("%+v", got)
	}
}

func TestRequests_AreListedAndDecided(t *testing.T) {
	s := open(t, nil)
	for _, key := range []string{"a", "b", "c"} {
		s.chat("agent@acme", strings.Replace(startDemo, "demo-1", key, 1))
	}
	var page struct {
		Items []api.Request
		Next  string
	}
	var keys []string
	for cursor := ""; ; cursor = page.Next {
		page.Next = ""
		got := s.call("approver@acme", "GET", "/api/v1/requests?limit=2&cursor="+cursor, "")
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 {
			t.Fatal(got, err)
		}
		for _, r := range page.Items {
			keys = append(keys, r.StateKey)
		}
		if page.Next == "" {
			break
		}
	}
	if strings.Join(keys, "") != "abc" {
		t.Errorf("listed are %v", keys)
	}
	r := page.Items[0]
	got := s.call("approver@acme", "POST", "/api/v1/requests/"+r.ID+"/decision", `{"resumeId":"1","answer":{"action":"approve"},"shown":"`+r.Shown+`"}`)
	if got.status != 200 || got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}
	if got := s.call("auditor@acme", "GET", "/api/v1/requests/"+r.ID, ""); got.field("state") != "decided" || !strings.Contains(got.body, `"by":"approver"`) {
		t.Errorf("%+v", got)
	}
	late := s.call("admin@acme", "POST", "/api/v1/requests/"+r.ID+"/decision", `{"resumeId":"2","answer":{"action":"revise"}}`)
	if late.status != 409 || late.field("code") != "already_decided" || !strings.Contains(late.body, `"by":"approver"`) {
		t.Errorf("%+v", late)
	}
}

func TestEvents_AreStreamedAndGoOnWhereTheyWere(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/v1/runs/demo-1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer auditor@acme")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", "1")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`)
	var kinds []string
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kinds = append(kinds, kind)
		}
	}
	if got := strings.Join(kinds, " "); got != "asked waiting outcome decided completed outcome" && got != "asked waiting decided completed outcome" {
		t.Errorf("it saw %s", got)
	}
}
