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

// Limits is the usage that a run may reach before a person is asked whether to continue. Zero
// values mean no limit. All agents of the run count together, from its start and across interrupts.
type Limits struct {
	// ModelCalls and ToolCalls limit the number of calls.
	ModelCalls, ToolCalls int
	// Tokens limits the sum of input and output tokens.
	Tokens int64
	// Cost is in the unit of the Price function.
	Cost float64
	// Time limits the execution time of the run. Waiting for a person does not count.
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

// OverLimit is the kind of the interrupt that a run raises before it exceeds one of its limits.
var OverLimit = fermata.NewKind[LimitReached, LimitDecision]("limit-reached")

// LimitReached is the question whether a run may exceed a limit.
type LimitReached struct {
	Agent string `json:"agent"`
	Limit Limit  `json:"limit"`
	// Max is the allowed value, Used the current or requested one.
	Max  float64 `json:"max"`
	Used float64 `json:"used"`
	// Total is the total usage of the run.
	Total Spent `json:"everything"`
}

// LimitDecision is the answer to [LimitReached].
type LimitDecision struct {
	Continue bool `json:"goOn"`
	// More is the additional amount that is allowed, with Continue; 0 means the amount of the limit
	// again.
	More   float64 `json:"more,omitempty"`
	Reason string  `json:"reason,omitempty"`
	By     string  `json:"by,omitempty" attest:"by"`
}

// Validate rejects negative amounts and an amount without Continue.
func (d LimitDecision) Validate() error {
	switch {
	case d.More < 0:
		return fmt.Errorf("more is %g: it must not be negative", d.More)
	case !d.Continue && d.More > 0:
		return errors.New("more is set, but the run may not continue")
	}
	return nil
}

// Spent is the usage of a run.
type Spent struct {
	Usage
	ModelCalls int           `json:"modelCalls,omitempty"`
	ToolCalls  int           `json:"toolCalls,omitempty"`
	Cost       float64       `json:"cost,omitempty"`
	Time       time.Duration `json:"time,omitempty"`
}

// Price returns the cost of a model call.
type Price func(model string, usage Usage) float64

// meter tracks the usage of the run. It is saved with the next result.
type meter struct {
	limits Limits
	price  Price
	scope  *activation.Scope
	since  time.Time // when this execution began

	mu     sync.Mutex
	record usageRecord
	// inFlight is the number of model calls in progress. They are not recorded yet, but parallel
	// branches must not use the same remaining amount twice.
	inFlight int
}

// usageRecord is the saved form of a meter.
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
		return nil, fmt.Errorf("agent: usage of the run cannot be decoded: %w", err)
	}
	return m, nil
}

// spent returns the usage of the run so far.
func (m *meter) spent() Spent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.currentUsage()
}

// currentUsage is spent with the lock held.
func (m *meter) currentUsage() Spent {
	s := m.record.Spent
	s.Time += m.scope.Host.Time().Sub(m.since)
	return s
}

// addUsage adds to the usage and records it.
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

// recordModelCall ends an admitted model call that was answered.
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

// releaseModelCall ends an admitted model call that failed.
func (m *meter) releaseModelCall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight--
}

// admitModelCall asks a person if another model call exceeds a limit. The cost and tokens of the
// call are not known yet, so it checks whether the limit is already reached.
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

// admitToolCalls asks a person if this many tool calls exceed a limit. They count from here on,
// also while they wait for a person. place is the scope of the turn.
func (m *meter) admitToolCalls(ctx context.Context, place *activation.Scope, agent string, calls int) error {
	if _, ok := place.Recorded(entryAdmitted); ok {
		place.Skip() // the interrupts here are settled
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

// askAboutLimits asks a person about each exceeded limit; if there is none, it calls admit. It is
// part of the work that it precedes, so it is not called again once that is done.
func (m *meter) askAboutLimits(ctx context.Context, agent string, admit func(), requested func(Spent) []LimitReached) error {
	for n := 1; ; n++ {
		segment := fermata.Segment{Type: "limit", ID: fmt.Sprint(n)}
		reached, err := m.pendingLimit(ctx, segment, agent, admit, requested)
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

// pendingLimit returns the exceeded limit. An open or answered question is repeated unchanged, even
// if the usage or the limits have changed since: a person is looking at it, or has decided.
func (m *meter) pendingLimit(ctx context.Context, segment fermata.Segment, agent string, admit func(), requested func(Spent) []LimitReached) (*LimitReached, error) {
	place := activation.FromContext(ctx).Child(segment.String())
	if data, ok := place.Recorded(entryLimit); ok {
		reached := new(LimitReached)
		return reached, json.Unmarshal(data, reached)
	}
	reached := m.firstExceeded(agent, admit, requested)
	if reached == nil {
		return nil, nil
	}
	data, err := json.Marshal(reached)
	if err != nil {
		return nil, &fermata.EncodeError{Value: "a limit", Err: err}
	}
	return reached, place.Record(ctx, entryLimit, data, activation.SaveWithNext)
}

// firstExceeded returns the first exceeded limit. If there is none, it calls admit while it holds
// the lock.
func (m *meter) firstExceeded(agent string, admit func(), requested func(Spent) []LimitReached) *LimitReached {
	m.mu.Lock()
	defer m.mu.Unlock()
	spent := m.currentUsage()
	for _, w := range requested(spent) {
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

// isExceeded reports whether the limit blocks the work. For calls, Used includes the requested
// ones; for other limits it is the usage so far.
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
