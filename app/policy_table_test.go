package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

type tableState struct {
	Table     string        `json:"table"`
	Verdict   string        `json:"verdict"`
	Decisions []gate.Record `json:"decisions,omitempty"`
}

var tableQuestion = fermata.NewKind[tableState, string]("table-question")

// tableGraphs has one graph for each way in which a program can ask people. The policy decides by
// the verdict in the state.
func tableGraphs(t *testing.T) []inproc.Graph {
	t.Helper()
	end := func(_ context.Context, s tableState) (tableState, error) { return s, nil }
	flow := func(name string, build func(g *graph.Graph[tableState])) inproc.Graph {
		g := graph.New[tableState](name)
		build(g)
		compiled, err := g.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return inproc.Flow(compiled, inproc.FlowConfig[tableState]{})
	}
	only := func(node graph.Func[tableState]) func(g *graph.Graph[tableState]) {
		return func(g *graph.Graph[tableState]) {
			g.Node("only", node)
			g.Edge(graph.Start, "only")
			g.Edge("only", graph.End)
		}
	}
	return []inproc.Graph{
		flow("hold", func(g *graph.Graph[tableState]) {
			only(end)(g)
			g.HoldBefore("only")
		}),
		flow("gate", func(g *graph.Graph[tableState]) {
			g.Node("forward", end)
			g.Node("backward", end)
			gate.Approval[tableState]{
				ID: "table", Message: "Drop it?", Status: func(s tableState) string { return s.Verdict },
				Decisions: func(s *tableState) *[]gate.Record { return &s.Decisions }, Forward: "forward", Backward: "backward",
			}.Add(g, "gate")
			g.Edge(graph.Start, "gate")
			g.Edge("forward", graph.End)
			g.Edge("backward", graph.End)
		}),
		flow("question", only(func(ctx context.Context, s tableState) (tableState, error) {
			answer, err := tableQuestion.Ask(ctx, s)
			s.Table += answer
			return s, err
		})),
		flow("action", only(func(ctx context.Context, s tableState) (tableState, error) {
			yes, err := fermata.Approve(ctx, fermata.Action[tableState]{Name: "drop", Args: s})
			if err == nil {
				_, err = fermata.Effect(ctx, yes, func(context.Context, tableState, string) (string, error) { return "dropped", nil })
			}
			return s, err
		})),
	}
}

type toolArgs struct {
	Verdict string `json:"verdict"`
	City    string `json:"city,omitempty"`
}

// tableAgent is an agent whose only tool asks a person, with the given verdict of the policy.
func tableAgent(t *testing.T, name, verdict string, wrap func(*tool.Tool) *tool.Tool) inproc.Graph {
	t.Helper()
	book := tool.New("book", "books", func(_ context.Context, in toolArgs) (string, error) { return "booked " + in.City, nil })
	a, err := agent.NewChat(agent.Chat{
		Name: name, Description: "books", Tools: []*tool.Tool{wrap(book)},
		Model: script.New(script.Call("book", fmt.Sprintf(`{"verdict":%q}`, verdict)), script.Say("done")),
	})
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Agent(agent.RunnerConfig{Agent: a})
}

func followUp(b *tool.Tool) *tool.Tool {
	return tool.FollowUp(b, func(in toolArgs) []tool.Missing {
		if in.City != "" {
			return nil
		}
		return []tool.Missing{{Field: "city", Question: "Which city?"}}
	})
}

// tablePolicy decides every kind of request by the verdict that it shows.
const tablePolicy = `
default: deny
rules:
- id: passes
  when: >
    req.kind == "approval" && args[?"verdict"].orValue("") == "allow" || req.kind == "approval-gate" && data.currentStatus == "allow" ||
    req.kind == "hold" && data.verdict == "allow"
  then: allow
- id: asks
  when: >
    [args, data].exists(shown, shown[?"verdict"].orValue("") == "ask" || shown[?"currentStatus"].orValue("") == "ask" ||
    shown.?args.?verdict.orValue("") == "ask")
  then: ask
  reason: the people of the table decide
  ask: {groups: [{from: ["group:deciders"]}], separation_of_duties: [requester], deadline: 1h, editable: [""]}
`

// way is one way to ask people.
type way struct {
	name, kind string
	graph      string // %s is the verdict; "" is an external agent
	data       string // input or data; %s is the verdict
	answer     string
	passable   bool // a rule can approve it
}

var ways = []way{
	{"hold", "hold", "inproc:hold", `{"table":"users","verdict":%q}`, `null`, true},
	{"gate", "approval-gate", "inproc:gate", `{"table":"users","verdict":%q}`, `{"approved":true,"approvedAt":"2026-11-18T00:00:00Z"}`, true},
	{"question", "table-question", "inproc:question", `{"table":"users","verdict":%q}`, `"users"`, false},
	{"action", "approval", "inproc:action", `{"table":"users","verdict":%q}`, `{"verb":"approve"}`, true},
	{"tool response", "tool-response", "inproc:responds-%s", `{"messages":[{"role":"user","text":"book it"}]}`, `{"text":"booked by hand"}`, false},
	{"tool follow-up", "tool-follow-up", "inproc:follows-up-%s", `{"messages":[{"role":"user","text":"book it"}]}`, `{"fields":{"city":"Bern"}}`, false},
	{"external action", "approval", "", `{"action":"drop","args":{"verdict":%q}}`, `{"verb":"approve"}`, true},
	{"external question", "ticket", "", `{"verdict":%q}`, `{"ok":true}`, false},
}

func (w way) ask(t *testing.T, c *client.Client, verdict string) fermata.Outcome {
	t.Helper()
	fill := func(text string) string {
		return strings.NewReplacer("%q", `"`+verdict+`"`, "%s", verdict).Replace(text)
	}
	var outcome fermata.Outcome
	var err error
	key := strings.ReplaceAll(w.name, " ", "-") + "-" + verdict
	if w.graph == "" {
		outcome, err = c.CreateRequest(t.Context(), api.CreateRequest{StateKey: key, Kind: w.kind, Data: json.RawMessage(fill(w.data))})
	} else {
		outcome, err = c.Start(t.Context(), fill(w.graph), key, json.RawMessage(fill(w.data)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// policyTable is a server with the policy of the table, and its people.
type policyTable struct {
	*deskEnv
	store string
}

func openTable(t *testing.T, storeURL string) *policyTable {
	t.Helper()
	for name, text := range map[string]string{
		"policy.yaml": tablePolicy, "groups.yaml": "groups:\n  deciders: [bob, ops, late]\n",
		"fermata.yaml": "desk: {policyFile: policy.yaml, groupsFile: groups.yaml}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"FERMATA_STORE_URL=" + storeURL, "FERMATA_LISTEN_ADDR=127.0.0.1:0", "FERMATA_METRICS_ADDR=off"}
	if code, _, errOut := call(t, "key", "make", "key"); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	environ = append(environ, "FERMATA_KEY_FILE=key")
	settings, err := config.Load(config.Source{File: "fermata.yaml", Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	graphs := tableGraphs(t)
	for _, verdict := range []string{"allow", "ask", "deny"} {
		graphs = append(graphs, tableAgent(t, "responds-"+verdict, verdict, tool.Respond), tableAgent(t, "follows-up-"+verdict, verdict, followUp))
	}
	running, _ := startOf(t, settings, graphs...)
	e := &policyTable{&deskEnv{T: t, url: running.URL, keys: make(map[string]string)}, storeURL}
	for _, key := range [][2]string{{"bot", "agent"}, {"bob", "approver"}, {"mallory", "approver"}, {"ops", "admin"}, {"aud", "auditor"}} {
		code, made, errOut := call(t, "keys", "create", "acme", key[0], key[1], "--store", storeURL)
		if code != cli.ExitOK {
			t.Fatal(errOut)
		}
		e.keys[key[0]] = strings.TrimSpace(made)
	}
	e.keys["nobody"] = "not-a-key"
	// an approver whom the rule names, with a credential that has expired
	code, made, errOut := call(t, "keys", "create", "acme", "late", "approver", "--for", "1s", "--store", storeURL)
	if code != cli.ExitOK {
		t.Fatal(errOut)
	}
	e.keys["late"] = strings.TrimSpace(made)
	time.Sleep(time.Second)
	return e
}

// in returns the same server for a subtest.
func (e *policyTable) in(t *testing.T) *policyTable {
	return &policyTable{&deskEnv{T: t, url: e.url, keys: e.keys}, e.store}
}

// submitters are the ways to send an answer. Each returns the HTTP status that the caller gets.
var submitters = map[string]func(e *policyTable, who, request, resume, answer string) int{
	"HTTP": func(e *policyTable, who, request, resume, answer string) int {
		body, err := json.Marshal(api.Decide{ResumeID: resume, Answer: json.RawMessage(answer)})
		if err != nil {
			e.Fatal(err)
		}
		r, err := http.NewRequestWithContext(e.Context(), http.MethodPost, e.url+api.Prefix+"/requests/"+request+"/decision", bytes.NewReader(body))
		if err != nil {
			e.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+e.keys[who])
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			e.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	},
	"client": func(e *policyTable, who, request, resume, answer string) int {
		_, err := e.client(who).Decide(e.Context(), request, api.Decide{ResumeID: resume, Answer: json.RawMessage(answer)})
		if problem, ok := errors.AsType[*api.Problem](err); ok {
			return problem.Status
		}
		if err != nil {
			e.Fatal(err)
		}
		return http.StatusOK
	},
	"CLI": func(e *policyTable, who, request, resume, answer string) int {
		code, _, errOut := e.as(who, "answer", request, answer, "--resume-id", resume)
		switch {
		case code == cli.ExitOK:
			return http.StatusOK
		case code == cli.ExitRejected && strings.Contains(errOut, "401"), code == cli.ExitRejected && strings.Contains(errOut, "unauthenticated"):
			return http.StatusUnauthorized
		case code == cli.ExitRejected:
			return http.StatusForbidden
		}
		e.Errorf("CLI: %d %s", code, errOut)
		return 0
	},
}

func (e *policyTable) client(who string) *client.Client {
	e.Helper()
	c, err := client.New(e.url, e.keys[who])
	if err != nil {
		e.Fatal(err)
	}
	return c
}

// refusals returns the number of refused attempts in the audit log.
func (e *policyTable) refusals() int { return e.auditLines("request.refused") }

func (e *policyTable) auditLines(kind string) int {
	e.Helper()
	code, out, errOut := call(e.T, "audit", "export", "--account", "acme", "--store", e.store)
	if code != cli.ExitOK {
		e.Fatal(errOut)
	}
	return strings.Count(out, `"kind":"`+kind+`"`)
}

// Every way to ask × every verdict of the policy × every person, through HTTP, the Go client and
// the CLI. Only the people whom the rule names decide; everyone else is refused with an audit line.
func TestPolicy_EveryWayToAskHasTheSameRules(t *testing.T) {
	for _, storage := range []string{"sqlite", "postgres"} {
		t.Run(storage, func(t *testing.T) {
			url := "sqlite:f.db"
			if storage == "postgres" {
				url = pgtest.New(t)
			}
			t.Chdir(t.TempDir())
			e := openTable(t, url)
			for _, w := range ways {
				t.Run(w.name, func(t *testing.T) { e.in(t).check(t, w) })
			}
			denied, allowed := e.auditLines("policy.denied"), e.auditLines("policy.allowed")
			if denied < len(ways) || allowed != 3 {
				t.Errorf("%d denials and %d approvals by rule in the log", denied, allowed)
			}
		})
	}
}

func (e *policyTable) check(t *testing.T, w way) {
	bot := e.client("bot")
	switch outcome := w.ask(t, bot, "deny").(type) {
	case fermata.Failed:
		if outcome.Code != "denied" && w.kind != "approval" {
			t.Errorf("deny: %+v", outcome)
		}
	default:
		t.Errorf("deny: %#v", outcome)
	}
	if _, done := w.ask(t, bot, "allow").(fermata.Completed); done != w.passable {
		t.Errorf("allow: completed is %t", done)
	}
	asked, ok := w.ask(t, e.client("ops"), "ask").(fermata.NeedsInput) // ops is the requester
	if !ok {
		t.Fatal("people are not asked")
	}
	request := asked.Interrupts[0].ID
	before := e.refusals()
	for name, submit := range submitters {
		for who, want := range map[string]int{
			"mallory": http.StatusForbidden, // the wrong group
			"ops":     http.StatusForbidden, // the requester
			"bot":     http.StatusForbidden, // the wrong role
			"nobody":  http.StatusUnauthorized,
			"late":    http.StatusUnauthorized,
		} {
			if got := submit(e, who, request, name+"-"+who+"-"+request, w.answer); got != want {
				t.Errorf("%s by %s: %d, want %d", name, who, got, want)
			}
		}
	}
	if got := e.refusals() - before; got < 2*len(submitters) {
		t.Errorf("%d refusals in the log, want one for each person and way", got)
	}
	if got := submitters["CLI"](e, "bob", request, "bob-"+request, w.answer); got != http.StatusOK {
		t.Errorf("by an approver: %d", got)
	}
}
