package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
)

// atRest returns a secret for a path. It has characters that JSON escapes, and is so long that no
// other text contains it.
func atRest(path string) string { return canary + `<"` + path + `">at-rest` }

// plainFields are the fields that are stored unencrypted on purpose, with the reason. Each has a
// text of its own, which the test must find: so it also shows that the search works.
var plainFields = map[string]string{
	"PLAIN-account":   "every key of the database begins with it",
	"PLAIN-statekey":  "callers find runs by it",
	"PLAIN-requester": "separation of duties and analytics compare it, and the audit log names it",
	"PLAIN-approver":  "the audit log names who decided",
	"PLAIN-action":    "analytics count by it",
	"PLAIN-rule":      "analytics count by it, and the audit log names it",
	"plain-kind":      "lists filter by it",
	"PLAIN-schema":    "the schema of an answer is about its form, and clients get it before they may see data",
	"PLAIN-resume":    "a resume id is looked up",
	"PLAIN-keyname":   "the audit log names API keys by it",
}

const atRestRules = `
default: allow
rules:
- id: PLAIN-rule
  when: req.tool == "PLAIN-action"
  then: ask
  reason: it costs money
  ask: {groups: [{from: ["group:ops"]}], deadline: 1h, remember_max: 1h, editable: [""]}
`

// atRestState is the state of the graph of this test.
type atRestState struct {
	Input   string `json:"input"`
	State   string `json:"state,omitempty"`
	Fails   bool   `json:"fails,omitempty"`
	Receipt string `json:"receipt,omitempty"`
}

func atRestGraph(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[atRestState]("pay")
	g.Node("prepare", func(_ context.Context, s atRestState) (atRestState, error) {
		s.State = strings.Repeat(atRest("state"), 20)
		return s, nil
	})
	g.Node("pay", func(ctx context.Context, s atRestState) (atRestState, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "PLAIN-action", Args: atRest("question")})
		if err != nil {
			return s, err
		}
		s.Receipt, err = fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) {
			if s.Fails {
				return "", errors.New(atRest("error"))
			}
			return atRest("receipt"), nil
		})
		return s, err
	})
	g.Edge(graph.Start, "prepare")
	g.Edge("prepare", "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[atRestState]{
		Content: func(atRestState) string { return atRest("outcome") },
		Explain: func(context.Context, atRestState, provider.Clarification) (string, error) {
			return atRest("reply"), nil
		},
	})
}

// atRestRef gives each run a secret ref.
type atRestRef struct{ provider.Provider }

func (p atRestRef) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	if err := e.Owner.SetRef(ctx, atRest("ref")); err != nil {
		return provider.Result{}, err
	}
	return p.Provider.Execute(ctx, e)
}

func (p atRestRef) Explain(ctx context.Context, run provider.Run, asked provider.Clarification) (string, error) {
	return p.Provider.(provider.Explainer).Explain(ctx, run, asked)
}

// uncompressed is a sealer that cannot compress: a compressed secret would not be found even if it
// was not encrypted.
type uncompressed struct{ executor.Sealer }

// atRestSite is a server on SQLite, and the secrets that were given to it.
type atRestSite struct {
	*site
	s       *sqlite.Store
	secrets map[string]string // by path
	webhook *httptest.Server
	called  atomic.Int64
}

const atRestAccount = "PLAIN-account"

func openAtRest(t *testing.T, path string) *atRestSite {
	t.Helper()
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	a := &atRestSite{s: s, secrets: make(map[string]string)}
	for _, path := range []string{"input", "state", "question", "error", "receipt", "outcome", "reply", "ref"} {
		a.secrets[path] = atRest(path)
	}
	rules, err := policy.Load("policy.yaml", []byte(atRestRules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.webhook = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { a.called.Add(1) }))
	t.Cleanup(a.webhook.Close)
	a.secrets["webhook secret"] = external.NewSecret()
	others, err := external.New(external.Config{
		Allow:   []string{"127.0.0.1"},
		Secrets: func(context.Context, string) ([]string, error) { return []string{a.secrets["webhook secret"]}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	a.site = openWith(t, func(c *server.Config) { c.Auth = authn.Keys(s) }, func(c *executor.Config) {
		c.Sealer = uncompressed{c.Sealer}
		c.Store, c.Providers = s, []provider.Provider{atRestRef{c.Providers[0]}, others}
		c.Desk.Policy, c.Desk.Directory = rules, desk.StaticDirectory{"group:ops": {"PLAIN-approver"}}
		c.Desk.Channels = []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error { return nil })}
	}, atRestGraph(t))
	a.e.StartWorkers()
	return a
}

// secret returns a new secret of a path, as a JSON string without its quotes.
func (a *atRestSite) secret(path string) string {
	a.secrets[path] = atRest(path)
	return a.secrets[path]
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (a *atRestSite) run(request executor.RunRequest) fermata.Outcome {
	a.Helper()
	request.Account = atRestAccount
	outcome, err := a.e.Run(a.Context(), request)
	if err != nil {
		a.Fatal(err)
	}
	return outcome
}

// start begins a run, and returns the id of its request.
func (a *atRestSite) start(key, graphID, input string) string {
	a.Helper()
	waiting, ok := a.run(executor.RunRequest{StateKey: key, Graph: graphID, Input: json.RawMessage(input), Actor: "PLAIN-requester"}).(fermata.NeedsInput)
	if !ok {
		a.Fatalf("%s does not ask", key)
	}
	return waiting.Interrupts[0].ID
}

// decide answers a request, as it is now.
func (a *atRestSite) decide(key, id, value string) {
	a.Helper()
	request, err := a.e.RequestDocument(a.Context(), atRestAccount, id)
	if err != nil {
		a.Fatal(err)
	}
	a.run(executor.RunRequest{
		StateKey: key, ResumeID: "PLAIN-resume-" + key, Actor: "PLAIN-approver", Auth: requirement.AuthSSO, Targets: map[string]executor.Answer{id: {Value: json.RawMessage(value), Shown: request.Digest()}},
	})
}

// drive sends a secret along every path that a secret can take into the database.
func (a *atRestSite) drive() {
	a.Helper()
	from := desk.From{Actor: desk.PersonActor("PLAIN-approver", requirement.AuthSSO), Via: "test"}
	input := `{"input":` + quoted(atRest("input"))

	// A run with people who talk about it, change its arguments, approve it and remember that.
	id := a.start("PLAIN-statekey", "inproc:pay", input+`}`)
	for _, act := range []desk.Command{
		desk.View{From: from}, desk.Comment{From: from, Text: a.secret("comment")}, desk.AskClarification{From: from, Question: a.secret("clarification")},
		desk.Snooze{From: from, Until: time.Now().Add(time.Minute)},
	} {
		if _, err := a.e.Act(a.Context(), atRestAccount, id, act); err != nil {
			a.Fatalf("%T: %v", act, err)
		}
	}
	a.until("the reply", func() bool {
		request, err := a.e.RequestDocument(a.Context(), atRestAccount, id)
		return err == nil && len(request.Clarifications) == 1 && request.Clarifications[0].Answer != nil
	})
	a.decide("PLAIN-statekey", id, `{"verb":"approve","args":`+quoted(a.secret("edited args"))+`,"reason":`+quoted(a.secret("reason"))+`}`)
	if _, err := a.e.CreateGrant(a.Context(), atRestAccount, id, executor.GrantRequest{By: "PLAIN-approver", Auth: requirement.AuthSSO, TTL: time.Hour, MaxUses: 1}); err != nil {
		a.Fatal(err)
	}

	// One whose effect fails, one that is rejected, one that is abandoned, and one that waits.
	a.decide("fails", a.start("fails", "inproc:pay", input+`,"fails":true}`), `{"verb":"approve"}`)
	a.decide("rejected", a.start("rejected", "inproc:pay", input+`}`), `{"verb":"reject","reason":`+quoted(a.secret("reject reason"))+`}`)
	id = a.start("abandoned", "inproc:pay", input+`}`)
	if err := a.e.Abandon(a.Context(), atRestAccount, id, desk.Abandon{From: from, Reason: a.secret("abandon reason")}); err != nil {
		a.Fatal(err)
	}
	a.start("waits", "inproc:pay", input+`}`)

	// a request of an external agent, whose answer goes to a webhook.
	a.secrets["callback URL"] = a.webhook.URL + "/" + canary + "-callback-at-rest"
	id = a.start("external", "external:request", fmt.Sprintf(`{"kind":"plain-kind","data":{"text":%s},"answerSchema":{"type":"string","title":"PLAIN-schema"},"callback":{"url":%s}}`,
		quoted(a.secret("external data")), quoted(a.secrets["callback URL"])))
	a.decide("external", id, quoted(a.secret("external answer")))
	a.until("the webhook", func() bool { return a.called.Load() > 0 })

	// An API key, which is used, and a session of a person who signs in.
	key, kept, err := authn.NewKey(atRestAccount, "PLAIN-keyname", authn.RoleAgent, time.Time{})
	if err == nil {
		err = a.s.AddCredential(a.Context(), kept, store.Writes{})
	}
	if err != nil {
		a.Fatal(err)
	}
	a.secrets["API key"] = key
	if got := a.call(key, "GET", "/api/v1/runs", ""); got.status != 200 {
		a.Fatalf("%+v", got)
	}
	signIn := openSignInSite(a.T, signInOptions{change: func(c *server.Config) { c.Auth, c.SignIn.Credentials = authn.Keys(a.s), a.s }})
	a.secrets["session"] = signIn.signedIn(claimsFor(atRestAccount, "approvers")).session().Value
	a.secrets["client secret"] = clientSecret
}

// forms returns the encodings of a secret in which it might be stored by mistake.
func forms(secret string) map[string][]byte {
	all := map[string][]byte{"plain": []byte(secret), "JSON": []byte(strings.Trim(quoted(secret), `"`))}
	var loose bytes.Buffer
	encoder := json.NewEncoder(&loose)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(secret); err != nil {
		panic(err)
	}
	all["JSON without HTML escapes"] = bytes.Trim(loose.Bytes(), "\"\n")
	for name, text := range maps.Clone(all) {
		all[name+" in hex"] = []byte(hex.EncodeToString(text))
		for shift := range 3 { // the text may begin at any byte of a group of three
			from := (3 - shift) % 3
			whole := text[from : len(text)-(len(text)-from)%3]
			all[fmt.Sprintf("%s in base64, shifted by %d", name, shift)] = []byte(base64.StdEncoding.EncodeToString(whole))
			all[fmt.Sprintf("%s in URL base64, shifted by %d", name, shift)] = []byte(base64.URLEncoding.EncodeToString(whole))
		}
	}
	return all
}

// databaseFiles returns the content of a database and of the files that belong to it.
func databaseFiles(t *testing.T, path string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, name := range names {
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// No secret is in the files of a database in a form that can be read, neither while the server runs
// nor after it was closed; and what is unencrypted is listed above with the reason.
func TestI7_NoSecretIsReadableInTheDatabaseFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	a := openAtRest(t, path)
	a.drive()
	if data := databaseFiles(t, path); len(data["fermata.db-wal"]) == 0 {
		t.Errorf("the log of SQLite is not looked at, only %q", slices.Sorted(maps.Keys(data)))
	}
	a.search(databaseFiles(t, path))
	if err := a.e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.s.Close(); err != nil {
		t.Fatal(err)
	}
	a.search(databaseFiles(t, path))
}

func (a *atRestSite) search(files map[string][]byte) {
	a.Helper()
	for path, secret := range a.secrets {
		for form, text := range forms(secret) {
			for name, data := range files {
				if i := bytes.Index(data, text); i >= 0 {
					a.Errorf("%s, %s, is in %s: …%q…", path, form, name, data[max(0, i-120):min(len(data), i+len(text)+40)])
				}
			}
		}
	}
	for text, why := range plainFields {
		if !slices.ContainsFunc(slices.Collect(maps.Values(files)), func(data []byte) bool { return bytes.Contains(data, []byte(text)) }) {
			a.Errorf("%s, which is not encrypted because %s, is not found: remove it from the list, or look elsewhere", text, why)
		}
	}
}
