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
	j, err := s.evaluate(in)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Policy: s.digest, Version: s.version, Input: j.digest, Trace: j.traces, OtherToolRules: len(s.rules) - len(j.rules), Charges: j.charges}
	var decided []int
	d.Verdict, decided = j.verdict(s.defaultVerdict, false)
	if rehearsed, _ := j.verdict(s.defaultVerdict, true); rehearsed != d.Verdict {
		d.DryRunVerdict = rehearsed
	}
	d.Rules, d.Reason = j.reasons(decided, d.Verdict)
	if d.Verdict == Ask {
		d.Requirement = j.requirement(decided, s.defaultAsk)
	}
	return d, nil
}

// evaluation is the work on one input.
type evaluation struct {
	in      *Input
	vars    cel.Activation
	digest  string
	cost    uint64
	rules   []*rule
	traces  []Trace
	charges []Charge
	charged map[counterTemplate]bool // what charges has
}

func (s *Set) evaluate(in Input) (*evaluation, error) {
	args, canonical, err := in.arguments()
	if err != nil {
		return nil, err
	}
	n := len(s.byTool[in.Tool]) + len(s.general)
	j := &evaluation{in: &in, rules: make([]*rule, 0, n), traces: make([]Trace, 0, n), charged: make(map[counterTemplate]bool)}
	if j.digest, err = in.digest(canonical); err != nil {
		return nil, err
	}
	if j.vars, err = s.vars(&in, args); err != nil {
		return nil, err
	}
	if word := ratingFor(s.ratings, in.Tool); word != nil { //mutate:policy-rates-tool
		j.cost += word.apply(&in, j.vars)
		if j.vars, err = s.vars(&in, args); err != nil {
			return nil, err
		}
	}
	for one := range s.candidates(in.Tool) {
		j.rules = append(j.rules, one)
		j.traces = append(j.traces, j.evalRule(one))
	}
	for _, counter := range s.sharedCounters { //mutate:all-counters-counted
		j.charge(counter, 1)
	}
	return j, nil
}

// vars are what expressions see of an input.
func (s *Set) vars(in *Input, args any) (cel.Activation, error) {
	return cel.PartialVars(map[string]any{
		varRequest: in.request(), varArgs: args, varNow: in.At, varHistory: historyVal{in: in}, varLocal: localTime(*in, s.zone),
	}, in.unknownPatterns()...)
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
	return newLocalClock(in.At.In(location))
}

var (
	errSetBudget    = errors.New("cost limit of the whole set")
	errUnknownField = errors.New("what it looks at was not told")
)

func (j *evaluation) evalRule(one *rule) Trace {
	t := Trace{Rule: one.ID, Digest: one.digest, Then: one.Then, DryRun: one.DryRun, Outcome: RuleMiss}
	hit, err := j.evalCondition(one, &t)
	if err == nil && hit && one.Limit != nil {
		hit, err = j.evalLimit(one, &t)
	}
	j.chargeCounts(one)
	switch {
	case err != nil:
		t.Outcome, t.Error = RuleFailed, ruleErrorText(err, one.When)
	case hit:
		t.Outcome = RuleHit
	}
	return t
}

// holds evaluates the condition. What is neither true nor false is an error.
func (j *evaluation) evalCondition(one *rule, t *Trace) (bool, error) {
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

func (j *evaluation) eval(program cel.Program, t *Trace) (ref.Val, error) {
	if j.cost > setCostLimit {
		return nil, errSetBudget
	}
	value, details, err := program.Eval(j.vars)
	if types.IsUnknown(value) {
		err = errUnknownField
	}
	if cost := details.ActualCost(); cost != nil {
		t.Cost += *cost
		j.cost += *cost
	}
	return value, err
}

// limit says whether the rule hits, now that its condition holds: to go beyond hits rules that ask or deny, to stay within
// those that allow.
func (j *evaluation) evalLimit(one *rule, t *Trace) (bool, error) {
	adds := int64(1)
	if one.amount != nil {
		value, err := j.eval(one.amount, t)
		if err != nil {
			return false, err
		}
		if adds, err = toInteger(value); err != nil {
			return false, err
		}
		if adds < 0 {
			return false, amountError("the amount is negative")
		}
	}
	j.charge(one.limitTemplate.counterTemplate, adds)
	used, err := j.in.counter(one.limitTemplate.query(j.in))
	if err != nil {
		return false, err
	}
	t.Limit = &LimitTrace{Used: used, Adds: adds, Max: one.Limit.Max, Window: one.Limit.Window}
	beyond := one.Limit.exceeded(used, adds)
	return beyond != (one.Then == Allow), nil
}

// count charges one action to every counter that history.count reads.
func (j *evaluation) chargeCounts(one *rule) {
	for _, count := range one.info.counts {
		j.charge(count.counterTemplate, 1)
	}
}

// charge charges a counter, once: rules that look at the same one mean the same action.
func (j *evaluation) charge(counter counterTemplate, amount int64) {
	if !j.charged[counter] {
		j.charged[counter] = true
		j.charges = append(j.charges, Charge{Counter: counter.name(j.in), Amount: amount})
	}
}

// verdict is the strictest of the rules that count, and which those are; the default's if none does.
func (j *evaluation) verdict(fallback Verdict, rehearse bool) (verdict Verdict, decided []int) {
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

func (j *evaluation) reasons(decided []int, verdict Verdict) (rules []string, reason string) {
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
		if t := j.traces[i]; t.Outcome == RuleFailed {
			say += " (it could not be judged: " + t.Error + ")"
		}
		if !said[say] {
			said[say] = true
			reasons = append(reasons, say)
		}
	}
	return rules, strings.Join(reasons, "; ")
}

func (j *evaluation) requirement(decided []int, fallback *Requirement) *Requirement {
	if decided == nil {
		return fallback.expand(j.in)
	}
	var need *Requirement
	people := 0
	for _, i := range decided {
		ask := j.rules[i].Ask.expand(j.in)
		if slices.ContainsFunc(ask.Groups, Group.isAnyone) {
			people = max(people, totalCount(ask.Groups))
		}
		need = merge(need, ask)
	}
	need.reduceAnyone(people)
	return need
}
