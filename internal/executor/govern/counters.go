package govern

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	// counterResolution is the precision of charges: those of one minute are kept as one. After a
	// day and an hour those of one hour are, as if all were of its last minute: a limit whose
	// window is more than a day may let go an hour later, never earlier. So a counter stays small,
	// however much is charged to it.
	counterResolution = time.Minute
	fineWindow        = 25 * time.Hour / counterResolution
	coarseResolution  = time.Hour / counterResolution
	// maxWindow is how far back rules can look.
	maxWindow = policy.MaxWindow / counterResolution
)

// counter is a counter that was read.
type counter struct {
	name     string
	revision int64
	charged  bool
	// Charges are sums by minute, each minute once.
	Charges []charge `json:"charges"`
}

type charge struct {
	Minute int64 `json:"m"`
	Amount int64 `json:"n"`
}

func unixMinute(at time.Time) int64 { return at.Unix() / int64(counterResolution.Seconds()) }

// lastOfHour is under which minute a charge is kept in the end.
//
//mutate:counter-hour-rounded-up
func lastOfHour(minute int64) int64 {
	return minute - minute%int64(coarseResolution) + int64(coarseResolution) - 1
}

// counters are those that a filing has read, by name, so that each is written once, however many
// actions are charged together.
type counters map[string]*counter

// chargeReceipt is what an action was charged, by the id of the counter, and which grant it has
// used, of whose budget it has spent so much.
type chargeReceipt struct {
	revision int64
	changed  bool
	Charges  map[string]charge `json:"charges"`
	Grant    string            `json:"grant,omitempty"`
	Spent    int64             `json:"spent,omitempty"`
}

// uses is how often the action has used a grant: once, or not at all.
func (b *chargeReceipt) uses(g Grant) int {
	if b.Grant == g.ID {
		return 1
	}
	return 0
}

// spentOn is how much of a grant's budget the action has spent.
func (b *chargeReceipt) spentOn(g Grant) int64 { return int64(b.uses(g)) * b.Spent }

func counterID(name string) string { return ident.Derive("cnt", name) }

// loadCounters reads the counters that the policy asks for, unless they were read before, and the
// charge of the action itself.
func (s *Session) loadCounters(ctx context.Context, key string, demands []policy.CounterQuery) error {
	for _, d := range demands {
		if _, err := s.counterFor(ctx, d.Counter); err != nil {
			return err
		}
	}
	if len(demands) == 0 {
		return nil
	}
	_, err := s.receiptFor(ctx, key)
	return err
}

func (s *Session) counterFor(ctx context.Context, name string) (*counter, error) {
	if cached := s.counters[name]; cached != nil {
		return cached, nil
	}
	found, err := s.governor.readCounter(ctx, s.Tx.Run.Account, name)
	s.counters[name] = found
	return found, err
}

func (gv *Governor) readCounter(ctx context.Context, account, name string) (c *counter, err error) {
	c = &counter{name: name}
	document, err := gv.docs.ReadIndex(ctx, account, docs.CounterKind, counterID(name), c)
	c.revision = document.Revision
	return c, err
}

// receiptFor returns what the action was charged before, if it has a key.
func (s *Session) receiptFor(ctx context.Context, key string) (b *chargeReceipt, err error) {
	if cached := s.receipts[key]; cached != nil {
		return cached, nil
	}
	b = &chargeReceipt{Charges: make(map[string]charge)}
	if key != "" {
		document, err := s.governor.docs.ReadIndex(ctx, s.Tx.Run.Account, docs.ChargeKind, key, b)
		if err != nil {
			return nil, err
		}
		b.revision = document.Revision
	}
	s.receipts[key] = b
	return b, nil
}

// sums returns the sums of the counters that the policy asks for, by demand. The charge of the
// action itself does not count against it.
func (s *Session) sums(key string, demands []policy.CounterQuery) map[string]int64 {
	numbers := make(map[string]int64, len(demands))
	for _, d := range demands {
		sum := int64(0)
		since := unixMinute(s.Tx.Now.Add(-time.Duration(d.Window)))
		for _, ch := range s.counters[d.Counter].without(s.receipts[key].Charges[counterID(d.Counter)]) {
			if ch.Minute >= since {
				sum = saturatingAdd(sum, ch.Amount)
			}
		}
		numbers[d.Key()] = sum
	}
	return numbers
}

// saturatingAdd adds two amounts that are not negative. A sum that is too large stays the largest
// amount: a limit must not start again after an overflow.
func saturatingAdd(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// addCharges adds the charges of an action. An earlier charge of the same action is replaced.
func (s *Session) addCharges(ctx context.Context, key string, charges []policy.Charge) error {
	if len(charges) == 0 {
		return nil
	}
	bill, err := s.receiptFor(ctx, key)
	if err != nil {
		return err
	}
	for _, ch := range charges {
		counter, err := s.counterFor(ctx, ch.Counter)
		if err != nil {
			return err
		}
		id, made := counterID(ch.Counter), charge{Minute: unixMinute(s.Tx.Now), Amount: ch.Amount}
		counter.replaceCharge(bill.Charges[id], made)
		bill.Charges[id], bill.changed = made, true //mutate:charge-recorded
	}
	return nil
}

// AddCounters adds the charged counters to the unit of work.
func (s *Session) AddCounters() error {
	for _, name := range slices.Sorted(maps.Keys(s.counters)) {
		if counter := s.counters[name]; counter.charged {
			if err := s.Tx.AddIndexed(store.DocumentChange{Kind: docs.CounterKind, ID: counterID(name), BaseRevision: counter.revision}, counter); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.receipts)) {
		if bill := s.receipts[key]; bill.changed && key != "" {
			if err := s.Tx.AddIndexed(store.DocumentChange{Kind: docs.ChargeKind, ID: key, Run: s.Tx.Run.ID, BaseRevision: bill.revision}, bill); err != nil {
				return err
			}
		}
	}
	return nil
}

// without returns the charges without one of them.
func (c *counter) without(made charge) []charge {
	all := slices.Clone(c.Charges)
	for _, minute := range []int64{made.Minute, lastOfHour(made.Minute)} {
		n := slices.IndexFunc(all, func(ch charge) bool { return ch.Minute == minute })
		if n < 0 {
			continue
		}
		if all[n].Amount < math.MaxInt64 { // else the other charges are unknown
			all[n].Amount = max(0, all[n].Amount-made.Amount)
		}
		break
	}
	return all
}

// replaceCharge adds a charge instead of another one, and drops charges that are too old for any
// policy.
func (c *counter) replaceCharge(made, ch charge) {
	c.charged = true
	sums := make(map[int64]int64)
	for _, old := range append(c.without(made), ch) {
		age := ch.Minute - old.Minute
		if age > int64(fineWindow) {
			old.Minute = lastOfHour(old.Minute)
		}
		if age <= int64(maxWindow) && old.Amount > 0 {
			sums[old.Minute] = saturatingAdd(sums[old.Minute], old.Amount)
		}
	}
	c.Charges = make([]charge, 0, len(sums))
	for _, minute := range slices.Sorted(maps.Keys(sums)) {
		c.Charges = append(c.Charges, charge{minute, sums[minute]})
	}
}
