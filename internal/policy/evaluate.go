package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/fermata-go/fermata/internal/requirement"
)

// Decide evaluates all rules for the input: deny wins over ask, ask over allow, and allow over the
// default. Rules that ask are merged into one requirement. A rule that fails counts if it asks or
// denies, and does not count if it allows.
//
// Rules that allow apply to actions, and to gates and holds if their condition is about kinds or
// gates. A default that allows applies to actions only. Rules that deny do not apply to effects in
// doubt. A request to which the default does not apply is asked with the
// requirement of defaults.ask; Requirement is nil if the file has none.
//
// An error wraps [ErrInput]: the input is invalid, and the action must not be executed.
func (s *Set) Decide(in Input) (Decision, error) {
	return s.DecideContext(context.Background(), in)
}

// DecideContext is [Set.Decide] with a context. If the context ends first, the error is its cause,
// and there is no decision.
func (s *Set) DecideContext(ctx context.Context, in Input) (Decision, error) {
	j, err := s.evaluate(ctx, in)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Policy: s.digest, Version: s.version, Input: j.digest, Trace: j.traces, OtherToolRules: len(s.rules) - len(j.rules), Charges: j.charges}
	var decided []int
	fallback := s.fallback(in.kind())
	d.Verdict, decided = j.verdict(fallback, false)
	if rehearsed, _ := j.verdict(fallback, true); rehearsed != d.Verdict {
		d.DryRunVerdict = rehearsed
	}
	d.Rules, d.Reason = j.reasons(decided, d.Verdict)
	if d.Verdict == Ask {
		d.Requirement = j.requirement(decided, s.defaultAsk)
	}
	return d, nil
}

// evaluation is the evaluation of one input.
type evaluation struct {
	ctx    context.Context
	in     *Input
	vars   cel.Activation
	digest string
	cost   uint64

	defaultVerdict Verdict // as in the file
	rules          []*rule
	traces         []Trace
	charges        []Charge
	charged        map[counterTemplate]bool // the counters in charges
}

func (s *Set) evaluate(ctx context.Context, in Input) (*evaluation, error) {
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	values, err := in.values()
	if err != nil {
		return nil, err
	}
	n := len(s.byTool[in.Tool]) + len(s.general)
	j := &evaluation{ctx: ctx, in: &in, defaultVerdict: s.defaultVerdict, rules: make([]*rule, 0, n), traces: make([]Trace, 0, n), charged: make(map[counterTemplate]bool)}
	if j.digest, err = in.digest(values); err != nil {
		return nil, err
	}
	if j.vars, err = s.vars(&in, values); err != nil {
		return nil, err
	}
	if rating := s.ratingOf(in); rating != nil { //mutate:policy-rates-tool
		j.cost += rating.apply(&in, j.vars)
		if j.vars, err = s.vars(&in, values); err != nil {
			return nil, err
		}
	}
	for one := range s.candidates(in.Tool) {
		j.rules = append(j.rules, one)
		j.traces = append(j.traces, j.evalRule(one))
		if err := stopped(ctx); err != nil {
			return nil, err
		}
	}
	for _, counter := range s.sharedCounters { //mutate:all-counters-counted
		j.charge(counter, 1)
	}
	return j, nil
}

// stopped returns an error if the context has ended.
func stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("policy: the evaluation was stopped: %w", context.Cause(ctx))
}

// vars returns the variables of the expressions.
func (s *Set) vars(in *Input, values *jsonValues) (cel.Activation, error) {
	return activationOf(in, values, s.zone)
}

// activationOf returns the variables of expressions. zone is the time zone if the input has none.
func activationOf(in *Input, values *jsonValues, zone string) (cel.Activation, error) {
	return cel.PartialVars(map[string]any{
		varRequest: in.request(), varArgs: values.args, varData: values.data, varFacts: values.facts, varNow: in.At, varHistory: historyVal{in: in}, varLocal: localTime(*in, zone),
	}, in.unknownPatterns()...)
}

// localTime returns the time in the account's zone. An unknown zone is an error for the rules that
// use it.
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
	errSetBudget    = errors.New("cost limit of the rule set")
	errUnknownField = errors.New("the rule uses a field whose value is unknown")
)

func (j *evaluation) evalRule(one *rule) Trace {
	t := Trace{Rule: one.ID, Digest: one.digest, Then: one.Then, DryRun: one.DryRun, Outcome: RuleMiss}
	if !one.applies(j.in.kind()) {
		t.Outcome = RuleSkipped
		return t
	}
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

// evalCondition evaluates the condition. A value other than true or false is an error.
func (j *evaluation) evalCondition(one *rule, t *Trace) (bool, error) {
	value, err := j.eval(one.when, t)
	if err != nil {
		return false, err
	}
	held, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition returned a %s", value.Type().TypeName())
	}
	return bool(held), nil
}

func (j *evaluation) eval(program cel.Program, t *Trace) (ref.Val, error) {
	if j.cost > setCostLimit {
		return nil, errSetBudget
	}
	value, details, err := j.run(program)
	if types.IsUnknown(value) {
		err = errUnknownField
	}
	if cost := details.ActualCost(); cost != nil {
		t.Cost += *cost
		j.cost += *cost
	}
	return value, err
}

// run runs a program until the context ends.
func (j *evaluation) run(program cel.Program) (ref.Val, *cel.EvalDetails, error) {
	if j.ctx.Done() == nil {
		return program.Eval(j.vars)
	}
	return program.ContextEval(j.ctx, j.vars)
}

// evalLimit reports whether a rule with a limit matches, given that its condition holds. Exceeding
// the limit matches rules that ask or deny. Staying within it matches rules that allow.
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

// chargeCounts charges one action to every counter that history.count reads.
func (j *evaluation) chargeCounts(one *rule) {
	for _, count := range one.info.counts {
		j.charge(count.counterTemplate, 1)
	}
}

// charge charges a counter once. Rules that use the same counter refer to the same action.
func (j *evaluation) charge(counter counterTemplate, amount int64) {
	if !j.charged[counter] {
		j.charged[counter] = true
		j.charges = append(j.charges, Charge{Counter: counter.name(j.in), Amount: amount})
	}
}

// defaultRequirement returns the requirement of the default. If it names no people, one person is
// asked. A nil requirement is nil.
func defaultRequirement(req *Requirement, in *Input) *Requirement {
	if req == nil {
		return nil
	}
	need := expand(req, in)
	if len(need.Groups) == 0 {
		need.Groups = []Group{{From: []string{requirement.Anyone}, Count: 1}}
	}
	return need
}

// verdict returns the strictest verdict of the rules that count, and their indexes. If none counts,
// it returns the default.
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
		if verdict != j.defaultVerdict {
			return []string{DefaultRule}, fmt.Sprintf("no rule matches, and the default %s does not apply to %s", j.defaultVerdict, j.in.kind())
		}
		return []string{DefaultRule}, fmt.Sprintf("no rule matches, and the default is %s", verdict)
	}
	var reasons []string
	for _, i := range decided {
		rules = append(rules, j.rules[i].ID)
		reason := cmp.Or(j.rules[i].Reason, "rule "+j.rules[i].ID)
		if t := j.traces[i]; t.Outcome == RuleFailed {
			reason += " (evaluation failed: " + t.Error + ")"
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return rules, strings.Join(reasons, "; ")
}

func (j *evaluation) requirement(decided []int, fallback *Requirement) *Requirement {
	if decided == nil {
		return defaultRequirement(fallback, j.in)
	}
	asks := make([]Requirement, len(decided))
	for i, rule := range decided {
		asks[i] = *expand(j.rules[rule].Ask, j.in)
	}
	need := asks[0].Merge(asks[1:]...)
	return &need
}
