package policy

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// MaxWindow is the maximum window of a rule. The store keeps counters for this long. A rule with a
// longer window is a load error, because it would see incomplete counts.
const MaxWindow = 31 * 24 * time.Hour

// checkWindow rejects a window for which no counters are kept.
func checkWindow(window time.Duration) error {
	if window > MaxWindow {
		return fmt.Errorf("window %s is too long: the maximum is %s", Duration(window), Duration(MaxWindow))
	}
	return nil
}

// Limit limits an amount or a number of actions within a window. A rule that asks or denies matches
// an action that would exceed Max. A rule that allows matches while the action stays within Max.
type Limit struct {
	// Amount is the CEL expression of the amount that the action adds, in minor units. "" counts
	// actions.
	Amount string   `json:"amount,omitempty"`
	Max    int64    `json:"max"`
	Window Duration `json:"window"`
	// By lists the dimensions of the counter, in addition to the account: requester, agent, tool,
	// graph, node, environment, run.
	By []string `json:"by,omitempty"`
}

// CounterQuery asks for a counter value that the rules need: the sum of the charges to Counter in
// the Window before now.
type CounterQuery struct {
	Counter string   `json:"counter"`
	Window  Duration `json:"window"`
	// Limit is the id of the rule with the limit, or "" for a count of actions.
	Limit string `json:"limit,omitempty"`
	// Scope has the dimensions of the counter, for example account and requester.
	Scope map[string]string `json:"scope"`
}

// Key returns the key of the value in [Input.History].
func (d CounterQuery) Key() string { return d.Counter + " in " + d.Window.String() }

// Charge is what an action adds to a counter if it is executed. The caller stores the charge with
// the decision, in the same transaction in which it reads the counters. Otherwise two concurrent
// actions can both pass.
type Charge struct {
	Counter string `json:"counter"`
	Amount  int64  `json:"amount"`
}

// dimensions are the dimensions of counters.
var dimensions = map[string]func(*Input) string{
	"account":     func(in *Input) string { return in.Account },
	"environment": func(in *Input) string { return in.Environment },
	"graph":       func(in *Input) string { return in.Graph },
	"node":        func(in *Input) string { return in.Node },
	"tool":        func(in *Input) string { return in.Tool },
	"requester":   func(in *Input) string { return in.Requester },
	"agent":       func(in *Input) string { return in.Agent },
	"run":         func(in *Input) string { return in.Run },
}

func dimensionNames() []string {
	names := make([]string, 0, len(dimensions))
	for name := range dimensions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// normalizeDimensions sorts the dimensions and adds the account. Counters are never shared between
// accounts.
func normalizeDimensions(by []string) ([]string, error) {
	all := []string{"account"}
	for _, name := range by {
		name = strings.TrimSpace(name)
		if dimensions[name] == nil {
			return nil, fmt.Errorf("unknown dimension %q%s", name, yamldoc.Suggest(name, dimensionNames()))
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all[1:])
	return all, nil
}

// queryTemplate is a counter query without the values of the input. Different templates give
// different queries for any input, so the short templates are compared instead of the counter
// names.
type queryTemplate struct {
	counterTemplate
	window time.Duration
}

// counterTemplate is a counter without the values of the input.
type counterTemplate struct {
	limit string // the id of the rule; "" counts actions
	by    string // dimensions as [normalizeDimensions] returns them, joined by commas
}

func newQueryTemplate(limit string, by []string, window time.Duration) queryTemplate {
	return queryTemplate{counterTemplate{limit, strings.Join(by, ",")}, window}
}

func (s queryTemplate) query(in *Input) CounterQuery {
	d := CounterQuery{Limit: s.limit, Window: Duration(s.window), Counter: s.name(in), Scope: make(map[string]string)}
	for name := range strings.SplitSeq(s.by, ",") {
		d.Scope[name] = dimensions[name](in)
	}
	return d
}

// name returns the name of the counter.
func (s counterTemplate) name(in *Input) string {
	var counter strings.Builder
	counter.WriteString("actions")
	if s.limit != "" {
		counter.Reset()
		counter.WriteString("limit " + strconv.Quote(s.limit))
	}
	for name := range strings.SplitSeq(s.by, ",") {
		// quoted, so that a value cannot look like two
		counter.WriteString(" " + name + "=" + strconv.Quote(dimensions[name](in)))
	}
	return counter.String()
}

// parseCountCall returns the template of history.count(by, window).
func parseCountCall(by, window string) (queryTemplate, error) {
	names, err := normalizeDimensions(strings.Split(by, ","))
	if err != nil {
		return queryTemplate{}, err
	}
	span, err := timespan.Parse(window)
	if err != nil {
		return queryTemplate{}, err
	}
	if span == 0 {
		return queryTemplate{}, errors.New("the window is empty")
	}
	return newQueryTemplate("", names, span), checkWindow(span)
}

var errNoCounter = errors.New("the counter value is missing")

// counter returns the value for a query.
func (in *Input) counter(d CounterQuery) (int64, error) {
	used, ok := in.History[d.Key()]
	if !ok || used < 0 {
		return 0, errNoCounter
	}
	return used, nil
}

// exceeded reports whether used + adds is more than the limit, without overflow.
func (l *Limit) exceeded(used, adds int64) bool {
	return adds > math.MaxInt64-used || used+adds > l.Max
}

// historyVal is the variable `history`.
type historyVal struct{ in *Input }

var historyType = types.NewOpaqueType("history")

func (historyVal) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("history supports only count")
}

func (historyVal) ConvertToType(ref.Type) ref.Val { return types.NewErr("history supports only count") }

func (historyVal) Equal(ref.Val) ref.Val { return types.False }

func (historyVal) Type() ref.Type { return historyType }

func (h historyVal) Value() any { return h }

func celCount(args ...ref.Val) ref.Val {
	history, ok := args[0].(historyVal)
	by, good := args[1].(types.String)
	window, fine := args[2].(types.String)
	if !ok || !good || !fine {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	s, err := parseCountCall(string(by), string(window))
	if err != nil {
		return types.NewErr("%v", err)
	}
	used, err := history.in.counter(s.query(history.in))
	if err != nil {
		return types.NewErr("%v", err)
	}
	return types.Int(used)
}
