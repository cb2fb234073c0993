package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/visit"
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
	Everything Spent `json:"everything"`
}

// LimitDecision is a person's word on going on.
type LimitDecision struct {
	GoOn bool `json:"goOn"`
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
	case !d.GoOn && d.More > 0:
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
	scope  *visit.Scope
	since  time.Time // when this execution began

	mu   sync.Mutex
	book book
	// asking is how many models are being asked. They are not in the book yet, but lanes that work side by side must not take
	// the same room twice.
	asking int
}

// book is what is saved of a meter.
type book struct {
	Spent
	Granted map[Limit]float64 `json:"granted,omitempty"`
}

const entryMeter = "meter"

func newMeter(scope *visit.Scope, limits Limits, price Price) (*meter, error) {
	m := &meter{limits: limits, price: price, scope: scope, since: scope.Host.Time()}
	data, ok := scope.Recall(entryMeter)
	if !ok {
		return m, nil
	}
	if err := json.Unmarshal(data, &m.book); err != nil {
		return nil, fmt.Errorf("agent: what the run has used cannot be read: %w", err)
	}
	return m, nil
}

// spent is what the run has used until now.
func (m *meter) spent() Spent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.soFar()
}

// soFar is called with the lock held.
func (m *meter) soFar() Spent {
	s := m.book.Spent
	s.Time += m.scope.Host.Time().Sub(m.since)
	return s
}

// count adds to the account.
func (m *meter) count(ctx context.Context, add func(*book)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	add(&m.book)
	now := m.scope.Host.Time()
	m.book.Time += now.Sub(m.since)
	m.since = now
	data, err := json.Marshal(m.book)
	if err != nil {
		return &fermata.EncodeError{What: "what the run has used", Err: err}
	}
	return m.scope.Record(ctx, entryMeter, data, visit.Later)
}

// countModel ends a call that beforeModel let through, and that was answered.
func (m *meter) countModel(ctx context.Context, r *Response) error {
	return m.count(ctx, func(b *book) {
		m.asking--
		b.Usage = b.Usage.Add(r.Usage)
		b.ModelCalls++
		if m.price != nil {
			b.Cost += m.price(r.Model, r.Usage)
		}
	})
}

// noAnswer ends a call that beforeModel let through, and that came to nothing.
func (m *meter) noAnswer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asking--
}

// beforeModel asks a person if another call of a model is over a limit. Price and tokens of the call are not known yet: what
// is looked at is whether the limit is reached.
func (m *meter) beforeModel(ctx context.Context, agent string) error {
	return m.check(ctx, agent, func() { m.asking++ }, func(s Spent) []LimitReached {
		return []LimitReached{ //mutate:limit-counts-pending
			{Limit: LimitModelCalls, Max: float64(m.limits.ModelCalls), Used: float64(s.ModelCalls + m.asking + 1)},
			{Limit: LimitTokens, Max: float64(m.limits.Tokens), Used: float64(s.InputTokens + s.OutputTokens)},
			{Limit: LimitCost, Max: m.limits.Cost, Used: s.Cost},
			{Limit: LimitTime, Max: m.limits.Time.Seconds(), Used: s.Time.Seconds()},
		}
	})
}

const entryAdmitted = "admitted"

// beforeTools asks a person if so many more tool calls are over a limit. They count from here on: also while they wait for a
// person of their own. place is that of the turn.
func (m *meter) beforeTools(ctx context.Context, place *visit.Scope, agent string, calls int) error {
	if _, ok := place.Recall(entryAdmitted); ok {
		place.Skip() // what was asked here is settled
		return nil
	}
	err := m.check(visit.With(ctx, place), agent, func() { m.book.ToolCalls += calls }, func(s Spent) []LimitReached {
		return []LimitReached{
			{Limit: LimitToolCalls, Max: float64(m.limits.ToolCalls), Used: float64(s.ToolCalls + calls)},
			{Limit: LimitTime, Max: m.limits.Time.Seconds(), Used: s.Time.Seconds()},
		}
	})
	if err != nil {
		return err
	}
	if err := m.count(ctx, func(*book) {}); err != nil {
		return err
	}
	return place.Record(ctx, entryAdmitted, json.RawMessage("true"), visit.Later)
}

const entryLimit = "limit"

// check asks a person about each limit that is passed; if none is, it admits. It is part of the work that it stands before: once
// that is done it is not called again.
func (m *meter) check(ctx context.Context, agent string, admit func(), wanted func(Spent) []LimitReached) error {
	for n := 1; ; n++ {
		segment := fermata.Segment{Type: "limit", ID: fmt.Sprint(n)}
		reached, err := m.reached(ctx, segment, agent, admit, wanted)
		if err != nil || reached == nil {
			return err
		}
		decision, err := OverLimit.Ask(ctx, *reached)
		if err != nil {
			return err
		}
		if !decision.GoOn { //mutate:limit-rejection
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
func (m *meter) reached(ctx context.Context, segment fermata.Segment, agent string, admit func(), wanted func(Spent) []LimitReached) (*LimitReached, error) {
	place := visit.From(ctx).Child(segment.String())
	if data, ok := place.Recall(entryLimit); ok {
		reached := new(LimitReached)
		return reached, json.Unmarshal(data, reached)
	}
	reached := m.over(agent, admit, wanted)
	if reached == nil {
		return nil, nil
	}
	data, err := json.Marshal(reached)
	if err != nil {
		return nil, &fermata.EncodeError{What: "a limit", Err: err}
	}
	return reached, place.Record(ctx, entryLimit, data, visit.Later)
}

// over returns the first limit that is passed. If none is, it admits before anybody else can look.
func (m *meter) over(agent string, admit func(), wanted func(Spent) []LimitReached) *LimitReached {
	m.mu.Lock()
	defer m.mu.Unlock()
	spent := m.soFar()
	for _, w := range wanted(spent) {
		if w.Max == 0 {
			continue
		}
		w.Max += m.book.Granted[w.Limit]
		if w.passed() {
			w.Agent, w.Everything = agent, spent
			return &w
		}
	}
	admit()
	return nil
}

// passed reports whether the limit is in the way. Used is with the calls that would come now; of everything else it is what is
// used up.
func (r *LimitReached) passed() bool {
	if r.Limit == LimitModelCalls || r.Limit == LimitToolCalls {
		return r.Used > r.Max
	}
	return r.Used >= r.Max
}

func (m *meter) grant(ctx context.Context, reached LimitReached, more float64) error {
	if more == 0 {
		more = reached.Max
	}
	return m.count(ctx, func(b *book) {
		if b.Granted == nil {
			b.Granted = make(map[Limit]float64)
		}
		b.Granted[reached.Limit] += more
	})
}
