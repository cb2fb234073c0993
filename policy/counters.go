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

	"github.com/fermata-go/fermata/policy/internal/yamldoc"
)

// MaxWindow is how far back rules can look. Whoever keeps the numbers keeps them for so long; a rule that wants more is not loaded, for it
// would be told less than there was.
const MaxWindow = 31 * 24 * time.Hour

// checkWindow refuses a span of time for which no numbers are kept.
func checkWindow(window time.Duration) error {
	if window > MaxWindow {
		return fmt.Errorf("a window of %s is too long: rules can look back %s at most", Duration(window), Duration(MaxWindow))
	}
	return nil
}

// Limit makes a rule about how much, or how often, within a span of time. A rule that asks or denies is hit by the action
// that would go beyond Max; a rule that allows is hit as long as the action stays within.
type Limit struct {
	// Amount is the CEL expression of what the action adds, in minor units; "" counts actions.
	Amount string   `json:"amount,omitempty"`
	Max    int64    `json:"max"`
	Window Duration `json:"window"`
	// By says what is counted apart, beside the account: requester, agent, tool, graph, node, environment, run.
	By []string `json:"by,omitempty"`
}

// CounterQuery is a number that the rules need from the past: how much was charged to Counter in the Window before now.
type CounterQuery struct {
	Counter string   `json:"counter"`
	Window  Duration `json:"window"`
	// Limit is the id of the rule whose limit it is; "" for a count of actions.
	Limit string `json:"limit,omitempty"`
	// Scope says which actions count, as account and requester.
	Scope map[string]string `json:"scope"`
}

// Key is under what [Input.History] has the number.
func (d CounterQuery) Key() string { return d.Counter + " in " + d.Window.String() }

// Charge is what an action adds to a counter when it goes ahead. Whoever keeps the numbers writes it down together with the
// decision that lets the action go ahead, in one transaction with the reading of the demands: else two actions pass at once.
type Charge struct {
	Counter string `json:"counter"`
	Amount  int64  `json:"amount"`
}

// dimensions are what can be counted apart.
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

// normalizeDimensions sorts the dimensions, and adds the account: no number is ever shared between accounts.
func normalizeDimensions(by []string) ([]string, error) {
	all := []string{"account"}
	for _, name := range by {
		name = strings.TrimSpace(name)
		if dimensions[name] == nil {
			return nil, fmt.Errorf("nothing can be counted by %q%s", name, yamldoc.Suggest(name, dimensionNames()))
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all[1:])
	return all, nil
}

// queryTemplate is a demand before it is known of whom. Two shapes that differ make two demands of any input: so shapes are told apart, which are few
// and short, and not the names that are made of them.
type queryTemplate struct {
	counterTemplate
	window time.Duration
}

// counterTemplate is a counter before it is known of whom.
type counterTemplate struct {
	limit string // the id of the rule; "" counts actions
	by    string // dimensions, as [normalizeDimensions] puts them, with commas
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

// name is that of the counter.
func (s counterTemplate) name(in *Input) string {
	var counter strings.Builder
	counter.WriteString("actions")
	if s.limit != "" {
		counter.Reset()
		counter.WriteString("limit " + strconv.Quote(s.limit))
	}
	for name := range strings.SplitSeq(s.by, ",") {
		counter.WriteString(" " + name + "=" + strconv.Quote(dimensions[name](in))) // quoted, so that no value can pose as two
	}
	return counter.String()
}

// parseCountCall is the shape of history.count(by, window).
func parseCountCall(by, window string) (queryTemplate, error) {
	names, err := normalizeDimensions(strings.Split(by, ","))
	if err != nil {
		return queryTemplate{}, err
	}
	span, err := yamldoc.ParseDuration(window)
	if err != nil {
		return queryTemplate{}, err
	}
	if span == 0 {
		return queryTemplate{}, errors.New("the window is empty")
	}
	return newQueryTemplate("", names, span), checkWindow(span)
}

var errNoCounter = errors.New("the number from the past was not given")

// withCounters returns the number for a demand.
func (in *Input) counter(d CounterQuery) (int64, error) {
	used, ok := in.History[d.Key()]
	if !ok || used < 0 {
		return 0, errNoCounter
	}
	return used, nil
}

// beyond reports whether used and adds together are more than the limit, also where the sum has no int64.
func (l *Limit) exceeded(used, adds int64) bool {
	return adds > math.MaxInt64-used || used+adds > l.Max
}

// historyVal is the variable `history`.
type historyVal struct{ in *Input }

var historyType = types.NewOpaqueType("history")

func (historyVal) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("history has only counts")
}

func (historyVal) ConvertToType(ref.Type) ref.Val { return types.NewErr("history has only counts") }

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
