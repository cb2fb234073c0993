package executor_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

// signed is what a run stores of an answer.
type signed struct {
	Ask  string    `json:"ask"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Auth string    `json:"auth"`
	Said string    `json:"said"`
	Rule string    `json:"rule"`
}

type signedVerdict struct {
	Good bool      `json:"good"`
	By   string    `json:"by,omitempty" attest:"by"`
	At   time.Time `json:"at,omitzero" attest:"at"`
	Auth string    `json:"auth,omitempty" attest:"auth"`
}

var signedQuestion = fermata.NewKind[string, signedVerdict]("signed-question")

type heldState struct {
	Table    string             `json:"table"`
	Releases []graph.HoldRecord `json:"releases"`
}

// dropRequest is an approval of the action drop.
func dropRequest() fermata.ApprovalRequest {
	asked := fermata.ApprovalRequest{Action: "drop", Args: json.RawMessage(`{"table":"users"}`), ArgsSchema: json.RawMessage(`{"type":"object"}`)}
	asked.Digest, _ = asked.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: asked.Args})
	return asked
}

// askEveryKind asks one question, of the kind that the input names, and stores who answered.
func askEveryKind(ctx context.Context, s signed) (signed, error) {
	var err error
	switch s.Ask {
	case "approval":
		var d fermata.Decision
		d, err = fermata.Approval.Ask(ctx, dropRequest())
		s.By, s.At, s.Auth, s.Said = d.By, d.At, d.Auth, string(d.Verb)+string(d.Args)
	case "gate":
		var d gate.Signal
		d, err = gate.Kind.Ask(ctx, gate.Question{Gate: "g"})
		s.By, s.At, s.Auth, s.Rule, s.Said = d.ApprovedBy, d.ApprovedAt, d.Auth, d.Rule, d.Feedback
	case "question":
		var d signedVerdict
		d, err = signedQuestion.Ask(ctx, "good?")
		s.By, s.At, s.Auth = d.By, d.At, d.Auth
	case "tool-response":
		var d tool.HumanResponse
		d, err = tool.Response.Ask(ctx, tool.ResponseRequest{Tool: "t", Args: json.RawMessage(`{}`)})
		s.By, s.Said = d.By, d.Text
	case "tool-follow-up":
		var d tool.CompletedArgs
		d, err = tool.Completion.Ask(ctx, tool.CompletionRequest{Tool: "t", Args: json.RawMessage(`{}`), ArgsSchema: json.RawMessage(`{"type":"object"}`), Missing: []tool.Missing{{Field: "by", Question: "who?"}}})
		s.By, s.Said = d.By, string(d.Fields["by"])
	case "effect-in-doubt":
		var d fermata.EffectResolution
		d, err = fermata.EffectInDoubt.Ask(ctx, fermata.InDoubtRequest{Action: "drop", Args: json.RawMessage(`{}`), Digest: "d", Key: "k", Started: time.Unix(0, 0).UTC(), Attempt: 1})
		s.By = d.By
	}
	return s, err
}

// attestingExecutor has a graph for every kind, a graph with a hold, and external requests.
func attestingExecutor(t *testing.T, s store.Store, also ...func(*executor.Config)) *executor.Executor {
	t.Helper()
	ask := graph.New[signed]("ask")
	ask.Node("only", askEveryKind)
	ask.Edge(graph.Start, "only")
	ask.Edge("only", graph.End)
	hold := graph.New[heldState]("hold")
	hold.Node("drop", func(_ context.Context, s heldState) (heldState, error) { return s, nil })
	hold.Edge(graph.Start, "drop")
	hold.Edge("drop", graph.End)
	hold.HoldBefore("drop")
	hold.RecordHolds(func(s *heldState) *[]graph.HoldRecord { return &s.Releases })
	asks, err := ask.Compile()
	if err != nil {
		t.Fatal(err)
	}
	holds, err := hold.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(asks, inproc.FlowConfig[signed]{}), inproc.Flow(holds, inproc.FlowConfig[heldState]{}))
	if err != nil {
		t.Fatal(err)
	}
	others, err := external.New(external.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return executorOf(t, s, p, func(c *executor.Config) {
		c.Providers = append(c.Providers, provider.Provider(others))
		for _, change := range also {
			change(c)
		}
	})
}

// settled returns who settled a request, and when, according to the audit log.
func settled(t *testing.T, s store.Store, request string) (who, at string) {
	t.Helper()
	kept, err := s.AuditLines(t.Context(), "acme", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range kept {
		var said struct {
			Kind  string
			Time  string
			Actor struct{ Principal string }
			Place struct{ Request string }
			Body  struct{ Settles bool }
		}
		if err := json.Unmarshal(l.Raw, &said); err != nil {
			t.Fatal(err)
		}
		if said.Kind == "request.decided" && said.Place.Request == request && said.Body.Settles {
			who, at = said.Actor.Principal, said.Time
		}
	}
	return who, at
}

// Every kind of request, from every provider: the run, the API and the audit log name the caller
// and the time of the store, whatever the client sends.
func TestAttest_RunAPIAndAuditLogAgreeForEveryKind(t *testing.T) {
	const past = `"1999-01-01T00:00:00Z"`
	approval, err := json.Marshal(dropRequest())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		graph, input string
		answer       string
		forged       []string
		// at and auth say whether the run stores them
		at, auth bool
		said     string
	}{
		"approval": {graph: "inproc:ask", input: `{"ask":"approval"}`, answer: `{"verb":"approve","by":"ann","at":` + past + `,"auth":"sso"}`, at: true, auth: true, said: "approve", forged: []string{
			`{"verb":"approve","by":"eve"}`, `{"verb":"reject","by":"eve"}`, `{"verb":"approve","by":["ann"]}`, `{"verb":"approve","auth":"hardware"}`,
			`{"verb":"approve","rule":"r1"}`, `{"verb":"approve","groups":["finops"]}`, `{"verb":"approve","group":"finops"}`,
		}},
		"approval without the fields": {graph: "inproc:ask", input: `{"ask":"approval"}`, answer: `{"verb":"reject"}`, at: true, auth: true, said: "reject"},
		"approval with an edit": {graph: "inproc:ask", input: `{"ask":"approval"}`, answer: `{"verb":"approve","args":{"table":"old"}}`, at: true, auth: true, said: `approve{"table":"old"}`, forged: []string{
			`{"verb":"approve","args":{"table":"old"},"by":"eve"}`,
		}},
		"gate, approved": {graph: "inproc:ask", input: `{"ask":"gate"}`, answer: `{"approved":true,"approvedBy":"ann","approvedAt":` + past + `}`, at: true, auth: true, forged: []string{
			`{"approved":true,"approvedAt":` + past + `,"approvedBy":"eve"}`, `{"approved":true,"auth":"sso_mfa"}`, `{"approved":true,"rule":"r1"}`, `{"approved":true,"groups":["finops"]}`,
		}},
		"gate, rejected": {graph: "inproc:ask", input: `{"ask":"gate"}`, answer: `{"approved":false,"feedback":"no"}`, at: true, auth: true, said: "no", forged: []string{`{"approved":false,"approvedBy":"eve"}`}},
		"question":       {graph: "inproc:ask", input: `{"ask":"question"}`, answer: `{"good":true,"at":` + past + `}`, at: true, auth: true, forged: []string{`{"good":true,"by":"eve"}`}},
		"tool-response":  {graph: "inproc:ask", input: `{"ask":"tool-response"}`, answer: `{"text":"by eve"}`, said: "by eve", forged: []string{`{"text":"hi","by":"eve"}`}},
		// an argument of the tool is data, not a signature
		"tool-follow-up":  {graph: "inproc:ask", input: `{"ask":"tool-follow-up"}`, answer: `{"fields":{"by":"eve"}}`, said: `"eve"`, forged: []string{`{"fields":{"by":"eve"},"by":"eve"}`}},
		"effect-in-doubt": {graph: "inproc:ask", input: `{"ask":"effect-in-doubt"}`, answer: `{"happened":true}`, forged: []string{`{"happened":true,"by":"eve"}`, `{"happened":false,"by":"eve"}`}},
		"hold": {graph: "inproc:hold", input: `{"table":"users"}`, answer: `{"table":"old","releases":null}`, at: true, auth: true, forged: []string{
			`{"table":"users","releases":[{"node":"drop","when":"before","by":"eve","at":` + past + `}]}`,
			`{"table":"users","releases":[{"node":"drop","when":"before","by":"ann","at":` + past + `}]}`,
		}},
		"hold, unchanged": {graph: "inproc:hold", input: `{"table":"users"}`, answer: `null`, at: true, auth: true},
		"external approval": {graph: "external:request", input: `{"kind":"approval","data":` + string(approval) + `}`, answer: `{"verb":"approve","by":"ann","at":` + past + `}`, at: true, auth: true, forged: []string{
			`{"verb":"approve","by":"eve"}`, `{"verb":"approve","groups":["finops"]}`,
		}},
		// the members of its answer belong to the agent; the attestation is next to the answer
		"external question": {graph: "external:request", input: `{"kind":"shipping","data":{"to":"whom?"}}`, answer: `{"by":"ship"}`, at: true, auth: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("memory", func(t *testing.T) {
				checkAttested(t, memory.NewStore(nil), test.graph, test.input, test.answer, test.said, test.forged, test.at, test.auth)
			})
			t.Run("sqlite", func(t *testing.T) {
				s, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				checkAttested(t, s, test.graph, test.input, test.answer, test.said, test.forged, test.at, test.auth)
			})
		})
	}
}

func checkAttested(t *testing.T, s store.Store, graphID, input, answer, said string, forged []string, hasAt, hasAuth bool) {
	t.Helper()
	e := attestingExecutor(t, s)
	id := waits(t, began(t, e, "k", graphID, input)).Interrupts[0].ID
	as := func(resume, value string) executor.RunRequest {
		request := word("ann", "k", resume, id, value)
		request.Auth, request.Via = requirement.AuthSSO, "test"
		return request
	}
	for n, value := range forged {
		for range 2 { // a repeated call is not a second attempt
			if _, err := e.Run(t.Context(), as(value, value)); !errors.Is(err, desk.ErrForgedIdentity) {
				t.Errorf("%s: %v", value, err)
			}
		}
		lines := refusals(t, s)
		if len(lines) != n+1 || !strings.HasPrefix(lines[n], "ann ") || !strings.HasSuffix(lines[n], " identity_mismatch") {
			t.Fatalf("%s: refusals in the log: %q", value, lines)
		}
	}
	if q, err := e.GetRequest(t.Context(), "acme", id); err != nil || q.State != store.InterruptPending || len(q.Request.Votes) > 0 {
		t.Fatalf("after the forged answers: %+v, %v", q, err)
	}
	done := completed(t, mustRun(t, e, as("honest", answer)))
	q, err := e.GetRequest(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(q.DecidedAt); q.DecidedBy != "ann" || age < -time.Minute || age > time.Hour {
		t.Errorf("the API says that %q decided at %v", q.DecidedBy, q.DecidedAt)
	}
	who, at := settled(t, s, id)
	if want := audit.TimestampOf(q.DecidedAt); who != "ann" || at != want.String() {
		t.Errorf("the audit log says that %s decided at %s, the API %v", who, at, want)
	}
	stored := attestedOutput(t, done.Output)
	if stored.By != "ann" || hasAt && !stored.At.Equal(q.DecidedAt) || hasAuth && stored.Auth != string(requirement.AuthSSO) || said != "" && stored.Said != said {
		t.Errorf("the run stores %+v, decided at %v", stored, q.DecidedAt)
	}
	checkShownAnswer(t, q)
}

// checkShownAnswer checks that the answer in the API has the same attestation.
func checkShownAnswer(t *testing.T, q executor.RequestView) {
	t.Helper()
	kind, ok := fermata.LookupKind(q.Kind)
	if !ok {
		return
	}
	var answer map[string]any
	if err := json.Unmarshal(q.Answer, &answer); err != nil {
		t.Fatal(err)
	}
	for name, role := range kind.AttestedFields() {
		want := map[string]any{"by": "ann", "at": q.DecidedAt.UTC().Format(time.RFC3339Nano), "auth": "sso"}[role]
		if answer[name] != want {
			t.Errorf("the answer in the API is %s, want %v in %q", q.Answer, want, name)
		}
	}
}

// attestedOutput returns the attestation in the output of a run.
func attestedOutput(t *testing.T, output json.RawMessage) signed {
	t.Helper()
	var out struct {
		signed
		Releases []graph.HoldRecord `json:"releases"`
		Answer   signed             `json:"answer"`
	}
	if err := json.Unmarshal(output, &out); err != nil {
		t.Fatalf("%s: %v", output, err)
	}
	if len(out.Releases) == 1 {
		r := out.Releases[0]
		return signed{By: r.By, At: r.At, Auth: r.Auth}
	}
	if out.Answer.Auth != "" && (out.Answer.By != out.By || !out.Answer.At.Equal(out.At)) {
		t.Errorf("the answer and its envelope differ: %s", output)
	}
	out.Said = cmp.Or(out.Said, out.Answer.Said)
	return out.signed
}

// Of several people, all are named, and the weakest authentication counts.
func TestAttest_QuorumNamesAllWhoDecided(t *testing.T) {
	s := memory.NewStore(nil)
	e := office(t, s, new(dropper), nil)
	id := startAs(t, e, "req").Interrupts[0].ID
	for who, auth := range map[string]requirement.Auth{"bob": requirement.AuthMFA, "eve": requirement.AuthToken} {
		vote := word(who, "drop-1", "of "+who, id, yes)
		vote.Auth, vote.Via = auth, "test"
		if _, err := e.Run(t.Context(), vote); err != nil {
			t.Fatal(err)
		}
	}
	q, err := e.GetRequest(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	var decided fermata.Decision
	if err := json.Unmarshal(q.Answer, &decided); err != nil {
		t.Fatal(err)
	}
	if by := decided.By; by != "bob, eve" && by != "eve, bob" || q.DecidedBy != by || decided.Auth != string(requirement.AuthToken) || !decided.At.Equal(q.DecidedAt) {
		t.Errorf("decided %+v, the API says by %s", decided, q.DecidedBy)
	}
}

// A person who starts a run cannot name an approver either.
func TestAttest_InputWithRecordsOfHoldsIsRejected(t *testing.T) {
	e := attestingExecutor(t, memory.NewStore(nil))
	failedWith(t, began(t, e, "k", "inproc:hold", `{"table":"users","releases":[{"node":"drop","when":"before","by":"eve","at":"1999-01-01T00:00:00Z"}]}`), "invalid_input")
}

// A rule that approves is named like a person.
func TestAttest_RuleThatDecidesIsRecorded(t *testing.T) {
	e := attestingExecutor(t, memory.NewStore(nil), withRules(t, `
default: ask
defaults: {ask: {groups: [{from: [anyone]}], deadline: 1h}}
rules:
- id: calm
  when: req.kind in ["hold", "approval-gate", "approval"]
  then: allow
`))
	for key, input := range map[string][2]string{
		"hold": {"inproc:hold", `{"table":"users"}`}, "gate": {"inproc:ask", `{"ask":"gate"}`}, "external": {"external:request", `{"kind":"approval","data":{"action":"drop","args":{}}}`},
	} {
		done := completed(t, began(t, e, key, input[0], input[1]))
		var out struct {
			signed
			Releases []graph.HoldRecord `json:"releases"`
		}
		if err := json.Unmarshal(done.Output, &out); err != nil {
			t.Fatal(err)
		}
		if len(out.Releases) == 1 {
			out.By, out.At, out.Rule = out.Releases[0].By, out.Releases[0].At, out.Releases[0].Rule
		}
		if out.By != "policy calm" || out.At.IsZero() || out.Rule != "calm" || out.Auth != "" {
			t.Errorf("%s: %s", key, done.Output)
		}
	}
}

// With a policy only the editable fields of a held state can be changed.
func TestAttest_HoldIsEditedWithinThePolicy(t *testing.T) {
	for _, test := range []struct {
		editable, answer string
		refused          string // in the audit log
	}{
		{`[/table]`, `{"table":"old","releases":null}`, ""},
		{`[/table]`, `null`, ""},
		{`[/other]`, `{"table":"old","releases":null}`, "ann respond bad_answer"},
		{`[/other]`, `{"table":"users","releases":null}`, ""},
		{`[]`, `{"table":"old","releases":null}`, "ann respond verb_not_allowed"},
		{`[]`, `{"table":"users","releases":null}`, ""},
	} {
		s := memory.NewStore(nil)
		e := attestingExecutor(t, s, withRules(t, `
default: ask
defaults: {ask: {groups: [{from: [anyone]}], deadline: 1h}}
rules:
- id: held
  when: req.kind == "hold"
  then: ask
  ask: {groups: [{from: [anyone]}], deadline: 1h, editable: `+test.editable+`}
`))
		id := waits(t, began(t, e, "k", "inproc:hold", `{"table":"users"}`)).Interrupts[0].ID
		request := word("ann", "k", "r", id, test.answer)
		request.Auth, request.Via = requirement.AuthSSO, "test"
		_, err := e.Run(t.Context(), request)
		lines := refusals(t, s)
		if test.refused == "" && (err != nil || len(lines) > 0) || test.refused != "" && (err == nil || !slices.Equal(lines, []string{test.refused})) {
			t.Errorf("%s with %s: %v, %q", test.answer, test.editable, err, lines)
		}
	}
}

func withRules(t *testing.T, rules string) func(*executor.Config) {
	return func(c *executor.Config) { c.Desk.Policy = loadRules(t, rules) }
}
