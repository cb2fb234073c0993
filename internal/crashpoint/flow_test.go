package crashpoint

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// An order is paid and then shipped, each after an approval. A rejection ends the gate but not the
// order, so that a later gate could be passed by mistake.
//
//	pay ──▶ ship
type order struct {
	Key   string `json:"key"`
	Cents int    `json:"cents"`
	Pay   string `json:"pay,omitempty"`
	Ship  string `json:"ship,omitempty"`
}

// The gates. The result of one is a receipt, or how else it ended.
const (
	pay  = "pay"
	ship = "ship"
)

// payment is an external action.
type payment struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// effectCall is an action with the gate that called for it.
type effectCall struct {
	what string
	payment
}

// target is the outside world.
type target = simtest.Target[effectCall]

// kinds are those of the targets. Shipping uses one that is not idempotent.
var kinds = []simtest.TargetKind{simtest.Idempotent, simtest.Fencing, simtest.NonIdempotent}

// executed returns the executed calls of an action.
func executed(t *target, what string) []simtest.Done[effectCall] {
	return slices.DeleteFunc(t.Log(), func(d simtest.Done[effectCall]) bool { return d.Action.what != what })
}

// effectClient is how one process calls targets: through its passage, like the store.
type effectClient struct {
	outside *target
	way     passage
	// looked, if set, is called after a target was queried, and called after it was called, so that
	// a late call can arrive at that point.
	looked, called func()
}

// act calls a target. A late call has no receiver for its result, so the result has its own
// variable.
func (h *effectClient) act(kind simtest.TargetKind, what, key string, try int, p payment) (string, error) {
	var receipt string
	var err error
	if dead := h.way.do("outside "+what+" "+key, func() { receipt, err = h.outside.Call(kind, key, int64(try), effectCall{what, p}) }); dead != nil {
		return "", dead
	}
	if h.called != nil {
		h.called()
	}
	return receipt, err
}

// look queries a target.
func (h *effectClient) look(ctx context.Context, key string) (string, bool, error) {
	var receipt string
	var found bool
	fence := int64(fermata.Fence(ctx))
	if dead := h.way.do("outside look "+key, func() { receipt, found = h.outside.Query(key, fence) }); dead != nil {
		return "", false, dead
	}
	if h.looked != nil {
		h.looked()
	}
	return receipt, found, nil
}

// options returns the effect options of a target.
func (h *effectClient) options(kind simtest.TargetKind) []fermata.EffectOption {
	switch kind {
	case simtest.Idempotent:
		return []fermata.EffectOption{fermata.Idempotent()}
	case simtest.Fencing:
		return []fermata.EffectOption{fermata.Fenced(), fermata.Lookup(h.look)}
	case simtest.NonIdempotent:
	}
	return nil
}

// gate asks for approval of one action and executes it.
func (h *effectClient) gate(name string, kind simtest.TargetKind, result func(*order) *string) graph.Func[order] {
	return func(ctx context.Context, o order) (order, error) {
		ended, receipt, err := simtest.Gate(ctx, fermata.Action[payment]{Name: name, Args: payment{o.Key, o.Cents}}, func(ctx context.Context, p payment, key string) (string, error) {
			return h.act(kind, name, key, fermata.Fence(ctx), p)
		}, h.options(kind)...)
		if err == nil {
			*result(&o) = cmp.Or(receipt, string(ended))
		}
		return o, err
	}
}

// flows returns the order graph for each kind of target: inproc:idem, inproc:fence_query,
// inproc:none.
func (h *effectClient) flows(t testing.TB) provider.Provider {
	var flows []inproc.Graph
	for _, kind := range kinds {
		g := graph.New[order](string(kind))
		g.Node(pay, h.gate(pay, kind, func(o *order) *string { return &o.Pay }))
		g.Node(ship, h.gate(ship, simtest.NonIdempotent, func(o *order) *string { return &o.Ship }))
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

// groupMembers are the members of groups.
var groupMembers = desk.StaticDirectory{"group:cashiers": {"ann", "req"}, "group:owners": {"bob", "eve", "req"}}

// twoPeople is a policy: two people for payments, one for shipping.
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

// anyone is a policy for which one person is sufficient.
const anyone = `
default: deny
rules:
- {id: all, when: "true", then: ask, ask: {groups: [{from: [anyone]}], editable: ["/cents"], deadline: 20m}}
`

func loadRules(t testing.TB, text string) simtest.FixedPolicy {
	set, err := policy.Load("rules.yaml", []byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return simtest.FixedPolicy{Set: set}
}

// config returns the configuration of every process.
func config(t testing.TB, s store.Store, p provider.Provider) executor.Config {
	key, err := seal.New(seal.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	return executor.Config{
		Store: s, Providers: []provider.Provider{p}, Sealer: key, Workers: 1, Lease: time.Hour, Poll: 20 * time.Millisecond, Wait: time.Minute,
		SaveDelay: time.Hour, // longer than any test
		Log:       slog.New(slog.NewTextHandler(logTo(), nil)),
	}
}

// logTo returns the target for process logs, which are noisy. They are shown if one schedule is
// repeated.
func logTo() io.Writer {
	if os.Getenv(seedVariable) != "" {
		return os.Stderr
	}
	return io.Discard
}
