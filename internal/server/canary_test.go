package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// Values that must not leak, each with its own mark.
const (
	secretRef    = canary + "-REF"
	secretInput  = canary + "-INPUT"
	secretAnswer = canary + "-ANSWER"
	secretError  = canary + "-ERROR"
)

// refProvider has secret provider refs, and sometimes fails.
type refProvider struct{ provider.Provider }

func (p refProvider) CheckAnswer(ctx context.Context, run provider.Run, interrupt string, answer json.RawMessage) (json.RawMessage, error) {
	if strings.Contains(string(answer), "explode") {
		return nil, fmt.Errorf("%s: %s", secretError, answer)
	}
	return p.Provider.CheckAnswer(ctx, run, interrupt, answer)
}

func (p refProvider) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	if err := e.Owner.SetRef(ctx, secretRef+"-"+e.Run.ID); err != nil {
		return provider.Result{}, err
	}
	if e.Run.StateKey == "unfinished" {
		return provider.Result{}, errors.New(secretError)
	}
	return p.Provider.Execute(ctx, e)
}

// canarySite is a site with real keys that records all responses.
type canarySite struct {
	*site
	keys      map[string]string
	responses []answer // all responses of the server
}

func openCanarySite(t *testing.T) *canarySite {
	t.Helper()
	runs := memory.NewStore(nil)
	broken := single(t, "broken", func(context.Context, draft) (draft, error) { return draft{}, errors.New(secretError) })
	panics := single(t, "panics", func(context.Context, draft) (draft, error) { panic(secretError) })
	s := &canarySite{keys: make(map[string]string)}
	s.site = openWith(t, func(c *server.Config) { c.Auth = authn.Keys(runs) }, func(c *executor.Config) {
		c.Store, c.Providers[0] = runs, refProvider{c.Providers[0]}
	}, broken, panics)
	log.SetOutput(s.log)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	for _, account := range []string{"acme", "other"} {
		for _, role := range authn.Roles {
			key, kept, err := authn.NewKey(account, string(role), role, time.Time{})
			if err == nil {
				err = runs.AddCredential(t.Context(), kept, store.Writes{})
			}
			if err != nil {
				t.Fatal(err)
			}
			s.keys[string(role)+"@"+account] = key
		}
	}
	return s
}

// ask sends a request, and records the response.
func (s *canarySite) ask(who, method, path, body string, headers ...string) answer {
	s.Helper()
	got := s.call(s.keys[who], method, path, body, headers...)
	recorded := got
	// only an admin gets the complete error of a run, in one field
	if problem, ok := got.field("problem").(map[string]any); ok && strings.HasPrefix(who, "admin@") && method == "GET" {
		detail, err := json.Marshal(problem["detail"])
		if err != nil {
			s.Fatal(err)
		}
		recorded.body = strings.ReplaceAll(got.body, `"detail":`+string(detail), "")
	}
	s.responses = append(s.responses, recorded)
	return got
}

// Provider refs, keys, inputs, answers and internal errors reach only those they are for: not logs,
// metrics, problems, other accounts or streams.
func TestI7_SecretsDoNotLeak(t *testing.T) {
	s := openCanarySite(t)
	start := fmt.Sprintf(`{"graphId":"inproc:content-review","stateKey":"k","input":{"topic":%q}}`, secretInput)
	s.ask("agent@acme", "POST", "/api/v1/ai/chat", start)
	id := s.openRequests("acme")[0].ID
	s.misuse(id)
	stream := s.collectStream("agent@acme", "/api/v1/runs/k/events")
	decided := s.ask("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", fmt.Sprintf(`{"resumeId":"1","answer":{"action":"approve","feedback":%q}}`, secretAnswer))
	if decided.field("status") != "completed" {
		t.Fatalf("%+v", decided)
	}
	s.misuse(id)
	for _, graph := range []string{"broken", "panics"} {
		got := s.ask("agent@acme", "POST", "/api/v1/ai/chat", fmt.Sprintf(`{"graphId":"inproc:%s","stateKey":%q,"input":{"topic":%q}}`, graph, graph, secretInput))
		if got.field("status") != "error" {
			t.Errorf("%+v", got)
		}
		for _, who := range []string{"agent@acme", "approver@acme", "auditor@acme", "admin@acme"} {
			detail := s.ask(who, "GET", "/api/v1/runs/"+graph, "").body
			if strings.Contains(detail, secretError) != (who == "admin@acme") {
				t.Errorf("%s gets %s", who, detail)
			}
		}
		s.ask("agent@acme", "POST", "/api/v1/ai/chat", fmt.Sprintf(`{"graphId":"inproc:%s","stateKey":"s-%s","input":{"topic":%q}}`, graph, graph, secretInput), "Accept", acceptStream)
	}
	s.ask("agent@acme", "POST", "/api/v1/ai/chat", strings.Replace(start, `"k"`, `"unfinished"`, 1), "Prefer", "respond-async")
	s.until("an execution that could not be finished", func() bool { return strings.Contains(s.log.String(), "not finished") })
	if !strings.Contains(s.log.String(), "why=") {
		t.Errorf("the kind of error is not logged:\n%s", s.log.String())
	}
	s.readAll(id)
	s.checkNoCanary("a stream", stream())
	for _, got := range s.responses {
		s.checkProblem(got)
	}
	everything := s.log.String() + s.metrics()
	for who, key := range s.keys {
		if strings.Contains(everything, key) || strings.Contains(everything, key[24:40]) {
			t.Errorf("the key of %s is in the log or in the metrics", who)
		}
	}
	s.checkSealed()
}

// checkProblem checks one response.
func (s *canarySite) checkProblem(got answer) {
	s.Helper()
	text := fmt.Sprint(got.body, got.header)
	for _, secret := range []string{secretRef, secretError} {
		if strings.Contains(text, secret) {
			s.Errorf("%s: %s", secret, text)
		}
	}
	for who, key := range s.keys {
		if strings.Contains(text, key) {
			s.Errorf("the key of %s: %s", who, text)
		}
	}
	if got.status >= 400 {
		s.checkNoCanary("a problem", text)
	}
}

// misuse sends secrets to wrong places, and reads objects of others.
func (s *canarySite) misuse(id string) {
	s.Helper()
	quoted := fmt.Sprintf("%q", secretAnswer)
	for _, body := range []string{
		`{"resumeId":"9","answer":` + quoted + `}`, `{"resumeId":"9","answer":{"action":` + quoted + `,"x":` + quoted + `}}`, `{"resumeId":"9","answer":{"action":[` + quoted + `]}}`,
		`{"resumeId":"9","answer":{"action":"approve","feedback":{"a":` + quoted + `}}}`, `{"resumeId":["` + secretAnswer + `"]}`, `{"resumeId":"9","answer":` + quoted,
		`{"resumeId":"9","answer":{"a":` + quoted + `,"a":` + quoted + `}}`, `{"resumeId":"9","shown":` + quoted + `,"answer":{"action":"approve"}}`, secretAnswer, quoted,
	} {
		for _, who := range []string{"approver@acme", "agent@acme", "admin@other", ""} {
			got := s.ask(who, "POST", "/api/v1/requests/"+id+"/decision", body)
			if got.status < 400 {
				s.Errorf("%s: %+v", body, got)
			}
		}
		s.ask("approver@acme", "POST", "/api/v1/ai/chat", body, "Prefer", secretAnswer)
		s.ask("agent@acme", "POST", "/api/v1/requests", body)
	}
	// not authenticated
	s.ask("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"9","answer":{"action":"explode","feedback":`+quoted+`}}`)
	s.ask("agent@acme", "GET", "/api/v1/runs/unknown/events", "", "Last-Event-ID", secretAnswer)
	s.ask("agent@acme", "GET", "/api/v1/runs?cursor="+secretAnswer, "")
	s.ask("agent@acme", "GET", "/api/v1/runs?limit="+secretAnswer, "")
	s.ask("agent@acme", "POST", "/api/v1/ai/chat", `{"graphId":"inproc:content-review","input":{"topic":{"a":`+quoted+`}}}`)
	s.call(s.keys["agent@acme"]+"x", "GET", "/api/v1/runs", "") // almost a key
	s.responses = append(s.responses, s.call(s.keys["agent@acme"]+"x", "GET", "/api/v1/runs", ""))
}

// readAll reads everything.
func (s *canarySite) readAll(id string) {
	s.Helper()
	for who := range s.keys {
		for _, path := range []string{"/api/v1/runs", "/api/v1/runs/k", "/api/v1/runs/broken", "/api/v1/requests?state=all", "/api/v1/requests/" + id, "/api/v1/answers", "/api/v1/graphs", "/api/v1/graphs/inproc:content-review", "/api/v1/runs/k/graph", "/api/v1/runs/broken/graph", "/api/v1/kinds", "/api/v1/me", "/healthz", "/readyz", "/openapi.json", "/"} {
			got := s.ask(who, "GET", path, "")
			if strings.HasSuffix(who, "@other") {
				s.checkNoCanary("what "+who+" sees at "+path, got.body)
			}
		}
	}
	for _, path := range []string{"/api/v1/runs", "/healthz", "/openapi.json"} {
		s.checkNoCanary("an anonymous response", s.ask("", "GET", path, "").body)
	}
}

// collectStream reads a stream in the background, with an invalid last event id; the returned
// function waits for its end.
func (s *canarySite) collectStream(who, path string) func() string {
	s.Helper()
	done := make(chan string, 1)
	go func() {
		done <- s.call(s.keys[who], "GET", path, "", "Accept", acceptStream, "Last-Event-ID", secretAnswer).body
	}()
	return func() string {
		// The outcome and the tokens are for followers of the run; other events contain no run
		// data.
		var rest []string
		for _, e := range eventsIn(strings.NewReader(<-done), nil) {
			if e.kind != "outcome" {
				rest = append(rest, e.data)
			}
		}
		return strings.Join(rest, "\n")
	}
}

// checkSealed checks that the secrets are in the store, encrypted, so that the test could have
// found them.
func (s *canarySite) checkSealed() {
	s.Helper()
	view, err := s.e.GetRun(s.Context(), "acme", "k")
	if err != nil || len(view.Interrupts) != 1 || !strings.Contains(string(view.Interrupts[0].Answer), secretAnswer) || view.ProviderRef != nil || view.Status != store.StatusCompleted {
		s.Errorf("%+v, %v", view, err)
	}
}
