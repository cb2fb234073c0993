// Package replay asks rules about the past: what they would say of inputs that were recorded, and what would change if
// another set took the place of the one in use.
//
//	report, err := replay.Diff(old, new, inputs)   // inputs: an iter.Seq2[policy.Input, error]
//	report.Print(os.Stdout)
//	if report.Weakens() { … }                      // a change for a person to approve
//
// It runs nothing and asks nobody. Numbers from the past are the recorded ones; a rule that needs one which was not recorded
// cannot be judged, and the report says how often that was.
//
// Whoever keeps rulings, and not just inputs, has [CompareHistory]: it compares with what was said then, and counts anew what was not recorded.
package replay

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/fermata-go/fermata/policy"
)

// Summary counts decisions.
type Summary struct {
	Inputs   int                    `json:"inputs"`
	Verdicts map[policy.Verdict]int `json:"verdicts"`
	// Rules says how often each rule was among those that decided, Rehearsed how often the dry-run rules would have changed the verdict.
	Rules         map[string]int `json:"rules"`
	DryRunChanges int            `json:"rehearsed"`
	// Unjudged counts the decisions in which a rule could not be judged, Refused the inputs that were none.
	RuleErrors    int `json:"unjudged"`
	InvalidInputs int `json:"refused"`
}

// Summarize simulates and counts.
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

// Difference is one input of which two sets say different things.
type Difference struct {
	Input         policy.Input    `json:"input"`
	Before, After policy.Decision `json:"-"`
	// What says what differs, Weaker in which ways the new set lets more through.
	What       string   `json:"what"`
	Weakenings []string `json:"weaker,omitempty"`
}

// Report is what would change.
type Report struct {
	// Rules are the changes in the file itself, Differences those in decisions on the inputs.
	Rules       []RuleChange `json:"rules"`
	Differences []Difference `json:"differences"`
	Inputs      int          `json:"inputs"`
	// Refused counts inputs that neither set could judge, Unjudged those in which a rule of the new set could not be judged.
	InvalidInputs int `json:"refused"`
	RuleErrors    int `json:"unjudged"`
}

// Diff compares two sets, rule by rule and over the inputs.
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

// describeDifference says in one line what is another; "" if who is asked, and for what, stays the same.
func describeDifference(old, now policy.Decision) string {
	from, to := strings.Join(old.Rules, ", "), strings.Join(now.Rules, ", ")
	switch {
	case old.Verdict != now.Verdict:
		return fmt.Sprintf("%s (%s) becomes %s (%s)", old.Verdict, from, now.Verdict, to)
	case len(policy.RequirementWeakenings(old.Requirement, now.Requirement)) > 0 || len(policy.RequirementWeakenings(now.Requirement, old.Requirement)) > 0:
		return fmt.Sprintf("still %s, with other demands (%s, then %s)", now.Verdict, from, to)
	}
	return ""
}

// Weakens reports whether anything gets easier: by a rule that changed, or for one of the inputs.
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
		fmt.Fprintf(&b, "%d inputs could not be judged at all\n", r.InvalidInputs)
	}
	if r.RuleErrors > 0 {
		fmt.Fprintf(&b, "with %d inputs a rule could not be judged, perhaps because a number was not recorded\n", r.RuleErrors)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printWeakenings(b *strings.Builder, weaker []string) {
	for _, say := range weaker {
		fmt.Fprintf(b, "    WEAKER: %s\n", say)
	}
}
