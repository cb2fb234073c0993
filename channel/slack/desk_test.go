package slack_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/examples/dataops/ops"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/slackfake"
	port "github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
)

// office is a workspace in front of a server with the JSON API. Stored clicks are processed by
// process, so that a test decides when.
type office struct {
	*workspace
	tb     testing.TB
	url    string
	keys   store
	endURL string // of the endpoints for Slack

	mu      sync.Mutex
	links   map[string]string // Slack accounts to people
	pending []channel.Inbound
	known   map[string]bool
	refuse  error // of Accept
	noLinks error // of LinkURL
}

type store = *memory.Store

const refundPolicy = `
default: allow
rules:
- id: refunds
  when: req.tool == "refund"
  then: ask
  ask: {groups: [{from: ["group:finops"]}], deadline: 1h, separation_of_duties: [requester], editable: ["/amount"]}
- id: transfers
  when: req.tool == "transfer"
  then: ask
  ask: {groups: [{from: ["group:finops"]}], deadline: 1h, min_auth: sso_mfa}
`

func openOffice(t testing.TB, change func(*slack.Config)) *office {
	t.Helper()
	return openOfficeWith(t, change, nil)
}

// openOfficeWith is openOffice with changes of the executor's configuration.
func openOfficeWith(t testing.TB, change func(*slack.Config), desks func(*office, *executor.DeskConfig)) *office {
	t.Helper()
	return openOfficeAt(t, nil, change, desks)
}

// openOfficeAt is openOfficeWith with a clock of the store; nil for that of the host.
func openOfficeAt(t testing.TB, clock *storeClock, change func(*slack.Config), desks func(*office, *executor.DeskConfig)) *office {
	t.Helper()
	var now func() time.Time
	if clock != nil {
		now = clock.now
	}
	o := &office{workspace: openWorkspace(t, slackfake.Config{}, change), tb: t, links: make(map[string]string), known: make(map[string]bool), keys: memory.NewStore(now)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sealer, err := seal.New(seal.Key{1})
	must(err)
	others, err := external.New(external.Config{})
	must(err)
	warehouse, err := ops.New(ops.NewWarehouse())
	must(err)
	pipeline, err := gated()
	must(err)
	flows, err := inproc.New(inproc.Flow(warehouse, inproc.FlowConfig[ops.State]{}), inproc.Flow(pipeline, inproc.FlowConfig[design]{}))
	must(err)
	rules, err := policy.Load("policy.yaml", []byte(refundPolicy), policy.Options{})
	must(err)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	people := executor.DeskConfig{Policy: rules, DefaultPage: []string{desk.DefaultPage}, Directory: desk.StaticDirectory{"group:finops": {"ann", "bob", "requester"}}}
	if desks != nil {
		desks(o, &people)
	}
	var st port.Store = o.keys
	if clock != nil {
		st = watchedStore{o.keys, clock}
	}
	e, err := executor.New(executor.Config{Store: st, Sealer: sealer, Providers: []provider.Provider{others, flows}, Poll: 5 * time.Millisecond, Log: log, Desk: people})
	must(err)
	apiServer, err := server.New(server.Config{Executor: e, Auth: authn.Keys(o.keys), Limits: server.Limits{Rate: 1e6, Burst: 1e6}, Log: log})
	must(err)
	e.StartWorkers()
	backend := httptest.NewServer(apiServer)
	endpoints := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.channel.Handler(o).ServeHTTP(w, r) }))
	o.url, o.endURL = backend.URL, endpoints.URL
	o.SetApp(endpoints.URL+"/channels/slack/interactivity", endpoints.URL+"/channels/slack/commands")
	t.Cleanup(func() {
		endpoints.Close()
		backend.Close()
		must(e.Stop(context.Background()))
	})
	o.links[o.Team()+"/"+o.alice] = "ann"
	return o
}

// as returns a client of a person.
func (o *office) as(person string, role authn.Role) *client.Client {
	o.tb.Helper()
	key, kept, err := authn.NewKey(account, person, role, time.Time{})
	if err == nil {
		err = o.keys.AddCredential(context.Background(), kept, port.Writes{})
	}
	if err != nil {
		o.tb.Fatal(err)
	}
	c, err := client.New(o.url, key)
	if err != nil {
		o.tb.Fatal(err)
	}
	return c
}

// Accept stores a click once.
func (o *office) Accept(_ context.Context, kind string, in channel.Inbound) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuse != nil {
		return o.refuse
	}
	if kind != slack.Kind || in.Account != account {
		o.tb.Errorf("click for %s of %s", kind, in.Account)
	}
	if !o.known[in.ID] {
		o.known[in.ID] = true
		o.pending = append(o.pending, in)
	}
	return nil
}

// Client returns a client of the linked person.
func (o *office) Client(_ context.Context, sender channel.Sender) (*client.Client, string, error) {
	o.mu.Lock()
	person, ok := o.links[sender.ID]
	o.mu.Unlock()
	if !ok {
		return nil, "", channel.ErrNotLinked
	}
	return o.as(person, authn.RoleApprover), person, nil
}

// SignedIn reports that no browser is signed in: Slack sends no cookies.
func (o *office) SignedIn(*http.Request) (account, principal string, err error) { return "", "", nil }

// LinkURL returns a link.
func (o *office) LinkURL(_ context.Context, sender channel.Sender) (string, error) {
	return "https://fermata.example/link?for=" + sender.ID, o.noLinks
}

// RequestURL returns the address of a request.
func (o *office) RequestURL(id string) string {
	return channel.RequestURL("https://fermata.example", id)
}

// process processes all stored clicks at once.
func (o *office) process() {
	o.tb.Helper()
	o.mu.Lock()
	pending := o.pending
	o.pending = nil
	o.mu.Unlock()
	var all sync.WaitGroup
	for _, in := range pending {
		all.Go(func() {
			if err := o.channel.Receive(context.Background(), o, in); err != nil {
				o.tb.Errorf("receive: %v", err)
			}
		})
	}
	all.Wait()
}

// ask creates a request of an external agent, and posts it.
func (o *office) ask(ask api.CreateRequest) (id string) {
	o.tb.Helper()
	id = o.create(ask)
	o.send(o.tb, channel.Message{Account: account, Delivery: "d-" + id, Attempt: 1, To: o.ops, Card: o.card(id)})
	return id
}

// create creates a request of an external agent.
func (o *office) create(ask api.CreateRequest) (id string) {
	o.tb.Helper()
	outcome, err := o.as("requester", authn.RoleAgent).CreateRequest(context.Background(), ask)
	if err != nil {
		o.tb.Fatal(err)
	}
	waits, ok := outcome.(fermata.NeedsInput)
	if !ok {
		o.tb.Fatalf("outcome %#v", outcome)
	}
	return waits.Interrupts[0].ID
}

func (o *office) refund() string {
	o.tb.Helper()
	return o.ask(api.CreateRequest{Kind: "approval", Data: json.RawMessage(`{"action":"refund","args":{"amount":120,"order":"17"}}`)})
}

// request returns a request as an auditor sees it.
func (o *office) request(id string) api.Request {
	o.tb.Helper()
	r, err := o.as("auditor", authn.RoleAdmin).Request(context.Background(), id)
	if err != nil {
		o.tb.Fatal(err)
	}
	return r
}

// card words a request as the executor does.
func (o *office) card(id string) channel.Card {
	r := o.request(id)
	if seen, err := o.as("ann", authn.RoleApprover).Request(context.Background(), id); err == nil {
		r.Presentation = seen.Presentation
	}
	c := channel.Card{
		Request: id, Revision: r.Activity.Revision, Digest: r.Shown, Kind: r.Kind, Presentation: *r.Presentation, State: desk.StateOpen, At: time.Now(),
		MinAuth: requirement.Auth(r.Activity.MinAuth), Link: o.RequestURL(id),
	}
	return c
}

// click clicks the button of the last posted request, and processes it.
func (o *office) click(user, action string) *slackfake.Delivery {
	o.tb.Helper()
	d := o.send1(user, action)
	o.process()
	return d
}

// send1 clicks without processing.
func (o *office) send1(user, action string) *slackfake.Delivery {
	o.tb.Helper()
	all := o.Messages(o.ops)
	d, err := o.Click(context.Background(), user, o.ops, all[len(all)-1].TS, action)
	if err != nil {
		o.tb.Fatal(err)
	}
	if d.Status != http.StatusOK {
		o.tb.Fatalf("status %d: %s", d.Status, d.Response)
	}
	return d
}

// told returns the last ephemeral message for a user.
func (o *office) told(user string) string {
	all := o.Ephemerals(o.ops, user)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Text + " " + string(all[len(all)-1].Blocks)
}
