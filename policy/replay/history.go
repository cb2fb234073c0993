package replay

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/policy"
)

// Stage says at which point of an action's life the rules were asked.
type Stage string

// The stages. What was allowed or approved went ahead, and is charged to the counters of the rules.
const (
	StageAllowed  Stage = "allowed"  // nobody was asked
	StageDenied   Stage = "denied"   // nobody was asked
	StageAsked    Stage = "asked"    // people were
	StageEdited   Stage = "edited"   // one of them wants other arguments
	StageApproved Stage = "approved" // they have said yes, perhaps to other arguments
)

// RecordedRuling is a ruling as it was recorded.
type RecordedRuling struct {
	// Key names what was judged. Of rulings with the same key one counts: whoever takes over from somebody who died may judge once more.
	Key     string       `json:"key"`
	Stage   Stage        `json:"stage"`
	Input   policy.Input `json:"input"`
	Request string       `json:"request,omitempty"` // the id of the request, if people were asked
	// Said is what the rules said then. Its verdict is theirs also where a grant took the place of the people.
	Decision policy.Decision `json:"said"`
	// Limits are the digests of the rules that looked at a number from the past. Such a number is good for the same rule only.
	Limits map[string]string `json:"limits,omitempty"`
}

// NewRecordedRuling is the record of a decision, without what can be made again by asking the rules.
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

// ahead reports whether the action went ahead with this ruling.
func (r RecordedRuling) executed() bool { return r.Stage == StageAllowed || r.Stage == StageApproved }

// asks reports whether the ruling is compared. What was approved was compared when it was asked, or edited.
func (r RecordedRuling) isCompared() bool { return r.Stage != StageApproved }

// HistoryReport is what a set would have said of what was ruled. It has no arguments.
type HistoryReport struct {
	// Policy and Version name the set.
	Policy  string `json:"policy"`
	Version string `json:"version,omitempty"`
	// Since is from when on rulings are compared. First and Last are when the first and the last of them was made, if there was one.
	Since time.Time  `json:"since"`
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// CutOff says that there is more behind Last than is looked at in one go.
	Truncated bool `json:"cutOff"`
	// Rulings is how many were compared. Each is one of the four that follow: one that is both, stricter here and looser there, is looser;
	// one that could not be judged at all is refused.
	Rulings       int `json:"rulings"`
	Unchanged     int `json:"unchanged"`
	Stricter      int `json:"stricter"`
	Looser        int `json:"looser"`
	InvalidInputs int `json:"refused"`
	// Unjudged counts those in which a rule of the set could not be judged, Rehearsed those that its dry-run rules would have changed.
	RuleErrors    int `json:"unjudged"`
	DryRunChanges int `json:"rehearsed"`
	// Verdicts counts what became of what, Rules what each rule of the set decided. Examples are some of what differs, the looser ones first.
	Verdicts []VerdictChange `json:"verdicts"`
	Rules    []RuleStats     `json:"rules"`
	Examples []Example       `json:"examples"`
}

// VerdictChange counts rulings by what they were and what they would have been.
type VerdictChange struct {
	Before policy.Verdict `json:"before"`
	After  policy.Verdict `json:"after"`
	Count  int            `json:"count"`
}

// RuleStats says how often a rule was among those that decided, and how often what it decided differs from what was said.
type RuleStats struct {
	Rule     string `json:"rule"`
	Decided  int    `json:"decided"`
	Stricter int    `json:"stricter"`
	Looser   int    `json:"looser"`
}

// Example is one ruling that would have been another.
type Example struct {
	At      time.Time      `json:"at"`
	Run     string         `json:"run,omitempty"`
	Request string         `json:"request,omitempty"`
	Tool    string         `json:"tool"`
	Stage   Stage          `json:"stage"`
	Before  policy.Verdict `json:"before"`
	After   policy.Verdict `json:"after"`
	// What says what differs, with the rules, Weaker in which ways more would have got through.
	What       string   `json:"what"`
	Weakenings []string `json:"weaker,omitempty"`
}

// HistoryOptions bounds a look at the past.
type HistoryOptions struct {
	// Since is from when on rulings are compared. Those before it are only counted, for limits that look back.
	Since time.Time
	// Most is how many rulings are looked at; 0 is all. Examples is how many examples are kept of each sort; 0 is 20.
	MaxRulings, MaxExamples int
}

// CompareHistory compares what was ruled, the oldest first, with what a set would have said.
//
// A number from the past is the recorded one if the rule that needs it was the same rule then. Otherwise it is counted anew, from what went ahead:
// what was allowed, and what people approved. So it says what the set would have said of what happened, and not what would have happened:
// what it would have denied is still counted where it went ahead.
func CompareHistory(set *policy.Set, rulings iter.Seq2[RecordedRuling, error], scope HistoryOptions) (HistoryReport, error) {
	l := &historyComparison{
		set: set, options: scope, charged: make(counterHistory), seen: make(map[string]bool), rules: make(map[string]*RuleStats), verdictChanges: make(map[VerdictChange]int),
		HistoryReport: HistoryReport{Policy: set.Digest(), Version: set.Version(), Since: scope.Since},
	}
	l.options.MaxExamples = cmp.Or(scope.MaxExamples, 20)
	looked := 0
	for r, err := range rulings {
		if err != nil {
			return l.HistoryReport, err
		}
		if looked++; scope.MaxRulings > 0 && looked > scope.MaxRulings {
			l.Truncated = true
			break
		}
		if !l.seen[r.Key] {
			l.seen[r.Key] = true
			l.add(r)
		}
	}
	return l.finish(), nil
}

// historyComparison is the work on one past.
type historyComparison struct {
	HistoryReport
	set              *policy.Set
	options          HistoryOptions
	charged          counterHistory
	seen             map[string]bool // keys
	rules            map[string]*RuleStats
	verdictChanges   map[VerdictChange]int // without counts
	looser, stricter []Example
}

func (l *historyComparison) add(r RecordedRuling) {
	compared := r.isCompared() && !r.Input.At.Before(l.options.Since)
	if !compared && !r.executed() {
		return
	}
	r.Input.History = l.counters(r)
	now, err := l.set.Decide(r.Input)
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
}

// numbers are what the rules want to know of the past.
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

// done puts everything in order.
func (l *historyComparison) finish() HistoryReport {
	l.Verdicts, l.Rules = []VerdictChange{}, []RuleStats{}
	for turn, count := range l.verdictChanges {
		turn.Count = count
		l.Verdicts = append(l.Verdicts, turn)
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

// Weakens reports whether anything would have been easier.
func (p HistoryReport) Weakens() bool { return p.Looser > 0 }

// counterHistory are what went ahead, by counter.
type counterHistory map[string]*counterSeries

// counterSeries is what was charged to one counter: by minute, as those who keep numbers do, the oldest first, with the sum of all up to it.
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

// sum is what was charged in the window before now.
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
