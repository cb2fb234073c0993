package crashpoint

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
)

// An order is paid, and then shipped; each only if people say so. A no ends the gate and not the order, so that there is a next gate to be
// passed by mistake.
//
//	pay ──▶ ship
type order struct {
	Key   string `json:"key"`
	Cents int    `json:"cents"`
	Pay   string `json:"pay,omitempty"`
	Ship  string `json:"ship,omitempty"`
}

// The gates, and what can come of one beside its receipt.
const (
	pay  = "pay"
	ship = "ship"

	wasRejected = "rejected"
	wasExpired  = "expired"
)

// effectClient are how one process reaches the world outside: through its passage, as it reaches the store.
type effectClient struct {
	outside *externalTarget
	way     passage
	// looked, if given, is called when a target was asked, and called when it was called: what is still on its way may come now.
	looked, called func()
}

// act does something at a target. What comes of a call that arrives late is nobody's: so it has a place of its own.
func (h *effectClient) act(of target, what, key string, try int, p payment) (string, error) {
	var receipt string
	var err error
	if dead := h.way.do("outside "+what+" "+key, func() { receipt, err = h.outside.do(of, what, key, try, p) }); dead != nil {
		return "", dead
	}
	if h.called != nil {
		h.called()
	}
	return receipt, err
}

// look asks a target.
func (h *effectClient) look(ctx context.Context, key string) (string, bool, error) {
	var receipt string
	var found bool
	fence := fermata.Fence(ctx)
	if dead := h.way.do("outside look "+key, func() { receipt, found = h.outside.look(key, fence) }); dead != nil {
		return "", false, dead
	}
	if h.looked != nil {
		h.looked()
	}
	return receipt, found, nil
}

// options are what an effect declares of a target.
func (h *effectClient) options(of target) []fermata.EffectOption {
	switch of {
	case idempotent:
		return []fermata.EffectOption{fermata.Idempotent()}
	case fencing:
		return []fermata.EffectOption{fermata.Fenced(), fermata.Lookup(h.look)}
	case nonIdempotent:
	}
	return nil
}

// gate asks for one action and does it.
func (h *effectClient) gate(name string, of target, result func(*order) *string) graph.Func[order] {
	return func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[payment]{Name: name, Args: payment{o.Key, o.Cents}})
		if _, rejected := errors.AsType[*fermata.RejectedError](err); rejected {
			*result(&o) = wasRejected
			return o, nil
		}
		if _, expired := errors.AsType[*fermata.ExpiredError](err); expired {
			*result(&o) = wasExpired
			return o, nil
		}
		if err != nil {
			return o, err
		}
		*result(&o), err = fermata.Effect(ctx, yes, func(ctx context.Context, p payment, key string) (string, error) {
			return h.act(of, name, key, fermata.Fence(ctx), p)
		}, h.options(of)...)
		return o, err
	}
}

// flows has the order for each kind of target: inproc:idem, inproc:fence_query, inproc:none. What is shipped is shipped by one that does
// what it is told.
func (h *effectClient) flows(t testing.TB) provider.Provider {
	var flows []inproc.Graph
	for _, of := range targets {
		g := graph.New[order](string(of))
		g.Node(pay, h.gate(pay, of, func(o *order) *string { return &o.Pay }))
		g.Node(ship, h.gate(ship, nonIdempotent, func(o *order) *string { return &o.Ship }))
		g.Edge(graph.Start, pay)
		g.Edge(pay, ship)
		g.Edge(ship, graph.End)
		flow, err := g.Compile()
		if err != nil {
			t.Fatal(err)
		}
		flows = append(flows, inproc.Flow(flow, inproc.FlowConfig[order]{}))
	}
	p, err := inproc.New(flows...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// groupMembers are who is in which group.
var groupMembers = desk.StaticDirectory{"group:cashiers": {"ann", "req"}, "group:owners": {"bob", "eve", "req"}}

// rules are a policy that is always the same.
type rules struct{ *policy.Set }

func (r rules) Current() *policy.Set { return r.Set }

// twoPeople are the rules of the shop: two people for money, one for goods.
const twoPeople = `
default: deny
rules:
- id: money
  when: req.tool == "pay"
  then: ask
  reason: it is gone when it is gone
  ask: {groups: [{from: ["group:cashiers"]}, {from: ["group:owners"]}], separation_of_duties: [requester], editable: ["/cents"], deadline: 24h}
- id: goods
  when: req.tool == "ship"
  then: ask
  ask: {groups: [{from: ["group:owners"]}], separation_of_duties: [requester], deadline: 24h}
`

// anyone are rules by which one person is enough.
const anyone = `
default: deny
rules:
- {id: all, when: "true", then: ask, ask: {groups: [{from: [anyone]}], editable: ["/cents"], deadline: 20m}}
`

func loadRules(t testing.TB, text string) rules {
	set, err := policy.Load("rules.yaml", []byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return rules{set}
}

// config is that of every process here.
func config(t testing.TB, s store.Store, p provider.Provider) executor.Config {
	key, err := seal.New(seal.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	return executor.Config{
		Store: s, Providers: []provider.Provider{p}, Sealer: key, Workers: 1, Lease: time.Hour, Poll: 20 * time.Millisecond, Wait: time.Minute,
		SaveDelay: time.Hour, // as long as anything may be kept back, and never by the clock
		Log:       slog.New(slog.NewTextHandler(logTo(), nil)),
	}
}

// logTo is where processes complain, which they have every reason to. Whoever repeats one schedule wants to read it.
func logTo() io.Writer {
	if os.Getenv(seedVariable) != "" {
		return os.Stderr
	}
	return io.Discard
}
