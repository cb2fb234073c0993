package executor

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
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
	longest = policy.MaxWindow
)

// counter is one of them.
type counter struct {
	name     string
	revision int64
	charged  bool
	// Charges are sums by minute, the oldest first.
	Charges []charge `json:"charges"`
}

type charge struct {
	Minute int64 `json:"m"`
	Amount int64 `json:"n"`
	// Key names what it is for, as long as it may be judged again: whoever takes over a run does not pay twice.
	Key string `json:"k,omitempty"`
}

// keyed is how long a charge is known by what it is for.
const keyed = time.Hour

// counters are those that were looked at, by name. What is charged is written once, however many actions are charged together.
type counters map[string]*counter

func counterID(name string) string { return ident.Derive("cnt", name) }

// count reads the counters that rules ask for, unless they were read before.
func (e *Executor) count(ctx context.Context, c *filing, demands []policy.Demand) error {
	for _, d := range demands {
		if _, err := e.counted(ctx, c, d.Counter); err != nil {
			return err
		}
	}
	return nil
}

func (e *Executor) counted(ctx context.Context, c *filing, name string) (*counter, error) {
	if c.counters == nil {
		c.counters = make(counters)
	}
	if known := c.counters[name]; known != nil {
		return known, nil
	}
	found, err := e.counter(ctx, c.run.Account, name)
	c.counters[name] = found
	return found, err
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
func (c *filing) numbers(demands []policy.Demand) map[string]int64 {
	numbers := make(map[string]int64, len(demands))
	for _, d := range demands {
		sum := int64(0)
		since := c.now.Add(-time.Duration(d.Window)).Unix() / int64(grain.Seconds())
		for _, ch := range c.counters[d.Counter].Charges {
			if ch.Minute >= since && (c.key == "" || ch.Key != c.key) { // its own does not count against it
				sum += ch.Amount
			}
		}
		numbers[d.Key()] = sum
	}
	return numbers
}

// charge notes what an action adds when it goes ahead. again says that it may be there already.
func (e *Executor) charge(ctx context.Context, c *filing, charges []policy.Charge, again bool) error {
	for _, ch := range charges {
		counter, err := e.counted(ctx, c, ch.Counter)
		if err != nil {
			return err
		}
		counter.add(charge{Minute: c.now.Unix() / int64(grain.Seconds()), Amount: ch.Amount, Key: c.key}, again)
	}
	return nil
}

// fileCounters writes what was charged.
func (c *filing) fileCounters() error {
	for _, name := range slices.Sorted(maps.Keys(c.counters)) {
		counter := c.counters[name]
		if !counter.charged {
			continue
		}
		facts, err := json.Marshal(counter)
		if err != nil {
			return err
		}
		c.Papers = append(c.Papers, store.PaperChange{Kind: counterPaper, ID: counterID(name), Base: counter.revision, Facts: facts})
	}
	return nil
}

// add charges an amount, in the place of the same if it is charged again, and forgets what is too old for any rule.
func (c *counter) add(ch charge, again bool) {
	c.charged = true
	oldest, settled := ch.Minute-int64(longest/grain), ch.Minute-int64(keyed/grain)
	var kept []charge
	for _, old := range c.Charges {
		if old.Minute < oldest || again && ch.Key != "" && old.Key == ch.Key {
			continue
		}
		if old.Minute < settled {
			old.Key = ""
		}
		if n := len(kept); n > 0 && kept[n-1].Minute == old.Minute && kept[n-1].Key == "" && old.Key == "" {
			kept[n-1].Amount += old.Amount
			continue
		}
		kept = append(kept, old)
	}
	c.Charges = append(kept, ch)
}
