package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

// payment has a sensitive argument.
type payment struct {
	Card   string `json:"card"`
	Amount int    `json:"amount"`
}

const (
	payRules = `
version: "1"
default: deny
rules:
- id: pay
  when: req.tool == "pay"
  then: ask
  ask:
    groups: [{from: ["group:finance"]}]
    editable: [""]
    deadline: 1h
    remember_max: 1h
    visible_to: ["group:hr", "user:una"]
    sensitive: ["/card"]
- id: buy
  when: req.tool == "buy"
  then: ask
  ask: {groups: [{from: ["group:finance"]}], deadline: 1h}
`
	card     = "4111-2222-3333-4444"
	startPay = `{"graphId":"inproc:pay","stateKey":"pay-1","input":{"card":"` + card + `","amount":5}}`
)

// payPeople authenticates people by name: fay is in finance and decides, hugo is in hr and una is
// listed, zoe is an approver in no group, lea is a person who also starts runs.
var payPeople = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
	p, err := testTokens(r)
	switch {
	case err != nil:
	case slices.Contains([]string{"fay", "hugo", "una", "zoe"}, p.ID):
		p.Roles = []authn.Role{authn.RoleApprover}
	case p.ID == "lea":
		p.Roles = []authn.Role{authn.RoleApprover, authn.RoleAgent}
	case p.ID == "bot":
		p.Roles = []authn.Role{authn.RoleAgent}
	}
	return p, err
})

// openPaySite is a server with two graphs that ask to pay, one for all people to see.
func openPaySite(t *testing.T, s store.Store, changes ...func(*executor.Config)) *site {
	t.Helper()
	set, err := policy.Load("policy.yaml", []byte(payRules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	asks := func(action string) func(ctx context.Context, p payment) (payment, error) {
		return func(ctx context.Context, p payment) (payment, error) {
			yes, err := fermata.Approve(ctx, fermata.Action[payment]{Name: action, Args: p, Summary: "Charge " + p.Card})
			if err != nil {
				return p, err
			}
			_, err = fermata.Effect(ctx, yes, func(context.Context, payment, string) (string, error) { return "done", nil })
			return p, err
		}
	}
	return openWith(t, func(c *server.Config) { c.Auth = payPeople }, func(c *executor.Config) {
		c.Store = s
		c.Desk = executor.DeskConfig{Policy: set, Directory: desk.StaticDirectory{"group:finance": {"fay"}, "group:hr": {"hugo"}}}
		for _, change := range changes {
			change(c)
		}
	}, single(t, "pay", asks("pay")), single(t, "buy", asks("buy")))
}

// eachStore runs a test with a store in memory and with SQLite.
func eachStore(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, memory.NewStore(nil)) })
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, s)
	})
}

// A restricted request exists only for its audience, the people who decide it, the agent that asked
// and admins, wherever it could appear.
func TestVisibility_PeopleAndResponses(t *testing.T) {
	eachStore(t, func(t *testing.T, st store.Store) {
		s := openPaySite(t, st)
		asked := s.chat("agent@acme", startPay)
		id := s.openRequests("acme")[0].ID
		if !strings.Contains(asked.body, id) {
			t.Errorf("the agent that asked does not get its outcome: %+v", asked)
		}
		requests, one := "/api/v1/requests", "/api/v1/requests/"+id
		run := "/api/v1/runs/pay-1"
		for _, c := range []struct {
			who  string
			sees bool
			// responses that this person may ask for
			paths []string
		}{
			{"admin@acme", true, []string{requests, one, run}},
			{"fay@acme", true, []string{requests, one, run}},
			{"hugo@acme", true, []string{requests, one, run}},
			{"una@acme", true, []string{requests, one, run}},
			{"agent@acme", true, []string{one, run}},
			{"zoe@acme", false, []string{requests, one, run}},
			{"lea@acme", false, []string{requests, one, run}},
			{"auditor@acme", false, []string{requests, one, run}},
			{"bot@acme", false, []string{one, run}},
			{"fay@other", false, []string{requests, one}},
		} {
			for _, path := range c.paths {
				got := s.call(c.who, "GET", path, "")
				if sees := got.status == 200 && strings.Contains(got.body, id); sees != c.sees {
					t.Errorf("%s, GET %s: %d %s", c.who, path, got.status, got.body)
				}
				if !c.sees && path == one {
					if missing := s.call(c.who, "GET", requests+"/nothing", ""); got.status != 404 || got.body != missing.body {
						t.Errorf("%s: %s differs from %s", c.who, got.body, missing.body)
					}
				}
			}
		}
		for _, name := range []string{"zoe@acme", "lea@acme", "auditor@acme", "bot@acme"} {
			if got := s.call(name, "GET", run, ""); got.status != 200 || got.field("outcome") != nil || got.field("status") != "waiting" {
				t.Errorf("%s: the run: %+v", name, got)
			}
			if graph := s.call(name, "GET", run+"/graph", ""); strings.Contains(graph.body, `"waiting":true`) {
				t.Errorf("%s: the graph: %s", name, graph.body)
			}
		}
	})
}

// All operations on a hidden request answer as if it did not exist, and change nothing.
func TestVisibility_ActionsOnHiddenRequest(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	s.chat("agent@acme", startPay)
	q := s.openRequests("acme")[0]
	bodies := map[string]string{"decision": `{"resumeId":"r1","answer":{"verb":"approve"}}`, "grant": `{"seconds":60,"uses":1}`}
	n := 0
	for route := range mayCall {
		method, path, _ := strings.Cut(route, " ")
		rest, ok := strings.CutPrefix(path, "/api/v1/requests/{id}")
		if !ok {
			continue
		}
		n++
		body := bodies[strings.TrimPrefix(rest, "/")]
		if body == "" && method == "POST" {
			body = `{"text":"x"}`
		}
		if rest == "/reveal" {
			body = ""
		}
		for _, who := range []string{"zoe@acme", "lea@acme"} {
			hidden := s.call(who, method, "/api/v1/requests/"+q.ID+rest, body)
			missing := s.call(who, method, "/api/v1/requests/nothing"+rest, body)
			if hidden.status != missing.status || hidden.body != missing.body || hidden.status != 404 && hidden.status != 403 {
				t.Errorf("%s %s: %d %s, a missing one %d %s", who, route, hidden.status, hidden.body, missing.status, missing.body)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d operations", n)
	}
	for _, body := range []string{
		`{"stateKey":"pay-1","resumeId":"r2","resumeTargets":{"` + q.ID + `":{"verb":"approve"}}}`,
		`{"stateKey":"pay-1","resumeId":"r3","interruptId":"` + q.ID + `","resumeValue":{"verb":"approve"}}`,
		`{"stateKey":"pay-1","resumeId":"r3","resumeValue":{"verb":"approve"}}`,
	} {
		if got := s.chat("zoe@acme", body); got.status != 404 && got.status != 409 || strings.Contains(got.body, q.ID) {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if now, err := s.e.RequestDocument(t.Context(), "acme", q.ID); err != nil || now.Rev != q.Request.Rev {
		t.Errorf("it was changed: %+v, %v", now, err)
	}
}

// Pages are filled although some requests are hidden, and no cursor names a hidden one.
func TestVisibility_PagesHaveNoGaps(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	var visible []string
	for i := range 12 {
		graph := "pay"
		if i%3 == 0 {
			graph = "buy"
		}
		s.chat("agent@acme", fmt.Sprintf(`{"graphId":"inproc:%s","stateKey":"k%d","input":{"card":"c","amount":1}}`, graph, i))
	}
	for _, q := range s.openRequests("acme") {
		if q.Graph == "buy" {
			visible = append(visible, q.ID)
		}
	}
	var got []string
	for cursor, pages := "", 0; ; pages++ {
		var page api.Page[api.Request]
		answer := s.call("zoe@acme", "GET", "/api/v1/requests?limit=2&cursor="+cursor, "")
		if err := json.Unmarshal([]byte(answer.body), &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Items {
			got = append(got, r.ID)
		}
		if page.Next == "" {
			if pages != 1 || len(page.Items) != 2 {
				t.Errorf("page %d has %d requests", pages, len(page.Items))
			}
			break
		}
		cursor = page.Next
	}
	if !slices.Equal(got, visible) {
		t.Errorf("%q instead of %q", got, visible)
	}
}

// One page reads a bounded number of requests, also if all of them are hidden. Its cursor continues
// behind them.
func TestVisibility_PageOfHiddenRequestsIsBounded(t *testing.T) {
	defer server.SetMaxScanned(4)()
	eachStore(t, func(t *testing.T, st store.Store) {
		s := openPaySite(t, st)
		for i := range 9 {
			graph := "pay"
			if i == 8 {
				graph = "buy"
			}
			s.chat("agent@acme", fmt.Sprintf(`{"graphId":"inproc:%s","stateKey":"k%d","input":{"card":"c","amount":1}}`, graph, i))
		}
		found, pages := 0, 0
		for cursor := ""; ; pages++ {
			page := decode[api.Page[api.Request]](t, s.call("zoe@acme", "GET", "/api/v1/requests?limit=2&cursor="+cursor, ""))
			place, err := base64.RawURLEncoding.DecodeString(page.Next)
			if err != nil || strings.Contains(string(place), "int_") {
				t.Fatalf("the cursor names a hidden request: %s, %v", place, err)
			}
			found += len(page.Items)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if found != 1 || pages < 1 {
			t.Errorf("%d requests on %d pages", found, pages+1)
		}
	})
}

// The events and answers of a hidden request are left out; the run's own events stay.
func TestVisibility_EventsAndAnswers(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	s.chat("agent@acme", startPay)
	q := s.openRequests("acme")[0]
	if got := s.call("fay@acme", "POST", "/api/v1/requests/"+q.ID+"/decision", `{"resumeId":"r1","shown":"`+q.Request.Digest()+`","answer":{"verb":"approve"}}`); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	for who, sees := range map[string]bool{"fay@acme": true, "agent@acme": true, "zoe@acme": false, "bot@acme": false} {
		events := s.call(who, "GET", "/api/v1/runs/pay-1/events", "")
		if strings.Contains(events.body, q.ID) != sees || !strings.Contains(events.body, "event: completed") {
			t.Errorf("%s: %s", who, events.body)
		}
	}
	for who, sees := range map[string]bool{"agent@acme": true, "admin@acme": true, "bot@acme": false, "auditor@acme": false} {
		if answers := s.call(who, "GET", "/api/v1/answers", ""); answers.status != 200 || strings.Contains(answers.body, q.ID) != sees {
			t.Errorf("%s: %+v", who, answers)
		}
	}
	for who, sees := range map[string]bool{"zoe@acme": false, "admin@acme": true} {
		if report := s.call(who, "GET", "/api/v1/analytics", ""); report.status != 200 || strings.Contains(report.body, `"pay"`) != sees {
			t.Errorf("%s: %+v", who, report)
		}
	}
}

// A person who starts a run and is not in the audience learns only that the run is active.
func TestVisibility_RequesterOutsideTheAudience(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	if got := s.chat("lea@acme", startPay); got.status != 202 || strings.Contains(got.body, card) {
		t.Errorf("%+v", got)
	}
	if got := s.chat("lea@acme", startPay, "Accept", "text/event-stream"); got.status != 200 || strings.Contains(got.body, card) || strings.Contains(got.body, s.openRequests("acme")[0].ID) {
		t.Errorf("as a stream: %+v", got)
	}
}

// The output of a finished run repeats the arguments. People who could not see the request get no
// output, and others get it masked.
func TestVisibility_OutputOfAFinishedRun(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	s.chat("agent@acme", startPay)
	q := s.openRequests("acme")[0]
	decided := s.call("fay@acme", "POST", "/api/v1/requests/"+q.ID+"/decision", `{"resumeId":"r1","shown":"`+q.Request.Digest()+`","answer":{"verb":"approve"}}`)
	if decided.status != 200 || strings.Contains(decided.body, card) {
		t.Errorf("the decision: %+v", decided)
	}
	for who, want := range map[string]string{
		"agent@acme": card, "fay@acme": "•••", "hugo@acme": "•••", "admin@acme": "•••", "zoe@acme": "", "lea@acme": "", "auditor@acme": "", "bot@acme": "",
	} {
		for _, path := range []string{"/api/v1/runs/pay-1", "/api/v1/runs/pay-1/events"} {
			got := s.call(who, "GET", path, "")
			if got.status != 200 || !strings.Contains(got.body, `"status":"completed"`) {
				t.Errorf("%s, GET %s: %+v", who, path, got)
			}
			if want != card && strings.Contains(got.body, card) || !strings.Contains(got.body, want) || want == "" && strings.Contains(got.body, `"output"`) {
				t.Errorf("%s, GET %s: the output is not %q: %s", who, path, want, got.body)
			}
		}
	}
}

// The result of a run of an agent elsewhere is the answer to its request, so it is hidden and
// masked like the request.
func TestVisibility_ResultOfAnAgentElsewhere(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	const edited = "5111-2222-3333-4444"
	start := `{"stateKey":"pay-2","kind":"approval","data":{"action":"pay","args":{"card":"` + card + `","amount":5},"argsSchema":{"type":"object"}}}`
	s.call("agent@acme", "POST", "/api/v1/requests", start)
	q := s.openRequests("acme")[0]
	if got := s.call("fay@acme", "POST", "/api/v1/requests/"+q.ID+"/decision", `{"resumeId":"r1","shown":"`+q.Request.Digest()+`","answer":{"verb":"approve","args":{"card":"`+edited+`","amount":6}}}`); got.status != 200 || strings.Contains(got.body, edited) {
		t.Fatalf("%+v", got)
	}
	for who, want := range map[string]string{"agent@acme": edited, "hugo@acme": `"card":"•••"`, "admin@acme": `"card":"•••"`, "zoe@acme": "", "bot@acme": ""} {
		for _, path := range []string{"/api/v1/runs/pay-2", "/api/v1/runs/pay-2/events"} {
			got := s.call(who, "GET", path, "")
			switch {
			case got.status != 200 || !strings.Contains(got.body, `"status":"completed"`),
				want != edited && strings.Contains(got.body, edited),
				want == "" && strings.Contains(got.body, `"output"`),
				!strings.Contains(got.body, want):
				t.Errorf("%s, GET %s: %+v", who, path, got)
			}
		}
	}
}
