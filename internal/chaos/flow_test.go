//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/simtest"
)

// The gates of an order, and their stages. A gate is requested only after all gates of earlier
// stages are decided.
//
//	charge ──┬─▶ reserve ─┬─▶ pick ⟲ ─▶ stamp ─▶ ship
//	         └─▶ notify ──┘
const (
	charge  = "charge"  // deduplicated by its idempotency key
	reserve = "reserve" // deduplicated by its idempotency key, in parallel with notify
	notify  = "notify"  // executed as often as it is called
	pick    = "pick"    // a question; "again" asks it again
	stamp   = "stamp"   // a policy allows it
	ship    = "ship"    // executed as often as it is called
)

var stages = map[string]int{charge: 1, reserve: 2, notify: 2, pick: 3, stamp: 4, ship: 5}

// order is the state of a run.
type order struct {
	Key     string `json:"key"`
	Amount  int    `json:"amount"`
	Rounds  int    `json:"rounds,omitempty"`
	Charge  string `json:"charge,omitempty"`
	Reserve string `json:"reserve,omitempty"`
	Notify  string `json:"notify,omitempty"`
	Pick    string `json:"pick,omitempty"`
	Stamp   string `json:"stamp,omitempty"`
	Ship    string `json:"ship,omitempty"`
}

// result returns the result of a gate.
func (o *order) result(gate string) *string {
	return map[string]*string{charge: &o.Charge, reserve: &o.Reserve, notify: &o.Notify, pick: &o.Pick, stamp: &o.Stamp, ship: &o.Ship}[gate]
}

// The results of a gate; after done follows the receipt.
const (
	wasDone     = string(simtest.Executed) + " "
	wasRejected = string(simtest.Rejected)
	wasExpired  = string(simtest.Expired)
)

// action has the arguments of a gate.
type action struct {
	Order  string `json:"order"`
	Gate   string `json:"gate"`
	Amount int    `json:"amount"`
}

// choice is the answer to pick.
type choice string

// Choices lists the possible answers.
func (choice) Choices() []string { return []string{"red", "blue", "again"} }

// picking is the question of pick. Each round has another one.
type picking struct {
	Order string `json:"order"`
	Gate  string `json:"gate"`
	Round int    `json:"round"`
}

var picks = fermata.NewKind[picking, choice]("chaos-pick")

const flowName = "order"

// newFlow returns the graph of all runs.
func newFlow(w *outside) (*graph.Flow[order], error) {
	g := graph.New[order](flowName)
	g.Node(charge, w.gate(charge, nil, fermata.Idempotent()))
	g.Node(reserve, w.gate(reserve, nil, fermata.Idempotent()))
	g.Node(notify, w.gate(notify, nil))
	g.Node(pick, pickOne)
	g.Node(stamp, w.gate(stamp, fermata.PolicyFunc(allow), fermata.Idempotent()))
	g.Node(ship, w.gate(ship, nil))
	g.Edge(graph.Start, charge)
	g.Edge(charge, reserve)
	g.Edge(charge, notify)
	g.Edge(reserve, pick)
	g.Edge(notify, pick)
	g.Branch(pick, func(o order) string {
		if o.Pick == "again" {
			return pick
		}
		return stamp
	}, pick, stamp)
	g.Edge(stamp, ship)
	g.Edge(ship, graph.End)
	return g.Compile()
}

func allow(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
	return fermata.Ruling{Verdict: fermata.Allow, Rule: "stamps"}, nil
}

func pickOne(ctx context.Context, o order) (order, error) {
	picked, err := picks.Ask(ctx, picking{Order: o.Key, Gate: pick, Round: o.Rounds})
	if err != nil {
		return o, err
	}
	o.Pick, o.Rounds = string(picked), o.Rounds+1
	return o, nil
}

// gate requests approval of one action and executes it.
func (w *outside) gate(name string, policy fermata.Policy, options ...fermata.EffectOption) graph.Func[order] {
	target := simtest.NonIdempotent
	if len(options) > 0 {
		target = simtest.Idempotent
	}
	return func(ctx context.Context, o order) (order, error) {
		result, err := w.pass(ctx, action{Order: o.Key, Gate: name, Amount: o.Amount}, target, policy, options...)
		if err == nil {
			*o.result(name) = result
		}
		return o, err
	}
}

// pass requests an action, executes it, and returns the result.
func (w *outside) pass(ctx context.Context, args action, target simtest.TargetKind, policy fermata.Policy, options ...fermata.EffectOption) (string, error) {
	result, receipt, err := simtest.Gate(ctx, fermata.Action[action]{Name: args.Gate, Args: args, Policy: policy}, func(ctx context.Context, args action, key string) (string, error) {
		return w.call(ctx, call{Target: target, Key: key, Action: args})
	}, options...)
	if result == simtest.Executed {
		return wasDone + receipt, err
	}
	return string(result), err
}

// outside is a replica's client for the sink.
type outside struct {
	url  string
	life int64
}

// call is a call of a replica to the sink.
type call struct {
	Target simtest.TargetKind `json:"target"`
	Key    string             `json:"key"`
	Action action             `json:"action"`
	Life   int64              `json:"life"` // of the replica
}

func (w *outside) call(ctx context.Context, c call) (receipt string, err error) {
	c.Life = w.life
	return receipt, w.post(ctx, "", c, &receipt)
}

// post sends a message to the sink.
func (w *outside) post(ctx context.Context, path string, what, reply any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the sink returned %s", response.Status)
	}
	return json.NewDecoder(response.Body).Decode(reply)
}
