package replay

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
)

// Stage is the stage of an action at which the rules were evaluated.
type Stage string

// The stages. Allowed and approved actions were executed and are charged to the counters.
const (
	StageAllowed  Stage = "allowed"  // without a request
	StageDenied   Stage = "denied"   // without a request
	StageAsked    Stage = "asked"    // people were asked
	StageEdited   Stage = "edited"   // an approver edited the arguments
	StageApproved Stage = "approved" // approved, perhaps with edited arguments
)

// RecordedRuling is a ruling as it was recorded.
type RecordedRuling struct {
	// Key identifies what was evaluated. Rulings with the same key count once: after a takeover
	// another process may evaluate again.
	Key     string       `json:"key"`
	Stage   Stage        `json:"stage"`
	Input   policy.Input `json:"input"`
	Request string       `json:"request,omitempty"` // the id of the request, if there was one
	// Decision is the decision at that time. Its verdict is that of the rules, even if a grant
	// replaced the approval.
	Decision policy.Decision `json:"said"`
	// Limits are the digests of the rules that used a counter. A recorded counter is valid only for
	// the same rule.
	Limits map[string]string `json:"limits,omitempty"`
}

// NewRecordedRuling returns the record of a decision, without what can be reproduced from the
// rules.
func NewRecordedRuling(in policy.Input, d policy.Decision) RecordedRuling {
	r := RecordedRuling{Input: in, Decision: policy.Decision{
		Verdict: d.Verdict, Rules: d.Rules, Reason: d.Reason, Requirement: d.Requirement, Policy: d.Policy, Version: d.Version, Input: d.Input, DryRunVerdict: d.DryRunVerdict, Grant: d.Grant,
	}}
	for _, t := range d.Trace {
		if t.Limit != nil {
			if r.Limits == nil {
				r.Limits = make(map[string]string)
			}
			r.Limits[t.Rule] = t.Digest
		}
	}
	return r
}

// executed reports whether the action was executed after this ruling.
func (r RecordedRuling) executed() bool { return r.Stage == StageAllowed || r.Stage == StageApproved }

// isCompared reports whether the ruling is compared. An approval was already compared when it was
// asked or edited.
func (r RecordedRuling) isCompared() bool { return r.Stage != StageApproved }

// HistoryReport compares a set with recorded rulings. It contains no arguments.
type HistoryReport struct {
	// Policy and Version identify the set.
	Policy  string `json:"policy"`
	Version string `json:"version,omitempty"`
	// Since is the start of the comparison. First and Last are the times of the first and last
	// compared ruling, if any.
	Since time.Time  `json:"since"`
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// Truncated reports that there are more rulings after Last than the limit allows.
	Truncated bool `json:"truncated"`
	// Rulings is the number of compared rulings. Each is one of the four that follow. A ruling that
	// is stricter in one way and looser in another counts as looser.
	Rulings       int `json:"rulings"`
	Unchanged     int `json:"unchanged"`
	Stricter      int `json:"stricter"`
	Looser        int `json:"looser"`
	InvalidInputs int `json:"invalidInputs"`
	// RuleErrors counts rulings in which a rule of the set failed. DryRunChanges counts rulings
	// that the dry-run rules would have changed.
	RuleErrors    int `json:"ruleErrors"`
	DryRunChanges int `json:"dryRunChanges"`
	// Verdicts counts the changes of verdicts, Rules the decisions of each rule. Examples are some
	// of the differences, looser ones first.
	Verdicts []VerdictChange `json:"verdicts"`
	Rules    []RuleStats     `json:"rules"`
	Examples []Example       `json:"examples"`
}

// VerdictChange counts rulings by old and new verdict.
type VerdictChange struct {
	Before policy.Verdict `json:"before"`
	After  policy.Verdict `json:"after"`
	Count  int            `json:"count"`
}

// RuleStats counts the decisions of a rule, and how many of them are stricter or looser than the
// recorded ones.
type RuleStats struct {
	Rule     string `json:"rule"`
	Decided  int    `json:"decided"`
	Stricter int    `json:"stricter"`
	Looser   int    `json:"looser"`
}

// Example is one ruling that would be different.
type Example struct {
	At      time.Time      `json:"at"`
	Run     string         `json:"run,omitempty"`
	Request string         `json:"request,omitempty"`
	Tool    string         `json:"tool"`
	Stage   Stage          `json:"stage"`
	Before  policy.Verdict `json:"before"`
	After   policy.Verdict `json:"after"`
	// What describes the difference, with the rules. Weakenings lists the ways in which it is
	// weaker.
	What       string   `json:"what"`
	Weakenings []string `json:"weakenings,omitempty"`
}

// HistoryOptions limits a comparison.
type HistoryOptions struct {
	// Since is the start of the comparison. Earlier rulings only count for limits.
	Since time.Time
	// MaxRulings is the maximum number of rulings; 0 means all. MaxExamples is the number of
	// examples of each kind; 0 means 20.
	MaxRulings, MaxExamples int
}

// CompareHistory compares recorded rulings, oldest first, with the decisions of a set.
//
// A recorded counter is used if the rule that needs it has not changed. Otherwise the counter is
// computed from the executed actions: those that were allowed or approved. So the report shows what
// the set would have decided on what happened, not what would have happened: an action that the set
// denies is still counted if it was executed.
//
// If the context ends, also inside a ruling, the error is its cause.
func CompareHistory(ctx context.Context, set *policy.Set, rulings iter.Seq2[RecordedRuling, error], options HistoryOptions) (HistoryReport, error) {
	l := &historyComparison{
		set: set, options: options, charged: make(counterHistory), seen: make(map[string]bool), rules: make(map[string]*RuleStats), verdictChanges: make(map[VerdictChange]int),
		HistoryReport: HistoryReport{Policy: set.Digest(), Version: set.Version(), Since: options.Since},
	}
	l.options.MaxExamples = cmp.Or(options.MaxExamples, 20)
	compared := 0
	for r, err := range rulings {
		if err != nil {
			return l.HistoryReport, err
		}
		if compared++; options.MaxRulings > 0 && compared > options.MaxRulings {
			l.Truncated = true
			break
		}
		if !l.seen[r.Key] {
			l.seen[r.Key] = true
			if err := l.add(ctx, r); err != nil {
				return l.HistoryReport, err
			}
		}
	}
	return l.finish(), nil
}

// historyComparison is one comparison.
type historyComparison struct {
	HistoryReport
	set              *policy.Set
	options          HistoryOptions
	charged          counterHistory
	seen             map[string]bool // keys
	rules            map[string]*RuleStats
	verdictChanges   map[VerdictChange]int // Count is not set
	looser, stricter []Example
}

func (l *historyComparison) add(ctx context.Context, r RecordedRuling) error {
	compared := r.isCompared() && !r.Input.At.Before(l.options.Since)
	if !compared && !r.executed() {
		return nil
	}
	r.Input.History = l.counters(r)
	now, err := l.set.DecideContext(ctx, r.Input)
	if err != nil && !errors.Is(err, policy.ErrInput) {
		return err
	}
	if compared {
		l.Rulings++
		l.First, l.Last = cmp.Or(l.First, &r.Input.At), &r.Input.At
		if err != nil {
			l.InvalidInputs++
		} else {
			l.compare(r, now)
		}
	}
	if r.executed() {
		l.charged.add(r.Input.At, now.Charges)
	}
	return nil
}

// counters returns the counter values that the rules need.
func (l *historyComparison) counters(r RecordedRuling) map[string]int64 {
	numbers := make(map[string]int64)
	for _, d := range l.set.CounterQueries(r.Input) {
		recorded, known := r.Input.History[d.Key()]
		if known && (d.Limit == "" || r.Limits[d.Limit] == l.set.RuleDigest(d.Limit)) {
			numbers[d.Key()] = recorded
			continue
		}
		numbers[d.Key()] = l.charged.sum(d, r.Input.At)
	}
	return numbers
}

func (l *historyComparison) compare(r RecordedRuling, now policy.Decision) {
	l.verdictChanges[VerdictChange{Before: r.Decision.Verdict, After: now.Verdict}]++
	if hasRuleError(now) {
		l.RuleErrors++
	}
	if now.DryRunVerdict != "" {
		l.DryRunChanges++
	}
	weaker, stronger := policy.Weakenings(r.Decision, now), policy.Weakenings(now, r.Decision)
	looser, stricter := len(weaker) > 0, len(weaker) == 0 && len(stronger) > 0
	for _, id := range now.Rules {
		rule := l.rules[id]
		if rule == nil {
			rule = &RuleStats{Rule: id}
			l.rules[id] = rule
		}
		rule.Decided++
		rule.Looser += boolToInt(looser)
		rule.Stricter += boolToInt(stricter)
	}
	l.Looser += boolToInt(looser)
	l.Stricter += boolToInt(stricter)
	l.Unchanged += boolToInt(!looser && !stricter)
	example := Example{
		At: r.Input.At, Run: r.Input.Run, Request: r.Request, Tool: r.Input.Tool, Stage: r.Stage, Before: r.Decision.Verdict, After: now.Verdict,
		What: describeDifference(r.Decision, now), Weakenings: weaker,
	}
	switch {
	case looser && len(l.looser) < l.options.MaxExamples:
		l.looser = append(l.looser, example)
	case stricter && len(l.stricter) < l.options.MaxExamples:
		l.stricter = append(l.stricter, example)
	}
}

func boolToInt(is bool) int {
	if is {
		return 1
	}
	return 0
}

// finish sorts the results.
func (l *historyComparison) finish() HistoryReport {
	l.Verdicts, l.Rules = []VerdictChange{}, []RuleStats{}
	for change, count := range l.verdictChanges {
		change.Count = count
		l.Verdicts = append(l.Verdicts, change)
	}
	slices.SortFunc(l.Verdicts, func(a, b VerdictChange) int {
		return cmp.Or(cmp.Compare(a.Before, b.Before), cmp.Compare(a.After, b.After))
	})
	for _, id := range slices.Sorted(maps.Keys(l.rules)) {
		l.Rules = append(l.Rules, *l.rules[id])
	}
	l.Examples = append(append([]Example{}, l.looser...), l.stricter...)
	return l.HistoryReport
}

// Weakens reports whether any ruling would be looser.
func (p HistoryReport) Weakens() bool { return p.Looser > 0 }

// counterHistory has the charges of executed actions, by counter.
type counterHistory map[string]*counterSeries

// counterSeries has the charges to one counter by minute, oldest first, with cumulative sums.
type counterSeries struct{ minutes, sums []int64 }

func minute(at time.Time) int64 { return at.Unix() / 60 }

func (t counterHistory) add(at time.Time, charges []policy.Charge) {
	for _, ch := range charges {
		one := t[ch.Counter]
		if one == nil {
			one = new(counterSeries)
			t[ch.Counter] = one
		}
		sum := ch.Amount
		if n := len(one.sums); n > 0 {
			sum += one.sums[n-1]
		}
		one.minutes, one.sums = append(one.minutes, minute(at)), append(one.sums, sum)
	}
}

// sum returns the charges in the window before now.
func (t counterHistory) sum(d policy.CounterQuery, now time.Time) int64 {
	one := t[d.Counter]
	if one == nil {
		return 0
	}
	first, _ := slices.BinarySearch(one.minutes, minute(now.Add(-time.Duration(d.Window))))
	sum := one.sums[len(one.sums)-1]
	if first > 0 {
		sum -= one.sums[first-1]
	}
	return sum
}
