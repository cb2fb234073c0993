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
	Allowed  Stage = "allowed"  // nobody was asked
	Denied   Stage = "denied"   // nobody was asked
	Asked    Stage = "asked"    // people were
	Edited   Stage = "edited"   // one of them wants other arguments
	Approved Stage = "approved" // they have said yes, perhaps to other arguments
)

// Ruled is a ruling as it was recorded.
type Ruled struct {
	// Key names what was judged. Of rulings with the same key one counts: whoever takes over from somebody who died may judge once more.
	Key     string       `json:"key"`
	Stage   Stage        `json:"stage"`
	Input   policy.Input `json:"input"`
	Request string       `json:"request,omitempty"` // the id of the request, if people were asked
	// Said is what the rules said then. Its verdict is theirs also where a grant took the place of the people.
	Said policy.Decision `json:"said"`
	// Limits are the digests of the rules that looked at a number from the past. Such a number is good for the same rule only.
	Limits map[string]string `json:"limits,omitempty"`
}

// RuledOf is the record of a decision, without what can be made again by asking the rules.
func RuledOf(in policy.Input, d policy.Decision) Ruled {
	r := Ruled{Input: in, Said: policy.Decision{
		Verdict: d.Verdict, Rules: d.Rules, Reason: d.Reason, Need: d.Need, Policy: d.Policy, Version: d.Version, Input: d.Input, Rehearsed: d.Rehearsed, Grant: d.Grant,
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
func (r Ruled) ahead() bool { return r.Stage == Allowed || r.Stage == Approved }

// asks reports whether the ruling is compared. What was approved was compared when it was asked, or edited.
func (r Ruled) asks() bool { return r.Stage != Approved }

// Past is what a set would have said of what was ruled. It has no arguments.
type Past struct {
	// Policy and Version name the set.
	Policy  string `json:"policy"`
	Version string `json:"version,omitempty"`
	// Since is from when on rulings are compared. First and Last are when the first and the last of them was made, if there was one.
	Since time.Time  `json:"since"`
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// CutOff says that there is more behind Last than is looked at in one go.
	CutOff bool `json:"cutOff"`
	// Rulings is how many were compared. Each is one of the four that follow: one that is both, stricter here and looser there, is looser;
	// one that could not be judged at all is refused.
	Rulings   int `json:"rulings"`
	Unchanged int `json:"unchanged"`
	Stricter  int `json:"stricter"`
	Looser    int `json:"looser"`
	Refused   int `json:"refused"`
	// Unjudged counts those in which a rule of the set could not be judged, Rehearsed those that its dry-run rules would have changed.
	Unjudged  int `json:"unjudged"`
	Rehearsed int `json:"rehearsed"`
	// Verdicts counts what became of what, Rules what each rule of the set decided. Examples are some of what differs, the looser ones first.
	Verdicts []Turn        `json:"verdicts"`
	Rules    []RuleInPast  `json:"rules"`
	Examples []PastExample `json:"examples"`
}

// Turn counts rulings by what they were and what they would have been.
type Turn struct {
	Before policy.Verdict `json:"before"`
	After  policy.Verdict `json:"after"`
	Count  int            `json:"count"`
}

// RuleInPast says how often a rule was among those that decided, and how often what it decided differs from what was said.
type RuleInPast struct {
	Rule     string `json:"rule"`
	Decided  int    `json:"decided"`
	Stricter int    `json:"stricter"`
	Looser   int    `json:"looser"`
}

// PastExample is one ruling that would have been another.
type PastExample struct {
	At      time.Time      `json:"at"`
	Run     string         `json:"run,omitempty"`
	Request string         `json:"request,omitempty"`
	Tool    string         `json:"tool"`
	Stage   Stage          `json:"stage"`
	Before  policy.Verdict `json:"before"`
	After   policy.Verdict `json:"after"`
	// What says what differs, with the rules, Weaker in which ways more would have got through.
	What   string   `json:"what"`
	Weaker []string `json:"weaker,omitempty"`
}

// Scope bounds a look at the past.
type Scope struct {
	// Since is from when on rulings are compared. Those before it are only counted, for limits that look back.
	Since time.Time
	// Most is how many rulings are looked at; 0 is all. Examples is how many examples are kept of each sort; 0 is 20.
	Most, Examples int
}

// Against compares what was ruled, the oldest first, with what a set would have said.
//
// A number from the past is the recorded one if the rule that needs it was the same rule then. Otherwise it is counted anew, from what went ahead:
// what was allowed, and what people approved. So it says what the set would have said of what happened, and not what would have happened:
// what it would have denied is still counted where it went ahead.
func Against(set *policy.Set, rulings iter.Seq2[Ruled, error], scope Scope) (Past, error) {
	l := &looking{
		set: set, scope: scope, charged: make(tallies), seen: make(map[string]bool), rules: make(map[string]*RuleInPast), turns: make(map[Turn]int),
		Past: Past{Policy: set.Digest(), Version: set.Version(), Since: scope.Since},
	}
	l.scope.Examples = cmp.Or(scope.Examples, 20)
	looked := 0
	for r, err := range rulings {
		if err != nil {
			return l.Past, err
		}
		if looked++; scope.Most > 0 && looked > scope.Most {
			l.CutOff = true
			break
		}
		if !l.seen[r.Key] {
			l.seen[r.Key] = true
			l.look(r)
		}
	}
	return l.done(), nil
}

// looking is the work on one past.
type looking struct {
	Past
	set              *policy.Set
	scope            Scope
	charged          tallies
	seen             map[string]bool // keys
	rules            map[string]*RuleInPast
	turns            map[Turn]int // without counts
	looser, stricter []PastExample
}

func (l *looking) look(r Ruled) {
	compared := r.asks() && !r.Input.At.Before(l.scope.Since)
	if !compared && !r.ahead() {
		return
	}
	r.Input.History = l.numbers(r)
	now, err := l.set.Decide(r.Input)
	if compared {
		l.Rulings++
		l.First, l.Last = cmp.Or(l.First, &r.Input.At), &r.Input.At
		if err != nil {
			l.Refused++
		} else {
			l.compare(r, now)
		}
	}
	if r.ahead() {
		l.charged.add(r.Input.At, now.Charges)
	}
}

// numbers are what the rules want to know of the past.
func (l *looking) numbers(r Ruled) map[string]int64 {
	numbers := make(map[string]int64)
	for _, d := range l.set.Demands(r.Input) {
		recorded, known := r.Input.History[d.Key()]
		if known && (d.Limit == "" || r.Limits[d.Limit] == l.set.RuleDigest(d.Limit)) {
			numbers[d.Key()] = recorded
			continue
		}
		numbers[d.Key()] = l.charged.sum(d, r.Input.At)
	}
	return numbers
}

func (l *looking) compare(r Ruled, now policy.Decision) {
	l.turns[Turn{Before: r.Said.Verdict, After: now.Verdict}]++
	if unjudged(now) {
		l.Unjudged++
	}
	if now.Rehearsed != "" {
		l.Rehearsed++
	}
	weaker, stronger := policy.Weaker(r.Said, now), policy.Weaker(now, r.Said)
	looser, stricter := len(weaker) > 0, len(weaker) == 0 && len(stronger) > 0
	for _, id := range now.Rules {
		rule := l.rules[id]
		if rule == nil {
			rule = &RuleInPast{Rule: id}
			l.rules[id] = rule
		}
		rule.Decided++
		rule.Looser += count(looser)
		rule.Stricter += count(stricter)
	}
	l.Looser += count(looser)
	l.Stricter += count(stricter)
	l.Unchanged += count(!looser && !stricter)
	example := PastExample{
		At: r.Input.At, Run: r.Input.Run, Request: r.Request, Tool: r.Input.Tool, Stage: r.Stage, Before: r.Said.Verdict, After: now.Verdict,
		What: differs(r.Said, now), Weaker: weaker,
	}
	switch {
	case looser && len(l.looser) < l.scope.Examples:
		l.looser = append(l.looser, example)
	case stricter && len(l.stricter) < l.scope.Examples:
		l.stricter = append(l.stricter, example)
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// done puts everything in order.
func (l *looking) done() Past {
	l.Verdicts, l.Rules = []Turn{}, []RuleInPast{}
	for turn, count := range l.turns {
		turn.Count = count
		l.Verdicts = append(l.Verdicts, turn)
	}
	slices.SortFunc(l.Verdicts, func(a, b Turn) int {
		return cmp.Or(cmp.Compare(a.Before, b.Before), cmp.Compare(a.After, b.After))
	})
	for _, id := range slices.Sorted(maps.Keys(l.rules)) {
		l.Rules = append(l.Rules, *l.rules[id])
	}
	l.Examples = append(append([]PastExample{}, l.looser...), l.stricter...)
	return l.Past
}

// Weakens reports whether anything would have been easier.
func (p Past) Weakens() bool { return p.Looser > 0 }

// tallies are what went ahead, by counter.
type tallies map[string]*tally

// tally is what was charged to one counter: by minute, as those who keep numbers do, the oldest first, with the sum of all up to it.
type tally struct{ minutes, sums []int64 }

func minute(at time.Time) int64 { return at.Unix() / 60 }

func (t tallies) add(at time.Time, charges []policy.Charge) {
	for _, ch := range charges {
		one := t[ch.Counter]
		if one == nil {
			one = new(tally)
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
func (t tallies) sum(d policy.Demand, now time.Time) int64 {
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
