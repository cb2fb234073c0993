package executor

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/store"
)

// counterPaper is a counter of the policy's limits: what was charged to it, and when. It is written in the transaction of what it is charged for, by its
// revision: of two actions that together would exceed a limit, one finds the counter changed and is judged again.
const counterPaper store.PaperKind = "counter"

const (
	// grain is the precision of charges: those of one minute may be kept as one.
	grain = time.Minute
	// longest is how far back rules can look.
	longest = policy.MaxWindow
)

// counter is a counter that was read.
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
	// Key names what was charged, as long as that may be judged again: when a run is taken over, the same action is not charged twice.
	Key string `json:"k,omitempty"`
}

// keyed is how long charges keep their keys.
const keyed = time.Hour

// counters are those that a filing has read, by name, so that each is written once, however many actions are charged together.
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

// numbers are the sums of counters that rules ask for, by demand.
func (c *filing) numbers(demands []policy.Demand) map[string]int64 {
	numbers := make(map[string]int64, len(demands))
	for _, d := range demands {
		sum := int64(0)
		since := c.now.Add(-time.Duration(d.Window)).Unix() / int64(grain.Seconds())
		for _, ch := range c.counters[d.Counter].Charges {
			if ch.Minute >= since && (c.key == "" || ch.Key != c.key) { // its own does not count against it
				sum = atMost(sum, ch.Amount)
			}
		}
		numbers[d.Key()] = sum
	}
	return numbers
}

// atMost adds two amounts, neither of them negative. More than can be counted stays the most that can: a limit must not begin anew behind it.
func atMost(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// charge adds what an action is charged. If it was charged before, that charge is replaced.
func (e *Executor) charge(ctx context.Context, c *filing, charges []policy.Charge) error {
	for _, ch := range charges {
		counter, err := e.counted(ctx, c, ch.Counter)
		if err != nil {
			return err
		}
		counter.add(charge{Minute: c.now.Unix() / int64(grain.Seconds()), Amount: ch.Amount, Key: c.key})
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

// add adds a charge, and drops those that are too old for any rule. It replaces a charge that has the same key.
func (c *counter) add(ch charge) {
	c.charged = true
	oldest, settled := ch.Minute-int64(longest/grain), ch.Minute-int64(keyed/grain)
	var kept []charge
	for _, old := range c.Charges {
		if old.Minute < oldest || ch.Key != "" && old.Key == ch.Key {
			continue
		}
		if old.Minute < settled {
			old.Key = ""
		}
		if n := len(kept); n > 0 && kept[n-1].Minute == old.Minute && kept[n-1].Key == "" && old.Key == "" {
			kept[n-1].Amount = atMost(kept[n-1].Amount, old.Amount)
			continue
		}
		kept = append(kept, old)
	}
	c.Charges = append(kept, ch)
}
