// Package replay evaluates rules on recorded inputs, and compares a new set with the current one.
//
//	report, err := replay.Diff(old, new, inputs)   // inputs: an iter.Seq2[policy.Input, error]
//	report.Print(os.Stdout)
//	if report.Weakens() { … }                      // a change for a person to approve
//
// The package executes nothing. Counters are the recorded ones; a rule that needs a counter that
// was not recorded fails, and the report counts such failures.
//
// [CompareHistory] works on recorded rulings instead of inputs. It compares with the recorded
// decisions, and computes missing counters.
package replay

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Summary counts decisions.
type Summary struct {
	Inputs   int                    `json:"inputs"`
	Verdicts map[policy.Verdict]int `json:"verdicts"`
	// Rules counts how often each rule decided. DryRunChanges counts how often the dry-run rules
	// would have changed the verdict.
	Rules         map[string]int `json:"rules"`
	DryRunChanges int            `json:"dryRunChanges"`
	// RuleErrors counts decisions in which a rule failed. InvalidInputs counts inputs that could
	// not be evaluated.
	RuleErrors    int `json:"ruleErrors"`
	InvalidInputs int `json:"invalidInputs"`
}

// Summarize evaluates all inputs and counts the decisions.
func Summarize(set *policy.Set, inputs iter.Seq2[policy.Input, error]) (Summary, error) {
	s := Summary{Verdicts: make(map[policy.Verdict]int), Rules: make(map[string]int)}
	for in, err := range inputs {
		if err != nil {
			return s, err
		}
		s.Inputs++
		d, err := set.Decide(in)
		if err != nil {
			s.InvalidInputs++
			continue
		}
		s.add(d)
	}
	return s, nil
}

func (s *Summary) add(d policy.Decision) {
	s.Verdicts[d.Verdict]++
	for _, id := range d.Rules {
		s.Rules[id]++
	}
	if d.DryRunVerdict != "" {
		s.DryRunChanges++
	}
	if hasRuleError(d) {
		s.RuleErrors++
	}
}

func hasRuleError(d policy.Decision) bool {
	for _, t := range d.Trace {
		if t.Outcome == policy.RuleFailed && !t.DryRun {
			return true
		}
	}
	return false
}

// Difference is an input on which two sets decide differently.
type Difference struct {
	Input         policy.Input    `json:"input"`
	Before, After policy.Decision `json:"-"`
	// What describes the difference. Weakenings lists the ways in which the new set is weaker.
	What       string   `json:"what"`
	Weakenings []string `json:"weakenings,omitempty"`
}

// Report lists the differences between two sets.
type Report struct {
	// Rules are the changes of the rules, Differences the changed decisions.
	Rules       []RuleChange `json:"rules"`
	Differences []Difference `json:"differences"`
	Inputs      int          `json:"inputs"`
	// InvalidInputs counts inputs that could not be evaluated. RuleErrors counts inputs for which a
	// rule of the new set failed.
	InvalidInputs int `json:"invalidInputs"`
	RuleErrors    int `json:"ruleErrors"`
}

// Diff compares two sets, rule by rule and on the inputs.
func Diff(before, after *policy.Set, inputs iter.Seq2[policy.Input, error]) (Report, error) {
	report := Report{Rules: Changes(before, after)}
	for in, err := range inputs {
		if err != nil {
			return report, err
		}
		report.Inputs++
		old, err := before.Decide(in)
		if err != nil {
			report.InvalidInputs++
			continue
		}
		now, err := after.Decide(in)
		if err != nil {
			report.InvalidInputs++
			continue
		}
		if hasRuleError(now) {
			report.RuleErrors++
		}
		if what := describeDifference(old, now); what != "" {
			report.Differences = append(report.Differences, Difference{Input: in, Before: old, After: now, What: what, Weakenings: policy.Weakenings(old, now)})
		}
	}
	return report, nil
}

// describeDifference describes a difference in one line. It returns "" if the verdict and the
// requirement are equal.
func describeDifference(old, now policy.Decision) string {
	from, to := strings.Join(old.Rules, ", "), strings.Join(now.Rules, ", ")
	switch {
	case old.Verdict != now.Verdict:
		return fmt.Sprintf("%s (%s) becomes %s (%s)", old.Verdict, from, now.Verdict, to)
	case len(requirement.Weakenings(old.Requirement, now.Requirement)) > 0 || len(requirement.Weakenings(now.Requirement, old.Requirement)) > 0:
		return fmt.Sprintf("still %s, with another requirement (%s, then %s)", now.Verdict, from, to)
	}
	return ""
}

// Weakens reports whether anything is weaker: a changed rule, or the decision on an input.
func (r Report) Weakens() bool {
	for _, c := range r.Rules {
		if len(c.Weakenings) > 0 {
			return true
		}
	}
	for _, d := range r.Differences {
		if len(d.Weakenings) > 0 {
			return true
		}
	}
	return false
}

// Print writes the report for people. It shows no arguments.
func (r Report) Print(w io.Writer) error {
	var b strings.Builder
	for _, c := range r.Rules {
		fmt.Fprintf(&b, "%s %s\n", c.Rule, c.What)
		printWeakenings(&b, c.Weakenings)
	}
	fmt.Fprintf(&b, "%d inputs, %d decided differently\n", r.Inputs, len(r.Differences))
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "  %s %s at %s: %s\n", d.Input.Account, d.Input.Tool, d.Input.At.UTC().Format("2006-01-02 15:04"), d.What)
		printWeakenings(&b, d.Weakenings)
	}
	if r.InvalidInputs > 0 {
		fmt.Fprintf(&b, "%d inputs were invalid\n", r.InvalidInputs)
	}
	if r.RuleErrors > 0 {
		fmt.Fprintf(&b, "for %d inputs a rule failed, perhaps because a counter was not recorded\n", r.RuleErrors)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printWeakenings(b *strings.Builder, weaker []string) {
	for _, say := range weaker {
		fmt.Fprintf(b, "    WEAKER: %s\n", say)
	}
}
