package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider/inproc"
)

// A question to an end user is no work of approvers: lists, counts, reports and the limit of open
// requests leave it out. It is found by its kind and its run. Handed over, it is a request.
func TestConversations_QuestionsToUsersAreNotRequestsOfApprovers(t *testing.T) {
	s := openConversations(t, nil, func(c *server.Config) { c.Limits.OpenRequests = 2 })
	for _, id := range []string{"c1", "c2", "c3"} {
		s.call("user@acme", "POST", conversations, `{"id":"`+id+`"}`)
		s.say("user@acme", id, `{"text":"write to Anna"}`)
	}
	listed := func(who, query string) int {
		t.Helper()
		got := s.call(who, "GET", "/api/v1/requests"+query, "")
		var page api.Page[api.Request]
		if err := json.Unmarshal([]byte(got.body), &page); got.status != 200 || err != nil {
			t.Fatalf("%s, %s: %+v", who, query, got)
		}
		return len(page.Items)
	}
	counted := func() (c api.RequestCounts) {
		t.Helper()
		if got := s.call("admin@acme", "GET", "/api/v1/requests/counts", ""); json.Unmarshal([]byte(got.body), &c) != nil {
			t.Fatalf("%+v", got)
		}
		return c
	}
	for _, who := range []string{"approver@acme", "auditor@acme", "admin@acme"} {
		for _, query := range []string{"", "?state=all", "?q=-is:claimed"} {
			if n := listed(who, query); n != 0 {
				t.Errorf("%s finds %d requests with %q", who, n, query)
			}
		}
	}
	if c := counted(); c.Open.Count != 0 || c.Mine.Count != 0 {
		t.Errorf("counts %+v", c)
	}
	open := s.openRequests("acme")
	for _, query := range []string{"?kind=dialog-question", "?q=kind:dialog-question"} {
		if n := listed("admin@acme", query); n != len(open) || n < 3 {
			t.Errorf("%q finds %d of %d questions", query, n, len(open))
		}
	}
	if n := listed("admin@acme", "?q=run:"+open[0].StateKey); n == 0 {
		t.Error("a question is not found by its run")
	}
	report := func() string { return s.call("admin@acme", "GET", "/api/v1/analytics", "").body }
	if body := report(); strings.Contains(body, "dialog-question") || !strings.Contains(body, `"requests":0`) {
		t.Errorf("the report has questions to users: %s", body)
	}
	for range 3 {
		s.say("user@acme", "c1", `{"text":"blue"}`)
	}
	if n, c := listed("approver@acme", ""), counted(); n != 1 || c.Open.Count != 1 {
		t.Errorf("handed over: %d requests, counts %+v", n, c)
	}
	if body := report(); !strings.Contains(body, "conversation-hand-over") {
		t.Errorf("the report has not what was handed over: %s", body)
	}
}

// The results of runs with an end user are for that user, auditors and admins. So is the transcript
// in the result of a hand-over.
func TestConversations_ResultsOfRunsAreForTheUser(t *testing.T) {
	s := openConversations(t, nil, nil)
	s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
	s.say("user@acme", "c1", `{"text":"my secret errand"}`)
	for range 3 {
		s.say("user@acme", "c1", `{"text":"my secret colour"}`)
	}
	open := s.openRequests("acme")
	var person executor.RequestView
	for _, q := range open {
		if q.Kind == "conversation-hand-over" {
			person = q
		}
	}
	if person.Request == nil {
		t.Fatalf("%+v", open)
	}
	decided := s.call("approver@acme", "POST", "/api/v1/requests/"+person.ID+"/decision", `{"resumeId":"r1","shown":"`+person.Request.Digest()+`","answer":{"option":"anna-s"}}`)
	if decided.status != 200 || !strings.Contains(decided.body, `"completed"`) || strings.Contains(decided.body, "secret") {
		t.Errorf("the approver who answers gets %+v", decided)
	}
	s.call("user@acme", "POST", conversations+"/c1/messages", `{"text":"hello again"}`)
	record := recordOf(s, s.call("user@acme", "GET", conversations+"/c1", "").body)
	for _, run := range []string{person.StateKey, record.Questions[0].Target.Run} {
		for who, sees := range map[string]bool{"approver@acme": false, "agent@acme": false, "auditor@acme": true, "admin@acme": true} {
			for _, path := range []string{"/api/v1/runs/" + run, "/api/v1/runs/" + run + "/events"} {
				got := s.call(who, "GET", path, "")
				if got.status != http.StatusOK || !strings.Contains(got.body, `"status":"completed"`) || strings.Contains(got.body, `"output"`) != sees || strings.Contains(got.body, "Done: anna-s") != (sees && run != person.StateKey) {
					t.Errorf("%s, GET %s: %+v", who, path, got)
				}
			}
		}
	}
}

// gatedModel streams after its gate is closed.
type gatedModel struct {
	agent.Streamer
	gate chan struct{}
}

func (m gatedModel) Stream(ctx context.Context, r *agent.Request) iter.Seq2[*agent.Chunk, error] {
	select {
	case <-m.gate:
	case <-ctx.Done():
	}
	return m.Streamer.Stream(ctx, r)
}

// The tokens of a run are visible like its result.
func TestConversations_TokensOfRunsAreForTheUser(t *testing.T) {
	gate := make(chan struct{})
	a, err := agent.NewChat(agent.Chat{Name: "helper", Description: "Answers.", Model: gatedModel{script.New(script.Say("A secret for you.")), gate}})
	if err != nil {
		t.Fatal(err)
	}
	s := openWith(t, nil, nil, inproc.Agent(agent.RunnerConfig{Agent: a, EnableStreaming: true}))
	s.e.StartWorkers()
	_, err = s.e.Start(t.Context(), executor.StartRequest{Account: "acme", StateKey: "k", Graph: "inproc:helper", Input: []byte(`{"query":"hi"}`), Actor: "user", EndUser: "user", Wait: -1})
	if err != nil && !errors.Is(err, executor.ErrPending) {
		t.Fatal(err)
	}
	streams := make(map[string]func() (sse, bool))
	for _, who := range []string{"approver@acme", "agent@acme", "auditor@acme"} {
		next, done := s.openStream(who, "GET", "/api/v1/runs/k/events", "")
		defer done()
		next() // it has begun
		streams[who] = next
	}
	close(gate)
	for who, next := range streams {
		var all strings.Builder
		for e, ok := next(); ok; e, ok = next() {
			all.WriteString(e.kind + " " + e.data + "\n")
		}
		if sees := who == "auditor@acme"; strings.Contains(all.String(), "token ") != sees || strings.Contains(all.String(), "secret") != sees || !strings.Contains(all.String(), `"completed"`) {
			t.Errorf("%s got %s", who, all.String())
		}
	}
}

// A stream ends when its caller loses the role that showed the conversation, also if another role
// of the operation is left.
func TestConversations_StreamEndsWithTheRoleThatAllowedIt(t *testing.T) {
	var demoted atomic.Bool
	s := openConversations(t, nil, func(c *server.Config) {
		c.Limits.AuthRecheck = time.Millisecond
		c.Auth = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
			p, err := testTokens.Authenticate(r)
			if p.ID == "auditor" {
				p.Roles = []authn.Role{authn.RoleUser, authn.RoleAuditor}
				if demoted.Load() {
					p.Roles = p.Roles[:1]
				}
			}
			return p, err
		})
	})
	s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
	s.say("user@acme", "c1", `{"text":"hello"}`)
	next, done := s.openStream("auditor@acme", "GET", conversations+"/c1/events", "")
	timeout := time.AfterFunc(30*time.Second, done) // a stream that stays open fails the test below
	if e, ok := next(); !ok || e.kind != "line" {
		t.Fatal(e, ok)
	}
	demoted.Store(true)
	for _, ok := next(); ok; _, ok = next() {
	}
	if !timeout.Stop() {
		t.Error("the stream stays open")
	}
	done()
}

// brokenRuns cannot start runs.
type brokenRuns struct{ conversation.Runs }

func (brokenRuns) Start(context.Context, string, dialog.Start) error {
	return errors.New("the provider is unreachable")
}

// Operators see an error that the client of a stream gets.
func TestConversations_ErrorInAStreamIsLogged(t *testing.T) {
	s := openConversations(t, nil, func(c *server.Config) {
		b, err := seal.New(seal.Key{1})
		if err != nil {
			t.Fatal(err)
		}
		if c.Dialog, err = conversation.New(conversation.Config{Store: encrypted.New(memory.NewStore(nil), b), Runs: brokenRuns{}}); err != nil {
			t.Fatal(err)
		}
	})
	s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
	next, done := s.openStream("user@acme", "POST", conversations+"/c1/messages", `{"text":"hello"}`)
	defer done()
	var kinds []string
	for e, ok := next(); ok; e, ok = next() {
		kinds = append(kinds, e.kind)
	}
	if len(kinds) == 0 || kinds[len(kinds)-1] != "problem" {
		t.Errorf("the events are %q", kinds)
	}
	if log := s.log.String(); !strings.Contains(log, "operation=send-message") || !strings.Contains(log, "the provider is unreachable") {
		t.Error(log)
	}
}
