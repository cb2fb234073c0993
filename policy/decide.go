package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Decide judges the input by all rules: deny before ask before allow before the default. Rules that ask are merged into one
// requirement. A rule that cannot be judged counts if it asks or denies, and does not if it allows.
//
// An error wraps [ErrInput]: the input is not one that rules can be asked about, and the action must not go ahead.
func (s *Set) Decide(in Input) (Decision, error) {
	j, err := s.judge(in)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Policy: s.digest, Version: s.version, Input: j.digest, Trace: j.traces, Elsewhere: len(s.rules) - len(j.rules), Charges: j.charges}
	var decided []int
	d.Verdict, decided = j.verdict(s.fallback, false)
	if rehearsed, _ := j.verdict(s.fallback, true); rehearsed != d.Verdict {
		d.Rehearsed = rehearsed
	}
	d.Rules, d.Reason = j.why(decided, d.Verdict)
	if d.Verdict == Ask {
		d.Need = j.need(decided, s.ask)
	}
	return d, nil
}

// judging is the work on one input.
type judging struct {
	in      *Input
	vars    cel.Activation
	digest  string
	spent   uint64
	rules   []*rule
	traces  []Trace
	charges []Charge
	charged map[counterShape]bool // what charges has
}

func (s *Set) judge(in Input) (*judging, error) {
	args, canonical, err := in.arguments()
	if err != nil {
		return nil, err
	}
	n := len(s.byTool[in.Tool]) + len(s.general)
	j := &judging{in: &in, rules: make([]*rule, 0, n), traces: make([]Trace, 0, n), charged: make(map[counterShape]bool)}
	if j.digest, err = in.digest(canonical); err != nil {
		return nil, err
	}
	if j.vars, err = s.vars(&in, args); err != nil {
		return nil, err
	}
	if word := wordFor(s.tools, in.Tool); word != nil { //mutate:policy-rates-tool
		j.spent += word.rate(&in, j.vars)
		if j.vars, err = s.vars(&in, args); err != nil {
			return nil, err
		}
	}
	for one := range s.candidates(in.Tool) {
		j.rules = append(j.rules, one)
		j.traces = append(j.traces, j.trace(one))
	}
	for _, counter := range s.counted { //mutate:all-counters-counted
		j.charge(counter, 1)
	}
	return j, nil
}

// vars are what expressions see of an input.
func (s *Set) vars(in *Input, args any) (cel.Activation, error) {
	return cel.PartialVars(map[string]any{
		varRequest: in.request(), varArgs: args, varNow: in.At, varHistory: historyVal{in: in}, varLocal: localTime(*in, s.zone),
	}, in.untold()...)
}

// localTime is the time on the account's clock; an error for the rules that look at it if there is no such zone.
func localTime(in Input, zone string) any {
	if in.Zone != "" {
		zone = in.Zone
	}
	location, err := loadZone(zone)
	if err != nil {
		return types.NewErr("unknown time zone")
	}
	return clockTimeOf(in.At.In(location))
}

var (
	errBudget = errors.New("cost limit of the whole set")
	errUntold = errors.New("what it looks at was not told")
)

func (j *judging) trace(one *rule) Trace {
	t := Trace{Rule: one.ID, Digest: one.digest, Then: one.Then, DryRun: one.DryRun, Outcome: Miss}
	hit, err := j.holds(one, &t)
	if err == nil && hit && one.Limit != nil {
		hit, err = j.limit(one, &t)
	}
	j.count(one)
	switch {
	case err != nil:
		t.Outcome, t.Error = Failed, plainError(err, one.When)
	case hit:
		t.Outcome = Hit
	}
	return t
}

// holds evaluates the condition. What is neither true nor false is an error.
func (j *judging) holds(one *rule, t *Trace) (bool, error) {
	value, err := j.eval(one.when, t)
	if err != nil {
		return false, err
	}
	held, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition came to a %s", value.Type().TypeName())
	}
	return bool(held), nil
}

func (j *judging) eval(program cel.Program, t *Trace) (ref.Val, error) {
	if j.spent > setLimit {
		return nil, errBudget
	}
	value, details, err := program.Eval(j.vars)
	if types.IsUnknown(value) {
		err = errUntold
	}
	if cost := details.ActualCost(); cost != nil {
		t.Cost += *cost
		j.spent += *cost
	}
	return value, err
}

// limit says whether the rule hits, now that its condition holds: to go beyond hits rules that ask or deny, to stay within
// those that allow.
func (j *judging) limit(one *rule, t *Trace) (bool, error) {
	adds := int64(1)
	if one.amount != nil {
		value, err := j.eval(one.amount, t)
		if err != nil {
			return false, err
		}
		if adds, err = whole(value); err != nil {
			return false, err
		}
		if adds < 0 {
			return false, amountError("the amount is negative")
		}
	}
	j.charge(one.limit.counterShape, adds)
	used, err := j.in.past(one.limit.of(j.in))
	if err != nil {
		return false, err
	}
	t.Limit = &LimitTrace{Used: used, Adds: adds, Max: one.Limit.Max, Window: one.Limit.Window}
	beyond := one.Limit.beyond(used, adds)
	return beyond != (one.Then == Allow), nil
}

// count charges one action to every counter that history.count reads.
func (j *judging) count(one *rule) {
	for _, count := range one.facts.counts {
		j.charge(count.counterShape, 1)
	}
}

// charge charges a counter, once: rules that look at the same one mean the same action.
func (j *judging) charge(counter counterShape, amount int64) {
	if !j.charged[counter] {
		j.charged[counter] = true
		j.charges = append(j.charges, Charge{Counter: counter.name(j.in), Amount: amount})
	}
}

// verdict is the strictest of the rules that count, and which those are; the default's if none does.
func (j *judging) verdict(fallback Verdict, rehearse bool) (verdict Verdict, decided []int) {
	for i, t := range j.traces {
		if !t.counts() || t.DryRun && !rehearse {
			continue
		}
		if decided == nil || t.Then.strictness() > verdict.strictness() {
			verdict, decided = t.Then, nil
		}
		if t.Then == verdict {
			decided = append(decided, i)
		}
	}
	if decided == nil {
		return fallback, nil
	}
	return verdict, decided
}

func (j *judging) why(decided []int, verdict Verdict) (rules []string, reason string) {
	if decided == nil {
		return []string{DefaultRule}, fmt.Sprintf("no rule speaks of this, and the default is to %s", verdict)
	}
	var reasons []string
	said := make(map[string]bool)
	for _, i := range decided {
		rules = append(rules, j.rules[i].ID)
		say := j.rules[i].Reason
		if say == "" {
			say = "rule " + j.rules[i].ID
		}
		if t := j.traces[i]; t.Outcome == Failed {
			say += " (it could not be judged: " + t.Error + ")"
		}
		if !said[say] {
			said[say] = true
			reasons = append(reasons, say)
		}
	}
	return rules, strings.Join(reasons, "; ")
}

func (j *judging) need(decided []int, fallback *Requirement) *Requirement {
	if decided == nil {
		return fallback.filled(j.in)
	}
	var need *Requirement
	people := 0
	for _, i := range decided {
		ask := j.rules[i].Ask.filled(j.in)
		if slices.ContainsFunc(ask.Groups, Group.isAnyone) {
			people = max(people, total(ask.Groups))
		}
		need = merge(need, ask)
	}
	need.settleAnyone(people)
	return need
}
