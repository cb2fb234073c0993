package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// Limits are what one run may use before a person is asked whether it should go on. The zero value of each means no limit.
// All agents of the run count together, from its start and across its interrupts.
type Limits struct {
	// ModelCalls and ToolCalls are numbers of calls.
	ModelCalls, ToolCalls int
	// Tokens are those that models read and wrote.
	Tokens int64
	// Cost is in the unit of the Price function.
	Cost float64
	// Time is how long the run is at work. Waiting for a person does not count.
	Time time.Duration
}

// Limit names one of the [Limits].
type Limit string

// The limits of a run.
const (
	LimitModelCalls Limit = "model calls"
	LimitToolCalls  Limit = "tool calls"
	LimitTokens     Limit = "tokens"
	LimitCost       Limit = "cost"
	LimitTime       Limit = "seconds"
)

// OverLimit is the kind of question that a run asks which would go over one of its limits.
var OverLimit = fermata.NewKind[LimitReached, LimitDecision]("limit-reached")

// LimitReached is what a person sees who decides whether a run goes on.
type LimitReached struct {
	Agent string `json:"agent"`
	Limit Limit  `json:"limit"`
	// Max is what was allowed, Used what it is or would be now.
	Max  float64 `json:"max"`
	Used float64 `json:"used"`
	// Everything is the whole account of the run.
	Total Spent `json:"everything"`
}

// LimitDecision is a person's word on going on.
type LimitDecision struct {
	Continue bool `json:"goOn"`
	// More is how much more is allowed, with GoOn; 0 means as much again as the limit.
	More   float64 `json:"more,omitempty"`
	Reason string  `json:"reason,omitempty"`
	By     string  `json:"by,omitempty"`
}

// Validate refuses what would not allow anything.
func (d LimitDecision) Validate() error {
	switch {
	case d.More < 0:
		return fmt.Errorf("more is %g: it cannot be less than nothing", d.More)
	case !d.Continue && d.More > 0:
		return errors.New("it allows more and does not let the run go on: which one counts?")
	}
	return nil
}

// Spent is what a run has used.
type Spent struct {
	Usage
	ModelCalls int           `json:"modelCalls,omitempty"`
	ToolCalls  int           `json:"toolCalls,omitempty"`
	Cost       float64       `json:"cost,omitempty"`
	Time       time.Duration `json:"time,omitempty"`
}

// Price is what a call of a model costs.
type Price func(model string, usage Usage) float64

// meter counts what the run uses. What it knows is saved with the next result.
type meter struct {
	limits Limits
	price  Price
	scope  *activation.Scope
	since  time.Time // when this execution began

	mu     sync.Mutex
	record usageRecord
	// asking is how many models are being asked. They are not in the book yet, but lanes that work side by side must not take
	// the same room twice.
	inFlight int
}

// usageRecord is what is saved of a meter.
type usageRecord struct {
	Spent
	Granted map[Limit]float64 `json:"granted,omitempty"`
}

const entryMeter = "meter"

func newMeter(scope *activation.Scope, limits Limits, price Price) (*meter, error) {
	m := &meter{limits: limits, price: price, scope: scope, since: scope.Host.Time()}
	data, ok := scope.Recorded(entryMeter)
	if !ok {
		return m, nil
	}
	if err := json.Unmarshal(data, &m.record); err != nil {
		return nil, fmt.Errorf("agent: what the run has used cannot be read: %w", err)
	}
	return m, nil
}

// spent is what the run has used until now.
func (m *meter) spent() Spent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.currentUsage()
}

// soFar is called with the lock held.
func (m *meter) currentUsage() Spent {
	s := m.record.Spent
	s.Time += m.scope.Host.Time().Sub(m.since)
	return s
}

// count adds to the account.
func (m *meter) addUsage(ctx context.Context, add func(*usageRecord)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	add(&m.record)
	now := m.scope.Host.Time()
	m.record.Time += now.Sub(m.since)
	m.since = now
	data, err := json.Marshal(m.record)
	if err != nil {
		return &fermata.EncodeError{Value: "what the run has used", Err: err}
	}
	return m.scope.Record(ctx, entryMeter, data, activation.SaveWithNext)
}

// countModel ends a call that beforeModel let through, and that was answered.
func (m *meter) recordModelCall(ctx context.Context, r *Response) error {
	return m.addUsage(ctx, func(b *usageRecord) {
		m.inFlight--
		b.Usage = b.Usage.Add(r.Usage)
		b.ModelCalls++
		if m.price != nil {
			b.Cost += m.price(r.Model, r.Usage)
		}
	})
}

// noAnswer ends a call that beforeModel let through, and that came to nothing.
func (m *meter) releaseModelCall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight--
}

// beforeModel asks a person if another call of a model is over a limit. Price and tokens of the call are not known yet: what
// is looked at is whether the limit is reached.
func (m *meter) admitModelCall(ctx context.Context, agent string) error {
	return m.askAboutLimits(ctx, agent, func() { m.inFlight++ }, func(s Spent) []LimitReached {
		return []LimitReached{ //mutate:limit-counts-pending
			{Limit: LimitModelCalls, Max: float64(m.limits.ModelCalls), Used: float64(s.ModelCalls + m.inFlight + 1)},
			{Limit: LimitTokens, Max: float64(m.limits.Tokens), Used: float64(s.InputTokens + s.OutputTokens)},
			{Limit: LimitCost, Max: m.limits.Cost, Used: s.Cost},
			{Limit: LimitTime, Max: m.limits.Time.Seconds(), Used: s.Time.Seconds()},
		}
	})
}

const entryAdmitted = "admitted"

// beforeTools asks a person if so many more tool calls are over a limit. They count from here on: also while they wait for a
// person of their own. place is that of the turn.
func (m *meter) admitToolCalls(ctx context.Context, place *activation.Scope, agent string, calls int) error {
	if _, ok := place.Recorded(entryAdmitted); ok {
		place.Skip() // what was asked here is settled
		return nil
	}
	err := m.askAboutLimits(activation.WithScope(ctx, place), agent, func() { m.record.ToolCalls += calls }, func(s Spent) []LimitReached {
		return []LimitReached{
			{Limit: LimitToolCalls, Max: float64(m.limits.ToolCalls), Used: float64(s.ToolCalls + calls)},
			{Limit: LimitTime, Max: m.limits.Time.Seconds(), Used: s.Time.Seconds()},
		}
	})
	if err != nil {
		return err
	}
	if err := m.addUsage(ctx, func(*usageRecord) {}); err != nil {
		return err
	}
	return place.Record(ctx, entryAdmitted, json.RawMessage("true"), activation.SaveWithNext)
}

const entryLimit = "limit"

// check asks a person about each limit that is passed; if none is, it admits. It is part of the work that it stands before: once
// that is done it is not called again.
func (m *meter) askAboutLimits(ctx context.Context, agent string, admit func(), wanted func(Spent) []LimitReached) error {
	for n := 1; ; n++ {
		segment := fermata.Segment{Type: "limit", ID: fmt.Sprint(n)}
		reached, err := m.pendingLimit(ctx, segment, agent, admit, wanted)
		if err != nil || reached == nil {
			return err
		}
		decision, err := OverLimit.Ask(ctx, *reached)
		if err != nil {
			return err
		}
		if !decision.Continue { //mutate:limit-rejection
			return &LimitError{Reached: *reached, By: decision.By, Reason: decision.Reason}
		}
		segment.SubID = "grant"
		if _, err = fermata.DoAt(ctx, segment, func(ctx context.Context) (bool, error) {
			return true, m.grant(ctx, *reached, decision.More)
		}); err != nil {
			return err
		}
	}
}

// reached returns the limit that is passed. What was asked once is asked again as it was, whatever the account and the limits say
// by then: a person is looking at it, or has decided.
func (m *meter) pendingLimit(ctx context.Context, segment fermata.Segment, agent string, admit func(), wanted func(Spent) []LimitReached) (*LimitReached, error) {
	place := activation.FromContext(ctx).Child(segment.String())
	if data, ok := place.Recorded(entryLimit); ok {
		reached := new(LimitReached)
		return reached, json.Unmarshal(data, reached)
	}
	reached := m.firstExceeded(agent, admit, wanted)
	if reached == nil {
		return nil, nil
	}
	data, err := json.Marshal(reached)
	if err != nil {
		return nil, &fermata.EncodeError{Value: "a limit", Err: err}
	}
	return reached, place.Record(ctx, entryLimit, data, activation.SaveWithNext)
}

// over returns the first limit that is passed. If none is, it admits before anybody else can look.
func (m *meter) firstExceeded(agent string, admit func(), wanted func(Spent) []LimitReached) *LimitReached {
	m.mu.Lock()
	defer m.mu.Unlock()
	spent := m.currentUsage()
	for _, w := range wanted(spent) {
		if w.Max == 0 {
			continue
		}
		w.Max += m.record.Granted[w.Limit]
		if w.isExceeded() {
			w.Agent, w.Total = agent, spent
			return &w
		}
	}
	admit()
	return nil
}

// passed reports whether the limit is in the way. Used is with the calls that would come now; of everything else it is what is
// used up.
func (r *LimitReached) isExceeded() bool {
	if r.Limit == LimitModelCalls || r.Limit == LimitToolCalls {
		return r.Used > r.Max
	}
	return r.Used >= r.Max
}

func (m *meter) grant(ctx context.Context, reached LimitReached, more float64) error {
	if more == 0 {
		more = reached.Max
	}
	return m.addUsage(ctx, func(b *usageRecord) {
		if b.Granted == nil {
			b.Granted = make(map[Limit]float64)
		}
		b.Granted[reached.Limit] += more
	})
}
