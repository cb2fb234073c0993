//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/provider/inproc"
)

// payment is the state of a run that asks two people for one action, as of orders.
type payment struct {
	Key    string `json:"key"`
	Amount int    `json:"amount"`
	Result string `json:"result,omitempty"`
}

const (
	paymentName = "payment"
	pay         = "pay" // deduplicated by its idempotency key
)

func newPayments(w *outside) (*graph.Flow[payment], error) {
	g := graph.New[payment](paymentName)
	g.Node(pay, func(ctx context.Context, p payment) (payment, error) {
		result, err := w.pass(ctx, action{Order: p.Key, Gate: pay, Amount: p.Amount}, simtest.Idempotent, nil, fermata.Idempotent())
		if err == nil {
			p.Result = result
		}
		return p, err
	})
	g.Edge(graph.Start, pay)
	g.Edge(pay, graph.End)
	return g.Compile()
}

// quorum is the number of payers that must agree.
const quorum = 2

// deskRules require two payers other than the requester. The amount selects the route; an edit does
// not change it.
const deskRules = `
version: "1"
default: deny
defaults:
  ask: {groups: [{from: ["group:payers"], count: 2}], separation_of_duties: [requester], editable: ["/amount"], deadline: 1h}
rules:
`

// loadRules adds one rule for each route.
func loadRules() (*policy.Set, error) {
	text := deskRules
	for name, route := range deskRoutes() {
		text += fmt.Sprintf("- {id: %s, when: req.tool == \"pay\" && %s, then: ask, ask: {route: %[1]s}}\n", name, route.when)
	}
	return policy.Load("payments.yaml", []byte(text), policy.Options{})
}

// Routes are adapted to the speed of the machine, because people need time for every request. The
// requester encodes the measured slowness in the amount, in millions.
const (
	million = 1_000_000
	paces   = 4 // each twice as slow as the one before
)

// paced is a route and its range of amounts.
type paced struct {
	desk.Route
	when string
}

// deskRoutes returns the routes for all paces, by name.
func deskRoutes() map[string]paced {
	all := make(map[string]paced)
	for pace := range paces {
		for n, route := range quickRoutes {
			route.Name = fmt.Sprintf("%s%d", route.Name, pace)
			route.Cap <<= pace
			route.Steps = slices.Clone(route.Steps)
			for i := range route.Steps {
				route.Steps[i].At <<= pace
			}
			when := fmt.Sprintf("args.amount >= %d && args.amount < %d && args.amount %% %d == %d", pace*million, (pace+1)*million, len(quickRoutes), n)
			all[route.Name] = paced{route, when}
		}
	}
	return all
}

const ms = timespan.Duration(time.Millisecond)

// quickRoutes do everything that a route can do within one or two seconds.
var quickRoutes = []desk.Route{
	{Name: "brisk", Cap: 2000 * ms, Steps: []desk.Step{
		{At: 0, Notify: []string{desk.TargetInbox, "group:payers"}},
		{At: 80 * ms, Remind: []string{desk.TargetApprovers}},
		{At: 200 * ms, Page: []string{"oncall:payments"}, Severity: "error"},
		{At: 300 * ms, Widen: []string{"group:leads"}, Notify: []string{"group:leads"}},
		{At: 450 * ms, Remind: []string{desk.TargetClaimer}},
		{At: 600 * ms, Page: []string{"oncall:payments", "oncall:boss"}, Severity: "critical"},
		{At: 1000 * ms, Expire: "stale"},
	}},
	{Name: "calm", Cap: 2000 * ms, Steps: []desk.Step{
		{At: 0, Notify: []string{desk.TargetInbox}},
		{At: 250 * ms, Remind: []string{desk.TargetInbox}, SkipIf: []desk.SkipCondition{desk.SkipIfClaimed}},
		{At: 700 * ms, Page: []string{"oncall:payments"}, Severity: "error"},
		{At: 1500 * ms, Expire: "stale"},
	}},
	// It pages shortly before the deadline.
	{Name: "tight", Steps: []desk.Step{
		{At: 0, Notify: []string{desk.TargetApprovers}},
		{At: 760 * ms, Page: []string{"oncall:payments"}, Severity: "error"},
		{At: 780 * ms, Remind: []string{desk.TargetInbox}},
		{At: 800 * ms, Expire: "stale"},
	}},
}

// payers is the directory. It includes the requesters, and temps until the time in their name.
type payers struct{}

var permanent = []string{"ann", "bob", "cid", "dee", "eve"}

const (
	requesters = "requester-"
	temps      = "temp-"
	outsider   = "zoe"
)

// Member implements desk.Directory.
func (payers) Member(who, person string) (bool, error) {
	return who == "group:payers" && payerAt(person, time.Now()), nil
}

// payerAt reports whether a person is a payer at a time.
func payerAt(person string, at time.Time) bool {
	if leaves, temp := strings.CutPrefix(person, temps); temp {
		micros, err := strconv.ParseInt(leaves, 10, 64)
		return err == nil && at.Before(time.UnixMicro(micros))
	}
	return slices.Contains(permanent, person) || strings.HasPrefix(person, requesters)
}

// tempUntil returns a person who is a payer until a time.
func tempUntil(at time.Time) string { return fmt.Sprintf("%s%d", temps, at.UnixMicro()) }

// deskService is an executor with a desk.
type deskService struct{ *fermataService }

func openDesk(config replicaConfig) (service, error) {
	w := &outside{url: config.Sink, life: config.Life}
	flow, err := newPayments(w)
	if err != nil {
		return nil, err
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[payment]{}))
	if err != nil {
		return nil, err
	}
	rules, err := loadRules()
	if err != nil {
		return nil, err
	}
	routes := make(map[string]desk.Route)
	for name, route := range deskRoutes() {
		routes[name] = route.Route
	}
	s, e, err := openExecutor(config, p, executor.DeskConfig{Directory: payers{}, Routes: routes, Policy: rules, Channels: []channel.Channel{channel.Notify(w.tell)}})
	if err != nil {
		return nil, err
	}
	e.StartWorkers()
	return deskService{&fermataService{executor: e, store: s}}, nil
}

// tell sends a notice to the sink.
func (w *outside) tell(ctx context.Context, account string, notice desk.Notice) error {
	var reply string
	return w.post(ctx, noticePath, receivedNotice{Account: account, Notice: notice, Life: w.life}, &reply)
}

func (d deskService) start(ctx context.Context, r request) (answer, error) {
	input, err := json.Marshal(payment{Key: r.Key, Amount: r.Amount})
	if err != nil {
		return answer{}, err
	}
	return answerOf(d.executor.Run(ctx, executor.RunRequest{
		Account: r.Account, StateKey: r.Key, Graph: inproc.Name + ":" + paymentName, Input: input, Actor: r.Actor, Via: "chaos",
	}))
}

// look also returns the requests.
func (d deskService) look(ctx context.Context, r request) (answer, error) {
	reply, err := d.fermataService.look(ctx, r)
	if err != nil || reply.View == nil {
		return reply, err
	}
	reply.View.Requests = make(map[string]desk.Request)
	for _, q := range reply.View.Questions {
		doc, err := d.executor.RequestDocument(ctx, r.Account, q.ID)
		if err != nil {
			return answer{}, err
		}
		reply.View.Requests[q.ID] = doc
	}
	return reply, nil
}

func (d deskService) act(ctx context.Context, r request) (answer, error) {
	from := desk.From{Actor: desk.PersonActor(r.Actor, requirement.AuthSSO), Via: "chaos"}
	var act desk.Command
	switch r.Act.Name {
	case desk.CommandClaim:
		act = desk.Claim{From: from}
	case desk.CommandRelease:
		act = desk.Release{From: from}
	case desk.CommandView:
		act = desk.View{From: from}
	case desk.CommandComment:
		act = desk.Comment{From: from, Text: r.Act.Text}
	case desk.CommandDelegate:
		act = desk.Delegate{From: from, To: r.Act.To}
	case desk.CommandSnooze:
		act = desk.Snooze{From: from, Until: r.Act.Until}
	case desk.CommandExtend:
		act = desk.Extend{From: from, Until: r.Act.Until}
	case desk.CommandEscalate:
		act = desk.Escalate{From: from}
	default:
		return answer{}, fmt.Errorf("unknown command %q", r.Act.Name)
	}
	_, err := d.executor.Act(ctx, r.Account, r.Act.Request, act)
	switch {
	case err == nil:
		return answer{Kind: saidDone}, nil
	case errors.Is(err, store.ErrNotFound):
		return answer{Kind: saidNoRun}, nil
	case desk.Code(err) != "":
		return answer{Kind: saidRefused, Error: desk.Code(err)}, nil
	}
	return answer{}, err
}
