package executor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/store"
)

// counterPaper is what was charged to a counter of the rules: how often or how much, and when. It is changed by revision, together with what it
// is charged for; so of two actions that would pass a limit together, one is judged anew.
const counterPaper store.PaperKind = "counter"

const (
	// grain is how exactly charges are kept: those of one minute are one.
	grain = time.Minute
	// longest is how far back rules can look.
	longest = 31 * 24 * time.Hour
)

// counter is one of them.
type counter struct {
	name     string
	revision int64
	// Charges are sums by minute, the oldest first.
	Charges []charge `json:"charges"`
}

type charge struct {
	Minute int64 `json:"m"`
	Amount int64 `json:"n"`
}

// counters are those that a judgement looked at.
type counters map[string]*counter

func counterID(name string) string { return ident.Derive("cnt", name) }

// count reads the counters that rules ask for.
func (e *Executor) count(ctx context.Context, account string, demands []policy.Demand) (counters, error) {
	all := make(counters, len(demands))
	for _, d := range demands {
		if all[d.Counter] == nil {
			c, err := e.counter(ctx, account, d.Counter)
			if err != nil {
				return nil, err
			}
			all[d.Counter] = c
		}
	}
	return all, nil
}

func (e *Executor) counter(ctx context.Context, account, name string) (*counter, error) {
	c := &counter{name: name}
	paper, err := e.store.Paper(ctx, account, counterPaper, counterID(name))
	if errors.Is(err, store.ErrNotFound) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(paper.Facts, c)
	}
	c.revision = paper.Revision
	return c, err
}

// numbers are what rules want to know of the past.
func (all counters) numbers(demands []policy.Demand, now time.Time) map[string]int64 {
	numbers := make(map[string]int64, len(demands))
	for _, d := range demands {
		sum := int64(0)
		since := now.Add(-time.Duration(d.Window)).Unix() / int64(grain.Seconds())
		for _, ch := range all[d.Counter].Charges {
			if ch.Minute >= since {
				sum += ch.Amount
			}
		}
		numbers[d.Key()] = sum
	}
	return numbers
}

// charge is what has to be written when an action goes ahead.
func (e *Executor) charge(ctx context.Context, account string, all counters, charges []policy.Charge, now time.Time) ([]store.PaperChange, error) {
	var papers []store.PaperChange
	minute := now.Unix() / int64(grain.Seconds())
	for _, ch := range charges {
		c := all[ch.Counter]
		if c == nil {
			var err error
			if c, err = e.counter(ctx, account, ch.Counter); err != nil {
				return nil, err
			}
		}
		c.add(minute, ch.Amount)
		facts, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		papers = append(papers, store.PaperChange{Kind: counterPaper, ID: counterID(c.name), Base: c.revision, Facts: facts})
	}
	return papers, nil
}

// add charges an amount, and forgets what is too old for any rule.
func (c *counter) add(minute, amount int64) {
	oldest := minute - int64(longest/grain)
	c.Charges = slices.DeleteFunc(c.Charges, func(ch charge) bool { return ch.Minute < oldest })
	if n := len(c.Charges); n > 0 && c.Charges[n-1].Minute == minute {
		c.Charges[n-1].Amount += amount
		return
	}
	c.Charges = append(c.Charges, charge{minute, amount})
}
